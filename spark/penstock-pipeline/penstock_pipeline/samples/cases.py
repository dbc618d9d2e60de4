"""Sample entries: lines of JSON, tables of a file of cases, or the last ones of a server.

A file of cases for ``penstock-pipeline test`` has entries, and the rows that are expected::

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

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock_pipeline.client import RetryingClient
from penstock_pipeline.errors import InvalidFile, PipelineError, Problem
from penstock_pipeline.model import ENTRIES, Pipeline
from penstock_pipeline.servers import look, matching, reached, reading, single
from penstock_pipeline.terminal import BYTES, json_value
from penstock_pipeline.toml_file import Table, read_text, read_toml
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.streams import key_of
from pyspark_redis_streams.values import names

ID: Final = "_id"
"""The key of an entry's ID among its fields in a file of cases."""

ALLOWED: Final = '{"stream": "orders", "id": "5-0", "fields": {"item": "ink"}}'


class Entry(NamedTuple):
    """An entry of a stream; ``fields`` are pairs, since a name may come twice."""

    stream: str
    id: str
    fields: tuple[tuple[bytes, bytes], ...]


def single_stream(source: Mapping[str, str]) -> str | None:
    """The stream that entries are of which do not say it; None if the source reads several."""
    if "subscribe" not in source or "subscribePattern" in source:
        return None
    found = names(source["subscribe"])
    return found[0] if len(found) == 1 else None


def to_bytes(value: Any) -> bytes:
    """The value of a field; what is no text becomes what a producer would write.

    Times are written as ISO 8601, lists and tables as JSON. Raises ValueError.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, dict) and set(value) == {BYTES}:
        return base64.b64decode(value[BYTES], validate=True)
    if isinstance(value, bool):
        return str(value).lower().encode()
    if isinstance(value, int | float):
        return str(value).encode()
    if isinstance(value, datetime | date | time):
        return value.isoformat().encode()
    if isinstance(value, list | dict):
        return json.dumps(value, default=lambda each: each.isoformat()).encode()
    raise ValueError(f"is {value!r}; allowed: text, numbers, times, lists and tables")


def pairs_of(fields: Any) -> tuple[tuple[bytes, bytes], ...]:
    """The fields of a mapping, or of a list of pairs; raises ValueError."""
    if isinstance(fields, dict):
        given: Iterable[Any] = fields.items()
    elif isinstance(fields, list) and all(isinstance(p, list) and len(p) == 2 for p in fields):
        given = fields
    else:
        raise ValueError("has fields that are neither an object nor a list of pairs")
    found = tuple((to_bytes(name), to_bytes(value)) for name, value in given)
    if not found:
        raise ValueError("has no field")
    return found


def numbered(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with IDs: those without one get the number of their place."""
    return [each if each.id else each._replace(id=f"{n}-0") for n, each in enumerate(entries, 1)]


def checked_id(text: Any) -> str:
    """An ID, empty if there is none; raises ValueError."""
    if text is None:
        return ""
    try:
        return format_id(parse_id(text))
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"has the ID {text!r}; allowed: 5-0, or 1700000000000") from None


def read_lines(file: Path, stream: str | None) -> list[Entry]:
    """The entries of a file with an object of JSON in each line.

    ``stream`` is that of entries that name none. Raises InvalidFile with every wrong line, and
    PipelineError.
    """
    lines = read_text(file).splitlines()
    found: list[Entry] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_of_line(line, stream))
        except ValueError as error:
            problems.append(Problem(number, "", str(error)))
    if problems:
        raise InvalidFile(str(file), problems)
    if not found:
        raise PipelineError(f"'{file}' holds no entry; allowed: lines as {ALLOWED}")
    return numbered(found)


def _of_line(line: str, stream: str | None) -> Entry:
    try:
        given = json.loads(line)
    except ValueError:
        raise ValueError(f"not JSON; allowed: a line as {ALLOWED}") from None
    if not isinstance(given, dict) or "fields" not in given:
        raise ValueError(f"no entry; allowed: a line as {ALLOWED}")
    unknown = sorted(set(given) - {"stream", "id", "fields"})
    if unknown:
        raise ValueError(f"has the unknown key '{unknown[0]}'; allowed: stream, id, fields")
    name = given.get("stream", stream)
    if not isinstance(name, str):
        raise ValueError("names no stream, and the pipeline reads several")
    return Entry(name, checked_id(given.get("id")), pairs_of(given["fields"]))


def line_of(entry: Entry) -> str:
    """The entry as a line that :func:`read_lines` reads."""
    is_plain = len({name for name, _ in entry.fields}) == len(entry.fields)
    pairs: list[list[Any]] = [[json_value(name), json_value(value)] for name, value in entry.fields]
    is_plain = is_plain and all(isinstance(name, str) for name, _ in pairs)
    fields = dict(pairs) if is_plain else pairs
    return json.dumps({"stream": entry.stream, "id": entry.id, "fields": fields})


def last_entries(pipeline: Pipeline, most: int) -> list[Entry]:
    """The last entries of each stream, at most so many, oldest first; raises PipelineError."""
    wanted = reading(pipeline)
    found: list[Entry] = []
    for settings in single(pipeline.source):
        with reached(settings) as client:
            names = [*wanted.subscribe]
            for pattern in wanted.patterns:
                names += matching(client, pattern)
            for name in dict.fromkeys(names):
                found += entries_of(client, name, most)
    return found


def entries_of(client: RetryingClient, name: str, most: int) -> Iterator[Entry]:
    """Yield the last entries of one stream, none if it is not there.

    Raises PipelineError for what is no stream, and ClientError.
    """
    problem = look(client, name).problem
    if problem is not None:
        raise PipelineError(problem)
    reply = client.call("XREVRANGE", key_of(name), "+", "-", "COUNT", most)
    for id, fields in reversed(reply):
        pairs = tuple((fields[i], fields[i + 1]) for i in range(0, len(fields), 2))
        yield Entry(name, id.decode(), pairs)


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
