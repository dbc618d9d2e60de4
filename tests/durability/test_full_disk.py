"""A small file system that fills up."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.servers import AofProcess
from tests.durability.talking import Talker
from tests.durability.test_failing_disk import FULL, refused, text
from tests.migration.conftest import real_servers
from tests.support.ports import free_port
from tests.support.wire import wait_until

SIZE = 1024 * 1024
FILLER = 512 * 1024
VALUE = "x" * 4000


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of a mebibyte, half of which is taken by the file ``filler``."""
    path = tmp_path / "small"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        (path / "filler").write_bytes(bytes(FILLER))
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(port: int) -> int:
    """Sets the keys ``key:1`` and so on until that is refused; returns the last one answered."""
    number = 0
    with Talker(port) as talker:
        try:
            while not text(reply := talker.ask("SET", f"key:{number + 1}", VALUE)):
                number += 1
            assert text(reply) == FULL
        except ConnectionError:
            pass  # Whoever has written what could not be kept hears nothing.
    return number


@pytest.mark.parametrize("policy", ["always", "everysec"])
def test_a_file_system_that_is_full_refuses_writes_and_loses_nothing(
    small: Path, policy: str
) -> None:
    options = ("--appendfsync", policy)
    with AofProcess(small, *options) as server:
        last = fill(server.address[1])
        assert last * len(VALUE) > SIZE - FILLER - 100_000
        with Talker(server.address[1]) as talker:
            wait_until(lambda: refused(talker))
            assert text(talker.ask("SET", "key", "value")) == FULL
            assert talker.ask("GET", f"key:{last}") == VALUE
            (small / "filler").unlink()
            wait_until(lambda: not refused(talker))
            assert talker.ask("SET", "key", "after") == "OK"
            assert talker.ask("WAIT", 0, 0) == 0
        server.stop(signal.SIGKILL)
    with AofProcess(small, *options) as server, Talker(server.address[1]) as talker:
        assert [talker.ask("STRLEN", f"key:{n}") for n in range(1, last + 1)] == [4000] * last
        assert talker.ask("GET", "key") == "after"


def test_a_server_starts_on_a_full_file_system_with_all_that_was_answered(small: Path) -> None:
    with AofProcess(small, "--appendfsync", "always") as server:
        last = fill(server.address[1])
        server.stop(signal.SIGKILL)
    with AofProcess(small) as server, Talker(server.address[1]) as talker:
        assert talker.ask("GET", f"key:{last}") == VALUE
        assert talker.ask("DBSIZE") in (last, last + 1)


COMMANDS = (
    "PING",
    "ECHO x",
    "STRLEN key:1",
    "SET a b",
    "XADD stream * f v",
    "PUBLISH channel message",
    "FLUSHALL",
    "DEL nothing",
    "EXPIRE nothing 1",
    "XREADGROUP GROUP g c STREAMS stream >",
    "XLEN stream",
    "WATCH a",
    "UNWATCH",
)


def answers(port: int) -> dict[str, object]:
    """What is answered to each command on a full disk."""
    with Talker(port) as talker:
        wait_until(lambda: refused(talker))
        found = {command: talker.ask(*command.split()) for command in COMMANDS}
        return {command: text(reply) or reply for command, reply in found.items()}


@pytest.mark.reference
def test_a_full_disk_is_told_of_as_a_real_server_does(small: Path) -> None:
    if not real_servers():
        pytest.skip("no redis-server and no valkey-server to compare with")
    with AofProcess(small) as server:
        fill(server.address[1])
        found = answers(server.address[1])
        server.stop(signal.SIGKILL)
    port = free_port()
    (small / "real").mkdir()
    for path in (small / "appendonlydir").iterdir():
        path.unlink()
    settings = f"--port {port} --dir {small}/real --appendonly yes --aof-use-rdb-preamble no"
    command = [real_servers()[0], *settings.split(), "--save", "", "--loglevel", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port))
        fill(port)
        assert found == answers(port)
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    """Whether there is a server at the port."""
    try:
        Talker(port).close()
    except ConnectionRefusedError:
        return False
    return True
