"""``penstock check-aof`` calls a file whole if, and only if, a server loads it as it is."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.check_aof import main
from penstock.cli import new_replay
from server.app import Server
from server.config.registry import Config
from server.persistence.manager import PersistenceError
from server.runtime.log import Log
from tests.durability.servers import FOLDER, AofThread, image_of, lay_out
from tests.durability.steps import Steps
from tests.durability.talking import Talker
from tests.storage.aof.samples import EXEC, MULTI, STAMP, encoded, xadd, xclaim
from tests.support.bits import flipped
from tests.support.checksum_lines import groups, with_lines
from tests.support.process import run_penstock

BASE, INCREMENT = "appendonly.aof.1.base.aof", "appendonly.aof.1.incr.aof"
MANIFEST = b"file %s seq 1 type b\nfile %s seq 1 type i\n" % (BASE.encode(), INCREMENT.encode())
FUNCTION = b"#!lua name=lib\nredis.register_function('f', function() return 1 end)"

Image = dict[str, bytes]


async def start(folder: Path) -> tuple[str, str]:
    """Starts a server on a folder, and ends it; why it does not start, or what its log says."""
    output = io.StringIO()
    config = Config(bind="127.0.0.1", port=0, dir=str(folder), appendonly=True)
    server = Server(config, log=Log(output), periodic=False)
    try:
        await server.start()
    except PersistenceError as error:
        return str(error), ""
    await server.stop()
    return "", output.getvalue()


def check(folder: Path) -> tuple[int, str]:
    """The exit status of ``check-aof``, and what it says."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        return main([str(folder / FOLDER)], new_replay), output.getvalue()


def compare(folder: Path, image: Image) -> str:
    """Lets both have the same files; returns what became of them."""
    lay_out(folder, image)
    status, said = check(folder)
    refusal, log = asyncio.run(start(folder))
    if refusal:
        assert status == 1, said
        assert "torn" not in said
        # Both name the same place, or the same fault of the manifest.
        place = refusal.partition("offset ")[2].partition(":")[0]
        assert f"at offset {place}: " in said if place else refusal in said
        assert refusal.split(": ")[-1] in said
        return "refused"
    if "were cut off" in log:
        assert status == 1
        assert "The end of the append-only file is torn" in said
        return "torn"
    assert (status, said.splitlines()[-1]) == (0, "The append-only file is whole.")
    return "whole"


def of_increment(data: bytes, base: bytes = b"") -> Image:
    """Files whose increment is this one."""
    return {BASE: base, INCREMENT: data, "appendonly.aof.manifest": MANIFEST}


def group(*words: bytes) -> bytes:
    """What one command writes."""
    return encoded(list(words))


MADE = with_lines(encoded(xadd(1), [b"XGROUP", b"CREATE", b"s", b"group", b"0"]))
REFUSED = {
    "an unknown command": group(b"NOSUCH", b"x"),
    "a command that does not write": group(b"GET", b"x"),
    "a subcommand that is not there": group(b"XGROUP", b"NOSUCH", b"s", b"g"),
    "too few arguments": group(b"XADD", b"s"),
    "an ID that goes backwards": encoded(xadd(2), xadd(2)),
    "an ID that is none": group(b"XADD", b"s", b"x-1", b"f", b"v"),
    "a key of another type": encoded([b"SET", b"k", b"v"], [b"XADD", b"k", b"1-1", b"f", b"v"]),
    "a stream that is not there": group(b"XACK", b"none", b"g", b"1-1"),
    "a group that is not there": group(b"XACK", b"s", b"none", b"1-1"),
    "a group that is there": group(b"XGROUP", b"CREATE", b"s", b"group", b"0"),
    "a database that is not there": group(b"SELECT", b"99"),
    "a record of another version": group(b"ECHO", encoded([b"penstock:2", b"x"])),
    "an unknown record": group(b"ECHO", encoded([b"penstock:1", b"x"])),
    "a library that is there": group(b"FUNCTION", b"LOAD", FUNCTION) * 2,
    "a command in a group": encoded(MULTI, [b"NOSUCH"], EXEC),
    "a wrong number of pairs": group(b"XADD", b"s", b"2-1", b"f"),
    "counters that do not fit": group(
        b"XSETID", b"s", b"0-1", b"ENTRIESADDED", b"1", b"MAXDELETEDID", b"0-0"
    ),
    "an expiry that is none": group(b"PEXPIREAT", b"s", b"soon"),
    "a number that is none": encoded([b"SET", b"k", b"v"], [b"INCR", b"k"]),
    "an EXEC alone": encoded(EXEC),
    "a MULTI in a MULTI": encoded(MULTI, MULTI, EXEC),
    "an RDB snapshot": b"REDIS0011\xfa",
    "something else": b"PING\r\n",
    "a comment that is none": b"#CRC32D:00000000:0\r\n",
}
LOADED = {
    "nothing": b"",
    "comments": STAMP + encoded(xadd(2)) + STAMP,
    "a group": encoded(MULTI, xadd(2), xclaim(1), EXEC),
    "a library": group(b"FUNCTION", b"LOAD", FUNCTION),
    "a string": group(b"SET", b"k", b"v") + group(b"APPEND", b"k", b"w"),
    "another database": group(b"SELECT", b"15") + encoded(xadd(1)),
    "a command in lower case": encoded([b"xadd", b"s", b"2-1", b"f", b"v"]),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("written", [True, False], ids=["with checksums", "without"])
def test_what_a_server_refuses_is_not_whole(tmp_path: Path, data: bytes, written: bool) -> None:
    if data.startswith(b"REDIS"):
        assert compare(tmp_path, of_increment(data)) == "refused"
        return
    data = with_lines(data) if written else data
    assert compare(tmp_path, of_increment(MADE + data)) == "refused"
    assert compare(tmp_path, of_increment(data, base=MADE)) == "refused"


@pytest.mark.parametrize("data", LOADED.values(), ids=list(LOADED))
def test_what_a_server_loads_is_whole(tmp_path: Path, data: bytes) -> None:
    assert compare(tmp_path, of_increment(MADE + data)) == "whole"
    assert compare(tmp_path, of_increment(MADE + with_lines(data))) == "whole"


def test_the_command_and_a_server_agree_as_processes(tmp_path: Path) -> None:
    lay_out(tmp_path, of_increment(MADE + REFUSED["an unknown command"]))
    path = tmp_path / FOLDER / INCREMENT
    checked = run_penstock("check-aof", str(tmp_path / FOLDER))
    started = run_penstock("--port", "0", "--dir", str(tmp_path), "--appendonly", "yes")
    reason = f"offset {len(MADE)}: 'NOSUCH' 'x': Penstock does not know this command"
    assert (checked.returncode, started.returncode) == (1, 1)
    assert started.stderr == f"penstock: {path}: {reason}\n"
    assert f"then refused at {reason}\n" in checked.stdout


# --- damaged at random -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """What a server has written."""
    folder = tmp_path_factory.mktemp("image")
    steps = Steps(0, seed=5)
    with AofThread(folder) as server, Talker(server.port) as talker:
        for index in range(30):
            if index == 10:
                assert talker.ask("SAVE") == "OK"
            for command in steps[index]:
                talker.ask(*command)
    image = image_of(folder)
    return {name: data for name, data in image.items() if not name.endswith(".lock")}


def changed(chosen: random.Random, data: bytes) -> bytes:
    """The data with a change of some kind."""
    at = chosen.randrange(len(data))
    to = min(len(data), at + chosen.randrange(1, 60))
    kind = chosen.randrange(8)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[to:]
    if kind == 2:
        return data[:to] + data[at:]
    if kind == 3:
        return data[:at] + bytes(to - at) + data[to:]
    if kind == 4:
        return data[:at] + bytes(chosen.randrange(1, 600))
    if kind == 5:
        return data + data[at:to]
    return flipped(data, 8 * at + chosen.randrange(8))


def damaged(image: Image, count: int) -> Iterator[Image]:
    """Files with one change, or without some of their checksums and with one change."""
    chosen = random.Random(count)
    increment = next(name for name in image if ".incr." in name)
    for _ in range(count):
        name = chosen.choice([increment, increment, *image])
        files = dict(image)
        if chosen.random() < 0.4:
            files[increment] = b"".join(groups(files[increment]))
        files[name] = changed(chosen, files[name])
        yield files


@pytest.mark.parametrize(
    "count",
    [
        64,
        pytest.param(500, marks=pytest.mark.slow),
        pytest.param(2000, marks=pytest.mark.heavy),
    ],
)
def test_both_come_to_the_same_for_damaged_files(image: Image, tmp_path: Path, count: int) -> None:
    outcomes = [compare(tmp_path, files) for files in damaged(image, count)]
    assert {"refused", "torn", "whole"} == set(outcomes)
    assert outcomes.count("refused") > count // 3
