"""Files of cases for ``penstock pipeline test``: entries in, the rows that are expected.

::

    [[case]]
    name = "orders of an hour are one row"
    [[case.entries.orders]]
    item = "ink"
    qty = 3
    [case.expect]
    hours = [{ item = "ink", qty = 3 }]
    [[case.dead_letters]]
    stream = "orders"
    reason = "field 'qty' is missing"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.errors import InvalidFile, PipelineError
from penstock.pipeline.model import ENTRIES, Pipeline
from penstock.pipeline.samples.entries import (
    ID,
    Entry,
    checked_id,
    numbered,
    pairs_of,
    read_lines,
    single_stream,
)
from penstock.pipeline.toml_file import Table, read_toml

Rows = tuple[Mapping[str, Any], ...]

LETTER_KEYS: Final = ("stream", "id", "reason")
"""What may be expected of a dead letter."""


@dataclass(frozen=True)
class Case:
    """A case; ``dead_letters`` is None if nothing is expected of them."""

    name: str
    line: int
    entries: tuple[Entry, ...]
    expected: Mapping[str, Rows]
    dead_letters: Rows | None


def default_file(pipeline: Path) -> Path:
    """Where the cases of a pipeline are unless another file is given: ``orders.test.toml``."""
    return pipeline.with_name(f"{pipeline.stem}.test.toml")


def read_cases(file: Path, pipeline: Pipeline) -> list[Case]:
    """The cases of a file; raises InvalidFile with all problems, and PipelineError."""
    root = read_toml(file, {})
    findings = root.findings
    tables = root.tables("case")
    if not tables and not findings.problems:
        root.wrong("case", "is missing: at least one [[case]] with entries and expected rows")
    cases = [_case(table, pipeline) for table in tables]
    root.end()
    if findings.problems:
        raise InvalidFile(str(file), findings.problems)
    return cases


def _case(table: Table, pipeline: Pipeline) -> Case:
    name = table.needed("name", "what the case shows")
    entries = [*_from_file(table, pipeline), *_entries(table)]
    if not entries:
        table.wrong("", "has no entries: give [[case.entries.STREAM]] or 'entries_file'")
    expected = _expected(table, pipeline)
    letters = _letters(table, pipeline)
    if not expected and letters is None:
        table.wrong("", "expects nothing: give [case.expect] or [[case.dead_letters]]")
    line = table.findings.line(table.path)
    table.end()
    return Case(name, line, tuple(numbered(entries)), expected, letters)


def _from_file(table: Table, pipeline: Pipeline) -> list[Entry]:
    given = table.text("entries_file")
    if given is None:
        return []
    try:
        return read_lines(table.findings.folder / given, single_stream(pipeline.source))
    except PipelineError as error:
        table.wrong("entries_file", str(error))
        return []


def _entries(table: Table) -> list[Entry]:
    """The entries of all streams, in the order of the file within each."""
    given = table.table("entries")
    found: list[Entry] = []
    for stream, rows in (given.rest() if given else {}).items():
        assert given is not None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            given.wrong(stream, f"is no list of entries; write [[case.entries.{stream}]]")
            continue
        for number, row in enumerate(rows):
            try:
                found.append(_entry(stream, dict(row)))
            except ValueError as error:
                given.findings.add((*given.path, stream, number), str(error))
    return found


def _entry(stream: str, row: dict[str, Any]) -> Entry:
    id = checked_id(row.pop(ID, None))
    return Entry(stream, id, pairs_of(row))


def _expected(table: Table, pipeline: Pipeline) -> dict[str, Rows]:
    given = table.table("expect")
    known = (ENTRIES, *(transform.name for transform in pipeline.transforms))
    found: dict[str, Rows] = {}
    for name, rows in (given.rest() if given else {}).items():
        assert given is not None
        if name not in known:
            given.wrong(name, f"is no table of the pipeline; it has {', '.join(known)}")
        elif not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            given.wrong(name, "is no list of rows; write [{ column = value }], or [] for none")
        else:
            found[name] = tuple(rows)
    return found


def _letters(table: Table, pipeline: Pipeline) -> Rows | None:
    given = table.take("dead_letters", list)
    if given is None:
        return None
    if pipeline.parse is None:
        table.wrong("dead_letters", "can't be expected: without [parse] there are none")
    for number, row in enumerate(given):
        path = (*table.path, "dead_letters", number)
        for key in row if isinstance(row, dict) else ("",):
            if key not in LETTER_KEYS:
                allowed = ", ".join(LETTER_KEYS)
                table.findings.add(path, f"'{key}' is unknown; allowed: {allowed}")
    return tuple(row for row in given if isinstance(row, dict))


def chosen(cases: Sequence[Case], names: Sequence[str] | None) -> list[Case]:
    """The cases of these names, all if none are given; raises PipelineError for unknown ones."""
    known = [case.name for case in cases]
    for name in names or ():
        if name not in known:
            raise PipelineError(f"there is no case '{name}'; there are: {'; '.join(known)}")
    return [case for case in cases if not names or case.name in names]
