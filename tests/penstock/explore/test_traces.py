"""How commands are shown and compared."""

from __future__ import annotations

import pytest

from penstock.explore.traces import Call, first_difference, waits
from tests.penstock.explore.calls import WORKER, write


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("XACK orders kitchen 1700000000000-0", "XACK orders kitchen 1700000000001-3"),
        ("SET lock 6fa459ea-ee8a-3ca4-894e-db77e160355e", "SET lock " + 8 * "0123"),
        ("ZADD due 1700000000.25 tea", "ZADD due 1800000000.75 tea"),
    ],
)
def test_ids_tokens_and_times_do_not_count_as_a_difference(one: str, other: str) -> None:
    assert first_difference([write(one)], [write(other)]) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-11-29T08:39:10.192661Z", "2026-11-29T08:39:11Z"),
        ("2026-11-29T08:39:10+00:00", "2027-01-01T00:00:00.5+01:00"),
        ("2026-11-29 08:39:10.192", "2026-11-29 08:39:10"),
    ],
)
def test_a_time_in_digits_and_signs_is_no_difference_either(one: str, other: str) -> None:
    first, now = ([Call(("HSET", "worker", "seen", time))] for time in (one, other))
    assert first_difference(first, now) is None


def test_another_day_is_a_difference() -> None:
    today, tomorrow = ([write(f"INCR visits:2026-11-{day}")] for day in (29, 30))
    assert first_difference(today, tomorrow) is not None


def test_the_first_command_that_differs_is_told() -> None:
    now = [*WORKER[:1], write("INCRBY total 6"), *WORKER[2:]]
    assert str(first_difference(WORKER, now)) == "command 1 was INCRBY total 5, now INCRBY total 6"


def test_what_is_missing_or_too_much_is_told() -> None:
    assert str(first_difference(WORKER[:2], WORKER[:1])) == (
        "command 1 was INCRBY total 5, now none"
    )
    assert str(first_difference(WORKER[:1], WORKER[:2])) == (
        "command 1 was not there, now INCRBY total 5"
    )


def test_only_what_is_before_the_fault_is_compared() -> None:
    assert first_difference(WORKER, WORKER[:2], until=2) is None


def test_long_words_and_commands_are_cut() -> None:
    assert str(Call(("SET", "key", "x" * 100))) == "SET key " + "x" * 57 + "..."
    assert len(str(Call(("DEL", *["key"] * 100)))) == 150


def test_a_command_stays_in_its_line() -> None:
    assert str(Call(("EVAL", "return\n1", "0"))) == r"EVAL return\n1 0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BLPOP queue 0", True),
        ("xreadgroup GROUP g c block 0 STREAMS s >", True),
        ("XREADGROUP GROUP g c STREAMS s >", False),
        ("GET key", False),
    ],
)
def test_which_commands_may_wait(text: str, expected: bool) -> None:
    assert waits(text.split()) is expected
