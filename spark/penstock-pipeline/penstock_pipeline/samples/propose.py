"""A new pipeline file: columns and types for the entries of a stream, from samples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from penstock_pipeline.decode.debezium import OP, debezium_decoder
from penstock_pipeline.errors import PipelineError, Undecodable
from penstock_pipeline.file_parse import OWN, RESERVED
from penstock_pipeline.samples.cases import Entry
from penstock_pipeline.terminal import plural
from pyspark_redis_streams.values import parse_urls

_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})")
_NUMBER: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6}0*)?)?(?:Z|[+-]\d{2}:\d{2})?"
)
_EPOCH: Final = range(1_000_000_000_000, 4_000_000_000_000)
"""Numbers that may be Unix times in milliseconds, from 2001 on."""


@dataclass(frozen=True)
class Proposal:
    """A column: its name, type and field, and in how many samples it has a value."""

    name: str
    type: str
    origin: str
    count: int
    note: str = ""


@dataclass(frozen=True)
class Proposed:
    """How entries may be parsed: by keys of ``[parse]`` and their values, as TOML has them."""

    columns: tuple[Proposal, ...]
    samples: int
    parse: Mapping[str, str] = field(default_factory=dict)


def propose(entries: Sequence[Entry]) -> Proposed:
    """The columns that entries suggest. Fields whose name is no text are left out."""
    if rows := _changed_rows(entries):
        columns = [*_members(rows), Proposal("op", "string", OP, len(entries))]
        return Proposed(_named(columns), len(entries), {"format": '"debezium"'})
    values = _by_field(entries)
    origin = _json_field(values, len(entries))
    if origin is not None:
        objects = [json.loads(value) for value in values[origin]]
        parse = {"json": quoted(_escaped(origin))}
        return Proposed(_named(_members(objects)), len(entries), parse)
    nulls = any(b"" in found and set(found) != {b""} for found in values.values())
    found = [_plain(name, given, nulls) for name, given in values.items()]
    return Proposed(_named(found), len(entries), {"nulls": '[""]'} if nulls else {})


def _changed_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The rows that change events of Debezium tell of, if all entries are such or tombstones."""
    read = debezium_decoder()
    try:
        found = [read(entry.fields[-1][1]) for entry in entries]
    except (Undecodable, IndexError):
        return []
    rows = ({n: v for n, v in row.items() if not n.startswith("__")} for row in found if row)
    return [{n: float(v) if isinstance(v, Decimal) else v for n, v in row.items()} for row in rows]


def _by_field(entries: Sequence[Entry]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for entry in entries:
        for name, value in dict(entry.fields).items():
            try:
                found.setdefault(name.decode("utf-8"), []).append(value)
            except UnicodeDecodeError:
                continue
    return found


def _json_field(values: Mapping[str, list[bytes]], samples: int) -> str | None:
    """The field that every sample has, with an object of JSON, where there is exactly one."""
    found = [
        name
        for name, given in values.items()
        if len(given) == samples and all(map(_is_object, given))
    ]
    return found[0] if len(found) == 1 and found[0] else None


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, UnicodeDecodeError):
        return False


# --- plain fields ------------------------------------------------------------------------------


def _plain(name: str, values: Sequence[bytes], empty_is_null: bool) -> Proposal:
    given = [value for value in values if value or not empty_is_null]
    kind = type_of_texts(given)
    return Proposal(name, kind, name, len(given), _note(kind, given))


def type_of_texts(values: Sequence[bytes]) -> str:
    """The narrowest type that all values fit; ``binary`` for what is no UTF-8."""
    try:
        texts = [value.decode("utf-8") for value in values]
    except UnicodeDecodeError:
        return "binary"
    if not texts:
        return "string"
    for kind, fits in (
        ("boolean", lambda text: text in ("true", "false")),
        ("bigint", lambda text: bool(_INTEGER.fullmatch(text))),
        ("double", lambda text: bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text))),
        ("date", lambda text: bool(_DATE.fullmatch(text)) and _parses(date, text)),
        ("timestamp", lambda text: bool(_TIME.fullmatch(text)) and _parses(datetime, text)),
    ):
        if all(map(fits, texts)):
            return kind
    return "string"


def _parses(kind: type[date], text: str) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _note(kind: str, values: Sequence[Any]) -> str:
    if kind == "bigint" and values and all(int(value) in _EPOCH for value in values):
        return "may be Unix time in milliseconds"
    return ""


# --- JSON --------------------------------------------------------------------------------------


def _members(objects: Sequence[Mapping[str, Any]]) -> list[Proposal]:
    names = dict.fromkeys(name for each in objects for name in each)
    found = []
    for name in names:
        given = [each[name] for each in objects if each.get(name) is not None]
        kind = type_of_values(given)
        found.append(Proposal(name, kind, name, len(given), _note(kind, given)))
    return found


def type_of_values(values: Sequence[Any]) -> str:
    """The type of values of JSON; ``string`` where they are of several kinds, or there is none."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "bigint" if all(abs(value) < 2**63 for value in values) else "string"
    if kinds and kinds <= {int, float}:
        return "double"
    if kinds == {list}:
        return f"array<{type_of_values([each for value in values for each in value])}>"
    if kinds == {dict}:
        return _struct(values)
    if kinds == {str}:
        texts = type_of_texts([value.encode("utf-8", "surrogatepass") for value in values])
        return texts if texts in ("date", "timestamp") else "string"
    return "string"


def _struct(values: Sequence[Mapping[str, Any]]) -> str:
    names = dict.fromkeys(name for value in values for name in value)
    if not names or not all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names):
        return "map<string,string>"
    if len({name.lower() for name in names}) < len(names):
        return "map<string,string>"
    members = (
        f"{name}:{type_of_values([v[name] for v in values if v.get(name) is not None])}"
        for name in names
    )
    return f"struct<{','.join(members)}>"


# --- names -------------------------------------------------------------------------------------


def _named(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """The columns with names that differ, whatever their case, and that no entry has already."""
    taken = {*RESERVED, *OWN}
    found: list[Proposal] = []
    for each in proposals:
        if not each.origin:
            continue
        name, number = each.name, 1
        while name.lower() in taken:
            number += 1
            name = f"{each.name}_{number}"
        taken.add(name.lower())
        found.append(Proposal(name, each.type, each.origin, each.count, each.note))
    return tuple(found)


# --- The text of the file ------------------------------------------------------------------------


VARIABLE: Final = "REDIS_URL"
"""What the environment has a URL with a password in, which belongs into no file."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Wanted:
    """The source and the sink of a new pipeline; ``output`` as on the command line."""

    url: str
    stream: str
    output: str

    @property
    def name(self) -> str:
        """A name for the pipeline, from that of the stream."""
        return re.sub(r"[^\w.-]+", "-", self.stream, flags=re.ASCII).strip("-.") or "pipeline"

    @property
    def has_secret(self) -> bool:
        """Whether the URL holds a user or a password."""
        return any(url.username or url.password for url in parse_urls(self.url))


def file_text(wanted: Wanted, proposed: Proposed) -> str:
    """The file, with a comment for each column that is not in every sample."""
    return "\n".join(_lines(wanted, proposed)) + "\n"


def _lines(wanted: Wanted, proposed: Proposed) -> Iterator[str]:
    count = plural(proposed.samples, "entry")
    yield f"# Proposed by 'penstock-pipeline new' from {count}. Check the types of the columns."
    yield f"name = {quoted(wanted.name)}"
    yield ""
    yield "[source]"
    yield f"url = {quoted(f'${{{VARIABLE}}}' if wanted.has_secret else _escaped(wanted.url))}"
    yield f"subscribe = [{quoted(_escaped(wanted.stream))}]"
    yield 'starting_offsets = "earliest"'
    yield ""
    if proposed.parse:
        yield "[parse]"
        yield from (f"{key} = {value}" for key, value in proposed.parse.items())
        yield ""
    yield "[parse.columns]"
    for column in proposed.columns:
        yield _column(column, proposed.samples)
    yield ""
    yield "[dead_letters]"
    yield f"stream = {quoted(_escaped(f'{wanted.stream}-dead'))}"
    yield ""
    if "format" in proposed.parse:
        yield "# A table that follows the database's has keys, and delete_when = \"op = 'd'\"."
    yield "[[sink]]"
    yield from _sink(wanted.output)
    yield ""
    yield "[checkpoint]"
    yield f"path = {quoted(f'{wanted.name}-checkpoint')}"


def _column(column: Proposal, samples: int) -> str:
    value = quoted(column.type)
    if column.name != column.origin:
        value = f"{{ type = {value}, from = {quoted(_escaped(column.origin))} }}"
    notes = [f"in {column.count} of {samples}"] if column.count < samples else []
    notes += [column.note] if column.note else []
    comment = f"  # {'; '.join(notes)}" if notes else ""
    key = column.name if _BARE.fullmatch(column.name) else quoted(column.name)
    return f"{key} = {value}{comment}"


_PLACES: Final = {"parquet": "path", "delta": "path", "stream": "stream"}
"""Types of sinks that one word is enough for, and its key in the file."""


def _sink(output: str) -> Iterator[str]:
    """The keys of a sink; raises PipelineError for one that a folder, or a name, does not tell."""
    kind, colon, place = output.partition(":")
    if colon and place and kind in _PLACES:
        yield f"type = {quoted(kind)}"
        yield f"{_PLACES[kind]} = {quoted(_escaped(place))}"
    elif colon and not place.startswith("/"):
        raise PipelineError(
            f"--output is '{output}'; allowed: a folder for Parquet or its URL, delta:FOLDER, "
            "stream:NAME; write other sinks into the file, as docs/tables.md shows"
        )
    else:
        yield f"path = {quoted(_escaped(output))}"


def _escaped(text: str) -> str:
    """The text with ``$`` as a file has to write it."""
    return text.replace("$", "$$")


def quoted(text: str) -> str:
    """A text of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
