"""What a start does, and what it leaves for later: a client shall be answered soon."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from penstock import cli
from tests.support.ports import free_port
from tests.support.process import PenstockProcess

PING: Final = b"PING\r\n"
PONG: Final = b"+PONG\r\n"

LATER: Final = frozenset(
    {
        *("argparse", "dataclasses", "datetime", "decimal", "fractions", "glob", "ipaddress"),
        *("pathlib", "platform", "shlex", "shutil", "tempfile", "urllib.parse"),
        *("greenlet", "jinja2", "lupa", "redis", "rich", "starlette", "uvicorn"),
        *("server.commands.strings.long_double", "server.core.command_syntax"),
        *("server.scripting.interpreter", "server.web.http"),
    }
)
"""Modules that only some commands or settings need, and which take their time."""

OF_ASYNCIO: Final = {"dataclasses"} if sys.version_info >= (3, 14) else set[str]()
"""What Python's own asyncio imports of these."""

COUNTING: Final = """
import gc
from penstock.__main__ import main
def passes():
    return sum(generation["collections"] for generation in gc.get_stats())
gc.collect()  # So that the next pass is not due at once.
before = passes()
main()
print(passes() - before, gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 10_000)
"""
"""Runs the command, and says what the garbage collector has done meanwhile."""


def imported(requests: bytes = PING, *, web: Sequence[str] | None = None) -> set[str]:
    """The modules that a server has imported when it has answered; ``web`` is what the page is
    asked for, if there is one."""
    timed = {"PYTHONPROFILEIMPORTTIME": "1"}
    port = free_port()
    options = () if web is None else ("--metrics-port", str(port))
    with PenstockProcess("--port", "0", *options, environment=timed) as penstock:
        assert penstock.ask(requests)
        for path in web or ():
            asked = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (path.encode(), port)
            assert penstock.ask(asked, ("127.0.0.1", port)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert penstock.stop() == 0
    # What comes before is Python's own, and the finders of its environment.
    _, _, lines = penstock.errors.partition(" site\n")
    return {line.rpartition("|")[2].strip() for line in lines.splitlines()}


def test_a_plain_server_imports_only_what_it_needs() -> None:
    modules = imported()
    assert modules >= {"asyncio", "server.app"}
    assert not modules & LATER - OF_ASYNCIO


def test_what_a_command_needs_is_imported_for_it() -> None:
    assert imported(b"INCRBYFLOAT key 1.5\r\n") & LATER > {"server.commands.strings.long_double"}


def test_what_files_of_the_page_need_is_imported_before_anybody_has_to_wait_for_it() -> None:
    add = b"XADD s 1-1 f v\r\n"
    paths = ("/export?db=0&key=s", "/value?db=0&key=s&id=1-1&at=1", "/events")
    assert imported(add, web=paths) == imported(add, web=())


def test_no_garbage_is_looked_for_until_the_server_serves() -> None:
    with PenstockProcess("--port", "0", program=("-c", COUNTING)) as penstock:
        assert penstock.ask(PING) == PONG
    assert penstock.lines[-1] == "0 True (20000, 5, 1000) True"


def test_a_tool_that_loads_no_file_runs_with_the_garbage_collector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.disable()
    try:
        assert cli.run_tool("check-aof", [str(tmp_path / "missing")]) == 1
        assert not gc.isenabled(), "it loads what a server would"
        assert cli.run_tool("import", ["--nonsense"]) == 2
        assert gc.isenabled()
    finally:
        gc.enable()
    assert "missing" in capsys.readouterr().err
