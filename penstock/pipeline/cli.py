"""The commands of ``penstock pipeline``: their options, messages and exit statuses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.extras import extra_missing
from penstock.pipeline.cli_base import FAILED, INTERRUPTED, OK
from penstock.pipeline.cli_base import command as _command
from penstock.pipeline.cli_base import output as _output
from penstock.pipeline.cli_new import add_demo, add_new
from penstock.pipeline.cli_samples import add_preview, add_test
from penstock.pipeline.cli_watch import add_status, add_watching
from penstock.pipeline.errors import PipelineError
from penstock.terminal import Parser

if TYPE_CHECKING:
    from penstock.pipeline.cli_base import Commands

_EPILOG: Final = """\
Exit status: 0 done, 1 failed, 2 the command line is wrong, 130 interrupted.
docs/pipeline.md describes the file.
"""


def main(args: Sequence[str]) -> int:
    """Runs a command with the arguments behind ``pipeline``; returns the exit status."""
    try:
        given = parser().parse_args(args)
    except SystemExit as end:
        return int(end.code or 0)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return FAILED
    except OSError as error:
        # A disk that is full, a folder that can't be made: the text names the file.
        print(error, file=sys.stderr)
        return FAILED
    except ModuleNotFoundError as error:
        print(extra_missing("penstock pipeline", error.name), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
        prog="penstock pipeline",
        description="Pipelines from streams through Spark SQL to tables and other streams.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for add in _COMMANDS:
        add(commands)
    return parser


# --- run, validate, plan -----------------------------------------------------------------------


def _add_run(commands: Commands) -> None:
    parser = _command(commands, "run", _run, "Runs the pipeline of a file.")
    parser.add_argument("file", metavar="FILE.toml", type=Path)
    parser.add_argument(
        "--once", action="store_true", help="end when everything that is there now is done"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each batch, failure and warning, and nothing else",
    )
    parser.add_argument("--master", metavar="URL", help="where Spark runs, as spark://host:7077")
    add_watching(parser)


def _run(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load

    pipeline = load(given.file)
    from penstock.pipeline.run.queries import query_names
    from penstock.pipeline.run.report import Bars, Reporter, open_records
    from penstock.pipeline.run.supervisor import run
    from penstock.pipeline.watch.watched import Watch, watched

    screen = _output()
    screen.quiet = given.json
    kind = Bars if given.once and screen.is_terminal and not given.json else Reporter
    with ExitStack() as stack:
        records = [sys.stdout] if given.json else []
        if pipeline.metrics is not None:
            records.append(stack.enter_context(open_records(pipeline.metrics)))
        where = given.metrics_bind, given.metrics_port, given.metrics_hosts
        watch = Watch(given.status_file, *where)
        state = stack.enter_context(watched(pipeline, query_names(pipeline), watch))
        reporter = partial(kind, screen, pipeline.name, records, observers=[state])
        run(pipeline, reporter, given.once, given.master, given.spark_ui)
    return OK


def _add_validate(commands: Commands) -> None:
    parser = _command(commands, "validate", _validate, "Checks a file without looking at data.")
    parser.add_argument("file", metavar="FILE.toml", type=Path)
    parser.add_argument(
        "--sql", action="store_true", help="start Spark as well, and check the SQL with it"
    )
    parser.add_argument(
        "--connect",
        action="store_true",
        help="ask the servers as well: which streams and groups are there",
    )


def _validate(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load

    pipeline = load(given.file)
    if given.connect:
        from penstock.pipeline.live.report import look_at_servers

        report = look_at_servers(pipeline)
        print(*report.lines, sep="\n")
        if report.problems:
            count = len(report.problems)
            problems = "1 problem" if count == 1 else f"{count} problems"
            print(f"{given.file}: {problems} on the servers", file=sys.stderr)
            return FAILED
    if given.sql:
        from penstock.pipeline.run.validate import check_sql

        check_sql(pipeline)
    print(f"{given.file}: no problems")
    return OK


def _add_plan(commands: Commands) -> None:
    parser = _command(commands, "plan", _plan, "Prints what a pipeline will do.")
    parser.add_argument("file", metavar="FILE.toml", type=Path)


def _plan(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load
    from penstock.pipeline.plan import describe

    _output().print(describe(load(given.file)), end="", markup=False)
    return OK


# --- redrive, archive, replay ------------------------------------------------------------------


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--file", metavar="FILE.toml", type=Path, help="take server and streams from a pipeline"
    )
    parser.add_argument("--url", metavar="URL", help="the server; ${NAME} is read from outside")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another option of the server, as redis.ssl_ca_certs=FILE; may be repeated",
    )


def _add_redrive(commands: Commands) -> None:
    text = "Sends dead letters back to the streams they are from, or to another."
    parser = _command(commands, "redrive", _redrive, text)
    _add_server(parser)
    add = parser.add_argument
    add("--dead-letters", metavar="STREAM", help="where they are, if no file says so")
    add("--to", metavar="STREAM", help="send them there instead of where they are from")
    add("--stream", metavar="STREAM", help="only letters from this stream")
    add("--reason", metavar="TEXT", help="only letters whose reason contains this")
    add("--limit", metavar="N", type=int, help="at most so many")
    add("--dry-run", action="store_true", help="say what would be sent, and change nothing")


def _redrive(given: argparse.Namespace) -> int:
    from penstock.pipeline.tools.redrive import Choice, redrive
    from penstock.pipeline.tools.stream_client import open_client

    with open_client(given.file, given.url, given.option) as client:
        choice = Choice(given.stream, given.reason, given.to, given.limit)
        redrive(
            client,
            client.dead_letters(given.dead_letters),
            choice,
            given.dry_run,
            _output(),
        )
    return OK


def _add_archive(commands: Commands) -> None:
    text = "Copies streams to Parquet, and may trim what has been copied."
    parser = _command(commands, "archive", _archive, text)
    _add_server(parser)
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=Path, help="the archive; it goes on where it was")
    add("--stream", action="append", default=[], metavar="STREAM", help="may be repeated")
    add("--pattern", action="append", default=[], metavar="GLOB", help="may be repeated")
    add("--trim", action="store_true", help="then remove what is archived and no group needs")
    add("--file-rows", metavar="N", type=int, default=500_000, help="the most rows of a file")


def _archive(given: argparse.Namespace) -> int:
    from penstock.pipeline.tools.archive import archive
    from penstock.pipeline.tools.stream_client import open_client

    with open_client(given.file, given.url, given.option) as client:
        streams = client.streams(given.stream, given.pattern)
        return archive(client, streams, given.folder, given.trim, given.file_rows, _output())


def _add_replay(commands: Commands) -> None:
    text = "Adds what is archived to a stream again, with the same IDs."
    parser = _command(commands, "replay", _replay, text)
    _add_server(parser)
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=Path, help="the archive")
    add("--stream", required=True, metavar="STREAM", help="the stream that was archived")
    add("--to", metavar="STREAM", help="the stream that gets the entries (default: the same)")
    add("--since", metavar="ID|TIME", help="from this ID or time on")
    add("--until", metavar="ID|TIME", help="up to this ID, or before this time")


def _replay(given: argparse.Namespace) -> int:
    from penstock.pipeline.tools.replay import replay, window
    from penstock.pipeline.tools.stream_client import open_client

    bounds = window(given.since, given.until)
    with open_client(given.file, given.url, given.option) as client:
        replay(
            client,
            given.folder,
            given.stream,
            given.to or given.stream,
            bounds,
            _output(),
        )
    return OK


_COMMANDS: Final = (
    *(add_new, add_preview, add_test, _add_validate, _add_plan, _add_run, add_status),
    *(_add_redrive, _add_archive, _add_replay, add_demo),
)
"""What adds each command, in the order of the help."""
