"""DEBUG LOADAOF and DEBUG RELOAD: everything is made anew, and clients stay as they are."""

from __future__ import annotations

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

LOAD_FAILED = "ERR Error trying to load the AOF files, check server logs."
BOTH = pytest.mark.parametrize("command", ["LOADAOF", "RELOAD"])


async def fill(rig: Rig) -> None:
    """Data of several kinds, in two databases."""
    for words in (
        "SELECT 5",
        "SET k v PX 100000",
        "SELECT 0",
        "XADD s 1-1 f v",
        "XADD s 2-1 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c COUNT 1 STREAMS s >",
    ):
        await rig.ask(*words.split())


@BOTH
async def test_everything_is_as_before(start: Start, command: str) -> None:
    rig = await start()
    await fill(rig)
    before = rig.state
    assert await rig.ask("DEBUG", command) == b"OK"
    assert rig.state == before
    assert await rig.ask("XADD", "s", "3-1", "f", "v") == b"3-1"
    await rig.stop()
    again = await start()
    assert await again.ask("XLEN", "s") == 3


@BOTH
async def test_much_data_comes_back_as_a_whole(start: Start, command: str) -> None:
    rig = await start()
    for number in range(1, 4):
        rig.first.send(("SET", f"k{number}", "x" * 65_000))
        assert await rig.first.reply() == b"OK"
    for number in range(1, 21):
        assert await rig.ask("XADD", "s", f"{number}-1", "f", "y" * 60_000)
    before = rig.state
    assert await rig.ask("DEBUG", command) == b"OK"
    assert rig.state == before


@BOTH
async def test_who_watches_a_key_that_was_there_starts_again(start: Start, command: str) -> None:
    """As on a real server, for which the key has gone and come back."""
    rig = await start()
    assert await rig.ask("SET", "k", "v") == b"OK"
    other = rig.client()
    assert await rig.ask("WATCH", "k") == b"OK"
    assert await other.ask("WATCH", "nothing") == b"OK"
    assert await rig.ask("DEBUG", command) == b"OK"
    assert [await rig.ask(word) for word in ("MULTI", "PING", "EXEC")] == [b"OK", b"QUEUED", None]
    assert [await other.ask(word) for word in ("MULTI", "PING", "EXEC")][2] == [b"PONG"]


@BOTH
async def test_parked_readers_go_on_waiting(start: Start, command: str) -> None:
    rig = await start()
    await fill(rig)
    reader = rig.client()
    reader.send("XREADGROUP GROUP g d BLOCK 0 STREAMS s >")
    assert await reader.reply() == [[b"s", [[b"2-1", [b"f", b"v"]]]]]
    reader.send("XREADGROUP GROUP g d BLOCK 0 STREAMS s >")
    await rig.until(lambda: rig.server.services.blocking.waiters)
    assert await rig.ask("DEBUG", command) == b"OK"
    assert not await reader.has_reply()
    assert await rig.ask("XADD", "s", "3-1", "f", "v") == b"3-1"
    assert await reader.reply() == [[b"s", [[b"3-1", [b"f", b"v"]]]]]


@BOTH
async def test_within_a_transaction(start: Start, command: str) -> None:
    rig = await start()
    for words in ("MULTI", "XADD s 1-1 f v", f"DEBUG {command}", "XADD s 2-1 f v"):
        await rig.ask(*words.split())
    assert await rig.ask("EXEC") == [b"1-1", b"OK", b"2-1"]
    await rig.stop()
    again = await start()
    assert await again.ask("XLEN", "s") == 2


async def test_reload_makes_a_new_base(start: Start) -> None:
    rig = await start()
    await fill(rig)
    assert await rig.ask("DEBUG", "RELOAD") == b"OK"
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]


async def test_reload_during_a_rewrite_gives_that_up(start: Start) -> None:
    rig = await start()
    await fill(rig)
    before = rig.state
    assert await rig.ask("BGREWRITEAOF") == b"Background append only file rewriting started"
    assert await rig.ask("DEBUG", "RELOAD") == b"OK"
    assert not rig.persistence.rewriting.in_progress
    assert rig.state == before


async def test_reload_needs_no_file(start: Start) -> None:
    rig = await start(appendonly=False)
    await fill(rig)
    before = rig.state
    assert await rig.ask("DEBUG", "RELOAD") == b"OK"
    assert rig.state == before
    assert rig.files == []


async def test_loadaof_without_a_file_leaves_nothing_as_on_a_real_server(start: Start) -> None:
    rig = await start(appendonly=False)
    await fill(rig)
    assert await rig.ask("DEBUG", "LOADAOF") == LOAD_FAILED
    assert rig.log[-1] == f"DEBUG LOADAOF: there is no append-only file in '{rig.folder}'"
    assert [await rig.ask("DBSIZE"), await rig.ask("XLEN", "s")] == [0, 0]


async def test_loadaof_makes_what_the_file_held_when_it_was_turned_off(start: Start) -> None:
    rig = await start()
    await fill(rig)
    assert await rig.ask("CONFIG", "SET", "appendonly", "no") == b"OK"
    before = rig.state
    assert await rig.ask("SET", "later", "v") == b"OK"
    assert await rig.ask("DEBUG", "LOADAOF") == b"OK"
    assert rig.state == before
    assert (await rig.info())["rdb_changes_since_last_save"] == "0"
    assert await rig.ask("SAVE") == b"OK"


async def test_loadaof_makes_a_first_base_that_is_not_there_yet(start: Start) -> None:
    rig = await start(appendonly=False)
    await fill(rig)
    before = rig.state
    assert await rig.ask("CONFIG", "SET", "appendonly", "yes") == b"OK"
    assert await rig.ask("DEBUG", "LOADAOF") == b"OK"
    assert rig.state == before


async def test_a_base_that_cannot_be_written_stops_a_reload_before_it_begins(
    start: Start,
) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add("rename .base.aof")
    assert await rig.ask("DEBUG", "RELOAD") == (
        "ERR The data could not be saved: No space left on device"
    )
    assert await rig.ask("XLEN", "s") == 2


async def test_what_cannot_be_written_stops_loading_before_it_begins(start: Start) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add("write .incr.aof")
    other = rig.client()
    assert await other.ask("ECHO", "x") == b"x"
    rig.deliver((rig.first, b"SET k v\r\n"), (other, b"DEBUG LOADAOF\r\n"))
    assert await rig.first.reply() == "closed"
    assert await other.reply() == LOAD_FAILED
    assert rig.log[-1] == "DEBUG LOADAOF: No space left on device"
    assert await other.ask("XLEN", "s") == 2


async def test_a_file_that_has_gone_stops_loading_before_it_begins(start: Start) -> None:
    rig = await start()
    await fill(rig)
    path = rig.folder / "appendonly.aof.1.base.aof"
    path.unlink()
    assert await rig.ask("DEBUG", "LOADAOF") == LOAD_FAILED
    assert rig.log[-1] == f"DEBUG LOADAOF: {path}: No such file or directory"
    assert await rig.ask("XLEN", "s") == 2


async def test_damage_is_told(start: Start) -> None:
    rig = await start()
    await fill(rig)
    path = rig.folder / "appendonly.aof.1.base.aof"
    path.write_bytes(b"nonsense")
    assert await rig.ask("DEBUG", "LOADAOF") == LOAD_FAILED
    assert rig.log[-1].startswith(f"DEBUG LOADAOF: {path}: damaged at offset 0: ")


async def test_a_restart_has_what_a_snapshot_brought_back(start: Start) -> None:
    rig = await start(enable_debug_command="yes")
    await fill(rig)
    assert await rig.ask("XADD", "s", "IDMP", "p", "i", "*", "f", "v") is not None
    before = rig.state
    assert await rig.ask("DEBUG", "SNAPSHOT", "TAKE", "a") == b"OK"
    assert await rig.ask("XACK", "s", "g", "1-1") == 1
    assert await rig.ask("SET", "more", "x") == b"OK"
    assert await rig.ask("DEBUG", "SNAPSHOT", "RESTORE", "a") == b"OK"
    assert rig.state == before
    assert await rig.ask("XADD", "s", "9999999999999-1", "f", "v") == b"9999999999999-1"
    after = rig.state
    await rig.stop()
    again = await start()
    assert again.state == after


async def test_a_disk_that_is_given_to_the_server_has_no_faults(start: Start) -> None:
    rig = await start(enable_debug_command="yes")
    rig.first.send("DEBUG FAULT DISK full")
    reply = await rig.first.reply()
    assert str(reply) == "ERR DEBUG FAULT: the disk of this server has no faults"
