"""iredis at two terminals: what ann and bob type, and what they read."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pexpect
import pytest

from tests.clients.applications import find
from tests.clients.story import PATIENCE_MS, SUMMARY, Observer
from tests.support.process import end
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

TIMEOUT_S: Final = 30

ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

WOKEN: Final = """\
1) 1) "orders"
   2) 1) 1) "1-0"
         2) 1) "item"
            2) "pen"
"""

TWO: Final = """\
1) 1) "orders"
   2) 1) 1) "2-0"
         2) 1) "item"
            2) "ink"
      2) 1) "3-0"
         2) 1) "item"
            2) "paper"
"""

CLAIMED: Final = """\
1) "0-0"
2) 1) 1) "2-0"
      2) 1) "item"
         2) "ink"
   2) 1) "3-0"
      2) 1) "item"
         2) "paper"
3) (empty list or set)
"""

GROUPS: Final = """\
1)  1) "name"
    2) "packers"
    3) "consumers"
    4) "2"
    5) "pending"
    6) "1"
    7) "last-delivered-id"
    8) "3-0"
    9) "entries-read"
   10) "3"
   11) "lag"
   12) "0"
"""


class Terminal:
    """The program as somebody sees it who types."""

    def __init__(self, path: str, penstock: PenstockThread, home: Path) -> None:
        self._prompt = re.escape(f"{penstock.host}:{penstock.port}") + r"\S*> "
        options = ["--no-rainbow", "--no-greetings", "--no-pager", "--no-newbie"]
        self.child: Any = pexpect.spawn(
            path,
            ["-h", penstock.host, "-p", str(penstock.port), *options],
            env={"HOME": str(home), "TERM": "dumb", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            encoding="utf-8",
            timeout=TIMEOUT_S,
            dimensions=(50, 200),
        )
        self.child.expect(self._prompt)

    def type(self, line: str) -> None:
        """Sends a command without waiting for what it brings."""
        # The prompt is there a little before the program reads: until then it is the terminal that
        # shows what is typed, and the program does so again.
        assert self.child.waitnoecho(TIMEOUT_S)
        self.child.sendline(line)
        self.child.expect_exact(line)

    def read(self) -> str:
        """What is printed up to the next prompt."""
        self.child.expect(self._prompt)
        text = ESCAPES.sub("", self.child.before)
        return text.replace("\r", "").lstrip("\n")

    def ask(self, line: str) -> str:
        """What a command brings."""
        self.type(line)
        return self.read()


@pytest.fixture
def open_terminal(penstock: PenstockThread, tmp_path: Path) -> Iterator[Callable[[], Terminal]]:
    path = find("iredis")
    terminals: list[Terminal] = []

    def run() -> Terminal:
        terminals.append(Terminal(path, penstock, tmp_path))
        return terminals[-1]

    yield run
    for terminal in terminals:
        end(terminal.child)


def test_a_killed_consumer_is_replaced(
    open_terminal: Callable[[], Terminal], observer: Observer
) -> None:
    ann, bob = open_terminal(), open_terminal()
    take = f"XREADGROUP GROUP packers ann COUNT 2 BLOCK {PATIENCE_MS} STREAMS orders >"
    assert bob.ask("XGROUP CREATE orders packers 0 MKSTREAM") == '"OK"\n'
    ann.type(take)
    observer.until_waiting()
    assert bob.ask("XADD orders 1-0 item pen") == '"1-0"\n'
    assert ann.read() == WOKEN
    assert ann.ask("XACK orders packers 1-0") == "(integer) 1\n"
    assert bob.ask("XADD orders 2-0 item ink") == '"2-0"\n'
    assert bob.ask("XADD orders 3-0 item paper") == '"3-0"\n'
    assert ann.ask(take) == TWO
    ann.child.kill(signal.SIGKILL)

    assert bob.ask("XAUTOCLAIM orders packers bob 0 0") == CLAIMED
    assert bob.ask("XACK orders packers 2-0") == "(integer) 1\n"
    assert bob.ask("XINFO GROUPS orders") == GROUPS
    assert observer.summary() == SUMMARY


def test_errors_are_printed_and_the_prompt_comes_back(
    open_terminal: Callable[[], Terminal],
) -> None:
    terminal = open_terminal()
    assert terminal.ask("XADD orders 0-0 item pen") == (
        "(error) ERROR The ID specified in XADD must be greater than 0-0\n"
    )
    assert terminal.ask("XLEN orders") == "(integer) 0\n"
