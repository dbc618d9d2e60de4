"""The commands to begin with: ``new``, a file from the entries of a stream, and ``demo``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.cli_base import OK, USAGE, command, positive
from penstock.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from penstock.client.retrying import RetryingClient
    from penstock.pipeline.cli_base import Commands
    from penstock.pipeline.samples.new_file import Wanted

LOCAL = "redis://127.0.0.1:6379"
SHOWN = 20
"""The most streams that are listed to choose from."""


def add_new(commands: Commands) -> None:
    """Adds the command ``new``."""
    text = "Writes a pipeline file for a stream, with columns and types from its last entries."
    parser = command(commands, "new", _new, text)
    add = parser.add_argument
    add("file", metavar="FILE.toml", type=Path, nargs="?", help="default: the stream's name")
    add("--url", metavar="URL", help="the server; with a password it is not written to the file")
    add("--stream", metavar="STREAM", help="the stream to read")
    add("--output", metavar="PLACE", help="a folder for Parquet, stream:NAME, or console")
    add("--last", metavar="N", type=positive, default=500, help="how many entries to sample (500)")


def add_demo(commands: Commands) -> None:
    """Adds the command ``demo``."""
    text = "Starts a server, runs a pipeline over made-up orders, and shows the table."
    parser = command(commands, "demo", _demo, text)
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=Path("penstock-demo"), help="a new folder"
    )


def _demo(given: argparse.Namespace) -> int:
    # What it runs in another process would say that packages are missing, but later.
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401

    from penstock.pipeline.demo import demo

    demo(given.out.resolve(), lambda line: print(line, flush=True))
    return OK


def _new(given: argparse.Namespace) -> int:
    if not (given.url and given.stream and given.output) and not sys.stdin.isatty():
        print(
            "give --url, --stream and --output, or run it on a terminal to be asked",
            file=sys.stderr,
        )
        return USAGE
    from penstock.pipeline.live.servers import reached, single

    url = given.url or _asked("Server", LOCAL)
    with reached(single({"url": url})[0]) as client:
        stream = given.stream or _asked("Stream", _offered(client))
        file = given.file or Path(f"{_name(stream)}.toml")
        _refuse_existing(file)
        output = given.output or _asked("Folder for Parquet, stream:NAME or console", _name(stream))
        _write(file, client, _wanted(url, stream, output), given.last)
    return OK


def _wanted(url: str, stream: str, output: str) -> Wanted:
    from penstock.pipeline.samples.new_file import Wanted

    return Wanted(url, stream, output)


def _name(stream: str) -> str:
    return _wanted(LOCAL, stream, "").name


def _asked(question: str, default: str) -> str:
    try:
        answer = input(f"{question} [{default}]: " if default else f"{question}: ").strip()
    except EOFError:
        raise PipelineError("no answer: nothing was written") from None
    if not (answer or default):
        raise PipelineError("no answer: nothing was written")
    return answer or default


def _offered(client: RetryingClient) -> str:
    """Shows the streams of the server; returns the first of them."""
    from penstock.pipeline.live.streams import matching

    names = matching(client, "*")
    for name in names[:SHOWN]:
        print(f"  {name}")
    if len(names) > SHOWN:
        print(f"  ... and {len(names) - SHOWN:,} more")
    return names[0] if names else ""


def _write(file: Path, client: RetryingClient, wanted: Wanted, most: int) -> None:
    from penstock.pipeline.config.load import load
    from penstock.pipeline.samples.infer import propose
    from penstock.pipeline.samples.live_entries import entries_of
    from penstock.pipeline.samples.new_file import VARIABLE, file_text

    entries = list(entries_of(client, wanted.stream, most))
    if not entries:
        raise PipelineError(f"stream '{wanted.stream}' holds no entry: there is nothing to sample")
    proposed = propose(entries)
    if not proposed.columns:
        raise PipelineError(f"no field of stream '{wanted.stream}' has a text for its name")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(file_text(wanted, proposed))
    except FileExistsError:
        _refuse_existing(file)
    load(file, {**os.environ, VARIABLE: wanted.url})
    if wanted.has_secret:
        print(f"The URL holds credentials, so the file reads it from the variable {VARIABLE}.")
    columns = "1 column" if len(proposed.columns) == 1 else f"{len(proposed.columns)} columns"
    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    print(f"{file}: {columns} from {count} of '{wanted.stream}'")
    print(f"Now look at its rows: penstock pipeline preview {file}")


def _refuse_existing(file: Path) -> None:
    if file.exists():
        raise PipelineError(f"'{file}' is there already, and stays as it is: name another file")
