"""The commands that try a pipeline with sample entries: ``test`` and ``preview``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.cli_base import FAILED, OK, command, positive
from penstock.pipeline.errors import PipelineError
from penstock.terminal import console

if TYPE_CHECKING:
    from penstock.pipeline.cli_base import Commands
    from penstock.pipeline.model import Pipeline
    from penstock.pipeline.samples.entries import Entry


def add_test(commands: Commands) -> None:
    """Adds the command ``test``."""
    text = "Runs cases: entries in, and the rows that are expected of them. No server is asked."
    parser = command(commands, "test", _test, text)
    parser.add_argument("file", metavar="FILE.toml", type=Path)
    parser.add_argument(
        "cases", metavar="CASES.toml", type=Path, nargs="?", help="default: FILE.test.toml"
    )
    parser.add_argument(
        "--case", action="append", metavar="NAME", help="only this case; may be repeated"
    )


def _test(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load
    from penstock.pipeline.samples.cases import chosen, default_file, read_cases

    pipeline = load(given.file)
    cases = chosen(read_cases(given.cases or default_file(given.file), pipeline), given.case)
    from penstock.pipeline.samples.check_cases import run_cases
    from penstock.pipeline.samples.tables import small_session

    with small_session(pipeline) as spark:
        return OK if run_cases(spark, pipeline, cases, console()) else FAILED


def add_preview(commands: Commands) -> None:
    """Adds the command ``preview``."""
    text = "Shows the first rows of each table, and dead letters with their reasons."
    parser = command(commands, "preview", _preview, text)
    add = parser.add_argument
    add("file", metavar="FILE.toml", type=Path)
    add("--rows", metavar="N", type=positive, default=10, help="the most rows of a table (10)")
    add("--entries", metavar="FILE", type=Path, help="sample entries, a line of JSON for each")
    add(
        "--last",
        metavar="N",
        type=positive,
        default=200,
        help="without a file: so many last entries of each stream (200)",
    )
    add("--save", metavar="FILE", type=Path, help="write the sample entries to a new file")


def _preview(given: argparse.Namespace) -> int:
    from penstock.pipeline.config.load import load

    pipeline = load(given.file)
    entries = _entries(given, pipeline)
    if given.save is not None:
        _save(given.save, entries)
    screen = console()
    if not entries:
        screen.print("the streams of the source hold no entry: there is nothing to show")
        return FAILED
    from penstock.pipeline.samples.show import show_rows
    from penstock.pipeline.samples.tables import Samples, small_session, table_names

    with small_session(pipeline) as spark:
        samples = Samples(spark, pipeline, entries)
        for name in table_names(pipeline):
            show_rows(screen, samples.table(name, given.rows))
        if pipeline.parse is not None:
            show_rows(screen, samples.dead_letters(given.rows))
    return OK


def _entries(given: argparse.Namespace, pipeline: Pipeline) -> list[Entry]:
    from penstock.pipeline.samples.entries import read_lines, single_stream

    if given.entries is not None:
        return read_lines(given.entries, single_stream(pipeline.source))
    from penstock.pipeline.samples.live_entries import last_entries

    return last_entries(pipeline, given.last)


def _save(file: Path, entries: list[Entry]) -> None:
    from penstock.pipeline.samples.entries import line_of

    try:
        with file.open("x", encoding="utf-8") as lines:
            lines.writelines(line_of(entry) + "\n" for entry in entries)
    except FileExistsError:
        raise PipelineError(f"'{file}' is there already, and stays as it is") from None
