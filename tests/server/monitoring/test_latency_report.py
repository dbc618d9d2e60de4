from __future__ import annotations

import pytest

from server.config.registry import Config
from server.monitoring.latency import (
    COMMAND,
    DISABLED,
    EXPIRY,
    FORK,
    FSYNC,
    NOTHING_NOTED,
    OFF,
    LatencyMonitor,
    Series,
    age,
    diagnosis,
    graph,
)

NOW = 1_700_000_000
LINE = "-" * 80 + "\n"


def series_of(*milliseconds: int) -> Series:
    """A sample each second, the last one now."""
    series = Series()
    for at, value in enumerate(milliseconds, 1 - len(milliseconds)):
        series.add(NOW + at, value)
    return series


def test_the_longest_sample_reaches_the_top() -> None:
    """As Redis 8.0.6 drew samples of the same lengths."""
    assert graph(b"command", series_of(3, 5, 2, 20, 8, 8, 3, 2, 2, 2), NOW + 1) == (
        "command - high 20 ms, low 2 ms (all time high 20 ms)\n"
        + LINE
        + "   #      \n"
        + "   |      \n"
        + "   |oo    \n"
        + "_#_|||____\n"
        + "          \n"
        + "1987654321\n"
        + "0sssssssss\n"
        + "s         \n\n"
    )


def test_a_single_sample_is_low() -> None:
    assert graph(b"fork", series_of(30), NOW) == (
        "fork - high 30 ms, low 30 ms (all time high 30 ms)\n" + LINE + " \n" * 3 + "_\n \n0\ns\n\n"
    )


def test_more_than_eighty_samples_are_drawn_in_two_parts_to_one_scale() -> None:
    drawn = graph(b"command", series_of(*[30] * 80, 10, 20), NOW)
    head, _, *parts = drawn.split("\n")
    assert head == "command - high 30 ms, low 10 ms (all time high 30 ms)"
    first, second = "\n".join(parts).split("\n\n")[:2]
    assert first.split("\n")[:5] == ["#" * 80, "|" * 80, "|" * 80, "|" * 80, " " * 80]
    assert second == "  \n _\n |\n_|\n  \n10\nss"


def test_the_highest_of_all_time_may_have_gone() -> None:
    series = series_of(*[10] * 160)
    series.highest = 99
    assert graph(b"command", series, NOW).startswith(
        "command - high 10 ms, low 10 ms (all time high 99 ms)\n"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86400, "1d")],
)
def test_ages_are_written_in_their_largest_unit(seconds: int, text: str) -> None:
    assert age(seconds) == text


class TestDiagnosis:
    def of(
        self, events: dict[bytes, Series], slow_ns: int = 10_000_000, threshold: int = 10
    ) -> str:
        monitor = LatencyMonitor(Config(), lambda: NOW * 1000)
        monitor.events = events
        return diagnosis(monitor, threshold, slow_ns)

    def test_a_monitor_that_is_off_says_how_to_turn_it_on(self) -> None:
        assert self.of({COMMAND: series_of(10)}, threshold=0) == DISABLED

    def test_nothing_has_taken_long(self) -> None:
        assert self.of({}) == NOTHING_NOTED

    def test_each_event_is_summed_up(self) -> None:
        text = self.of({COMMAND: series_of(10, 20, 60), FORK: series_of(30)})
        head, first, second, *_ = text.split("\n")
        assert head == "The server has been held up:"
        assert first == (
            "1. command: in 3 seconds (average 30 ms, mean deviation 20 ms, 1.00 s apart)."
            " Longest: 60 ms."
        )
        assert second == "2. fork: once (average 30 ms, mean deviation 0 ms). Longest: 30 ms."

    @pytest.mark.parametrize(
        ("event", "advice"),
        [(COMMAND, "SLOWLOG GET"), (FORK, "huge pages"), (FSYNC, "everysec"), (EXPIRY, "live")],
    )
    def test_there_is_advice_for_each_kind(self, event: bytes, advice: str) -> None:
        found = self.of({event: series_of(10)}).split("What may help:\n")[1]
        assert advice in found
        assert found.count("\n") == 1

    def test_the_slow_log_should_begin_where_the_monitor_does(self) -> None:
        late = self.of({FORK: series_of(10)}, slow_ns=50_000_000)
        assert "only from 50 ms on" in late
        assert "CONFIG SET slowlog-log-slower-than 10000" in late
        assert "The slow log is off" in self.of({FORK: series_of(10)}, slow_ns=OFF)
