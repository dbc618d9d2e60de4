"""``appendfsync always``: one sync for all commands of a round, and no reply before it."""

from __future__ import annotations

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig, RigClient


async def start_always(start: Start, clients: int = 3) -> tuple[Rig, list[RigClient]]:
    """A server that has done its first writes, and as many more clients, which are connected."""
    rig = await start(appendfsync="always")
    assert await rig.ask("SET", "first", 1) == b"OK"
    others = [rig.client() for _ in range(clients)]
    for client in others:
        assert await client.ask("PING") == b"PONG"
    rig.disk.syncs.clear()
    return rig, others


async def test_the_commands_of_one_round_share_one_sync(start: Start) -> None:
    rig, clients = await start_always(start)
    requests = [b"SET k%d a\r\nSET k%d b\r\n" % (number, number) for number in range(3)]
    rig.deliver(*zip(clients, requests, strict=True))
    for client in clients:
        assert [await client.reply(), await client.reply()] == [b"OK", b"OK"]
    assert rig.disk.syncs == ["appendonly.aof.1.incr.aof"]
    assert rig.commands("1.incr.aof")[2:] == [
        f"SET k{number} {value}" for number in range(3) for value in "ab"
    ]


async def test_commands_that_come_during_a_sync_share_the_next_one(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k 0")
    await rig.until(rig.disk.waiting.is_set)
    clients[1].send("SET a 1")
    clients[2].send("SET b 2")
    await rig.until(lambda: {b"a", b"b"} <= rig.server.state.keyspace.databases[0].values.keys())
    assert not await clients[1].has_reply()
    rig.disk.gate.set()
    for client in clients:
        assert await client.reply() == b"OK"
    assert rig.disk.increments_synced() == 2


async def test_a_command_that_changes_nothing_needs_no_sync(start: Start) -> None:
    rig, _ = await start_always(start)
    assert await rig.ask("GET", "first") == b"1"
    assert await rig.ask("DEL", "nothing") == 0
    assert rig.disk.syncs == []


async def test_no_reply_goes_out_before_the_sync(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("XADD s 1-1 f v")
    await rig.until(rig.disk.waiting.is_set)
    assert not await clients[0].has_reply()
    rig.disk.gate.set()
    assert await clients[0].reply() == b"1-1"


async def test_what_readers_see_of_unsafe_data_waits_as_well(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k new")
    await rig.until(rig.disk.waiting.is_set)
    clients[1].send("GET k")
    assert not await clients[1].has_reply()
    rig.disk.gate.set()
    assert await clients[1].reply() == b"new"


async def test_the_event_loop_goes_on_while_the_disk_works(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k 0")
    await rig.until(rig.disk.waiting.is_set)
    for number in range(1, 4):
        clients[1].send(("SET", "k", number))
    await rig.until(lambda: rig.server.state.keyspace.databases[0].values[b"k"] == b"3")
    rig.disk.gate.set()
    assert [await clients[1].reply() for _ in range(3)] == [b"OK"] * 3


async def test_replies_of_several_rounds_come_in_order(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("INCR n")
    await rig.until(rig.disk.waiting.is_set)
    for argument in ("a", "b"):
        clients[0].send(("ECHO", argument))
        assert not await clients[0].has_reply()
    clients[0].send("INCR n")
    clients[0].send("ECHO c")
    assert not await clients[0].has_reply()
    rig.disk.gate.set()
    assert [await clients[0].reply() for _ in range(5)] == [1, b"a", b"b", 2, b"c"]


async def test_a_message_to_a_subscriber_waits_like_a_reply(start: Start) -> None:
    rig, clients = await start_always(start)
    assert await clients[1].ask("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    rig.disk.gate.clear()
    clients[0].send("SET k v")
    clients[0].send(("PUBLISH", "news", "k is v"))
    await rig.until(rig.disk.waiting.is_set)
    assert not await clients[1].has_reply()
    rig.disk.gate.set()
    assert await clients[1].reply() == [b"message", b"news", b"k is v"]
    assert [await clients[0].reply(), await clients[0].reply()] == [b"OK", 1]


async def test_a_reader_that_is_woken_gets_its_entry_after_the_sync(start: Start) -> None:
    rig, clients = await start_always(start)
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    clients[1].send("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    await rig.until(lambda: rig.server.services.blocking.waiters)
    rig.disk.gate.clear()
    clients[0].send("XADD s 1-1 f v")
    await rig.until(rig.disk.waiting.is_set)
    assert not await clients[1].has_reply()
    rig.disk.gate.set()
    assert await clients[1].reply() == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    assert await clients[0].reply() == b"1-1"


async def test_quit_closes_the_connection_after_the_replies_before_it(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k v")
    clients[0].send("QUIT")
    await rig.until(rig.disk.waiting.is_set)
    assert not await clients[0].has_reply()
    rig.disk.gate.set()
    assert [await clients[0].reply() for _ in range(3)] == [b"OK", b"OK", "closed"]


async def test_a_protocol_error_is_told_after_the_replies_before_it(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k v")
    clients[0].write(b"*1\r\n+PING\r\n")
    await rig.until(rig.disk.waiting.is_set)
    assert not await clients[0].has_reply()
    rig.disk.gate.set()
    assert [await clients[0].reply() for _ in range(3)] == [
        b"OK",
        "ERR Protocol error: expected '$', got '+'",
        "closed",
    ]


async def test_a_client_that_has_left_is_passed_over(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k v")
    await rig.until(rig.disk.waiting.is_set)
    clients[0].close()
    await rig.until(lambda: len(rig.server.state.sessions) == 3)
    rig.disk.gate.set()
    assert await rig.ask("GET", "k") == b"v"


async def test_a_transaction_is_one_unit_with_one_sync(start: Start) -> None:
    rig, clients = await start_always(start)
    for words in ("MULTI", "SET a 1", "SET b 2", "EXEC"):
        clients[0].send(words)
    replies = [await clients[0].reply() for _ in range(4)]
    assert replies == [b"OK", b"QUEUED", b"QUEUED", [b"OK", b"OK"]]
    assert rig.disk.increments_synced() == 1
    assert rig.commands("1.incr.aof")[-4:] == ["MULTI", "SET a 1", "SET b 2", "EXEC"]


async def test_a_policy_of_always_holds_from_the_next_command_on(start: Start) -> None:
    rig = await start(appendfsync="no")
    assert await rig.ask("SET", "k", 1) == b"OK"
    assert await rig.ask("CONFIG", "SET", "appendfsync", "always") == b"OK"
    rig.disk.gate.clear()
    rig.first.send("SET k 2")
    await rig.until(rig.disk.waiting.is_set)
    assert not await rig.first.has_reply()
    rig.disk.gate.set()
    assert await rig.first.reply() == b"OK"


async def test_a_weaker_policy_still_waits_for_the_sync_that_is_going_on(start: Start) -> None:
    rig, clients = await start_always(start)
    rig.disk.gate.clear()
    clients[0].send("SET k 1")
    await rig.until(rig.disk.waiting.is_set)
    clients[1].send("CONFIG SET appendfsync no")
    assert not await clients[0].has_reply()
    rig.disk.gate.set()
    assert [await clients[0].reply(), await clients[1].reply()] == [b"OK", b"OK"]
    assert await clients[0].ask("SET", "k", 2) == b"OK"
    assert rig.disk.increments_synced() == 1


async def test_a_policy_of_always_is_kept_when_a_sync_of_everysec_is_going_on(
    start: Start,
) -> None:
    rig = await start(appendfsync="everysec")
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    assert await rig.ask("CONFIG", "SET", "appendfsync", "always") == b"OK"
    rig.first.send("SET k 2")
    assert not await rig.first.has_reply()
    rig.disk.gate.set()
    assert await rig.first.reply() == b"OK"
    assert rig.disk.increments_synced() == 2


async def test_a_reply_does_not_wait_for_a_sync_that_nobody_began(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    assert await rig.ask("CONFIG", "SET", "appendfsync", "always") == b"OK"
    assert await rig.ask("PING") == b"PONG"


async def test_a_rewrite_may_be_exempt_from_syncs(start: Start) -> None:
    rig, clients = await start_always(start)
    assert await rig.ask("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes") == b"OK"
    assert await rig.ask("BGREWRITEAOF") == b"Background append only file rewriting started"
    await rig.disk_rests()
    before = rig.disk.increments_synced()
    assert await clients[0].ask("SET", "k", 1) == b"OK"
    assert rig.disk.increments_synced() == before
    await rig.rewritten()
    rig.cron(1000)
    await rig.disk_rests()
    assert rig.disk.increments_synced() == before + 1


# --- deliveries ------------------------------------------------------------------------------


async def deliver_singly(start: Start, **settings: object) -> tuple[Rig, list[str]]:
    """What is written when three clients read an entry each in one round, and one in the next."""
    rig = await start(appendfsync="always", **settings)
    for number in range(1, 5):
        await rig.ask("XADD", "s", f"{number}-1", "f", "v")
    await rig.ask("XGROUP", "CREATE", "s", "g", 0)
    await rig.ask("XGROUP", "CREATECONSUMER", "s", "g", "c")
    clients = [rig.client() for _ in range(3)]
    for client in clients:
        assert await client.ask("PING") == b"PONG"
    read = b"XREADGROUP GROUP g c COUNT 1 STREAMS s >\r\n"
    rig.deliver(*[(client, read) for client in clients])
    for number, client in enumerate(clients, 1):
        assert await client.reply() == [[b"s", [[b"%d-1" % number, [b"f", b"v"]]]]]
    assert await rig.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") is not None
    return rig, rig.commands("1.incr.aof")[7:]


async def test_deliveries_of_one_round_share_a_unit(start: Start) -> None:
    rig, written = await deliver_singly(start)
    state = f"TIME {rig.now_ms} RETRYCOUNT 1 FORCE JUSTID LASTID"
    assert written == [
        "MULTI",
        f"XCLAIM s g c 0 1-1 2-1 3-1 {state} 3-1",
        "XGROUP SETID s g 3-1 ENTRIESREAD 3",
        "EXEC",
        "MULTI",
        f"XCLAIM s g c 0 4-1 {state} 4-1",
        "XGROUP SETID s g 4-1 ENTRIESREAD 4",
        "EXEC",
    ]


async def test_deliveries_that_may_have_the_time_between_them_do_not(start: Start) -> None:
    _, written = await deliver_singly(start, aof_timestamp_enabled=True)
    assert written.count("MULTI") == written.count("EXEC") == 4
