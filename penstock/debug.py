"""``penstock debug``: the commands for tests, for tests in any language and for a shell.

The words are those of DEBUG; beside them there are a few that wait. What programs are to read is
JSON: a line for each element of an array.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from penstock.terminal import json_line, shown
from penstock.testing.conditions import as_worker
from penstock.testing.control import PenstockError, as_dict
from penstock.testing.server import RemoteServer
from penstock.testing.waiting import TIMEOUT_S

URL_VARIABLE: Final = "PENSTOCK_URL"
DEFAULT_URL: Final = "redis://127.0.0.1:6379"

EPILOG: Final = """\
Words are those of the command DEBUG:
  penstock debug fault add XADD TIMES 1 NOREPLY
  penstock debug clock advance 3600000
  penstock debug snapshot take prepared
  penstock debug trace start
  penstock debug trace get               (a line of JSON for each command)
  penstock debug help                    (all of them)

Beside those:
  penstock debug wait acknowledged STREAM GROUP
  penstock debug wait readers NUMBER
  penstock debug wait idle
  penstock debug delivered-once STREAM GROUP

The server must be started with --enable-debug-command yes (or local). The exit status is 1 if it
refuses, or if what is waited for does not happen in time.
"""


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    options = _parser().parse_args(args)
    try:
        with RemoteServer(options.url) as server:
            _run(server, options)
    except (AssertionError, PenstockError, ValueError) as error:
        print(f"penstock debug: {shown(str(error))}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock debug",
        description="Faults, clock, snapshots and traces of a running server, for tests.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--url",
        default=os.environ.get(URL_VARIABLE) or DEFAULT_URL,
        help=f"the server; without it the variable {URL_VARIABLE}, or {DEFAULT_URL}",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="how long `wait` waits (%(default)g)",
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="WORD ...")
    return parser


def _run(server: RemoteServer, options: argparse.Namespace) -> None:
    words = [word if at else word.lower() for at, word in enumerate(options.words)]
    if not words:
        raise ValueError("what is to be done? --help tells what there is")
    if words[0] == "wait":
        _wait(server, words[1:], options.timeout)
    elif words[0] == "delivered-once":
        server.assert_delivered_once(*_exactly(words[1:], "STREAM", "GROUP"))
    else:
        _tell(words, server.ask("DEBUG", *words))


def _wait(server: RemoteServer, words: list[str], timeout: float) -> None:
    what, rest = words[0] if words else "", words[1:]
    if what == "acknowledged":
        wait: Callable[..., None] = partial(
            server.wait_until_acknowledged, *_exactly(rest, "STREAM", "GROUP")
        )
    elif what == "readers":
        wait = partial(server.wait_for_readers, _number(*_exactly(rest, "NUMBER")))
    elif what == "idle":
        _exactly(rest)
        wait = server.wait_until_idle
    else:
        raise ValueError(f"wait for acknowledged, readers or idle, and not for {what or 'nothing'}")

    wait(timeout=timeout)


def _exactly(words: list[str], *names: str) -> list[str]:
    """The words, as many as they are; raises :class:`ValueError`."""
    if len(words) != len(names):
        wanted = " ".join(names) or "nothing"
        raise ValueError(f"{wanted} is expected at the end, and not {' '.join(words) or 'nothing'}")
    return words


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"the number of readers is 0 or more, and not {word}")
    return int(word)


# --- replies ---------------------------------------------------------------------------------


def _tell(words: list[str], reply: Any) -> None:
    """Prints a reply: a line, or one for each element of an array."""
    named = [word.lower() for word in words[:2]]
    if named[0] == "group" or named == ["trace", "status"]:
        reply = [as_dict(reply)]
    elif named in (["fault", "list"], ["fault", "held"], ["port", "list"]):
        reply = [as_dict(each) for each in reply]
    elif named == ["fault", "rest"] and reply is not None:
        reply = [as_worker(pairs) for pairs in as_dict(reply)["workers"]]
    for line in reply if isinstance(reply, list) else [reply]:
        print(line if isinstance(line, str) else json_line(line))
