"""From the bytes of a payload to the values of a row, or to what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from penstock.pipeline.model import Column
from penstock.pipeline.parse.avro import avro_decoder
from penstock.pipeline.parse.compression import decompressor
from penstock.pipeline.parse.csv_values import csv_decoder
from penstock.pipeline.parse.errors import Undecodable
from penstock.pipeline.parse.protobuf import protobuf_decoder
from penstock.pipeline.parse.registry import client_of
from penstock.pipeline.parse.settings import Payload
from penstock.pipeline.parse.types import parse_type
from penstock.pipeline.parse.values import as_text, converter


class Row(NamedTuple):
    """What has been decoded: the values, and what no column is made of; or what is wrong."""

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
    """A function whose values are those of the columns, of a record of Avro or Protobuf.

    With a registry it raises Unavailable if that does not answer.
    """
    registry = None if payload.registry is None else client_of(payload.registry)
    make = avro_decoder if payload.format == "avro" else protobuf_decoder
    read = make(payload, registry)
    converts = [(c.origin, c.required, converter(parse_type(c.type), c.format)) for c in columns]
    origins = {column.origin for column in columns}

    def decode(data: bytes) -> Row:
        members = read(data)
        wrong: list[str] = []
        values: list[Any] = []
        for origin, required, convert in converts:
            value = members.get(origin)
            if value is None and required:
                wrong.append(f"member '{origin}' is missing")
            values.append(convert(value, origin, wrong))
        if wrong:
            return Row("; ".join(dict.fromkeys(wrong)))
        return Row(None, values, _others(members, origins) if unknown else None)

    return _guarded(payload, decode)


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
            return Row(f"field '{payload.field}' {error}")

    return guarded
