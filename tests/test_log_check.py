"""A test whose server logs an error that nothing handles fails, unless it names the error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.log_check import is_server, judged
from tests.support.logs import errors_in
from tests.support.process import ROOT, TIMEOUT_S, variables

PROVOKED: Final = '''
import asyncio
import subprocess
import sys

import pytest

from benchmarks.servers import Kind, Running
from penstock.testing import PenstockServer
from server.app import Server
from server.config.registry import Config
from tests.replication.nodes import Node
from source_tests.backends import Backend
from tests.support import process
from tests.support.direct import Direct, in_loop
from tests.support.process import PenstockProcess
from tests.support.servers import PenstockThread

PROGRAM = """
import asyncio, sys
sys.path.insert(0, {root!r})
from penstock import add_packages
add_packages()
from penstock import cli
from penstock.output import protect
announce = cli._announce
def announced(server):
    announce(server)
    asyncio.get_running_loop().call_soon({provoke})
cli._announce = announced
protect()
sys.exit(cli.main())
"""
ROOT = str(process.ROOT)
DIVIDE = PROGRAM.format(root=ROOT, provoke="lambda: 1 // 0")
UNRAISABLE = PROGRAM.format(
    root=ROOT, provoke="type('Kept', (), {'__del__': lambda kept: 1 // 0})"
)


@pytest.fixture
def command(tmp_path):
    """The command of a server that logs an error."""
    (tmp_path / "program.py").write_text(DIVIDE)
    path = tmp_path / "command"
    path.write_text(f"#!/bin/sh\\nexec {sys.executable} {tmp_path}/program.py \\"$@\\"\\n")
    path.chmod(0o755)
    return str(path)


def test_a_thread():
    with PenstockThread() as penstock:
        penstock.call(lambda: asyncio.get_running_loop().call_soon(lambda: 1 // 0))
        penstock.call(lambda: None)


def test_a_task_of_a_thread():
    async def fails():
        1 // 0

    with PenstockThread() as penstock:
        penstock.call(lambda: asyncio.get_running_loop().create_task(fails()))
        penstock.run(asyncio.sleep(0))


async def test_the_loop_of_the_test():
    server = Server(Config(port=0, bind="127.0.0.1"))
    await server.start()
    asyncio.get_running_loop().call_soon(lambda: 1 // 0)
    await asyncio.sleep(0)
    await server.stop()


def test_without_sockets():
    direct = Direct()
    in_loop(lambda: asyncio.get_running_loop().call_soon(lambda: 1 // 0))
    in_loop(lambda: None)


def test_its_own_log():
    Direct().server.state.log.warning("Unexpected error: KeyError()")


@pytest.mark.parametrize("program", [DIVIDE, UNRAISABLE])
def test_a_process(program):
    with PenstockProcess("--port", "0", program=("-c", program)):
        pass


def test_a_process_that_is_killed():
    with PenstockProcess("--port", "0", program=("-c", DIVIDE)) as penstock:
        penstock.ask(b"PING\\r\\n")
        penstock.stop(9)


def test_a_log_file(tmp_path):
    options = ("--port", "0", "--dir", str(tmp_path), "--logfile", "log")
    with PenstockProcess(*options, program=("-c", DIVIDE)):
        pass


def test_the_plugin(command):
    with PenstockServer(command=[command]) as server:
        server.ask("PING")


async def test_a_primary(tmp_path, command):
    node = Node("primary", tmp_path / "node", command)
    await node.start()
    node.kill()


def test_a_server_of_spark(command):
    with Backend(command):
        pass


def test_a_benchmark(command):
    kind = Kind("p", "Penstock", lambda port: [command, "--port", str(port)], "penstock_version")
    with Running(kind):
        pass


def test_nobody_reads():
    words = [sys.executable, "-m", "penstock", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as unread:
        unread.kill()


@pytest.mark.logs("ZeroDivisionError")
def test_passes_as_it_names_the_error():
    test_a_thread()


@pytest.mark.logs("KeyError")
def test_it_names_another():
    test_a_thread()


@pytest.mark.logs("ZeroDivisionError")
def test_what_it_names_does_not_come():
    pass


@pytest.mark.logs("ZeroDivisionError")
def test_skipped():
    pytest.skip("it needs something")


def test_passes_as_nothing_is_wrong():
    with PenstockProcess("--port", "0"), PenstockThread(), PenstockServer():
        pass
'''
"""Tests that have to fail, but for those whose names say that they pass, or are skipped."""


REASON: Final = re.compile(
    "logged: .*(Exception in|Exception ignored|never retrieved|Unexpected error|log nobody reads)"
    "|no server has logged: ZeroDivisionError"
)


def test_every_kind_of_server_lets_its_test_fail(tmp_path: Path) -> None:
    (tmp_path / "test_provoked.py").write_text(PROVOKED)
    (tmp_path / "conftest.py").write_text(
        "from tests.support import log_check\n"
        "def pytest_configure(config):\n"
        "    log_check.listen()\n"
        "    config.pluginmanager.register(log_check)\n"
    )
    options = ("-p", "no:cacheprovider", "-rA", f"-c{ROOT}/pyproject.toml", f"--rootdir={tmp_path}")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        env={**variables(), "PYTHONWARNINGS": "", "COLUMNS": "500"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S * 4,
        check=False,
    )
    found = re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)\S* - (.*)", ended.stdout, re.MULTILINE)
    assert [(name, why) for name, why in found if not REASON.search(why)] == [], ended.stdout
    names = set(re.findall(r"^(?:async )?def (test_\w+)", PROVOKED, re.MULTILINE))
    right = {name for name in names if "passes" in name or "skipped" in name}
    assert {name for name, _ in found} == names - right, ended.stdout
    assert len(found) == len(names - right) + 1, "a test with two examples has not failed twice"


LOG: Final = """\
1:M 24 Nov 2026 # Unexpected error: Exception in callback f(): KeyError('x')
Task exception was never retrieved
Traceback (most recent call last):
  File "a.py", line 1, in f
    1 // 0
ZeroDivisionError: division by zero
1:M 24 Nov 2026 * The exception that was expected
Exception ignored in: <function f>
sys:1: RuntimeWarning: coroutine 'f' was never awaited
"""


def test_the_errors_of_a_log_are_its_lines_and_whole_tracebacks() -> None:
    lines = LOG.splitlines()
    assert errors_in(LOG) == [lines[0], lines[1], "\n".join(lines[2:6]), *lines[7:]]


def test_an_error_is_named_by_its_test() -> None:
    assert judged(["a KeyError", "b"], ["KeyError", "b"], passed=True) == []
    assert judged(["c"], ["KeyError"], passed=False) == ["a server has logged: c"]
    assert judged([], ["KeyError"], passed=True) == ["no server has logged: KeyError"]


@pytest.mark.parametrize(
    ("command", "serves"),
    [
        ("penstock", True),
        (["/usr/bin/penstock", "--port", "0"], True),
        (["python3", "-m", "penstock", "a.conf"], True),
        (["python3", "-m", "penstock", "check-aof", "a"], False),
        (["/usr/bin/penstock", "--version"], False),
        (["python3", "-m", "pytest", "penstock"], False),
        (["redis-server"], False),
    ],
)
def test_what_starts_a_server_is_known(command: str | list[str], serves: bool) -> None:
    assert is_server(command) is serves
