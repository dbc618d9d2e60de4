"""Which commands depend on each other."""

from __future__ import annotations

import pytest

from penstock.explore.footprints import (
    EVERYTHING,
    NOTHING,
    Footprint,
    TransactionFootprint,
    dependent,
    joined,
)

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


def touched(*commands: str) -> list[Footprint]:
    """What each command of a connection touches: the key behind its name, which SET writes."""

    def uses(words: tuple[str, ...]) -> Footprint:
        return {words[1]: words[0] == "SET"} if words[1:] else NOTHING

    transaction = TransactionFootprint(uses)
    return [transaction.footprint(tuple(command.split())) for command in commands]


def test_exec_touches_what_is_watched_and_queued() -> None:
    watch, get = {"a": False}, {"c": False}
    assert touched("WATCH a", "GET c", "MULTI", "SET b", "SET a", "EXEC", "GET c", "EXEC") == [
        *(watch, get, NOTHING, NOTHING, NOTHING, {"a": True, "b": True}, get, NOTHING)
    ]


def test_what_is_discarded_touches_nothing() -> None:
    assert touched("WATCH a", "MULTI", "SET b", "DISCARD", "MULTI", "SET c", "EXEC") == [
        *({"a": False}, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, {"c": True})
    ]
