"""RDB files at the start, as bases and by themselves, and those that SAVE writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.check_aof import main as check_aof
from storage.aof.commands import command
from storage.rdb.write import raw
from tests.conformance.reference import find_server
from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import refused
from tests.storage.rdb.builders import a_stream, items_of, keyspace_of, rdb_file, sample
from tests.support.direct import START_MS
from tests.support.redis_files import RdbServer, find_old_server, find_valkey

MANIFEST = (
    "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
)


def put(tmp_path: Path, base: bytes, increment: bytes = b"") -> Path:
    """Makes a folder as Redis does; returns the path of its base."""
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.1.base.rdb").write_bytes(base)
    (folder / "appendonly.aof.1.incr.aof").write_bytes(increment)
    (folder / "appendonly.aof.manifest").write_text(MANIFEST)
    return folder / "appendonly.aof.1.base.rdb"


def key(name: bytes, value: bytes, expires_at: int | None = None) -> bytes:
    """A key of an RDB file: its type and value, with its name between them."""
    expiry = b"" if expires_at is None else b"\xfc" + expires_at.to_bytes(8, "little")
    return expiry + value[:1] + raw(name) + value[1:]


STREAM = key(b"s", a_stream(entries=0, last=(5, 5), added=7))
TEXT = b"\x00\x04text"
ADDED = command(b"XADD", b"s", b"6-1", b"a", b"b")
SOON = START_MS + 1000
PAST = START_MS - 1000


# --- bases -----------------------------------------------------------------------------------


async def test_commands_follow_a_base_that_is_an_rdb_file(start: Start, tmp_path: Path) -> None:
    put(tmp_path, rdb_file(STREAM, key(b"t", TEXT, SOON)), ADDED)
    rig = await start()
    assert await rig.ask("XLEN", "s") == 1
    assert (await rig.ask("XINFO", "STREAM", "s"))[7] == b"6-1"
    assert await rig.ask("GET", "t") == b"text"
    assert await rig.ask("PEXPIRETIME", "t") == SOON
    assert "Loaded 2 keys and 1 commands from " in "\n".join(rig.log)
    await rig.ask("XADD", "s", "7-1", "a", "b")
    await rig.ask("SAVE")
    await rig.stop()
    again = await start()
    assert await again.ask("XLEN", "s") == 2


async def test_the_one_file_of_former_times_may_begin_with_an_rdb_file(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "appendonly.aof").write_bytes(rdb_file(STREAM) + ADDED)
    rig = await start()
    assert await rig.ask("XLEN", "s") == 1


async def test_a_torn_tail_behind_an_rdb_file_is_cut_off(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = rdb_file(STREAM) + ADDED
    (tmp_path / "appendonly.aof").write_bytes(data + b"*3\r\n$4")
    rig = await start()
    assert await rig.ask("XLEN", "s") == 1
    assert (rig.folder / "appendonly.aof").read_bytes()[: len(data)] == data
    assert f"offset {len(data)}: the file ends within a command" in "\n".join(rig.log)
    await rig.ask("XADD", "s", "7-1", "a", "b")
    await rig.stop()
    again = await start()
    assert await again.ask("XLEN", "s") == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (rdb_file(STREAM)[:-1], "damaged at offset 30: it ends early"),
        (rdb_file(b"\x07\x01k\x81" + bytes(8) + b"\0"), "the key 'k' is a module, which Penstock"),
        (rdb_file(STREAM, STREAM), "the key 's' is there twice"),
        (rdb_file(b"\xfe\x10", STREAM), "there is no database 16: there are 16"),
        (rdb_file(b"\xf5\x04code"), "'FUNCTION' 'LOAD' 'code'"),
    ],
)
async def test_what_cannot_be_loaded_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    base = put(tmp_path, data)
    text = await refused(tmp_path)
    assert text.startswith(f"{base}: ")
    assert reason in text


def test_check_aof_reads_an_rdb_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = put(tmp_path, rdb_file(STREAM), ADDED)
    assert check_aof([str(base.parent)]) == 0
    assert check_aof([str(base)]) == 0
    base.write_bytes(base.read_bytes()[:-1])
    assert check_aof([str(base.parent)]) == 1
    assert "then damaged at offset 30: it ends early" in capsys.readouterr().out


# --- a file by itself ------------------------------------------------------------------------

WITHOUT = {"appendonly": False, "dbfilename": "dump.rdb"}


async def test_a_file_by_itself_is_loaded_but_for_what_has_expired(
    start: Start, tmp_path: Path
) -> None:
    keys = (STREAM, key(b"t", TEXT, SOON), key(b"gone", TEXT, PAST))
    (tmp_path / "dump.rdb").write_bytes(rdb_file(b"\xfa\x01a\x01b", *keys))
    rig = await start(**WITHOUT)
    assert sorted(await rig.ask("KEYS", "*")) == [b"s", b"t"]
    assert (await rig.ask("XINFO", "STREAM", "s"))[7] == b"5-5"
    told = await rig.info()
    counted = (told["rdb_last_load_keys_loaded"], told["rdb_last_load_keys_expired"])
    assert counted == ("2", "1")


async def test_nothing_is_loaded_without_a_file_or_its_name(start: Start, tmp_path: Path) -> None:
    assert await (await start(**WITHOUT)).ask("DBSIZE") == 0
    (tmp_path / "dump.rdb").write_bytes(rdb_file(STREAM))
    assert await (await start(appendonly=False)).ask("DBSIZE") == 0


async def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(rdb_file(STREAM)[:-9] + b"\xff" + bytes(7) + b"\x01")
    assert (await refused(tmp_path, **WITHOUT)).startswith(
        f"{path}: damaged at offset 23: the checksum is 0100000000000000, that of the data"
    )


async def test_a_base_that_save_has_made_holds_more_and_is_loaded(
    start: Start, tmp_path: Path
) -> None:
    rig = await start(**WITHOUT)
    await rig.ask("SET", "k", "v")
    await rig.ask("SAVE")
    await rig.stop()
    (tmp_path / "dump.rdb").write_bytes(rdb_file(STREAM))
    again = await start(**WITHOUT)
    assert await again.ask("KEYS", "*") == [b"k"]
    told = f"the file '{tmp_path}/dump.rdb' was not loaded: the data is in the folder"
    assert f"{told} '{again.folder}'" in again.log
    loaded = f"Loaded 3 commands from '{again.folder}/appendonly.aof.2.base.aof', "
    assert loaded in "\n".join(again.log)


async def test_what_a_server_with_an_append_only_file_left_is_passed_over(
    start: Start, tmp_path: Path
) -> None:
    """As on a real server, which loads its RDB file then."""
    rig = await start(dbfilename="dump.rdb")
    await rig.ask("SET", "k", "v")
    await rig.stop()
    (tmp_path / "dump.rdb").write_bytes(rdb_file(STREAM))
    without = await start(**WITHOUT)
    assert await without.ask("KEYS", "*") == [b"s"]
    log = "\n".join(without.log)
    assert f"the folder '{rig.folder}' was not loaded: " in log
    assert f"Loaded 1 keys and 0 commands from '{tmp_path}/dump.rdb', " in log
    await without.stop()
    again = await start(dbfilename="dump.rdb")
    assert await again.ask("KEYS", "*") == [b"k"]


async def test_an_append_only_file_that_begins_passes_over_an_rdb_file(
    start: Start, tmp_path: Path
) -> None:
    """As on a real server; the log says how to have it."""
    (tmp_path / "dump.rdb").write_bytes(rdb_file(STREAM))
    rig = await start(dbfilename="dump.rdb")
    assert await rig.ask("DBSIZE") == 0
    assert rig.log[0] == (
        f"the file '{tmp_path}/dump.rdb' was not loaded: there is no append-only file yet, and"
        " appendonly is yes; a start with appendonly no loads it, and CONFIG SET appendonly yes"
        " keeps it then"
    )
    await rig.stop()
    shutil.rmtree(rig.folder)
    off = await start(**WITHOUT)
    assert await off.ask("CONFIG", "SET", "appendonly", "yes") == b"OK"
    await off.rewritten()
    await off.stop()
    again = await start(dbfilename="dump.rdb")
    assert await again.ask("KEYS", "*") == [b"s"]


# --- what is saved ---------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["SAVE", "BGSAVE"])
@pytest.mark.parametrize("appendonly", [False, True])
async def test_saving_writes_an_rdb_file_too(
    start: Start, tmp_path: Path, words: str, appendonly: bool
) -> None:
    rig = await start(appendonly=appendonly, dbfilename="dump.rdb")
    await rig.ask("XADD", "s", "1-1", "a", "b")
    await rig.ask("SET", "t", "text", "PXAT", SOON)
    await rig.ask(words)
    await rig.rewritten()
    data = (tmp_path / "dump.rdb").read_bytes()
    assert data.startswith(b"REDIS0010")
    assert items_of(data)[0][:2] == (b"redis-ver", b"8.10.0")
    keyspace = keyspace_of(data)
    assert list(keyspace.databases[0].values) == [b"s", b"t"]
    assert keyspace.databases[0].expires == {b"t": SOON}
    assert not (tmp_path / "temp-dump.rdb").exists()
    await rig.stop()
    shutil.rmtree(rig.folder)
    again = await start(**WITHOUT)
    assert await again.ask("XLEN", "s") == 1


async def test_a_rewrite_writes_no_rdb_file(start: Start, tmp_path: Path) -> None:
    rig = await start(dbfilename="dump.rdb")
    await rig.ask("BGREWRITEAOF")
    await rig.rewritten()
    assert not (tmp_path / "dump.rdb").exists()


async def test_a_file_that_cannot_be_written_fails_the_save(start: Start, tmp_path: Path) -> None:
    (tmp_path / "temp-dump.rdb").mkdir()
    rig = await start(**WITHOUT)
    await rig.ask("SET", "k", "v")
    assert "Is a directory" in await rig.ask("SAVE")
    assert not (tmp_path / "dump.rdb").exists()
    (tmp_path / "temp-dump.rdb").rmdir()
    assert await rig.ask("SAVE") == b"OK"


# --- real servers ----------------------------------------------------------------------------

SERVERS = pytest.mark.parametrize(
    "find", [find_old_server, find_server, find_valkey], ids=["Redis 7.0", "Redis 8.0", "Valkey"]
)


@pytest.mark.reference
@SERVERS
async def test_real_servers_load_what_was_saved(start: Start, tmp_path: Path, find: Any) -> None:
    rig = await start(**WITHOUT)
    for line in (
        *("XADD s 1-1 a b", "XADD s 2-1 c d", "XGROUP CREATE s g 0", "SET t text"),
        "XREADGROUP GROUP g ann COUNT 1 STREAMS s >",
    ):
        await rig.ask(*line.split())
    await rig.ask("SAVE")
    with RdbServer(find(), tmp_path / "real", (tmp_path / "dump.rdb").read_bytes()) as real:
        assert real.ask("GET", "t") == b"text"
        assert real.ask("XRANGE", "s", "-", "+") == await rig.ask("XRANGE", "s", "-", "+")
        assert real.ask("XPENDING", "s", "g") == await rig.ask("XPENDING", "s", "g")


@pytest.mark.reference
@SERVERS
async def test_the_folder_of_a_real_server_is_loaded(
    start: Start, tmp_path: Path, find: Any
) -> None:
    with RdbServer(find(), tmp_path, None, "--appendonly", "yes") as real:
        for line in ("XADD s 1-1 a b", "SET t text", "XGROUP CREATE s g 0"):
            real.ask(*line.split())
        real.rewrite()
        real.ask("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "s", ">")
        real.ask("RESTORE", "copy", 0, real.ask("DUMP", "s"))
        pending = real.ask("XPENDING", "s", "g", "-", "+", 9)
    rig = await start()
    assert sorted(await rig.ask("KEYS", "*")) == [b"copy", b"s", b"t"]
    (entry,) = await rig.ask("XPENDING", "s", "g", "-", "+", 9)
    assert entry[:2] + entry[3:] == pending[0][:2] + pending[0][3:]


@pytest.mark.parametrize("name", ["redis-7.0", "redis-8.0", "valkey-9.1"])
async def test_a_file_of_a_real_server_with_values_of_each_type_is_loaded(
    start: Start, tmp_path: Path, name: str
) -> None:
    (tmp_path / "dump.rdb").write_bytes(sample(name))
    rig = await start(**WITHOUT)
    keys = (b"string", b"hash", b"list", b"set", b"zset", b"stream")
    assert [await rig.ask("TYPE", key) for key in keys] == list(keys)
    assert await rig.ask("ZRANGE", "infinite", 0, -1, "WITHSCORES") == [
        b"b" * 100,
        b"-inf",
        b"a",
        b"inf",
    ]
