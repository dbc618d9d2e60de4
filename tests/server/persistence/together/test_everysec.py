"""``appendfsync everysec`` and ``no``: what is written and synced when, and what a slow disk does.

The clock is the test's; a sync hangs for as long as the gate of the disk is closed.
"""

from __future__ import annotations

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig, RigClient
from tests.support.checksum_lines import without_lines


async def written(rig: Rig, key: str) -> bool:
    """Whether the increment says something of a key, once the round has ended."""
    assert await rig.ask("PING") == b"PONG"
    return any(key in line for line in rig.commands("1.incr.aof"))


async def hang(rig: Rig) -> None:
    """Lets a sync begin that does not end, while time stands still for jobs on the disk."""
    assert await rig.ask("SET", "before", 1) == b"OK"
    let_time_pass(rig, 0)
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)


def let_time_pass(rig: Rig, seconds: float) -> None:
    """Lets so much time pass for jobs on the disk."""
    later = rig.persistence._jobs.clock() + seconds
    rig.persistence._jobs.clock = lambda: later


async def test_a_command_is_answered_and_written_without_a_sync(start: Start) -> None:
    rig = await start()
    rig.disk.syncs.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    assert await written(rig, "k")
    assert rig.disk.syncs == []


async def test_a_sync_begins_in_time_to_keep_the_second(start: Start) -> None:
    rig = await start(hz=10)
    rig.cron()
    rig.disk.syncs.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.cron(699)
    await rig.disk_rests()
    assert rig.disk.syncs == []
    rig.cron(1)
    await rig.disk_rests()
    assert rig.disk.syncs == ["appendonly.aof.1.incr.aof"]
    rig.cron(1000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_a_server_with_few_rounds_a_second_syncs_in_each(start: Start) -> None:
    rig = await start(hz=1)
    rig.cron()
    rig.disk.syncs.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.cron()
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_a_clock_that_is_set_back_does_not_put_off_the_sync(start: Start) -> None:
    rig = await start()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.disk.syncs.clear()
    rig.cron(-3_600_000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_a_command_is_answered_when_it_is_in_the_file_though_a_sync_is_going_on(
    start: Start,
) -> None:
    rig = await start()
    await hang(rig)
    assert await rig.ask("SET", "during", 1) == b"OK"
    assert "SET during 1" in rig.commands("1.incr.aof")
    info = await rig.info()
    assert (info["aof_buffer_length"], info["aof_pending_bio_fsync"]) == ("0", "1")
    rig.disk.gate.set()
    await rig.disk_rests()
    rig.disk.syncs.clear()
    rig.cron(1000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_writers_stall_when_the_disk_is_silent_for_two_seconds(start: Start) -> None:
    rig = await start()
    await hang(rig)
    let_time_pass(rig, 1.9)
    rig.cron()
    assert await rig.ask("SET", "soon", 1) == b"OK"
    let_time_pass(rig, 0.2)
    rig.cron()
    rig.cron()
    writer = rig.client()
    writer.send("SET late 1")
    assert await rig.ask("GET", "before") == b"1"
    assert not await writer.has_reply()
    assert (await rig.info())["aof_delayed_fsync"] == "1"
    rig.disk.gate.set()
    assert await writer.reply() == b"OK"
    assert rig.log[-1] == (
        "The disk takes more than two seconds for the append-only file:"
        " commands that write have to wait"
    )


async def stalled(start: Start) -> tuple[Rig, RigClient]:
    """A server whose disk has been silent for too long, and a client that writes."""
    rig = await start()
    await hang(rig)
    let_time_pass(rig, 2.1)
    rig.cron()
    writer = rig.client()
    writer.send("SET late 1")
    return rig, writer


async def test_a_pause_that_ends_during_a_stall_does_not_end_the_stall(start: Start) -> None:
    rig, writer = await stalled(start)
    assert await rig.ask("CLIENT", "PAUSE", 100_000, "WRITE") == b"OK"
    assert await rig.ask("CLIENT", "UNPAUSE") == b"OK"
    assert not await writer.has_reply()
    rig.disk.gate.set()
    assert await writer.reply() == b"OK"


async def test_a_stall_that_ends_during_a_pause_does_not_end_the_pause(start: Start) -> None:
    rig, writer = await stalled(start)
    assert await rig.ask("CLIENT", "PAUSE", 100_000, "WRITE") == b"OK"
    rig.disk.gate.set()
    await rig.disk_rests()
    assert not await writer.has_reply()
    assert await rig.ask("CLIENT", "UNPAUSE") == b"OK"
    assert await writer.reply() == b"OK"


async def test_a_command_that_stalled_does_not_run_when_the_server_ends(start: Start) -> None:
    rig, writer = await stalled(start)
    await rig.until(lambda: rig.server.services.pauses.held)
    rig.disk.gate.set()
    await rig.server.stop()
    assert b"late" not in rig.server.state.keyspace.databases[0].values
    assert await writer.reply() == "closed"


async def test_the_system_decides_when_to_sync_if_the_policy_is_no(start: Start) -> None:
    rig = await start(appendfsync="no")
    rig.disk.syncs.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.cron(60_000)
    await rig.disk_rests()
    assert await written(rig, "k")
    assert rig.disk.syncs == []
    assert await rig.ask("CONFIG", "SET", "appendfsync", "everysec") == b"OK"
    rig.cron()
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_a_rewrite_may_put_off_the_sync(start: Start) -> None:
    rig = await start(no_appendfsync_on_rewrite=True)
    assert await rig.ask("BGREWRITEAOF") == b"Background append only file rewriting started"
    await rig.disk_rests()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.disk.syncs.clear()
    rig.persistence.appender.cron(rig.now_ms + 5000)
    await rig.disk_rests()
    assert rig.disk.syncs == []
    await rig.rewritten()
    rig.cron(5000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1


async def test_when_consumers_were_seen_is_written_once_a_second(start: Start) -> None:
    rig = await start()
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    assert await rig.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") is None
    rig.cron(1000)
    await rig.disk_rests()
    assert await rig.ask("PING") == b"PONG"
    before = (rig.folder / "appendonly.aof.1.incr.aof").stat().st_size
    rig.now_ms += 10
    assert await rig.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") is None
    rig.cron(900)
    await rig.disk_rests()
    assert await rig.ask("PING") == b"PONG"
    assert (rig.folder / "appendonly.aof.1.incr.aof").stat().st_size == before
    rig.cron(100)
    await rig.disk_rests()
    assert await rig.ask("PING") == b"PONG"
    tail = (rig.folder / "appendonly.aof.1.incr.aof").read_bytes()[before:]
    assert b"seen" in tail
    assert b"1700000001010" in tail


async def test_the_time_stands_before_what_happened_once_a_second(start: Start) -> None:
    rig = await start(aof_timestamp_enabled=True)
    for _ in range(2):
        assert await rig.ask("SET", "k", 1) == b"OK"
        assert await rig.ask("SET", "k", 2) == b"OK"
        rig.now_ms += 1000
    await rig.stop()
    data = without_lines((rig.folder / "appendonly.aof.1.incr.aof").read_bytes())
    assert data.count(b"#TS:") == 2
    assert data.count(b"#TS:1700000000\r\n*") == 1
    assert data.count(b"$1\r\n2\r\n#TS:1700000001\r\n*") == 1
    again = await start()
    assert again.state[-1] == "SET k 2"


async def test_the_disk_is_synced_though_the_clock_of_the_server_stands_still(
    start: Start,
) -> None:
    rig = await start(enable_debug_command="yes")
    assert await rig.ask("DEBUG", "CLOCK", "FREEZE", 1000) == b"OK"
    rig.cron()
    rig.disk.syncs.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.cron(1000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == 1
