"""Servers for the tests of load: Penstock, and Redis beside it where results are written."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.reference import find_server
from tests.reliability.witness import Witness, found
from tests.soak.clients import Tally
from tests.soak.results import Outcome, results_of
from tests.support.ports import free_port
from tests.support.process import PenstockProcess

MEGABYTE: Final = 1024**2

ENTRY_EACH_MS: Final = 100
"""How often the other client adds an entry: so seldom that its data is no growth to speak of."""


class RedisProcess(PenstockProcess):
    """A real server, used in the same way; its port is ``port``."""

    def __init__(self, path: str, folder: Path, *options: str) -> None:
        self._port = free_port()
        # Nobody reads a pipe meanwhile: one that is full would make the server wait.
        self._log = folder / "redis.log"
        where = ("--port", str(self._port), "--dir", str(folder), "--logfile", str(self._log))
        self.process = subprocess.Popen(
            [path, *where, *options, "--save", ""],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self.status: int | None = None
        self.errors = ""

    def __enter__(self) -> RedisProcess:
        while self.process.poll() is None:
            if self._log.exists() and "Ready to accept connections" in self._log.read_text():
                return self
            time.sleep(0.01)
        raise AssertionError("the server ended before it was ready")

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self._port


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test on both servers where results are written."""
    if "server" in metafunc.fixturenames and results_of(metafunc.config):
        servers = ["penstock", "redis"] if find_server() else ["penstock"]
        metafunc.parametrize("server", servers, indirect=True)


@pytest.fixture
def tally() -> Tally:
    """What the load of a test counts."""
    return Tally()


@pytest.fixture
def server(
    request: pytest.FixtureRequest, tmp_path: Path, tally: Tally
) -> Iterator[PenstockProcess]:
    """A server with an append-only file and room for many clients."""
    _allow_files()
    kind = getattr(request, "param", "penstock")
    where = ("--bind", "127.0.0.1", "--dir", str(tmp_path), "--timeout", "0")
    options = (*where, "--maxclients", "20000", "--appendonly", "yes")
    started = (
        PenstockProcess("--port", "0", *options)
        if kind == "penstock"
        else RedisProcess(str(find_server()), tmp_path, *options)
    )
    with started as process:
        results = results_of(request.config)
        if results is None:
            yield process
        else:
            before = memory_of(process, "VmRSS")
            with Witness(process.address, ENTRY_EACH_MS) as witness:
                yield process
            peak = (memory_of(process, "VmHWM") - before) / MEGABYTE
            seen = witness.seen
            lost = len(set(seen.acknowledged) - found(process.address))
            outcome = Outcome(tally.answered, tally.faults, seen.longest_ms, peak, lost)
            results.note(request.function.__name__, kind, outcome)
            assert lost == 0
    assert process.status == 0
    assert "Traceback" not in "".join(process.lines) + process.errors


def memory_of(process: PenstockProcess, value: str) -> int:
    """Bytes that a process has in memory: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(status.partition(f"{value}:")[2].split(maxsplit=1)[0]) * 1024


def _allow_files() -> None:
    """Lets this process, and what it starts, open as many files as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
