"""A server ends with the run of pytest that has started it, however that ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.conftest import Project

TEST = """
import os
import signal

def test_it(penstock):
    penstock.restart()
    with open("server.txt", "w") as file:
        file.write(penstock.ask("INFO", "server"))
    penstock.ask("PING")
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # It is ignored behind nohup.
    {end}
"""


def until_gone(folder: Path) -> None:
    """Waits until the process has ended that the test has named."""
    [process] = re.findall(r"process_id:(\d+)", (folder / "server.txt").read_text())
    while Path("/proc", process).exists():
        pass


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGHUP)",
        "os._exit(1)",
    ],
)
def test_a_server_ends_with_its_run(project: Project, tmp_path: Path, end: str) -> None:
    project.write("test_it.py", TEST.format(end=end))
    assert project.run() == {}
    until_gone(tmp_path)


@pytest.mark.slow
def test_a_server_ends_with_its_worker_of_xdist(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", TEST.format(end="os._exit(1)"))
    assert project.run("-n", "1", "--max-worker-restart", "0")["failed"] == 1
    until_gone(tmp_path)
