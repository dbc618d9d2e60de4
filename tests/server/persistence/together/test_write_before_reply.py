"""``everysec`` and ``no``: what goes out to clients goes out after it is in the file.

The end of the process alone then takes nothing along that anybody was told of. The write is that of
the event loop, or that of a second thread while a sync is going on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.net.connection import Connection
from server.traffic.output_gate import LARGE
from tests.server.persistence.conftest import Start
from tests.server.persistence.disks import TestDisk
from tests.server.persistence.rig import Rig, RigClient

BOTH = pytest.mark.parametrize("policy", ["everysec", "no"])


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in its order: ``write`` to a file, ``release`` or ``emit`` to a client."""
    calls: list[str] = []

    def noting(kind: type, name: str) -> None:
        original: Callable[..., object] = getattr(kind, name)

        def noted(self: object, *args: object) -> object:
            calls.append(name.strip("_"))
            return original(self, *args)

        monkeypatch.setattr(kind, name, noted)

    noting(TestDisk, "write")
    noting(Connection, "release")
    return calls


async def clients_of(rig: Rig, count: int) -> list[RigClient]:
    """So many more clients, which are connected."""
    clients = [rig.client() for _ in range(count)]
    for client in clients:
        assert await client.ask("PING") == b"PONG"
    return clients


@BOTH
async def test_a_reply_goes_out_after_the_write(
    start: Start, order: list[str], policy: str
) -> None:
    rig = await start(appendfsync=policy)
    order.clear()
    assert await rig.ask("SET", "k", "v") == b"OK"
    assert order == ["write", "release"]


@BOTH
async def test_the_commands_of_all_clients_of_a_round_are_one_write(
    start: Start, order: list[str], policy: str
) -> None:
    rig = await start(appendfsync=policy)
    clients = await clients_of(rig, 3)
    order.clear()
    requests = [b"SET k%d a\r\nSET k%d b\r\n" % (number, number) for number in range(3)]
    rig.deliver(*zip(clients, requests, strict=True))
    for client in clients:
        assert [await client.reply(), await client.reply()] == [b"OK", b"OK"]
    assert order == ["write", "release", "release", "release"]


async def test_a_command_that_changes_nothing_waits_for_nothing(
    start: Start, order: list[str]
) -> None:
    rig = await start()
    order.clear()
    assert await rig.ask("GET", "k") is None
    assert await rig.ask("DEL", "k") == 0
    assert order == []


@BOTH
async def test_a_reader_that_is_woken_gets_its_entry_after_the_write(
    start: Start, order: list[str], policy: str
) -> None:
    rig = await start(appendfsync=policy)
    [reader] = await clients_of(rig, 1)
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    reader.send("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    await rig.until(lambda: rig.server.services.blocking.waiters)
    order.clear()
    assert await rig.ask("XADD", "s", "1-1", "f", "v") == b"1-1"
    assert await reader.reply() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert order[0] == "write"
    assert order.count("write") == 1
    told = [line[:18] for line in rig.commands("1.incr.aof")[-5:]]
    assert told == ["XADD s 1-1 f v", "MULTI", "XCLAIM s g c 0 1-1", "XGROUP SETID s g 1", "EXEC"]


@BOTH
async def test_messages_go_out_after_the_write_of_what_they_tell(
    start: Start, order: list[str], policy: str
) -> None:
    rig = await start(appendfsync=policy, notify_keyspace_events="KEA")
    [listener] = await clients_of(rig, 1)
    assert await listener.ask("PSUBSCRIBE", "*") == [b"psubscribe", b"*", 1]
    order.clear()
    rig.first.write(b"SET k v\r\nPUBLISH news k\r\n")
    told = [(await listener.reply())[2:] for _ in range(3)]
    assert told == [[b"__keyspace@0__:k", b"set"], [b"__keyevent@0__:set", b"k"], [b"news", b"k"]]
    assert order[:2] == ["write", "release"]


@BOTH
async def test_events_of_a_transaction_go_out_after_all_of_it_is_written(
    start: Start, order: list[str], policy: str
) -> None:
    rig = await start(appendfsync=policy, notify_keyspace_events="KEA")
    [listener] = await clients_of(rig, 1)
    assert await listener.ask("SUBSCRIBE", "__keyevent@0__:set") is not None
    order.clear()
    rig.first.write(b"MULTI\r\nSET k v\r\nSET k w\r\nEXEC\r\n")
    assert [(await listener.reply())[2] for _ in range(2)] == [b"k", b"k"]
    assert order[:2] == ["write", "release"]
    assert order.count("write") == 1


async def test_what_a_unit_did_not_change_holds_nobody_up(start: Start) -> None:
    rig = await start()
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    assert await rig.ask("XGROUP", "CREATECONSUMER", "s", "g", "c") == 1
    read = ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    assert await rig.ask("MULTI") == b"OK"
    assert await rig.ask(*read) == b"QUEUED"
    assert await rig.ask("EXEC") == [None]
    assert not rig.server.services.commit.holding


async def test_who_asks_while_a_script_takes_long_is_told_so_at_once(start: Start) -> None:
    rig = await start(busy_reply_threshold=1)
    [other] = await clients_of(rig, 1)
    rig.first.send(("EVAL", "redis.call('SET', 'k', 1) while true do end", 0))
    await rig.until(lambda: rig.server.services.scripting.busy)
    assert str(await other.ask("GET", "k")).startswith("BUSY ")
    assert str(await other.ask("SCRIPT", "KILL")).startswith("UNKILLABLE ")
    other.send("SHUTDOWN NOSAVE")
    await rig.until(rig.server.stopping.is_set)


async def test_much_is_not_kept_until_the_end_of_the_round(start: Start, order: list[str]) -> None:
    rig = await start()
    large = b"x" * LARGE
    rig.server.state.keyspace.databases[0].values[b"large"] = large
    order.clear()
    rig.first.write(b"SET k 1\r\nGET large\r\nSET k 2\r\nGET large\r\n")
    assert [await rig.first.reply() for _ in range(4)] == [b"OK", large] * 2
    assert order == ["write", "release", "release"] * 2


# --- while a sync is going on ----------------------------------------------------------------


async def stuck(rig: Rig, writer: RigClient) -> None:
    """Lets a sync take long, and beside it the write of a command."""
    assert await rig.ask("SET", "before", 1) == b"OK"
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    rig.disk.write_gate.clear()
    writer.send("SET k 1")
    await rig.until(rig.disk.write_waiting.is_set)


async def test_replies_wait_for_a_write_that_takes_long_and_the_event_loop_does_not(
    start: Start,
) -> None:
    rig = await start()
    writer, reader, later = await clients_of(rig, 3)
    await stuck(rig, writer)
    reader.send("GET k")
    later.send("SET k 2")
    await rig.until(lambda: rig.server.state.keyspace.databases[0].values[b"k"] == b"2")
    for client in (writer, reader, later):
        assert not await client.has_reply()
    rig.disk.write_gate.set()
    assert [await writer.reply(), await reader.reply()] == [b"OK", b"1"]
    assert await later.reply() == b"OK"
    assert rig.commands("1.incr.aof")[-2:] == ["SET k 1", "SET k 2"]
    assert (await rig.info())["aof_pending_bio_fsync"] == "1"


async def test_events_of_a_transaction_wait_for_their_own_write(
    start: Start, order: list[str]
) -> None:
    rig = await start(notify_keyspace_events="KEA")
    writer, listener = await clients_of(rig, 2)
    assert await listener.ask("SUBSCRIBE", "__keyevent@0__:set") is not None
    await stuck(rig, writer)
    order.clear()
    rig.first.write(b"MULTI\r\nSET x 1\r\nEXEC\r\n")
    await rig.until(lambda: b"x" in rig.server.state.keyspace.databases[0].values)
    rig.disk.write_gate.set()
    assert [(await listener.reply())[2] for _ in range(3)] == [b"before", b"k", b"x"]
    assert order[:4] == ["release", "release", "write", "release"]


async def test_a_write_that_takes_longer_than_the_sync_is_waited_for(start: Start) -> None:
    rig = await start()
    writer, later = await clients_of(rig, 2)
    await stuck(rig, writer)
    rig.disk.gate.set()
    await rig.until(lambda: rig.disk.increments_synced() == 1)
    later.send("SET k 2")
    assert not await later.has_reply()
    rig.cron(60_000)
    rig.disk.write_gate.set()
    assert [await writer.reply(), await later.reply()] == [b"OK", b"OK"]
    assert rig.commands("1.incr.aof")[-2:] == ["SET k 1", "SET k 2"]


async def test_a_write_that_fails_beside_a_sync_is_not_answered(start: Start) -> None:
    rig = await start()
    writer, reader, later = await clients_of(rig, 3)
    await stuck(rig, writer)
    reader.send("ECHO x")
    later.send("SET k 2")
    await rig.until(lambda: rig.server.state.keyspace.databases[0].values[b"k"] == b"2")
    rig.disk.refused.add("write .incr.aof")
    rig.disk.write_gate.set()
    assert await writer.reply() == "closed"
    assert await later.reply() == "closed"
    assert await reader.reply() == b"x"
    rig.disk.refused.clear()
    rig.disk.gate.set()
    await rig.disk_rests()
    rig.cron(1000)
    assert await rig.ask("SET", "k", 3) == b"OK"
    assert rig.commands("1.incr.aof")[-3:] == ["SET k 1", "SET k 2", "SET k 3"]


async def test_a_sync_that_fails_leaves_the_write_beside_it_what_it_is(start: Start) -> None:
    """It is in the file, and survives the end of the process; what came later is not."""
    rig = await start()
    writer, later = await clients_of(rig, 2)
    await stuck(rig, writer)
    later.send("SET k 2")
    await rig.until(lambda: rig.server.state.keyspace.databases[0].values[b"k"] == b"2")
    rig.disk.refused.add("sync .1.incr.aof")
    rig.disk.gate.set()
    await rig.until(lambda: rig.persistence.refusal)
    rig.disk.write_gate.set()
    assert await writer.reply() == b"OK"
    assert await later.reply() == "closed"
    rig.cron(1000)
    await rig.rewritten()
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET before 1", "SET k 2"]


async def test_replies_wait_for_the_files_of_a_rewrite_to_change(start: Start) -> None:
    rig = await start()
    [other] = await clients_of(rig, 1)
    rig.disk.gate.clear()
    rig.first.write(b"SET k 1\r\nBGREWRITEAOF\r\n")
    await rig.until(rig.disk.waiting.is_set)
    other.send("SET k 2")
    assert not await other.has_reply()
    rig.disk.gate.set()
    assert await rig.first.reply() == b"OK"
    assert await rig.first.reply() == b"Background append only file rewriting started"
    assert await other.reply() == b"OK"
    assert rig.commands("2.incr.aof")[-1] == "SET k 2"
    await rig.rewritten()
