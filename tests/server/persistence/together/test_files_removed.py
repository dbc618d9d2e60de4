"""Files and folders that somebody removes or moves away while the server runs.

The clock is the test's: the server looks after its files once a second.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.aof.folder import Folder
from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig
from tests.support.wire import packed

GONE = "MISCONF Errors writing to the AOF file: No such file or directory"


async def started(start: Start, **settings: object) -> Rig:
    """A server with an entry, which has just looked after its files."""
    rig = await start(**settings)
    assert await rig.ask("XADD", "s", "1-1", "f", "v") == b"1-1"
    rig.cron(1000)
    await rig.disk_rests()
    return rig


async def assert_mended(start: Start, rig: Rig) -> None:
    """Commands that write run again, and the next start has everything."""
    await rig.rewritten()
    assert await rig.ask("XADD", "s", "3-1", "f", "v") == b"3-1"
    assert (await rig.info())["aof_last_write_status"] == "ok"
    await rig.stop()
    again = await start()
    assert [entry[0] for entry in await again.ask("XRANGE", "s", "-", "+")] == [
        b"1-1",
        b"2-1",
        b"3-1",
    ]


REMOVALS: dict[str, Callable[[Path], object]] = {
    "the folder": shutil.rmtree,
    "the folder's name": lambda folder: folder.rename(folder.with_name("elsewhere")),
    "the base": lambda folder: (folder / "appendonly.aof.1.base.aof").unlink(),
    "the increment": lambda folder: (folder / "appendonly.aof.1.incr.aof").unlink(),
    "the manifest": lambda folder: (folder / "appendonly.aof.manifest").unlink(),
}


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS.keys())
async def test_what_was_removed_is_made_again_from_memory(
    start: Start, remove: Callable[[Path], object], policy: str
) -> None:
    rig = await started(start, appendfsync=policy)
    remove(rig.folder)
    assert await rig.ask("XADD", "s", "2-1", "f", "v") == b"2-1"
    await rig.disk_rests()
    # These come after the look at the files, and before anything that is made again can be there.
    rig.deliver((rig.first, packed("SET k v", "INFO persistence")))
    rig.cron(1000)
    assert await rig.first.reply() == GONE
    assert b"\r\naof_last_write_status:err\r\n" in await rig.first.reply()
    assert any(line.endswith("of the append-only file is gone") for line in rig.log)
    await assert_mended(start, rig)


@pytest.mark.parametrize("command", ["BGREWRITEAOF", "SAVE"])
@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS.keys())
async def test_a_rewrite_makes_it_again_at_once(
    start: Start, remove: Callable[[Path], object], command: str
) -> None:
    rig = await started(start)
    assert await rig.ask("XADD", "s", "2-1", "f", "v") == b"2-1"
    remove(rig.folder)
    assert not str(await rig.ask(command)).startswith("ERR")
    await assert_mended(start, rig)


async def test_a_folder_in_whose_place_a_file_is_is_waited_for(start: Start) -> None:
    rig = await started(start)
    assert await rig.ask("XADD", "s", "2-1", "f", "v") == b"2-1"
    shutil.rmtree(rig.folder)
    rig.folder.write_text("in the way")
    for _ in range(2):
        rig.cron(1000)
        await rig.disk_rests()
        assert await rig.ask("SET", "k", "v") == GONE
    assert rig.log[-1] == "New files cannot be made: Not a directory"
    assert str(await rig.ask("SAVE")).endswith("Not a directory")
    rig.folder.unlink()
    rig.cron(1000)
    await assert_mended(start, rig)


async def test_a_lock_that_was_removed_is_made_again(start: Start) -> None:
    rig = await started(start)
    (rig.folder / "appendonly.aof.lock").unlink()
    rig.cron(1000)
    assert rig.log[-1] == f"The lock of the folder '{rig.folder}' was gone: made again"
    assert await rig.ask("XADD", "s", "2-1", "f", "v") == b"2-1"
    assert (rig.folder / "appendonly.aof.lock").read_text() == f"{os.getpid()}\n"
    await assert_mended(start, rig)


async def test_a_folder_that_another_server_has_taken_is_left_to_it(start: Start) -> None:
    rig = await started(start)
    (rig.folder / "appendonly.aof.lock").unlink()
    other = Folder(str(rig.folder), "appendonly.aof", rig.disk)
    other.open()
    text = f"the folder '{rig.folder}' is in use by another process, pid {os.getpid()}"
    for _ in range(2):
        rig.cron(1000)
        await rig.disk_rests()
        assert await rig.ask("SET", "k", "v") == f"MISCONF Errors writing to the AOF file: {text}"
    with (rig.folder / "appendonly.aof.1.incr.aof").open("ab") as increment:
        increment.write(b"*1\r\n$8\r\nFLUSHALL\r\n")
    other.release()
    rig.cron(1000)
    assert "another process has written to" in rig.log[-1]
    assert str(await rig.ask("SET", "k", "v")).startswith("MISCONF")
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i"]


async def test_another_folder_in_its_place_is_not_overwritten(start: Start) -> None:
    rig = await started(start)
    rig.folder.rename(rig.folder.with_name("elsewhere"))
    rig.folder.mkdir()
    (rig.folder / "appendonly.aof.7.base.aof").write_bytes(b"*1\r\n$8\r\nFLUSHALL\r\n")
    (rig.folder / "appendonly.aof.manifest").write_text(
        "file appendonly.aof.7.base.aof seq 7 type b\n"
    )
    rig.cron(1000)
    text = f"New files cannot be made: the folder '{rig.folder}' holds other data by now"
    assert rig.log[-1] == text
    assert str(await rig.ask("SET", "k", "v")).startswith("MISCONF")
    assert rig.manifest == ["7.base.aof b"]


async def test_what_cannot_be_looked_at_is_an_error(start: Start) -> None:
    rig = await started(start)
    look = rig.disk.is_at
    rig.disk.is_at = _failing  # type: ignore[method-assign]
    rig.cron(1000)
    await asyncio.sleep(0)
    assert await rig.ask("SET", "k", "v") == "MISCONF Errors writing to the AOF file: I/O"
    rig.disk.is_at = look  # type: ignore[method-assign]
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", "v") == b"OK"


def _failing(fd: int, path: str) -> bool:
    raise OSError("I/O")
