"""The keys of ``[parse]`` that say which field holds a payload, and in which format."""

from __future__ import annotations

from typing import Final

from penstock.pipeline.config.table import Table
from penstock.pipeline.parse.compression import FORMS
from penstock.pipeline.parse.settings import FORMATS, MAX_BYTES, Payload

_CSV: Final = ("header", "delimiter", "quote")


def read_payload(table: Table) -> Payload | None:
    """The field that is decoded, and how; None if columns are made of plain fields."""
    format, field = _format(table)
    _refuse_foreign(table, format)
    compression, max_bytes = _compression(table, format)
    if format is None:
        return None
    return Payload(
        format,
        field,
        compression,
        max_bytes,
        _header(table),
        _sign(table, "delimiter", ","),
        _sign(table, "quote", '"'),
    )


def _format(table: Table) -> tuple[str | None, str]:
    json = table.text("json")
    if json is not None:
        for key in ("format", "field"):
            if table.text(key) is not None:
                table.wrong(key, "is given beside 'json', which means format 'json' and its field")
        return "json", json
    if not table.has("format"):
        if table.text("field") is not None:
            table.wrong("field", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
        return None, ""
    format = table.choice("format", "", *FORMATS)
    return format or None, table.needed("field", "the field that holds the payload")


def _refuse_foreign(table: Table, format: str | None) -> None:
    for key in _CSV if format != "csv" else ():
        if table.has(key):
            table.take(key, object)
            table.wrong(key, "is for format = 'csv'")


def _compression(table: Table, format: str | None) -> tuple[str | None, int]:
    given = table.has("compression")
    form = table.choice("compression", FORMS[0], *FORMS)
    has_limit = table.has("max_bytes")
    max_bytes = table.whole("max_bytes", MAX_BYTES, 1) or MAX_BYTES
    if given and format is None:
        table.wrong("compression", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
    if has_limit and not given:
        table.wrong("max_bytes", "is for 'compression': how long a value may be when unpacked")
    return form if given else None, max_bytes


def _header(table: Table) -> tuple[str, ...]:
    given = table.take("header", list)
    if given is None:
        return ()
    if not given or not all(isinstance(name, str) and name for name in given):
        table.wrong("header", "is not a list of names, in the order of the values")
        return ()
    for name in dict.fromkeys(given):
        if given.count(name) > 1:
            table.wrong("header", f"names '{name}' twice")
    return tuple(given)


def _sign(table: Table, key: str, default: str) -> str:
    value = table.take(key, str)
    if value is None:
        return default
    if len(value) != 1 or value in "\r\n" or not value.isascii():
        table.wrong(key, f"is {value!r}; allowed: one ASCII character, but for line ends")
        return default
    return value
