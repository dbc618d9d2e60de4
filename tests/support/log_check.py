"""Lets a test fail if a server that it has started logged an error that nothing handles.

Servers in the process of the tests are heard by themselves: all messages of their own logs, and
what asyncio and uvicorn log. Those in processes of their own are started by the modules that
:data:`HEARD` names, which give their logs to :mod:`tests.support.logs`; a server that another
module starts makes its test fail, since nobody reads its log.

A test that provokes an error names it: ``@pytest.mark.logs("KeyError: 'x'")`` has a regular
expression for each error, all of which have to come, and no other may.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import pytest

from penstock.cli import TOOLS
from penstock.testing import process as of_plugin
from server.runtime.log import Log
from tests.support import logs

HEARD: Final = frozenset(
    {
        "benchmarks.servers",
        "benchmarks.startup",
        "penstock.testing.process",
        "tests.penstock.test_output",  # It is about servers whose output is lost.
        "tests.plugin.test_wheel",
        "tests.replication.nodes",
        "source_tests.backends",
        "tests.support.process",
    }
)
"""The modules that start servers as processes, and give their logs to be read."""

MODULES: Final = ("penstock", "server", "tests.durability.runner")
"""What starts a server by ``python -m``, beside the command."""

NO_SERVER: Final = frozenset({*TOOLS, "-v", "--version", "-h", "--help"})

_PASSED: Final = pytest.StashKey[bool]()


# --- listening -------------------------------------------------------------------------------


def listen() -> None:
    """Hears every server of this process from now on."""
    logging.getLogger().addHandler(_Records(logging.WARNING))
    of_plugin.deque = logs.Lines  # type: ignore[assignment, attr-defined]
    _wrap(Log, "write", lambda log, level, message: logs.read(message))
    _wrap(subprocess.Popen, "__init__", _demand_hearing)


def _wrap(kind: Any, name: str, before: Any) -> None:
    method = getattr(kind, name)

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(kind, name, called)


class _Records(logging.Handler):
    """Notes what the event loop and the server of HTTP have logged."""

    def emit(self, record: logging.LogRecord) -> None:
        """Takes every error of theirs, and the warnings that tell of one."""
        library, text = record.name.partition(".")[0], self.format(record)
        # asyncio also tells of tasks that a client library left behind at its end.
        if (
            logs.errors_in(text)
            if library == "asyncio"
            else (library == "uvicorn" and record.levelno >= logging.ERROR)
        ):
            logs.note(text)


def _demand_hearing(_: object, args: Any, *more: Any, **named: Any) -> None:
    """Notes a server that is started by a module which lets nobody read its log."""
    if is_server(args) and (starter := _starter()) not in HEARD:
        logs.note(f"a server whose log nobody reads was started by {starter}: {args}")


def is_server(command: str | Path | Sequence[str | Path]) -> bool:
    """Whether a command starts a server, and not a tool."""
    words = [str(command)] if isinstance(command, str | Path) else [str(word) for word in command]
    for place, word in enumerate(words):
        module = place > 0 and words[place - 1] == "-m" and word in MODULES
        if module or (place == 0 and Path(word).name == "penstock"):
            return words[place + 1 : place + 2] == [] or words[place + 1] not in NO_SERVER
    return False


def _starter() -> str:
    """The module that has called the standard library."""
    frame: Any = sys._getframe(2)
    while frame.f_globals["__name__"] in (__name__, "subprocess"):
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


# --- judging ---------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Notes whether a test has passed so far: one that was skipped provokes nothing."""
    item.stash[_PASSED] = False
    yield
    item.stash[_PASSED] = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fails for the errors of servers, and for those that the test names and that did not come."""
    named = [pattern for mark in item.iter_markers("logs") for pattern in mark.args]
    try:
        yield
    except BaseException:
        problems = judged(logs.take(), named, passed=False)
        item.add_report_section("teardown", "logs of servers", "\n".join(problems))
        raise
    problems = judged(logs.take(), named, item.stash.get(_PASSED, False))
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def judged(errors: Sequence[str], named: Sequence[str], passed: bool) -> list[str]:
    """What is wrong with what servers have logged in a test that names these errors."""
    unnamed = [each for each in errors if not any(re.search(name, each) for name in named)]
    absent = [name for name in named if not any(re.search(name, each) for each in errors)]
    return [
        *(f"a server has logged: {each}" for each in unnamed),
        *(f"no server has logged: {name}" for name in absent if passed),
    ]
