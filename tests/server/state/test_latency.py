from __future__ import annotations

from typing import Any

import pytest

from server.config.registry import Config
from server.state.latency import COMMAND, FAST_COMMAND, KEPT, LatencyMonitor
from tests.support.direct import START_MS, Direct

MS = 1_000_000
SECOND = START_MS // 1000


class Rig:
    """A latency monitor with clocks that stand still."""

    def __init__(self, threshold: int = 10) -> None:
        self.now_ms = START_MS
        self.ns = 5
        self.config = Config(latency_monitor_threshold=threshold)
        self.monitor = LatencyMonitor(self.config, lambda: self.now_ms, lambda: self.ns)

    def samples(self, event: bytes = COMMAND) -> list[tuple[int, int]]:
        return list(self.monitor.events[event].samples)


def test_what_takes_as_long_as_the_threshold_is_noted() -> None:
    rig = Rig(threshold=10)
    rig.monitor.note(COMMAND, 10 * MS - 1)
    assert rig.monitor.events == {}
    rig.monitor.note(COMMAND, 10 * MS)
    assert rig.samples() == [(SECOND, 10)]


def test_nothing_is_noted_without_a_threshold() -> None:
    rig = Rig(threshold=0)
    rig.monitor.note(COMMAND, 10**12)
    assert rig.monitor.events == {}


def test_of_one_second_the_longest_is_kept() -> None:
    rig = Rig()
    for milliseconds in (20, 50, 30):
        rig.monitor.note(COMMAND, milliseconds * MS)
    rig.now_ms += 1000
    rig.monitor.note(COMMAND, 12 * MS)
    assert rig.samples() == [(SECOND, 50), (SECOND + 1, 12)]
    assert rig.monitor.events[COMMAND].highest == 50


def test_so_many_samples_are_kept_and_the_highest_ever() -> None:
    rig = Rig()
    rig.monitor.note(COMMAND, 99 * MS)
    for _ in range(KEPT):
        rig.now_ms += 1000
        rig.monitor.note(COMMAND, 10 * MS)
    assert len(rig.samples()) == KEPT == 160
    assert rig.samples()[0] == (SECOND + 1, 10)
    assert rig.monitor.events[COMMAND].highest == 99


def test_what_begins_and_ends_is_measured() -> None:
    rig = Rig()
    began = rig.monitor.begin()
    rig.ns += 30 * MS
    rig.monitor.end(b"event", began)
    assert rig.samples(b"event") == [(SECOND, 30)]


def test_what_began_while_nothing_was_watched_is_not() -> None:
    rig = Rig(threshold=0)
    began = rig.monitor.begin()
    rig.config.set_text("latency-monitor-threshold", "1")
    rig.ns += 30 * MS
    rig.monitor.end(b"event", began)
    assert rig.monitor.events == {}


def test_events_are_forgotten_by_name_or_all() -> None:
    rig = Rig()
    for event in (b"a", b"b", b"c"):
        rig.monitor.note(event, 10 * MS)
    assert rig.monitor.forget([b"a", b"x", b"a"]) == 1
    assert list(rig.monitor.events) == [b"b", b"c"]
    assert rig.monitor.forget([]) == 2
    assert rig.monitor.forget([]) == 0


class TestOfAServer:
    def events(self, direct: Direct) -> dict[bytes, int]:
        """The highest sample of each event."""
        found = direct.server.state.timings.latency.events
        return {event: series.highest for event, series in found.items()}

    def ran(self, direct: Direct, name: bytes, milliseconds: int) -> None:
        state = direct.server.state
        session = state.new_session(1, "127.0.0.1:50000")
        state.timings.count(session, state.table[name], [name], milliseconds * MS)

    @pytest.mark.parametrize(
        "settings", [{}, {"slowlog_log_slower_than": -1}, {"slowlog_max_len": 0}]
    )
    def test_commands_that_should_be_fast_are_an_event_of_their_own(
        self, settings: dict[str, Any]
    ) -> None:
        direct = Direct(latency_monitor_threshold=10_000, **settings)
        self.ran(direct, b"xrange", 9_999)
        self.ran(direct, b"xrange", 20_000)
        self.ran(direct, b"xadd", 30_000)
        assert self.events(direct) == {COMMAND: 20_000, FAST_COMMAND: 30_000}

    def test_exec_is_one_though_it_is_not_in_the_slow_log(self) -> None:
        direct = Direct(latency_monitor_threshold=10_000)
        self.ran(direct, b"exec", 20_000)
        assert self.events(direct) == {COMMAND: 20_000}
        assert not direct.server.state.timings.slow_log.entries

    def test_expiry_is_one(self) -> None:
        direct = Direct(latency_monitor_threshold=1)
        stats = direct.server.state.stats
        direct.cron()
        assert stats.expiry_ns > 0
