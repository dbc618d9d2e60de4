"""Which commands depend on each other."""

from __future__ import annotations

import pytest

from penstock.explore.footprints import EVERYTHING, NOTHING, Footprint, dependent, joined

READ: Footprint = {"stock": False}
WRITE: Footprint = {"stock": True}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (READ, READ, False),
        (READ, WRITE, True),
        (WRITE, WRITE, True),
        (WRITE, {"other": True}, False),
        ({"a": False, "stock": True}, READ, True),
        (EVERYTHING, READ, True),
        (EVERYTHING, EVERYTHING, True),
        (EVERYTHING, NOTHING, False),
        (NOTHING, WRITE, False),
    ],
)
def test_two_depend_on_each_other_if_one_writes_what_both_use(
    one: Footprint, other: Footprint, expected: bool
) -> None:
    assert dependent(one, other) is expected
    assert dependent(other, one) is expected


def test_what_runs_as_one_step_uses_what_both_use() -> None:
    assert joined({"a": False, "b": True}, {"a": True, "c": False}) == {
        "a": True,
        "b": True,
        "c": False,
    }
