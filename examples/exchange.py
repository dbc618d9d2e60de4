"""Starts a server, uses it, and starts it again, without pytest: ``python examples/exchange.py``.

The wheels of a release are tried with it. What it starts is the command ``penstock`` of the Python
that runs it, and what it imports is installed there: nothing comes from the checkout.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from penstock.testing import PenstockError, PenstockServer

BEFORE: Final = [
    ("XGROUP CREATE orders kitchen $ MKSTREAM", "OK"),
    ("XADD orders 1-1 item tea", "1-1"),
    ("XADD orders 1-2 item soup", "1-2"),
    (
        "XREADGROUP GROUP kitchen alice STREAMS orders >",
        [["orders", [["1-1", ["item", "tea"]], ["1-2", ["item", "soup"]]]]],
    ),
    ("XACK orders kitchen 1-1", 1),
    ("EVAL return(redis.call('XLEN',KEYS[1])) 1 orders", 2),
]
"""What is asked, and the reply."""

AFTER: Final = [
    ("XRANGE orders - +", [["1-1", ["item", "tea"]], ["1-2", ["item", "soup"]]]),
    ("XPENDING orders kitchen", [1, "1-2", "1-2", [["alice", "1"]]]),
]
"""What is asked after a restart: of two entries, one is still to be acknowledged."""


def exchange(server: PenstockServer) -> None:
    """Asks everything; raises :class:`PenstockError` at the first reply that is another one."""
    _ask(server, BEFORE)
    server.restart()
    _ask(server, AFTER)


def _ask(server: PenstockServer, asked: list[tuple[str, object]]) -> None:
    for command, expected in asked:
        reply = server.ask(*command.split())
        if reply != expected:
            raise PenstockError(f"{command}: the reply is {reply} instead of {expected}")


def main(*args: str) -> str | None:
    """Does it with a server with these options; returns what went wrong, if anything did."""
    try:
        with PenstockServer("--appendonly", "yes", *args) as server:
            exchange(server)
            [build] = re.findall("penstock_build:([a-z]+)", server.ask("INFO", "server"))
    except PenstockError as error:
        return f"examples/exchange.py: {error}"
    print(f"penstock ({build}): asked {len(BEFORE) + len(AFTER)} commands and restarted once")
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
