"""Counters of 64 bits, as they are shown and as they are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.stream import signed, unsigned


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (2**63, -(2**63)),
        (2**64 - 1, -1),
        (2**64, 0),
        (-5, -5),
        (3 - 2**63, 3 - 2**63),
    ],
)
def test_a_counter_wraps_around(value: int, shown: int) -> None:
    assert signed(value) == shown


@given(st.integers(0, 2**64 - 1))
def test_what_is_shown_is_what_is_kept(value: int) -> None:
    assert unsigned(signed(value)) == value
