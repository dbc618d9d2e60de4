"""What holds for every test run: markers, how many random examples, and how long tests took."""

from __future__ import annotations

import gc
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partialmethod
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from hypothesis import settings

from tests.conformance.reference import FOLDER_VARIABLE, RECORDED_VERSION, find_server
from tests.support import log_check
from tests.support.skipped import summary

REFERENCE_FIXTURES = frozenset({"real_server", "real_port"})
"""A test that needs one of these, even indirectly, has the marker ``reference``."""

SLOWEST = 10

# No test may fail because the machine is busy, so examples have no deadline. See tests/README.md.
settings.register_profile("default", max_examples=10, deadline=None)
settings.register_profile("coverage", max_examples=20, deadline=None)
settings.register_profile("compiled", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None)
settings.register_profile("long", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("PENSTOCK_HYPOTHESIS_PROFILE", "default"))

# Nor may a client of redis-py give up on a server that is slow: it would send its command again.
# From version 8 on it does so after five seconds, unless a test says otherwise.
CLIENTS: tuple[Any, ...] = (
    redis.Redis,
    redis.asyncio.Redis,
    redis.connection.AbstractConnection,
    redis.asyncio.connection.AbstractConnection,
)
for client in CLIENTS:
    client.__init__ = partialmethod(client.__init__, socket_timeout=60)


@pytest.fixture(scope="session")
def real_server() -> str:
    """The path of a real server of the version that replies are compared with."""
    path = find_server()
    if path is None:
        pytest.skip(f"no redis-server {RECORDED_VERSION}x in ${FOLDER_VARIABLE} or on PATH")
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Lets each process of the run import other tests first: in a new clone they have to be
    compiled, which takes one process 13 s. What cannot be imported is told where it is collected.

    The collector would go through all tests and modules again and again, before and afterwards."""
    gc.disable()
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if worker and session.config.args == session.config.getini("testpaths"):
        place, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        for module in sorted(_modules_of_tests(session.path))[place::count]:
            with suppress(Exception, pytest.skip.Exception):
                import_module(module)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _modules_of_tests(root: Path) -> Iterator[str]:
    """The names that the files of tests of all distributions are imported by."""
    for base, tests in ((root, "tests"), *((each, "") for each in root.glob("spark/*/tests"))):
        for path in (base / tests).rglob("test_*.py"):
            yield ".".join(path.relative_to(base).with_suffix("").parts)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by what they use, before ``-m`` makes its choice; the heavy ones have to be
    asked for."""
    for item in items:
        if not REFERENCE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("reference")
        if item.nodeid.startswith("tests/clients/"):
            item.add_marker("clients")
    if "heavy" not in config.option.markexpr:
        heavy = [item for item in items if item.get_closest_marker("heavy")]
        config.hook.pytest_deselected(items=heavy)
        items[:] = [item for item in items if item not in heavy]


class Durations:
    """How long each test took with its setup and teardown, for the end of the run.

    ``--durations`` lists setup, call and teardown separately, and knows no total.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a phase of a test."""
        self._seconds[report.nodeid] += report.duration  # type: ignore[assignment]

    @pytest.hookimpl(wrapper=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Prints the slowest tests and the whole; after other summaries, what was not there."""
        if len(self._seconds) > SLOWEST:
            elapsed = time.monotonic() - self._started
            terminalreporter.section(f"{len(self._seconds)} tests in {elapsed:.0f} s")
            for nodeid, seconds in self._seconds.most_common(SLOWEST):
                terminalreporter.line(f"{seconds:8.2f} s  {nodeid}")
        yield
        for line in summary(
            report.longrepr[2] for report in terminalreporter.getreports("skipped")
        ):
            terminalreporter.line(line)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Only the process that reports measures; workers of xdist send it their reports. All of them
    listen to the servers of their tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "penstock-durations")
    _ask_at_once(config)
    _wait_for_workers(config)
    log_check.listen()
    config.pluginmanager.register(log_check)


def _wait_for_workers(config: pytest.Config) -> None:
    """Lets workers end by themselves: those that take long on a busy machine are killed otherwise,
    and what they have measured of the coverage is lost."""
    if config.pluginmanager.hasplugin("dsession"):
        from xdist.workermanage import NodeManager

        NodeManager.EXIT_TIMEOUT = 120


def _ask_at_once(config: pytest.Config) -> None:
    """Lets workers ask pytest-rerunfailures without a delay, as they do before each test.

    The first part of a conversation has no reply there, so Nagle's algorithm would hold the second
    until that is acknowledged, for up to 40 ms.
    """
    asking = getattr(getattr(config, "failures_db", None), "sock", None)
    if asking is not None:
        asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
