"""Lives of a Python script are forked from a process that has made its imports."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.explore import forks
from penstock.explore.forks import fork_server, fork_servers
from penstock.explore.results import Unexplorable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")

NOTING = 'import os\nwith open(os.environ["NOTES"], "a") as notes:\n    notes.write("{}\\n")\n'


class Scripts:
    """Scripts in a folder, with a library that is installed elsewhere and modules of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.library = folder / "library"
        self.folder.mkdir()
        self.library.mkdir()
        self.notes = folder / "notes"
        self.notes.touch()

    def write(self, script: str, library: str = "", own: str = "") -> list[str]:
        """Writes them; returns the command of the script."""
        (self.library / "installed.py").write_text(NOTING.format("installed") + library)
        (self.folder / "own.py").write_text(NOTING.format("own") + own)
        (self.folder / "worker.py").write_text(script)
        return [sys.executable, str(self.folder / "worker.py"), "one", "two"]

    @property
    def environment(self) -> dict[str, str]:
        others = {name: text for name, text in os.environ.items() if name != "REDIS_URL"}
        return {**others, "PYTHONPATH": str(self.library), "NOTES": str(self.notes)}

    def noted(self) -> list[str]:
        return self.notes.read_text().split()


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


@pytest.fixture
def ended() -> Iterator[Any]:
    """Runs so many lives of a command; gives how they ended, and their errors."""

    def run(scripts: Scripts, command: list[str], lives: int = 1) -> list[tuple[int | None, str]]:
        server = fork_server(1, command, str(scripts.folder), scripts.environment)
        assert server is not None
        found = []
        for number in range(lives):
            with tempfile.TemporaryFile() as errors:
                status = server.start(f"redis://{number}", errors).wait()
                errors.seek(0)
                found.append((status, errors.read().decode()))
        return found

    with fork_servers():
        yield run


SCRIPT = """
import os, sys
import own
if __name__ == "__main__":
    sys.exit(f"{os.environ['REDIS_URL']} {sys.argv[1:]} {own.installed.__name__}")
"""


def test_what_is_installed_is_imported_once_and_what_is_its_own_in_each_life(
    scripts: Scripts, ended: Any
) -> None:
    command = scripts.write(SCRIPT, own="import installed\n")
    assert ended(scripts, command, lives=3) == [
        (1, f"redis://{number} ['one', 'two'] installed\n") for number in range(3)
    ]
    assert scripts.noted() == ["installed", "own", "own", "own"]


def test_a_life_ends_as_a_script_does(scripts: Scripts, ended: Any) -> None:
    ((status, errors),) = ended(scripts, scripts.write("1 / 0\n"))
    assert status == 1
    assert errors.endswith('worker.py", line 1, in <module>\n    1 / 0\n    ~~^~~\n'
                           "ZeroDivisionError: division by zero\n")  # fmt: skip
    assert ended(scripts, scripts.write("")) == [(0, "")]


def test_chance_is_another_one_in_each_life(scripts: Scripts, ended: Any) -> None:
    command = scripts.write("import random, sys\nsys.exit(str(random.random()))\n")
    (_, first), (_, second) = ended(scripts, command, lives=2)
    assert first != second


def test_a_life_may_be_killed_with_all_that_it_has_started(scripts: Scripts) -> None:
    command = scripts.write("import subprocess\nsubprocess.run(['sleep', '1000'])\n")
    with fork_servers(), tempfile.TemporaryFile() as errors:
        server = fork_server(1, command, None, scripts.environment)
        assert server is not None
        life = server.start("redis://h", errors)
        assert life.poll() is None
        os.killpg(life.pid, signal.SIGKILL)
        assert life.wait() == -signal.SIGKILL == life.poll()


STARTS_A_THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=[9], daemon=True).start()
"""


@pytest.mark.parametrize(
    ("script", "library"),
    [
        ("import installed\n", STARTS_A_THREAD),
        ("import installed\n", "raise SystemExit(3)\n"),
        ("import installed\n", "import os\nos.environ['REDIS_URL']\n"),
        ("import not_there\n", ""),
        ("import :\n", ""),
    ],
    ids=["threads", "exit", "the URL", "missing", "no Python"],
)  # fmt: skip
def test_what_cannot_be_forked_is_started(scripts: Scripts, script: str, library: str) -> None:
    command = scripts.write(script, library)
    with fork_servers():
        assert fork_server(1, command, None, scripts.environment) is None


def test_imports_that_do_not_end_are_left_to_each_life(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "IMPORTS_S", 0)
    command = scripts.write("import installed\n", "import threading\nthreading.Event().wait()\n")
    with fork_servers():
        assert fork_server(1, command, None, scripts.environment) is None


@pytest.mark.parametrize("words", [["node", "w.mjs"], ["python3", "-m", "w"], ["python3"]])
def test_only_scripts_of_python_are_forked(words: list[str]) -> None:
    assert fork_server(1, words, None, os.environ) is None


def test_that_it_has_ended_is_told(scripts: Scripts) -> None:
    with fork_servers(), tempfile.TemporaryFile() as errors:
        server = fork_server(1, scripts.write(""), None, scripts.environment)
        assert server is not None
        server.process.kill()
        with pytest.raises(Unexplorable, match="has ended that lives of the script are forked"):
            server.start("redis://h", errors)


def test_it_ends_with_the_exploration(scripts: Scripts) -> None:
    with fork_servers():
        server = fork_server(1, scripts.write(""), None, scripts.environment)
        assert server is fork_server(1, ["python", "worker.py"], None, {})
    assert server is not None
    assert server.process.returncode == -signal.SIGKILL
