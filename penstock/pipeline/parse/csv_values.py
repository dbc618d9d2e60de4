"""Payloads that are one record of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Final

from penstock.pipeline.parse.errors import Undecodable
from penstock.pipeline.parse.settings import Payload

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
