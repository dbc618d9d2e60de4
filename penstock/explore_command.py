"""``penstock explore``: every crash of a worker and every order of several, from a shell and for
tests in any language.

A worker is a command; what prepares the data and what checks them are scripts. All of them have
the URL of a server in REDIS_URL: of one that runs for them alone, or of a Redis that somebody has.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import Any, Final

from penstock.client.errors import ClientError
from penstock.explore.foreign import ForeignServer
from penstock.explore.results import Unexplorable
from penstock.explore.scenarios import LOSING, faults_of, parsed
from penstock.explore.schedules import parsed_schedule
from penstock.explore.tables import row
from penstock.terminal import Parser, json_line, shown_lines
from penstock.testing import exploring
from penstock.testing.control import PenstockError
from penstock.testing.server import PenstockServer
from penstock.testing.waiting import unfinished

SCRIPT_S: Final = 60.0
"""How long a script may take."""

NAMES: Final = ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal")
"""The names of workers in orders, whose letters name an order."""

EPILOG: Final = """\
penstock explore crashes --prepare fill.sh --check check.sh -- node worker.mjs
penstock explore orders --prepare fill.sh --check check.sh -- node buyer.mjs -- ./seller.sh
penstock explore crashes --server redis://127.0.0.1:6379/9 --check check.sh -- node worker.mjs

A script is a file, or a line for the shell. A worker is a command, or such a file; it has to
connect to REDIS_URL. The exit status is 0 if all ends right, 1 with a report if something ends
wrong, and 2 if that cannot be told.

A Redis or Valkey of your own (--server) has nothing else to do meanwhile. Its database is emptied
for each try and at the end; other databases, functions, users and known scripts stay as they are.
Time passes there for keys that expire, for pending entries, and for blocking commands; the server's
clock shows the real time: TIME, IDs of entries, fields that expire. No write can be lost there, so
there are no kinds failover and power-cut.
"""

Command = Sequence[str]
"""The words of the command line of a worker."""

Options = dict[str, Any]
"""What is given by name."""

AnyServer = PenstockServer | ForeignServer


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    at = args.index("--") if "--" in args else len(args)
    options = _parser().parse_args(args[:at])
    try:
        return _explore(options, options.workers(options, args[at + 1 :]))
    except (PenstockError, ClientError, Unexplorable, ValueError) as error:
        print(f"penstock explore: {shown_lines(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


# --- options ----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="penstock explore",
        description="Tries what may happen to workers, and checks what is left then.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    forms = parser.add_subparsers(required=True, metavar="crashes | orders")
    _add_crashes(forms)
    _add_orders(forms)
    return parser


def _add_crashes(forms: Any) -> None:
    told = "lets a worker crash at each of its commands"
    usage = "%(prog)s [option ...] -- COMMAND ..."
    form = forms.add_parser("crashes", help=told, description=told, usage=usage)
    form.set_defaults(form=form, workers=_one_worker, explore=_crashes)
    _add_scripts(form)
    group = ("STREAM", "GROUP")
    finished = "no work is left when the group has acknowledged all; once for each group"
    form.add_argument(
        "--done-when-acknowledged", action="append", nargs=2, metavar=group, help=finished
    )
    kinds = "crash,connection,stall,failover,power-cut (%(default)s)"
    form.add_argument("--kinds", default="crash", help=kinds)
    _add_bounds(form, "scenario", "crash-after@2")


def _add_orders(forms: Any) -> None:
    told = "runs the commands of several workers in every order that can matter"
    usage = "%(prog)s [option ...] -- COMMAND ... -- COMMAND ..."
    form = forms.add_parser("orders", help=told, description=told, usage=usage)
    form.set_defaults(form=form, workers=_several_workers, explore=_orders)
    _add_scripts(form)
    often = "how often a worker that could go on has to wait, or none for no bound (%(default)s)"
    form.add_argument("--preemptions", type=_preemptions, default=2, metavar="N", help=often)
    _add_bounds(form, "order", "abba")


def _add_scripts(form: argparse.ArgumentParser) -> None:
    made = "makes the data that each try begins with"
    right = "ends with 0 if what is left is right"
    form.add_argument("--prepare", metavar="SCRIPT", help=made)
    form.add_argument("--check", metavar="SCRIPT", required=True, help=right)
    where = "runs on this Redis or Valkey, in an empty database: redis://[user:password@]host/9"
    form.add_argument("--server", metavar="URL", help=where)
    form.add_argument("--flush", action="store_true", help="delete what is in that database")


def _add_bounds(form: argparse.ArgumentParser, unit: str, example: str) -> None:
    add, alone = form.add_argument, f"the {unit} to run alone: {example}"
    add("--most", type=int, metavar="N", help=f"how many {unit}s are tried at most")
    add("--seconds", type=float, metavar="S", help="for how long they are tried")
    add("--only", default="", metavar="ID", help=alone)
    add("--json", action="store_true", help="print a line of JSON")


def _preemptions(text: str) -> int | None:
    """Return a bound; raises :class:`ArgumentTypeError`."""
    try:
        return None if text == "none" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid number or none: {text!r}") from None


def _one_worker(options: argparse.Namespace, words: Sequence[str]) -> dict[str, Command]:
    if not words:
        options.form.error("the command of the worker is missing: ... -- node worker.mjs")
    faults = set(faults_of(options.kinds.split(",")))
    if options.only:
        faults |= {fault.kind for fault in parsed(options.only).faults}
    if options.server and (losing := sorted(faults & LOSING)):
        raise ValueError(f"{losing[0]} undoes writes, which no other server than Penstock can do")
    return {"worker": words}


def _several_workers(options: argparse.Namespace, words: Sequence[str]) -> dict[str, Command]:
    """Return the command behind each ``--``; raises :class:`ValueError`."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    if len(commands) < 2 or not all(commands):
        options.form.error("orders are those of two workers or more: ... -- ./ann.sh -- ./bob.sh")
    if len(commands) > len(NAMES):
        options.form.error(
            f"orders are those of at most {len(NAMES)} workers, and not {len(commands)}"
        )
    workers = dict(zip(NAMES, commands, strict=False))
    if options.only:
        parsed_schedule(options.only, workers)
    return dict(workers)


# --- exploring --------------------------------------------------------------------------------


def _explore(options: argparse.Namespace, workers: dict[str, Command]) -> int:
    again = "penstock ... --only"
    exploring.session = exploring.ExploringSession(options.only, progress=_show, again=again)
    with _server(options) as server:
        report = _report(server, options, workers)
    _show("")
    [found] = exploring.session.take()
    named = {name: shlex.join(command) for name, command in workers.items()}
    if not report and not found.explored:
        [text] = named.values()
        raise PenstockError(f"{text} sends no command to strike: does it use REDIS_URL?")
    if report and len(named) > 1:
        report = "\n".join([report, *(f"  {name}: {text}" for name, text in named.items())])
    if report and isinstance(server, ForeignServer):
        report = f"{report}\n  on {server.name}, whose clock shows the real time"
    if options.json:
        print(json_line({**row(" -- ".join(named.values()), found), "report": report}))
    else:
        print(shown_lines(report or "\n  diverged: ".join([found.summary, *found.diverged])))
    return int(bool(report))


def _server(options: argparse.Namespace) -> AnyServer:
    if options.server:
        return ForeignServer(options.server, options.flush)
    if options.flush:
        raise ValueError("--flush is about the database that --server names")
    return PenstockServer(command=[sys.executable, "-m", "penstock"])


def _report(server: AnyServer, options: argparse.Namespace, workers: dict[str, Command]) -> str:
    """Return the report of what ends wrong; empty if nothing does."""
    processes = {name: server.explore.process(*_command(words)) for name, words in workers.items()}
    shared = {
        "prepare": options.prepare and (lambda _: _prepare(options.prepare, server.url)),
        "invariant": lambda _: _said(options.check, server.url),
        "most": options.most,
        "seconds": options.seconds,
    }
    try:
        options.explore(server, options, processes, shared)
    except Unexplorable:
        raise
    except AssertionError as error:
        return str(error)
    return ""


def _crashes(
    server: AnyServer, options: argparse.Namespace, workers: Options, shared: Options
) -> None:
    groups = options.done_when_acknowledged
    done = groups and (lambda _: not any(unfinished(server.ask, *pair) for pair in groups))
    server.explore.crashes(workers["worker"], done=done, kinds=options.kinds.split(","), **shared)


def _orders(
    server: AnyServer, options: argparse.Namespace, workers: Options, shared: Options
) -> None:
    server.explore.orders(preemptions=options.preemptions, **shared, **workers)


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


def _command(words: Command) -> Command:
    """Return the command of a worker: one word that is a file is run as a script is."""
    return _file(words[0]) if len(words) == 1 and os.path.isfile(words[0]) else words


def _file(script: str) -> Command:
    path = os.path.abspath(script)
    return ["sh", "-c", '"$0"', path] if os.access(path, os.X_OK) else ["sh", path]


def _run(script: str, url: str) -> tuple[int, str]:
    """Runs a file or a line for the shell; returns its status and what it has printed."""
    words = _file(script) if os.path.isfile(script) else ["sh", "-c", script]
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
