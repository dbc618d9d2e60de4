"""From the bytes of a payload to the values of a row, or to what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.pipeline.parse.compression import decompressor
from penstock.pipeline.parse.csv_values import csv_decoder
from penstock.pipeline.parse.errors import Undecodable
from penstock.pipeline.parse.settings import Payload


class Row(NamedTuple):
    """What has been decoded: the values, and what no column is made of; or the problem."""

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


def _guarded(payload: Payload, decode: Decode) -> Decode:
    """The function behind the payload's compression, which turns errors into problems."""
    form = payload.compression
    unpack = None if form is None else decompressor(form, payload.max_bytes)

    def guarded(data: bytes) -> Row:
        try:
            return decode(data if unpack is None else unpack(data))
        except Undecodable as error:
            return Row(str(error))

    return guarded
