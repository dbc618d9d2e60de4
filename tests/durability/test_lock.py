"""Two servers on one folder."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.durability.servers import FOLDER, AofProcess, image_of
from tests.support.process import run_penstock


def test_a_second_server_on_the_same_folder_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with AofProcess(tmp_path) as first:
        before = image_of(tmp_path)
        options = ("--port", "0", "--dir", str(tmp_path), "--appendonly", "yes")
        second = run_penstock(*options)
        assert second.returncode == 1
        assert second.stderr == (
            f"penstock: the folder '{tmp_path / FOLDER}' is in use by another process,"
            f" pid {first.process.pid}\n"
        )
        assert first.ask(b"SET key value\r\n") == b"+OK\r\n"
        assert image_of(tmp_path).keys() == before.keys()


def test_a_server_that_was_killed_leaves_the_folder_to_the_next(tmp_path: Path) -> None:
    with AofProcess(tmp_path, "--appendfsync", "always") as first:
        assert first.ask(b"SET key value\r\n") == b"+OK\r\n"
        first.stop(signal.SIGKILL)
    with AofProcess(tmp_path) as second:
        assert second.ask(b"GET key\r\n") == b"$5\r\nvalue\r\n"
