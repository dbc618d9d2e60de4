"""CONFIG SET appendonly: the file is turned on with a first base, and off."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

REFUSED = "ERR CONFIG SET failed (possibly related to argument 'appendonly') - "
CANNOT = f"{REFUSED}the append-only file cannot be turned on: "


async def turn(rig: Rig, value: str) -> bytes | str:
    """The reply to CONFIG SET appendonly."""
    reply: bytes | str = await rig.ask("CONFIG", "SET", "appendonly", value)
    return reply


async def test_what_was_there_before_is_in_the_first_base(start: Start) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("SET", "k", 1) == b"OK"
    assert await turn(rig, "yes") == b"OK"
    assert await rig.ask("SET", "k", 2) == b"OK"
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "1.incr.aof i"]
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 1"]
    assert rig.files == ["1.incr.aof", "2.base.aof", "manifest"]
    await rig.stop()
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k 2"]


async def test_until_there_is_a_base_nothing_is_promised_and_nothing_waits(start: Start) -> None:
    rig = await start(appendonly=False, appendfsync="always")
    assert await turn(rig, "yes") == b"OK"
    assert (await rig.info())["aof_pending_rewrite"] == "1"
    rig.disk.gate.clear()
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.gate.set()
    await rig.rewritten()
    assert (await rig.info())["aof_pending_rewrite"] == "0"
    rig.disk.gate.clear()
    rig.disk.waiting.clear()
    rig.first.send("SET k 2")
    await rig.until(rig.disk.waiting.is_set)
    assert not await rig.first.has_reply()
    rig.disk.gate.set()
    assert await rig.first.reply() == b"OK"


async def test_turning_it_on_twice_is_nothing_new(start: Start) -> None:
    rig = await start()
    assert await turn(rig, "yes") == b"OK"
    assert not rig.persistence.rewriting.in_progress


async def test_off_writes_what_waits_and_lets_the_folder_go(start: Start) -> None:
    rig = await start()
    rig.first.write(b"SET k 1\r\nCONFIG SET appendonly no\r\nSET k 2\r\n")
    assert [await rig.first.reply() for _ in range(3)] == [b"OK"] * 3
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k 1"]
    assert (await rig.info())["aof_enabled"] == "0"
    second = await start()
    assert await second.ask("GET", "k") == b"1"


async def test_off_during_a_rewrite_gives_it_up(start: Start) -> None:
    rig = await start()
    assert await rig.ask("BGREWRITEAOF") == b"Background append only file rewriting started"
    assert await turn(rig, "no") == b"OK"
    assert not rig.persistence.rewriting.in_progress
    assert rig.log[-1] == "Rewriting the append-only file failed: it was given up"


async def test_on_again_replaces_the_files_of_before(start: Start) -> None:
    rig = await start()
    assert await rig.ask("SET", "old", 1) == b"OK"
    assert await turn(rig, "no") == b"OK"
    assert await rig.ask("DEL", "old") == 1
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    assert rig.files == ["2.base.aof", "2.incr.aof", "manifest"]
    await rig.stop()
    again = await start()
    assert again.state == [again.state[0]]


async def test_on_and_off_within_a_transaction(start: Start) -> None:
    rig = await start(appendfsync="always")
    for words in ("MULTI", "SET a 1", "CONFIG SET appendonly no", "SET b 1"):
        await rig.ask(*words.split())
    assert await rig.ask("EXEC") == [b"OK", b"OK", b"OK"]
    assert await rig.ask("GET", "b") == b"1"
    for words in ("MULTI", "SET c 1", "CONFIG SET appendonly yes", "SET d 1"):
        await rig.ask(*words.split())
    assert await rig.ask("EXEC") == [b"OK", b"OK", b"OK"]
    await rig.rewritten()
    await rig.stop()
    again = await start()
    assert again.state[2:] == [f"SET {key} 1" for key in "abcd"]


async def test_a_folder_that_cannot_be_made_is_an_error_and_nothing_changes(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "appendonlydir").write_text("a file is in the way")
    rig = await start(appendonly=False)
    assert await turn(rig, "yes") == f"{CANNOT}{rig.folder}: Not a directory"
    assert await rig.ask("CONFIG", "GET", "appendonly") == [b"appendonly", b"no"]
    assert await rig.ask("SET", "k", 1) == b"OK"


async def test_a_folder_that_another_server_has_is_an_error(start: Start) -> None:
    second = await start(appendonly=False)
    first = await start()
    assert await turn(second, "yes") == (
        f"{CANNOT}the folder '{first.folder}' is in use by another process, pid {os.getpid()}"
    )
    assert await turn(first, "no") == b"OK"
    assert await turn(second, "yes") == b"OK"


async def test_an_increment_that_cannot_be_made_is_an_error(start: Start) -> None:
    rig = await start(appendonly=False)
    rig.disk.refused.add("open .incr")
    assert await turn(rig, "yes") == f"{CANNOT}No space left on device"
    assert (await rig.info())["aof_enabled"] == "0"
    rig.disk.refused.clear()
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()


async def test_a_first_base_that_fails_is_tried_again_after_a_second(start: Start) -> None:
    rig = await start(appendonly=False)
    rig.disk.refused.add("rename .base.aof")
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.cron(999)
    assert not rig.persistence.rewriting.in_progress
    rig.disk.refused.clear()
    await rig.disk_rests()
    rig.cron(1)
    await rig.rewritten()
    assert (await rig.info())["aof_pending_rewrite"] == "0"
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 1"]


async def test_a_save_completes_a_first_base_that_failed(start: Start) -> None:
    rig = await start(appendonly=False)
    rig.disk.refused.add("rename .base.aof")
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()
    rig.disk.refused.clear()
    assert await rig.ask("SET", "k", 1) == b"OK"
    assert await rig.ask("SAVE") == b"OK"
    assert (await rig.info())["aof_pending_rewrite"] == "0"
    await rig.stop()
    again = await start()
    assert again.state[-1] == "SET k 1"


async def test_a_save_in_the_background_gives_way_to_the_first_base(start: Start) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("SET", "k", 1) == b"OK"
    assert await rig.ask("BGSAVE") == b"Background saving started"
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "1.incr.aof i"]


async def test_a_server_that_ends_before_there_is_a_base_makes_one(start: Start) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("SET", "k", 1) == b"OK"
    assert await turn(rig, "yes") == b"OK"
    assert await rig.ask("SET", "k", 2) == b"OK"
    await rig.stop()
    again = await start()
    assert again.state[-1] == "SET k 2"


async def test_a_server_that_ends_and_cannot_make_a_base_says_so(start: Start) -> None:
    rig = await start(appendonly=False)
    assert await turn(rig, "yes") == b"OK"
    rig.disk.refused.add("rename .base.aof")
    await rig.stop()
    assert rig.log[-1].startswith("The append-only file lacks the last changes")


async def test_a_crash_before_there_is_a_base_leaves_a_folder_that_can_be_used(
    start: Start, tmp_path: Path
) -> None:
    rig = await start(appendonly=False)
    assert await turn(rig, "yes") == b"OK"
    assert await rig.ask("SET", "k", 1) == b"OK"
    os.kill(rig.persistence.rewriting._child, signal.SIGKILL)
    for name in rig.files:
        assert name in ("1.base.aof", "manifest") or name.startswith("temp-")
    copy = tmp_path / "copy"
    shutil.copytree(rig.folder, copy / "appendonlydir")
    again = await start(dir=copy)
    assert await again.ask("GET", "k") is None
    assert sorted(os.listdir(copy / "appendonlydir")) == [
        "appendonly.aof.1.base.aof",
        "appendonly.aof.1.incr.aof",
        "appendonly.aof.lock",
        "appendonly.aof.manifest",
    ]


async def test_a_file_of_redis_6_is_left_alone(start: Start, tmp_path: Path) -> None:
    old = tmp_path / "appendonly.aof"
    old.write_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n1\r\n")
    rig = await start(appendonly=False)
    assert await turn(rig, "yes") == b"OK"
    await rig.rewritten()
    assert await rig.ask("GET", "k") is None
    assert old.exists()
