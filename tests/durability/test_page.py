"""What the page on durability shows works as it is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.durability.servers import AofProcess
from tests.durability.talking import Talker
from tests.durability.test_failing_disk import FULL
from tests.durability.test_full_disk import listens
from tests.support.ports import free_port
from tests.support.process import ROOT, run_penstock
from tests.support.wire import wait_until

PAGE = (ROOT / "docs" / "durability.md").read_text()
LINES = re.findall(r"(?<=\n)    (\S.*)", PAGE)
CHECKING = "penstock check-aof data/appendonlydir"
MOVING = "redis-server --dir data --appendonly yes --aof-use-rdb-preamble no"
SERVING = [line for line in LINES if line.startswith("penstock --")]


def words(line: str, folder: Path) -> list[str]:
    """The arguments of a command that the page shows, with its folder in place of ``data``."""
    return [re.sub(r"^data\b", str(folder), word) for word in shlex.split(line)[1:]]


def test_the_page_shows_nothing_that_is_not_tried_out() -> None:
    assert len(SERVING) == 2
    assert [line for line in LINES if line not in SERVING] == [FULL, CHECKING, MOVING]


def test_the_servers_keep_what_the_page_says_and_check_aof_finds_it_whole(tmp_path: Path) -> None:
    for number, line in enumerate(SERVING):
        server = AofProcess(tmp_path, *words(line, tmp_path))
        with server, Talker(server.address[1]) as talker:
            assert talker.ask("DBSIZE") == number
            assert talker.ask("XADD", f"stream:{number}", "1-1", "f", "v") == "1-1"
    checked = run_penstock(*words(CHECKING, tmp_path))
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (
        0,
        "The append-only file is whole.",
    )


def test_a_folder_moves_to_redis_and_back(real_server: str, tmp_path: Path) -> None:
    with AofProcess(tmp_path) as server, Talker(server.address[1]) as talker:
        talker.ask("XADD", "stream", "1-1", "from", "Penstock")
    port = free_port()
    command = [real_server, *words(MOVING, tmp_path), "--port", str(port), "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port))
        with Talker(port) as talker:
            wait_until(lambda: talker.ask("PING") == "PONG")
            assert talker.ask("XRANGE", "stream", "-", "+") == [["1-1", ["from", "Penstock"]]]
            assert talker.ask("XADD", "stream", "2-1", "from", "Redis") == "2-1"
            talker.ask("BGREWRITEAOF")
            wait_until(lambda: "aof_rewrite_in_progress:0" in talker.ask("INFO", "persistence"))
    finally:
        process.terminate()
        process.wait()
    with AofProcess(tmp_path) as server, Talker(server.address[1]) as talker:
        assert talker.ask("XRANGE", "stream", "-", "+") == [
            ["1-1", ["from", "Penstock"]],
            ["2-1", ["from", "Redis"]],
        ]
