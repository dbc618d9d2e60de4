"""Which replies say that there was nothing to do."""

from __future__ import annotations

import pytest

from penstock.explore.function_lives import found_nothing


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (None, True),
        ([], True),
        ({}, True),
        (["0-0", [], []], True),
        (["0-0", [["1-0", {}]], []], False),
        (["a", "b"], False),
        (0, False),
        ("", False),
        ([["orders", [["1-0", {}]]]], False),
    ],
)
def test_what_has_found_nothing_is_known_by_its_reply(reply: object, expected: bool) -> None:
    assert found_nothing(reply) is expected
