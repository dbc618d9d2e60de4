"""The commands of ``penstock-pipeline``: their options, messages and exit statuses."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.extras import extra_missing
from penstock_pipeline.terminal import Parser, console, plural, shown, shown_lines

if TYPE_CHECKING:
    from rich.console import Console

    from penstock_pipeline.client import RetryingClient
    from penstock_pipeline.model import Pipeline
    from penstock_pipeline.samples.cases import Entry
    from penstock_pipeline.samples.propose import Wanted

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

LOCAL: Final = "redis://127.0.0.1:6379"
SHOWN: Final = 20
"""The most streams that are listed to choose from."""

_EPILOG: Final = """\
Exit status: 0 done, 1 failed, 2 the command line is wrong, 130 interrupted.
docs/pipeline.md describes the file.
"""

Run = Callable[[argparse.Namespace], int]
Option = tuple[tuple[str, ...], dict[str, Any]]

_COMMANDS: Final[list[tuple[str, str, tuple[Option, ...], Run]]] = []
"""The name, description, options and function of each command, in the order of the help."""


def main(args: Sequence[str]) -> int:
    """Run a command with the arguments behind ``pipeline``; return the exit status."""
    try:
        given = parser().parse_args(args)
    except SystemExit as end:
        return int(end.code or 0)
    run: Run = given.command
    try:
        return run(given)
    except (PipelineError, OSError) as error:
        # The text of an OSError names the file: a disk that is full, a folder that can't be made.
        print(shown_lines(str(error)), file=sys.stderr)
        return FAILED
    except ModuleNotFoundError as error:
        print(extra_missing("penstock-pipeline", error.name), file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = Parser(
        prog="penstock-pipeline",
        description="Pipelines from streams through Spark SQL to tables and other streams.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = whole.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, text, options, run in _COMMANDS:
        part = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        part.set_defaults(command=run)
        for names, settings in options:
            part.add_argument(*names, **settings)
    return whole


def arg(*names: str, **settings: Any) -> Option:
    """Return an argument of a command, in the words of argparse."""
    return names, settings


def command(name: str, text: str, *options: Option) -> Callable[[Run], Run]:
    """Declare the function that is decorated as a command, with the line that describes it."""

    def declared(run: Run) -> Run:
        _COMMANDS.append((name, text, options, run))
        return run

    return declared


def output() -> Console:
    """Return standard output, whose lines are not broken."""
    return console(soft_wrap=True)


def positive(text: str) -> int:
    """Return a whole number from 1; raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1")
    return int(text)


def port(text: str) -> int:
    """Return a port, of which 0 is any; raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port")
    return int(text)


FILE: Final = arg("file", metavar="FILE.toml", type=Path)


# --- new, preview, test --------------------------------------------------------------------------


@command(
    "new",
    "Writes a pipeline file for a stream, with columns and types from its last entries.",
    arg("file", metavar="FILE.toml", type=Path, nargs="?", help="default: the stream's name"),
    arg("--url", metavar="URL", help="the server; with a password it is not written to the file"),
    arg("--stream", metavar="STREAM", help="the stream to read"),
    arg(
        "--output",
        metavar="PLACE",
        help="a folder for Parquet, delta:FOLDER, or stream:NAME",
    ),
    arg("--last", metavar="N", type=positive, default=500, help="how many entries to sample (500)"),
)
def _new(given: argparse.Namespace) -> int:
    if not (given.url and given.stream and given.output) and not sys.stdin.isatty():
        print(
            "give --url, --stream and --output, or run it on a terminal to be asked",
            file=sys.stderr,
        )
        return USAGE
    from penstock_pipeline.samples.propose import Wanted
    from penstock_pipeline.servers import reached, single

    url = given.url or _asked("Server", LOCAL)
    with reached(single({"url": url})[0]) as client:
        stream = given.stream or _asked("Stream", _offered(client))
        name = Wanted(url, stream, "").name
        file = given.file or Path(f"{name}.toml")
        _refuse_existing(file)
        output = given.output or _asked("Folder for Parquet, delta:FOLDER or stream:NAME", name)
        _write(file, client, Wanted(url, stream, output), given.last)
    return OK


def _asked(question: str, default: str) -> str:
    try:
        answer = input(shown(f"{question} [{default}]: " if default else f"{question}: ")).strip()
    except EOFError:
        raise PipelineError("no answer: nothing was written") from None
    if not (answer or default):
        raise PipelineError("no answer: nothing was written")
    return answer or default


def _offered(client: RetryingClient) -> str:
    """Shows the streams of the server; returns the first of them."""
    from penstock_pipeline.servers import matching
    from pyspark_redis_streams.streams import key_of

    names = matching(client, "*")
    for name in names[:SHOWN]:
        print(f"  {shown(key_of(name))}")
    if len(names) > SHOWN:
        print(f"  ... and {len(names) - SHOWN:,} more")
    return names[0] if names else ""


def _write(file: Path, client: RetryingClient, wanted: Wanted, most: int) -> None:
    from penstock_pipeline.file import load
    from penstock_pipeline.samples.cases import entries_of
    from penstock_pipeline.samples.propose import VARIABLE, file_text, propose

    entries = list(entries_of(client, wanted.stream, most))
    if not entries:
        raise PipelineError(f"stream '{wanted.stream}' holds no entry: there is nothing to sample")
    proposed = propose(entries)
    if not proposed.columns:
        raise PipelineError(f"no field of stream '{wanted.stream}' has a text for its name")
    text = file_text(wanted, proposed)
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        _refuse_existing(file)
    load(file, {**os.environ, VARIABLE: wanted.url})
    if wanted.has_secret:
        print(f"The URL holds credentials, so the file reads it from the variable {VARIABLE}.")
    columns, count = plural(len(proposed.columns), "column"), plural(len(entries), "entry")
    print(shown(f"{file}: {columns} from {count} of '{wanted.stream}'"))
    print(f"Now look at its rows: penstock-pipeline preview {file}")


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise PipelineError(f"'{file}' is there already, and stays as it is: name another file")


@command(
    "preview",
    "Shows the first rows of each table, and dead letters with their reasons.",
    FILE,
    arg("--rows", metavar="N", type=positive, default=10, help="the most rows of a table (10)"),
    arg("--entries", metavar="FILE", type=Path, help="sample entries, a line of JSON for each"),
    arg(
        "--last",
        metavar="N",
        type=positive,
        default=200,
        help="without a file: so many last entries of each stream (200)",
    ),
    arg("--save", metavar="FILE", type=Path, help="write the sample entries to a new file"),
)
def _preview(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load

    pipeline = load(given.file)
    entries = _entries(given, pipeline)
    if given.save is not None:
        _save(given.save, entries)
    screen = console()
    if not entries:
        screen.print("the streams of the source hold no entry: there is nothing to show")
        return FAILED
    from penstock_pipeline.samples.compare import show_rows
    from penstock_pipeline.samples.tables import Samples, small_session, table_names

    with small_session(pipeline) as spark:
        samples = Samples(spark, pipeline, entries)
        for name in table_names(pipeline):
            show_rows(screen, samples.table(name, given.rows))
        if pipeline.parse is not None:
            show_rows(screen, samples.dead_letters(given.rows))
    return OK


def _entries(given: argparse.Namespace, pipeline: Pipeline) -> list[Entry]:
    from penstock_pipeline.samples.cases import last_entries, read_lines, single_stream

    if given.entries is not None:
        return read_lines(given.entries, single_stream(pipeline.source))
    return last_entries(pipeline, given.last)


def _save(file: Path, entries: list[Entry]) -> None:
    from penstock_pipeline.samples.cases import line_of

    try:
        with file.open("x", encoding="utf-8") as lines:
            lines.writelines(line_of(entry) + "\n" for entry in entries)
    except FileExistsError:
        raise PipelineError(f"'{file}' is there already, and stays as it is") from None


@command(
    "test",
    "Runs cases: entries in, and the rows that are expected of them. No server is asked.",
    FILE,
    arg("cases", metavar="CASES.toml", type=Path, nargs="?", help="default: FILE.test.toml"),
    arg("--case", action="append", metavar="NAME", help="only this case; may be repeated"),
)
def _test(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load
    from penstock_pipeline.samples.cases import chosen, default_file, read_cases

    pipeline = load(given.file)
    cases = chosen(read_cases(given.cases or default_file(given.file), pipeline), given.case)
    from penstock_pipeline.samples.tables import run_cases, small_session

    with small_session(pipeline) as spark:
        return OK if run_cases(spark, pipeline, cases, console()) else FAILED


# --- validate, plan, run, status -----------------------------------------------------------------


@command(
    "validate",
    "Checks a file without looking at data.",
    FILE,
    arg("--sql", action="store_true", help="start Spark as well, and check the SQL with it"),
    arg(
        "--connect",
        action="store_true",
        help="ask the servers as well: which streams and groups are there",
    ),
)
def _validate(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load

    pipeline = load(given.file)
    if given.connect:
        from penstock_pipeline.servers import look_at_servers

        report = look_at_servers(pipeline)
        print(*report.lines, sep="\n")
        if report.problems:
            problems = plural(len(report.problems), "problem")
            print(f"{given.file}: {problems} on the servers", file=sys.stderr)
            return FAILED
    if given.sql:
        from penstock_pipeline.supervise import check_sql

        check_sql(pipeline)
    print(f"{given.file}: no problems")
    return OK


@command("plan", "Prints what a pipeline will do.", FILE)
def _plan(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load
    from penstock_pipeline.plan import describe

    output().print(describe(load(given.file)), end="", markup=False)
    return OK


@command(
    "run",
    "Runs the pipeline of a file.",
    FILE,
    arg("--once", action="store_true", help="end when everything that is there now is done"),
    arg(
        "--json",
        action="store_true",
        help="print a line of JSON for each batch, failure and warning, and nothing else",
    ),
    arg("--master", metavar="URL", help="where Spark runs, as spark://host:7077"),
    arg(
        "--metrics-port",
        metavar="PORT",
        type=port,
        help="serve series for Prometheus there (/metrics, /healthz); 0 takes a free port",
    ),
    arg(
        "--metrics-bind",
        metavar="HOST",
        default="127.0.0.1",
        help="the address for that (default: 127.0.0.1, which others can't reach)",
    ),
    arg(
        "--metrics-hosts",
        metavar="NAMES",
        default="",
        help="names with a dot under which that is asked for, with blanks between; * for any",
    ),
    arg("--status-file", metavar="FILE", type=Path, help="where the status goes"),
    arg("--spark-ui", action="store_true", help="turn on Spark's own page, and say where it is"),
)
def _run(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load

    pipeline = load(given.file)
    from penstock_pipeline.queries import query_names
    from penstock_pipeline.report import Bars, Reporter, open_records
    from penstock_pipeline.status import Watch, watched
    from penstock_pipeline.supervise import run

    screen = output()
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


@command(
    "status",
    "Shows how a run is doing: rate, lag, ages, the last error; also when it is dead.",
    FILE,
    arg("--status-file", metavar="FILE", type=Path, help="where the run puts it"),
    arg("--json", action="store_true", help="print an object of JSON"),
)
def _status(given: argparse.Namespace) -> int:
    from penstock_pipeline.file import load
    from penstock_pipeline.status import GOOD, default_path, read_status, show_status, state_of

    path = given.status_file or default_path(load(given.file))
    status = read_status(path)
    now = time.time()
    if given.json:
        state = state_of(status, now)
        print(json.dumps({**status, "state": state}))
        return OK if state in GOOD else FAILED
    return OK if show_status(console(), status, now) else FAILED


# --- redrive -------------------------------------------------------------------------------------


@command(
    "redrive",
    "Sends dead letters back to the streams they are from, or to another.",
    arg("--file", metavar="FILE.toml", type=Path, help="take server and letters from a pipeline"),
    arg("--url", metavar="URL", help="the server; ${NAME} is read from outside"),
    arg(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another option of the server, as redis.ssl_ca_certs=FILE; may be repeated",
    ),
    arg("--dead-letters", metavar="STREAM", help="where they are, if no file says so"),
    arg("--to", metavar="STREAM", help="send them there instead of where they are from"),
    arg("--stream", metavar="STREAM", help="only letters from this stream"),
    arg("--reason", metavar="TEXT", help="only letters whose reason contains this"),
    arg("--limit", metavar="N", type=positive, help="at most so many"),
    arg("--dry-run", action="store_true", help="say what would be sent, and change nothing"),
)
def _redrive(given: argparse.Namespace) -> int:
    from penstock_pipeline.dead_letters import LetterChoice, redrive
    from penstock_pipeline.servers import open_client

    with open_client(given.file, given.url, given.option) as client:
        choice = LetterChoice(given.stream, given.reason, given.to, given.limit)
        letters = client.dead_letters(given.dead_letters)
        redrive(client, letters, choice, given.dry_run, output())
    return OK
