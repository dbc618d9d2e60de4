"""Loading when a server starts, and what clients may do meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from server.persistence import recovery
from server.persistence.manager import PersistenceError
from server.persistence.recovery import Recovery
from storage.engine import compression
from tests.server.command_info import recorded
from tests.server.persistence.conftest import Start
from tests.server.persistence.disks import TestDisk
from tests.server.persistence.rig import Rig, refused
from tests.storage.aof.samples import EXEC, MULTI, encoded, xadd

LOADING = "LOADING Redis is loading the dataset in memory"


def put(tmp_path: Path, manifest: str, **files: bytes) -> Path:
    """Makes a folder; files are named ``base`` and ``incr``."""
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    for kind, data in files.items():
        (folder / f"appendonly.aof.1.{kind}.aof").write_bytes(data)
    (folder / "appendonly.aof.manifest").write_text(manifest)
    return folder


BOTH = "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
BASE = "file appendonly.aof.1.base.aof seq 1 type b\n"


async def test_everything_of_a_former_life_is_there(start: Start) -> None:
    rig = await start()
    for words in (
        "XADD s 1-1 f v",
        "XADD s 2-1 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c COUNT 1 STREAMS s >",
        "SELECT 3",
        "SET k v PX 5000",
        "CONFIG SET stream-node-max-entries 7",
    ):
        await rig.ask(*words.split())
    await rig.stop()
    again = await start()
    assert again.state[1:] == rig.state[1:]
    assert await again.ask("XPENDING", "s", "g") == [1, b"1-1", b"1-1", [[b"c", b"1"]]]
    assert (await again.info())["loading"] == "0"
    assert again.log[0].startswith("Loaded ")
    assert (await again.info())["rdb_changes_since_last_save"] == "0"


async def test_a_torn_tail_is_cut_off_with_a_warning(start: Start, tmp_path: Path) -> None:
    whole = encoded(xadd(1), MULTI, xadd(2), EXEC)
    torn = whole + encoded(MULTI, xadd(3))
    folder = put(tmp_path, BOTH, base=b"", incr=torn)
    rig = await start()
    assert await rig.ask("XLEN", "s") == 2
    path = folder / "appendonly.aof.1.incr.aof"
    assert path.read_bytes() == whole
    assert rig.log[0] == (
        f"{path}: offset {len(whole)}: the file ends between a MULTI and its EXEC,"
        f" {len(torn) - len(whole)} bytes: they were cut off"
    )
    assert await rig.ask("XADD", "s", "9-1", "f", "v") == b"9-1"
    await rig.stop()
    again = await start()
    assert await again.ask("XLEN", "s") == 3


async def test_a_torn_tail_may_have_an_empty_increment_behind_it(
    start: Start, tmp_path: Path
) -> None:
    """The manifest named the next one, and could not be made safe: the former was written to."""
    whole = encoded(xadd(1))
    manifest = BOTH + "file appendonly.aof.2.incr.aof seq 2 type i\n"
    folder = put(tmp_path, manifest, base=b"", incr=whole + b"*")
    (folder / "appendonly.aof.2.incr.aof").write_bytes(b"")
    rig = await start()
    assert await rig.ask("XLEN", "s") == 1
    assert (folder / "appendonly.aof.1.incr.aof").read_bytes() == whole
    assert rig.log[0].endswith("1 bytes: they were cut off")


async def test_a_torn_tail_is_refused_if_the_setting_says_so(tmp_path: Path) -> None:
    torn = encoded(xadd(1)) + b"*3\r\n$4\r\nXA"
    folder = put(tmp_path, BOTH, base=b"", incr=torn)
    path = folder / "appendonly.aof.1.incr.aof"
    assert await refused(tmp_path, aof_load_truncated=False) == (
        f"{path}: offset {len(encoded(xadd(1)))}: the file ends within a command, 10 bytes;"
        " aof-load-truncated is no, so nothing was cut off: 'penstock check-aof --fix' can do it"
    )
    assert path.read_bytes() == torn


async def test_damage_stops_the_start_and_changes_nothing(tmp_path: Path) -> None:
    data = encoded(xadd(1)) + b"nonsense\r\n" + encoded(xadd(2))
    folder = put(tmp_path, BOTH, base=b"", incr=data)
    path = folder / "appendonly.aof.1.incr.aof"
    text = await refused(tmp_path)
    assert text.startswith(f"{path}: damaged at offset {len(encoded(xadd(1)))}: ")
    assert path.read_bytes() == data


async def test_what_a_damaged_base_has_replaced_is_still_there(
    start: Start, tmp_path: Path
) -> None:
    history = "file old.aof seq 1 type h\n"
    folder = put(tmp_path, BASE + history, base=b"nonsense\r\n")
    (folder / "old.aof").write_bytes(encoded(xadd(1)))
    await refused(tmp_path)
    assert (folder / "old.aof").read_bytes() == encoded(xadd(1))
    (folder / "appendonly.aof.1.base.aof").write_bytes(encoded(xadd(1)))
    await start()
    assert not (folder / "old.aof").exists()
    assert history not in (folder / "appendonly.aof.manifest").read_text()


async def test_a_command_that_cannot_be_carried_out_stops_the_start(tmp_path: Path) -> None:
    folder = put(tmp_path, BOTH, base=encoded(xadd(5)), incr=encoded(xadd(6), xadd(2)))
    path = folder / "appendonly.aof.1.incr.aof"
    text = await refused(tmp_path)
    assert text.startswith(f"{path}: offset {len(encoded(xadd(6)))}: 'XADD' 's' '2-1': ")


class UnreadableDisk(TestDisk):
    """Reads no more than what tells that a file is no RDB file."""

    def read(self, fd: int, size: int, offset: int) -> bytes:
        if self._names[fd].endswith(".base.aof") and size > 10:
            raise OSError(5, "Input/output error")
        return super().read(fd, size, offset)


async def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    folder = put(tmp_path, BASE, base=encoded(xadd(1)))
    text = await refused(tmp_path, disk=UnreadableDisk())
    assert text == f"{folder}/appendonly.aof.1.base.aof: Input/output error"


async def test_a_folder_that_is_a_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("")
    assert await refused(tmp_path) == f"{tmp_path}/appendonlydir: Not a directory"


async def test_a_second_server_on_the_folder_does_not_start(start: Start, tmp_path: Path) -> None:
    rig = await start()
    assert await refused(tmp_path) == (
        f"the folder '{rig.folder}' is in use by another process, pid {os.getpid()}"
    )
    await rig.stop()
    await start()


async def test_a_server_that_keeps_nothing_does_not_start_on_the_folder_of_another(
    start: Start, tmp_path: Path
) -> None:
    """It would be empty, though the data is there."""
    rig = await start()
    await rig.ask("SET", "k", "v")
    in_use = f"the folder '{rig.folder}' is in use by another process, pid {os.getpid()}"
    assert await refused(tmp_path, appendonly=False) == in_use
    assert await refused(tmp_path, appendonly=False, dbfilename="dump.rdb") == in_use


async def test_the_single_file_of_redis_6_becomes_the_base(start: Start, tmp_path: Path) -> None:
    old = tmp_path / "appendonly.aof"
    old.write_bytes(encoded(xadd(1)))
    cwd = os.getcwd()
    os.chdir(tmp_path)
    try:
        rig = await start()
    finally:
        os.chdir(cwd)
    assert await rig.ask("XLEN", "s") == 1
    assert not old.exists()
    assert sorted(os.listdir(rig.folder)) == [
        "appendonly.aof",
        "appendonly.aof.1.incr.aof",
        "appendonly.aof.lock",
        "appendonly.aof.manifest",
    ]


async def test_a_damaged_snapshot_is_refused_with_its_offset(tmp_path: Path) -> None:
    put(tmp_path, BASE, base=b"REDIS0011\xfa")
    text = await refused(tmp_path)
    assert "damaged at offset 10: it ends early" in text


async def test_a_file_that_belongs_to_nothing_is_named(start: Start, tmp_path: Path) -> None:
    folder = put(tmp_path, BASE, base=b"")
    (folder / "stray").write_text("")
    rig = await start()
    assert rig.log[0] == (f"the file '{folder}/stray' is not in the manifest and was not loaded")


# --- meanwhile -------------------------------------------------------------------------------


@pytest.fixture
async def loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """A server that loads a file as slowly as possible, since its clients always have a turn."""
    put(tmp_path, BASE, base=encoded(*(xadd(number, b"v" * 1000) for number in range(1, 2001))))
    monkeypatch.setattr(recovery, "TURN_NS", -1)
    monkeypatch.setattr(recovery, "REPORT_S", 0)
    rig = Rig(tmp_path)
    steps = Recovery._load

    def in_small_steps(self: Recovery, *args: object) -> object:
        for _ in steps(self, *args):  # type: ignore[arg-type]
            for _ in range(200):
                yield

    monkeypatch.setattr(Recovery, "_load", in_small_steps)
    start = asyncio.create_task(rig.server.start())
    await rig.until(lambda: rig.persistence.recovery and rig.persistence.recovery.loaded_bytes)
    rig.first = rig.client()
    yield rig
    await start
    await rig.stop()


async def test_most_commands_are_refused_while_data_is_loaded(loading: Rig) -> None:
    assert await loading.ask("GET", "k") == LOADING
    assert await loading.ask("XADD", "s", "*", "f", "v") == LOADING
    assert await loading.ask("PING") == LOADING
    assert await loading.ask("DEBUG", "RELOAD") == LOADING
    assert await loading.ask("DEBUG", "LOADAOF") == LOADING
    assert await loading.ask("MULTI") == b"OK"
    assert await loading.ask("GET", "k") == LOADING
    assert (await loading.ask("EXEC")).startswith("EXECABORT")
    assert loading.persistence.recovery is not None


async def test_commands_that_need_no_data_are_answered_while_data_is_loaded(loading: Rig) -> None:
    assert await loading.ask("CONFIG", "GET", "appendonly") == [b"appendonly", b"yes"]
    assert await loading.ask("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
    assert isinstance(await loading.client().ask("LASTSAVE"), int)
    assert loading.persistence.recovery is not None


async def test_info_tells_how_far_loading_has_come(loading: Rig) -> None:
    info = await loading.info()
    assert info["loading"] == "1"
    assert info["loading_start_time"] == "1700000000"
    total, loaded = int(info["loading_total_bytes"]), int(info["loading_loaded_bytes"])
    assert 0 < loaded < total
    assert info["loading_loaded_perc"] == f"{100 * loaded / total:.2f}"
    assert int(info["loading_eta_seconds"]) >= 0
    assert "Loading the append-only file: " in loading.log[0]


async def test_what_clients_do_while_data_is_loaded_does_not_change_it(loading: Rig) -> None:
    assert await loading.ask("CONFIG", "GET", "port") == [b"port", b"0"]
    await loading.until(lambda: loading.persistence.recovery is None)
    assert await loading.ask("XLEN", "s") == 2000
    assert await loading.ask("XADD", "s", "9999-1", "f", "v") == b"9999-1"


async def test_a_server_that_is_to_end_does_not_load_to_the_end(loading: Rig) -> None:
    loading.first.send("SHUTDOWN SAVE")
    await loading.until(lambda: loading.persistence.recovery is None)
    assert not loading.persistence.on
    assert loading.manifest == ["1.base.aof b"]


async def test_the_file_may_be_turned_off_while_data_is_loaded(loading: Rig) -> None:
    assert await loading.ask("CONFIG", "SET", "appendonly", "no") == b"OK"
    await loading.until(lambda: loading.persistence.recovery is None)
    assert await loading.ask("XLEN", "s") == 2000
    assert (await loading.info())["aof_enabled"] == "0"


def test_the_commands_that_may_run_while_loading_are_those_of_a_real_server() -> None:
    """What is flagged ``loading`` is answered; the record is compared with Penstock elsewhere."""
    allowed = {name for name, entry in recorded().items() if "loading" in entry["flags"]}
    assert {"info", "config|get", "subscribe", "shutdown", "lastsave", "debug"} <= allowed
    assert not {"ping", "get", "save", "bgsave", "bgrewriteaof", "xadd"} & allowed


async def test_a_file_that_cannot_be_turned_on_after_loading_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, appendonly=False)
    load = rig.persistence.load

    async def load_and_change() -> None:
        await load()
        (tmp_path / "appendonlydir").write_text("in the way")
        rig.server.state.config.set_text("appendonly", "yes")

    monkeypatch.setattr(rig.persistence, "load", load_and_change)
    with pytest.raises(PersistenceError, match="Not a directory"):
        await rig.start()
    await rig.stop()


async def test_what_was_loaded_is_not_cold_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "WAITING", 1)
    rig = Rig(tmp_path, stream_node_max_entries=9)
    await rig.start()
    for _ in range(81):
        await rig.ask("XADD", "k", "*", "f", "v" * 100)
    await rig.stop()
    again = Rig(tmp_path, stream_node_max_entries=9)
    await again.start()
    packer = again.server.state.keyspace.limits.packer
    again.cron()
    assert packer.freed == 0
    again.cron(compression.COLD_AFTER_MS)
    assert packer.freed > 0
    await again.stop()
