"""Programs in other languages that play the parts of the story, and tell what they see in JSON;
and those that serve HTTP."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.story import ITEMS, SUMMARY, Observer

NODE_FOLDER: Final = Path(__file__).parent / "node"
TIMEOUT_S: Final = 30


def node(package: str) -> str:
    """The path of Node; skips the test if it or the package is not there."""
    path = shutil.which("node")
    if path is None or not (NODE_FOLDER / "node_modules" / package).is_dir():
        pytest.skip(f"needs Node and, in {NODE_FOLDER.name}/, npm install ({package})")
    return path


class Program:
    """Runs the parts of the story that a client plays: ``command PORT PROTOCOL PART ...``."""

    def __init__(self, *command: str) -> None:
        self._command = command

    def start(self, *part: str) -> subprocess.Popen[str]:
        """A process that is not waited for."""
        return subprocess.Popen(
            [*self._command, *part], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def run(self, *part: str) -> list[Any]:
        """What a part tells, which must end by itself."""
        ended = subprocess.run(
            [*self._command, *part],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        return [json.loads(line) for line in ended.stdout.splitlines()]


@contextmanager
def serving(*command: str) -> Iterator[None]:
    """A program that runs until the test has ended."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def fetch(request: str | urllib.request.Request) -> str:
    """What an address of HTTP answers; empty as long as nobody serves there."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            text: str = response.read().decode()
            return text
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError:
        return ""


def told(process: subprocess.Popen[str]) -> Any:
    """The next line that a process prints."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def items(*ids: str) -> list[Any]:
    """Entries of the story as the programs tell them."""
    return [[entry_id, ITEMS[entry_id]] for entry_id in ids]


def lose_a_consumer(program: Program, observer: Observer) -> None:
    """Plays the part in which ann lives; she is killed while she waits once more."""
    with program.start("ann") as ann:
        observer.until_waiting()
        assert program.run("add", "1-0") == [["1-0"]]
        assert told(ann) == items("1-0")
        assert told(ann) == 1
        observer.until_waiting()
        assert program.run("add", "2-0", "3-0") == [["2-0", "3-0"]]
        assert told(ann) == items("2-0", "3-0")
        observer.until_waiting()
        ann.send_signal(signal.SIGKILL)
        assert ann.wait() == -signal.SIGKILL
    observer.until_waiting(0)


def replace_a_killed_consumer(program: Program, observer: Observer) -> None:
    """Plays the whole story."""
    assert program.run("create") == ["OK"]
    lose_a_consumer(program, observer)
    left, claimed, acknowledged, seen = program.run("bob")
    assert left == [2, "2-0", "3-0", {"ann": 2}]
    assert claimed == items("2-0", "3-0")
    assert acknowledged == 1
    seen["pending"] = [tuple(row) for row in seen["pending"]]
    seen["consumers"] = [tuple(row) for row in seen["consumers"]]
    assert seen == SUMMARY
    assert observer.summary() == SUMMARY


def fail_to_create_twice(program: Program) -> None:
    """Sees that an error of the server ends a program."""
    assert program.run("create") == ["OK"]
    with program.start("create") as again:
        assert again.wait(TIMEOUT_S) not in (0, None)
