"""What the latency monitor notes of the append-only file."""

from __future__ import annotations

from server.state.latency import LatencyMonitor
from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

SECOND_NS = 1_000_000_000


class Ticking:
    """A clock on which a second passes each time that it is read."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += SECOND_NS
        return self.now


def watch(rig: Rig) -> LatencyMonitor:
    """The latency monitor of a server on which everything takes a second at least."""
    monitor = rig.server.state.timings.latency
    monitor.nanoseconds = Ticking()
    rig.server.state.config.set_text("latency-monitor-threshold", "1000")
    monitor.forget([])
    return monitor


async def test_writes_are_noted_by_what_else_uses_the_disk(start: Start) -> None:
    rig = await start(appendfsync="no")
    monitor = watch(rig)
    await rig.ask("SET", "k", "v")
    assert list(monitor.events) == [b"aof-write", b"aof-write-alone"]
    assert [series.highest for series in monitor.events.values()] == [1000, 2000]


async def test_writes_during_a_rewrite_are_told_apart(start: Start) -> None:
    rig = await start(appendfsync="no")
    await rig.ask("BGREWRITEAOF")
    monitor = watch(rig)
    await rig.ask("SET", "k", "v")
    assert b"aof-write-active-child" in monitor.events
    await rig.rewritten()


async def test_writes_during_a_sync_are_told_apart(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    await rig.ask("SET", "k", "v")
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    monitor = watch(rig)
    await rig.ask("SET", "k", "w")
    assert list(monitor.events) == [b"aof-write", b"aof-write-pending-fsync"]
    rig.disk.gate.set()


async def test_a_sync_that_replies_wait_for_is_an_event_beside_its_write(start: Start) -> None:
    rig = await start(appendfsync="always")
    monitor = watch(rig)
    await rig.ask("SET", "k", "v")
    assert list(monitor.events) == [b"aof-write", b"aof-write-alone", b"aof-fsync-always"]


async def test_writes_that_are_exempt_from_syncs_are_another(start: Start) -> None:
    rig = await start(appendfsync="always", no_appendfsync_on_rewrite="yes")
    await rig.ask("BGREWRITEAOF")
    await rig.disk_rests()
    monitor = watch(rig)
    await rig.ask("SET", "k", "v")
    assert list(monitor.events) == [b"aof-write", b"aof-write-active-child"]
    await rig.rewritten()
