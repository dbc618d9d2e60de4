"""Files of a real server, and what a real server thinks of ours."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from storage.aof.check import check_file, check_folder
from storage.aof.disk import Disk
from storage.aof.folder import Folder
from storage.aof.framing import Command
from storage.aof.manifest import Manifest, NamedFile
from storage.aof.reader import Reader
from tests.storage.aof.samples import EXEC, MULTI, STAMP, encoded, xadd, xclaim
from tests.support.bits import flipped
from tests.support.checksum_lines import with_lines
from tests.support.redis_files import RdbServer
from tests.support.wire import wait_until

ONE = encoded(xadd(1))


@contextmanager
def appending(path: str, folder: Path, *options: str) -> Iterator[redis.Redis]:
    """A client of a real server that appends to files in the folder."""
    words = ("--appendonly", "yes", "--aof-use-rdb-preamble", "no", *options)
    with RdbServer(path, folder, None, *words) as server, redis.Redis(port=server.port) as client:
        yield client


def commands_of(folder: Folder) -> Iterator[Command]:
    for file in folder.manifest.files:
        for batch in Reader(folder.path_of(file.name), torn=False):
            yield from batch.commands


def rewritten(client: redis.Redis) -> bool:
    info = client.info("persistence")
    return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]


@pytest.mark.parametrize("name", ["appendonly.aof", "my caf\u00e9.aof"])
def test_the_folder_of_a_real_server_is_read(real_server: str, tmp_path: Path, name: str) -> None:
    stamps = ["--aof-timestamp-enabled", "yes", "--appendfilename", name]
    with appending(real_server, tmp_path, *stamps) as client:
        client.xadd("s", {"f": "a\r\nb"}, "1-1")
        client.bgrewriteaof()
        wait_until(lambda: rewritten(client))
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "c", {"s": ">"})
        with client.pipeline(transaction=True) as group:
            group.xadd("s", {"f": "v"}, "2-1")
            group.xack("s", "g", "1-1")
            group.execute()
    folder = Folder(str(tmp_path / "appendonlydir"), name)
    folder.load()
    assert folder.manifest == Manifest(
        NamedFile(f"{name}.2.base.aof", 2), (NamedFile(f"{name}.2.incr.aof", 2),)
    )
    assert [found.whole for found in check_folder(folder)] == [True, True]
    assert folder.strays() == []
    commands = list(commands_of(folder))
    assert [b"XADD", b"s", b"1-1", b"f", b"a\r\nb"] in commands
    names = [command[0] for command in commands]
    assert names[-4:] == [b"MULTI", b"XADD", b"XACK", b"EXEC"]


@pytest.mark.parametrize("name", ["appendonly.aof", 'it\'s a "caf\u00e9".aof'])
def test_a_real_server_opens_our_folder(real_server: str, tmp_path: Path, name: str) -> None:
    folder = Folder(str(tmp_path / "appendonlydir"), name)
    folder.open()
    for number in range(4):
        file = folder.next_increment()
        Path(folder.path_of(file.name)).write_bytes(encoded(xadd(number + 1)))
        folder.commit(folder.manifest.with_increment(file))
    base = folder.next_base()
    Path(folder.path_of(base.name)).write_bytes(encoded(xadd(1), xadd(2)))
    folder.commit(folder.manifest.with_base(base, 2))
    folder.release()
    with appending(real_server, tmp_path, "--appendfilename", name) as client:
        entries = client.xrange("s")
    assert entries == [(b"%d-1" % number, {b"field": b"v"}) for number in (1, 2, 3, 4)]


def test_a_real_server_leaves_the_lock_alone(real_server: str, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "appendonlydir"), "appendonly.aof")
    folder.open()
    with appending(real_server, tmp_path) as client:
        client.xadd("s", {"f": "v"})
        client.bgrewriteaof()
        wait_until(lambda: rewritten(client))
    lock = tmp_path / "appendonlydir" / "appendonly.aof.lock"
    assert lock.read_text() != ""
    folder.release()
    assert folder.user() == ""


# --- redis-check-aof -------------------------------------------------------------------------


def is_valid(real_server: str, path: Path, tool: str = "redis-check-aof") -> bool:
    command = [str(Path(real_server).with_name(tool)), str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    valid = b"is valid" in done.stdout or b"is empty" in done.stdout
    assert valid == (done.returncode == 0)
    return valid


@pytest.mark.parametrize(
    ("data", "valid"),
    [
        (b"", True),
        (ONE + STAMP + ONE, True),
        (encoded(MULTI, xadd(1), EXEC), True),
        (encoded([b"multi"], xadd(1), [b"exec"]), True),
        (ONE + b"#\r\n" + ONE, True),
        (ONE + ONE[:-1], False),
        (ONE + b"*", False),
        (encoded(MULTI, xadd(1)), False),
        (encoded(EXEC), False),
        (encoded(MULTI, MULTI, EXEC), False),
        (ONE + b"\0\0\0", False),
        (ONE + b"\0\0\0" + ONE, False),
        (ONE + b"#" + b"x" * 1100 + b"\r\n" + ONE, False),
        (ONE + b"PING\r\n", False),
        (ONE.replace(b"\r\n", b"\n"), False),
        (ONE[:-2] + b"XY" + ONE, False),
        (b"*1\r\n$-1\r\n", False),
        (ONE.replace(b"$1\r\nv", b"$500\r\nv") + ONE, False),
    ],
)
def test_both_checks_agree(real_server: str, tmp_path: Path, data: bytes, valid: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert is_valid(real_server, path) == valid
    assert check_file(str(path), Disk()).whole == valid


WITH_CHECKSUMS = {
    "last": with_lines(ONE),
    "first": with_lines(b"", ONE),
    "nothing else": with_lines(b""),
    "behind each": with_lines(ONE, encoded(xadd(2)), STAMP + encoded(xadd(3))),
    "behind a group": with_lines(encoded(MULTI, xadd(1), EXEC), encoded(xadd(2))),
    "torn": with_lines(ONE)[:-5],
}


@pytest.mark.parametrize("data", WITH_CHECKSUMS.values(), ids=list(WITH_CHECKSUMS))
@pytest.mark.parametrize("tool", ["redis-check-aof", "valkey-check-aof"])
def test_their_checks_pass_over_checksums(
    real_server: str, tmp_path: Path, tool: str, data: bytes
) -> None:
    if not Path(real_server).with_name(tool).exists():
        pytest.skip(f"no {tool} beside {real_server}")
    path = tmp_path / "file"
    path.write_bytes(data)
    assert is_valid(real_server, path, tool)


@pytest.mark.parametrize("data", WITH_CHECKSUMS.values(), ids=list(WITH_CHECKSUMS))
@pytest.mark.parametrize("binary", ["redis-server", "redis-server-7.0", "valkey-server"])
def test_other_servers_load_files_with_checksums_and_append_to_them(
    real_server: str, tmp_path: Path, binary: str, data: bytes
) -> None:
    server = Path(real_server).with_name(binary)
    if not server.exists():
        pytest.skip(f"no {binary} beside {real_server}")
    folder = Folder(str(tmp_path / "appendonlydir"), "appendonly.aof")
    folder.open()
    file = folder.next_increment()
    path = Path(folder.path_of(file.name))
    path.write_bytes(data)
    folder.commit(folder.manifest.with_increment(file))
    folder.release()
    with appending(str(server), tmp_path) as client:
        assert client.xlen("s") == data.count(b"XADD")
        client.xadd("s", {"field": "v"}, "9-1")
    appended = path.read_bytes()[len(data) :]
    assert b"9-1" in appended
    if not data.endswith(b"\r\n"):
        return  # They go on in the middle of the torn line: it must be cut off before.
    found = check_file(str(path), Disk())
    assert (found.whole, found.uncovered) == (True, len(appended))


@pytest.mark.parametrize("data", [ONE + STAMP[:-3], b"*0\r\n" + ONE, b"*1\r\n$04\r\nPING\r\n"])
def test_ours_is_the_stricter_one(real_server: str, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert is_valid(real_server, path)
    assert not check_file(str(path), Disk()).whole


def test_what_is_whole_here_is_valid_there(real_server: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    sample = encoded(xadd(1), MULTI, xadd(2, b"a\r\nb"), xclaim(2), EXEC, xadd(3)) + STAMP + ONE
    for at in random.Random(1).sample(range(8 * len(sample)), 150):
        path.write_bytes(flipped(sample, at))
        assert is_valid(real_server, path) or not check_file(str(path), Disk()).whole
