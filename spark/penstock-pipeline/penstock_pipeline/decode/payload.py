"""From the bytes of a payload to the values of a row, or to what is wrong with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from penstock_pipeline.decode.avro import avro_decoder
from penstock_pipeline.decode.debezium import DELETION, FULL, OP, UNAVAILABLE, debezium_decoder
from penstock_pipeline.decode.json_object import NotJson, read_object
from penstock_pipeline.decode.protobuf import protobuf_decoder
from penstock_pipeline.decode.registry import client_of
from penstock_pipeline.errors import Undecodable
from penstock_pipeline.model import MAX_BYTES, Column, Payload
from penstock_pipeline.values import EPOCHS, Convert, as_text, converter, parse_type


class Row(NamedTuple):
    """A decoded payload: the values, and what no column is made of; or what is wrong."""

    problem: str | None
    values: Any = None
    more: Sequence[tuple[str, str | None]] | None = None


Decode = Callable[[bytes], Row]


def unpacked_row(payload: Payload) -> Decode:
    """A function whose values are the bytes that were compressed."""
    return _guarded(payload, lambda data: Row(None, data))


def csv_row(payload: Payload, origins: Sequence[str], unknown: bool) -> Decode:
    """A function whose values are those of the record, in the order of the header."""
    read = csv_decoder(payload)
    others = [(name, n) for n, name in enumerate(payload.header) if name not in origins]

    def decode(data: bytes) -> Row:
        values = read(data)
        more = [(name, values[place]) for name, place in others] if unknown else None
        return Row(None, [value.encode() for value in values], more)

    return _guarded(payload, decode)


def record_row(payload: Payload, columns: Sequence[Column], unknown: bool) -> Decode:
    """A function whose values are those of the columns, of a record of Avro or Protobuf, or of an
    event of Debezium; there are none for an event without a row.

    With a registry it raises Unavailable if that does not answer.
    """
    read = _decoder(payload)
    converts = [(c.origin, c.required, converter(parse_type(c.type), c.format)) for c in columns]
    origins = {column.origin for column in columns}

    def decode(data: bytes) -> Row:
        members = read(data)
        if members is None:
            return Row(None)
        # Of a row that is deleted databases mostly tell the key alone.
        deleted = payload.format == "debezium" and members[OP] == DELETION
        wrong: list[str] = []
        values: list[Any] = []
        for origin, required, convert in converts:
            value = members.get(origin)
            if value is None and required and not deleted:
                wrong.append(f"member '{origin}' is missing")
            if value == UNAVAILABLE and payload.format == "debezium":
                wrong.append(f"member '{origin}' has not changed, and is not told: {FULL}")
            values.append(convert(value, origin, wrong))
        if wrong:
            return Row("; ".join(dict.fromkeys(wrong)))
        return Row(None, values, _others(members, origins) if unknown else None)

    return _guarded(payload, decode)


def _decoder(payload: Payload) -> Callable[[bytes], Mapping[str, Any] | None]:
    if payload.format == "debezium":
        return debezium_decoder()
    registry = None if payload.registry is None else client_of(payload.registry)
    make = avro_decoder if payload.format == "avro" else protobuf_decoder
    return make(payload, registry)


def _others(members: Mapping[str, Any], origins: set[str]) -> list[tuple[str, str | None]]:
    """The members that no column is made of, as texts."""
    others = ((name, value) for name, value in members.items() if name not in origins)
    return [(name, None if value is None else as_text(value)) for name, value in others]


def _guarded(payload: Payload, decode: Decode) -> Decode:
    """The function behind the payload's compression, which turns errors into problems."""
    form = payload.compression
    unpack = None if form is None else decompressor(form, payload.max_bytes)

    def guarded(data: bytes) -> Row:
        try:
            return decode(data if unpack is None else unpack(data))
        except Undecodable as error:
            return Row(f"{payload.source} {error}")

    return guarded


# --- Compressed values ---------------------------------------------------------------------------


FORMS: Final = ("gzip", "zstd", "lz4")
"""``lz4`` is its frame format."""


def decompressor(form: str, max_bytes: int = MAX_BYTES) -> Callable[[bytes], bytes]:
    """A function that unpacks a value, and raises Undecodable.

    What would be longer than ``max_bytes`` is not unpacked: a few bytes may stand for gigabytes.
    """
    unpack = _stream(form)

    def decompress(data: bytes) -> bytes:
        if not data:
            raise Undecodable(f"is empty, not {form}")
        try:
            found = unpack(data, max_bytes)
        except (OSError, ValueError):
            raise Undecodable(f"is not {form}") from None
        if found is None:
            raise Undecodable(f"is longer than {max_bytes} bytes when unpacked from {form}")
        return found

    return decompress


def _stream(form: str) -> Callable[[bytes, int], bytes | None]:
    import pyarrow

    def unpack(data: bytes, max_bytes: int) -> bytes | None:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), form) as stream:
            found: bytes = stream.read(max_bytes + 1)
            return found if len(found) <= max_bytes else None

    return unpack


# --- Records of CSV ------------------------------------------------------------------------------


_LONGEST: Final = 2**31 - 1


def csv_decoder(payload: Payload) -> Callable[[bytes], list[str]]:
    """A function that gives the values of a record, as many as there are names in the header.

    It raises Undecodable.
    """
    wanted = len(payload.header)

    def decode(data: bytes) -> list[str]:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Undecodable("is not UTF-8") from None
        records = _records(text, payload)
        if not any(records):
            raise Undecodable("is empty")
        if len(records) != 1:
            raise Undecodable(f"has {len(records)} records of CSV, not 1")
        if len(records[0]) != wanted:
            raise Undecodable(f"has {len(records[0])} values, not {wanted}")
        return records[0]

    return decode


def _records(text: str, payload: Payload) -> list[list[str]]:
    # The limit is one of the whole process; values are as long as the server let them be.
    csv.field_size_limit(_LONGEST)
    lines = io.StringIO(text, newline="")
    try:
        return list(
            csv.reader(lines, delimiter=payload.delimiter, quotechar=payload.quote, strict=True)
        )
    except csv.Error as error:
        raise Undecodable(f"is not CSV: {error}") from None


# --- JSON objects --------------------------------------------------------------------------------

# Spark converts the objects, and only says that one is wrong. This finds out why, for those alone.


def explainer(field: str, columns: Sequence[Column]) -> Callable[[str], str | None]:
    """A function that says what is wrong with a text, None if nothing is.

    Times by patterns of Spark, which Spark alone can read, are not looked at.
    """
    checks = [(column, _check(column)) for column in columns]

    def explain(text: str) -> str | None:
        try:
            members = read_object(text)
        except NotJson as error:
            return f"field '{field}' {error}"
        wrong: list[str] = []
        for column, check in checks:
            value = members.get(column.origin)
            if value is None and column.required:
                wrong.append(f"member '{column.origin}' is missing")
            check(value, column.origin, wrong)
        return "; ".join(dict.fromkeys(wrong)) or None

    return explain


def _check(column: Column) -> Convert:
    if column.format is None or column.format in EPOCHS:
        return converter(parse_type(column.type), column.format)
    return converter(parse_type("string"))
