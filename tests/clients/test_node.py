"""ioredis and node-redis, in programs of Node that tell the story in both protocols."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.story import ITEMS, SUMMARY, Observer
from tests.support.servers import PenstockThread

PROGRAMS: Final = Path(__file__).parent / "node"
pytestmark = pytest.mark.slow

NODE: Final = shutil.which("node") or ""
TIMEOUT_S: Final = 30

PACKAGES: Final = {"ioredis": "ioredis", "node-redis": "redis"}
"""Each program and the package that it uses."""


class Program:
    """Runs the parts of the story that a client of Node plays."""

    def __init__(self, name: str, penstock: PenstockThread, protocol: int) -> None:
        self._command = [NODE, str(PROGRAMS / f"{name}.mjs"), str(penstock.port), str(protocol)]

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


@pytest.fixture(params=PACKAGES)
def program(request: pytest.FixtureRequest, penstock: PenstockThread, protocol: int) -> Program:
    package = PROGRAMS / "node_modules" / PACKAGES[request.param]
    if not NODE or not package.is_dir():
        pytest.skip(f"needs Node and, in {PROGRAMS.name}/, npm install ({request.param})")
    return Program(request.param, penstock, protocol)


def told(process: subprocess.Popen[str]) -> Any:
    """The next line that a process prints."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def items(*ids: str) -> list[Any]:
    """Entries of the story as the programs tell them."""
    return [[entry_id, ITEMS[entry_id]] for entry_id in ids]


def lose_a_consumer(program: Program, observer: Observer) -> None:
    """The part of the story in which ann lives; she is killed while she waits once more."""
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


def test_a_killed_consumer_is_replaced(program: Program, observer: Observer) -> None:
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


def test_an_error_of_the_server_ends_the_program(program: Program) -> None:
    assert program.run("create") == ["OK"]
    with program.start("create") as again:
        assert again.wait(TIMEOUT_S) == 1
