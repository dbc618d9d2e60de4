"""WAITAOF: whether what a client has written is on the disk, and waiting until it is."""

from __future__ import annotations

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig, RigClient

OFF = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."


async def sync(rig: Rig) -> None:
    """Lets a second pass, at whose end a sync begins, and ends."""
    rig.cron(1000)
    await rig.disk_rests()


async def waiting(rig: Rig, client: RigClient, *arguments: int) -> None:
    """Sends WAITAOF, which is not answered for now."""
    client.send(("WAITAOF", *arguments))
    await rig.until(lambda: rig.server.services.blocking.waiters)
    assert not await client.has_reply()


async def test_who_has_written_nothing_has_nothing_to_wait_for(start: Start) -> None:
    rig = await start()
    assert await rig.ask("SET", "k", "v") == b"OK"
    assert await rig.client().ask("WAITAOF", 1, 0, 0) == [1, 0]
    assert await rig.ask("WAITAOF", 0, 0, 0) == [0, 0]


async def test_with_everysec_it_waits_for_the_next_sync(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    await waiting(rig, client, 1, 0, 0)
    await sync(rig)
    assert await client.reply() == [1, 0]
    assert await client.ask("WAITAOF", 1, 0, 0) == [1, 0]
    assert await client.ask("GET", "k") == b"v"
    assert await client.ask("WAITAOF", 1, 0, 0) == [1, 0]


async def test_a_sync_counts_for_what_was_written_before_it_began(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    early, late = rig.client(), rig.client()
    assert await early.ask("SET", "k", 1) == b"OK"
    assert await early.ask("PING") == b"PONG"
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    assert await late.ask("SET", "k", 2) == b"OK"
    await waiting(rig, early, 1, 0, 0)
    late.send("WAITAOF 1 0 0")
    await rig.until(lambda: len(rig.server.services.blocking.waiters) == 2)
    rig.disk.gate.set()
    assert await early.reply() == [1, 0]
    assert not await late.has_reply()
    await rig.disk_rests()
    await sync(rig)
    assert await late.reply() == [1, 0]


async def test_a_timeout_tells_how_it_stands_by_then(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    await waiting(rig, client, 1, 0, 100)
    rig.now_ms += 100
    rig.server.services.reactions.pass_time(rig.now_ms)
    assert await client.reply() == [0, 0]
    await waiting(rig, client, 0, 1, 5000)
    await sync(rig)
    assert not await client.has_reply()
    rig.now_ms += 5000
    rig.server.services.reactions.pass_time(rig.now_ms)
    assert await client.reply() == [1, 0]


async def test_with_always_it_is_answered_behind_the_write(start: Start) -> None:
    rig = await start(appendfsync="always")
    client = rig.client()
    client.send("SET k v")
    client.send("WAITAOF 1 0 0")
    assert [await client.reply(), await client.reply()] == [b"OK", [1, 0]]


async def test_with_no_sync_it_waits_until_there_is_one(start: Start) -> None:
    rig = await start(appendfsync="no")
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    await waiting(rig, client, 1, 0, 0)
    await sync(rig)
    assert not await client.has_reply()
    assert await rig.ask("CONFIG", "SET", "appendfsync", "everysec") == b"OK"
    await sync(rig)
    assert await client.reply() == [1, 0]


async def test_inside_a_transaction_it_tells_of_what_came_before(start: Start) -> None:
    rig = await start()
    assert await rig.ask("MULTI") == b"OK"
    for command in (("SET", "k", "v"), ("WAITAOF", 1, 0, 0)):
        assert await rig.ask(*command) == b"QUEUED"
    assert await rig.ask("EXEC") == [b"OK", [1, 0]]
    assert await rig.ask("WAITAOF", 0, 0, 0) == [0, 0]
    await sync(rig)
    assert await rig.ask("WAITAOF", 0, 0, 0) == [1, 0]


async def test_what_a_script_writes_is_its_clients(start: Start) -> None:
    rig = await start()
    script = "redis.call('set','k','v') return redis.call('waitaof',1,0,0)"
    assert await rig.ask("EVAL", script, 0) == [1, 0]
    assert await rig.ask("WAITAOF", 0, 0, 0) == [0, 0]
    await sync(rig)
    assert await rig.ask("WAITAOF", 0, 0, 0) == [1, 0]


async def test_turning_the_file_off_ends_the_wait_with_an_error(start: Start) -> None:
    rig = await start()
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    await waiting(rig, client, 1, 0, 0)
    assert await rig.ask("CONFIG", "SET", "appendonly", "no") == b"OK"
    assert await client.reply() == OFF
    assert await client.ask("WAITAOF", 1, 0, 0) == OFF
    assert await client.ask("WAITAOF", 0, 0, 0) == [0, 0]


async def test_a_file_without_a_base_holds_nothing_yet(start: Start) -> None:
    rig = await start(appendonly=False)
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    assert await rig.ask("CONFIG", "SET", "appendonly", "yes") == b"OK"
    await waiting(rig, client, 1, 0, 0)
    await rig.rewritten()
    await rig.disk_rests()
    rig.cron(1000)
    assert await client.reply() == [1, 0]


async def test_who_waits_for_the_disk_waits_for_no_key(start: Start) -> None:
    rig = await start()
    client = rig.client()
    assert await client.ask("SET", "k", "v") == b"OK"
    await waiting(rig, client, 1, 0, 0)
    clients = await rig.info("clients")
    assert clients["blocked_clients"] == "1"
    assert clients["total_blocking_keys"] == "0"
