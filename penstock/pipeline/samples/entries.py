"""Sample entries: lines of JSON, tables of a file of cases, or the last ones of a server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.client.connection import ClientError
from penstock.client.retrying import RetryingClient
from penstock.pipeline.errors import InvalidFile, PipelineError, Problem
from penstock.pipeline.model import Pipeline
from penstock.pipeline.servers import look, matching, reached, reading, single
from penstock.pipeline.toml_file import read_text
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.streams import key_of
from pyspark_redis_streams.values import names

BYTES: Final = "_base64"
"""The key of a value that is no text: ``{"_base64": "AAE="}``."""

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
    pairs = [[_shown(name), _shown(value)] for name, value in entry.fields]
    is_plain = is_plain and all(isinstance(name, str) for name, _ in pairs)
    fields = dict(pairs) if is_plain else pairs
    return json.dumps({"stream": entry.stream, "id": entry.id, "fields": fields})


def _shown(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {BYTES: base64.b64encode(value).decode()}


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
    """The last entries of one stream, none if it is not there; raises PipelineError."""
    problem = look(client, name).problem
    if problem is not None:
        raise PipelineError(problem)
    try:
        reply = client.call("XREVRANGE", key_of(name), "+", "-", "COUNT", most)
    except ClientError as error:
        raise PipelineError(str(error)) from None
    for id, fields in reversed(reply):
        pairs = tuple((fields[i], fields[i + 1]) for i in range(0, len(fields), 2))
        yield Entry(name, id.decode(), pairs)
