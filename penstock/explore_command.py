"""``penstock explore``: every crash of a worker, from a shell and for tests in any language.

The worker is a command; what prepares the data and what checks them are scripts. All of them have
the URL of a server that runs for them alone in REDIS_URL.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Final

from penstock.explore.results import Unexplorable
from penstock.explore.scenarios import parsed
from penstock.explore.tables import row
from penstock.terminal import json_line, shown_lines
from penstock.testing import exploring
from penstock.testing.control import PenstockError
from penstock.testing.server import PenstockServer
from penstock.testing.waiting import unfinished

SCRIPT_S: Final = 60.0
"""How long a script may take."""

EPILOG: Final = """\
penstock explore crashes --prepare fill.sh --check check.sh -- node worker.mjs

A script is a file, or a line for the shell. The worker has to connect to REDIS_URL. The exit status
is 0 if all ends right, 1 with a report if something ends wrong, and 2 if that cannot be told.
"""


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    at = args.index("--") if "--" in args else len(args)
    parser, command = _parser(), args[at + 1 :]
    options = parser.parse_args(args[:at])
    if not command:
        parser.error("the command of the worker is missing: ... -- node worker.mjs")
    try:
        return _explore(options, command)
    except (PenstockError, Unexplorable, ValueError) as error:
        print(f"penstock explore: {shown_lines(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock explore",
        usage="%(prog)s crashes [option ...] -- COMMAND ...",
        description="Lets a worker crash at each of its commands, and checks what is left then.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, group = parser.add_argument, ("STREAM", "GROUP")
    add("what", choices=["crashes"], help="what is tried")
    add("--prepare", metavar="SCRIPT", help="makes the data that each try begins with")
    add("--check", metavar="SCRIPT", required=True, help="ends with 0 if what is left is right")
    finished = "no work is left when the group has acknowledged all; once for each group"
    add("--done-when-acknowledged", action="append", nargs=2, metavar=group, help=finished)
    add("--kinds", default="crash", help="crash,connection,stall,failover,power-cut (%(default)s)")
    add("--most", type=int, metavar="N", help="how many scenarios are tried at most")
    add("--seconds", type=float, metavar="S", help="for how long they are tried")
    add("--only", default="", metavar="ID", help="the scenario to run alone: crash-after@2")
    add("--json", action="store_true", help="print a line of JSON")
    return parser


def _explore(options: argparse.Namespace, command: Sequence[str]) -> int:
    if options.only:
        parsed(options.only)
    again = "penstock ... --only"
    exploring.session = exploring.ExploringSession(options.only, progress=_show, again=again)
    with PenstockServer(command=[sys.executable, "-m", "penstock"]) as server:
        report = _report(server, options, command)
    _show("")
    found = exploring.session.take()[0]
    if not report and not found.explored:
        raise PenstockError(f"{command[0]} sends no command to strike: does it use REDIS_URL?")
    if options.json:
        print(json_line({**row(" ".join(command), found), "report": report}))
    else:
        print(shown_lines(report or "\n  diverged: ".join([found.summary, *found.diverged])))
    return int(bool(report))


def _report(server: PenstockServer, options: argparse.Namespace, command: Sequence[str]) -> str:
    """Return the report of what ends wrong; empty if nothing does."""
    groups = options.done_when_acknowledged
    done = groups and (lambda _: not any(unfinished(server.ask, *pair) for pair in groups))
    try:
        server.explore.crashes(
            server.explore.process(*command),
            prepare=options.prepare and (lambda _: _prepare(options.prepare, server.url)),
            invariant=lambda _: _said(options.check, server.url),
            done=done,
            kinds=options.kinds.split(","),
            most=options.most,
            seconds=options.seconds,
        )
    except Unexplorable:
        raise
    except AssertionError as error:
        return str(error)
    return ""


def _show(text: str) -> None:
    """Shows one line on a terminal, which the next one covers."""
    if sys.stderr.isatty():
        print(f"\r{text}\033[K\r", end="", file=sys.stderr, flush=True)


# --- scripts ----------------------------------------------------------------------------------


def _prepare(script: str, url: str) -> None:
    if text := _said(script, url):
        raise PenstockError(f"{script} has failed: {text}")


def _said(script: str, url: str) -> str:
    """Return what a check says; empty if what is left is right."""
    status, text = _run(script, url)
    return (text or f"{script} ended with status {status}") if status else ""


def _run(script: str, url: str) -> tuple[int, str]:
    """Runs a file or a line for the shell; returns its status and what it has printed."""
    path, words = os.path.abspath(script), ["sh", "-c", script]
    if os.path.isfile(path):
        words = ["sh", "-c", '"$0"', path] if os.access(path, os.X_OK) else ["sh", path]
    environment = {**os.environ, "REDIS_URL": url}
    with tempfile.TemporaryFile() as output:
        process = Popen(
            words, env=environment, stdin=DEVNULL, stdout=output, stderr=output, process_group=0
        )
        try:
            status = process.wait(SCRIPT_S)
        except TimeoutExpired:
            raise PenstockError(f"{script} has not ended within {SCRIPT_S:g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        text = output.read().decode("utf-8", "backslashreplace").strip()
    if status in (126, 127):  # What a shell ends with that cannot run a command, or find it.
        raise PenstockError(f"{script} cannot be run: {text}")
    return status, text
