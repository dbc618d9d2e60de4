"""Payloads that are one change event of Debezium: what has become of a row of a database.

The event is an object of JSON with the row ``before`` and ``after`` the change, what kind of change
it was (``op``) and where it comes from (``source``), by itself or as the ``payload`` beside its
schema (https://debezium.io/documentation/reference/stable/connectors/postgresql.html).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock_pipeline.decode.json_object import NotJson, read_object
from penstock_pipeline.errors import Undecodable

TOMBSTONES: Final = frozenset((b"", b"null", b"default"))
"""What stands for no value behind a deletion; the last is what Debezium Server writes to Redis."""

OP: Final = "__op"
"""The member with the kind of change, called as Debezium calls it where it flattens events."""

DELETION: Final = "d"

_ROWS: Final = {"c": "after", "r": "after", "u": "after", DELETION: "before"}
"""The member with the row, by the kind of change: made, read when a snapshot is taken, changed, and
deleted."""

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What stands for a long value that was not changed, and that PostgreSQL does not tell."""

FULL: Final = "REPLICA IDENTITY FULL of its table would have it told"


def debezium_decoder() -> Callable[[bytes], Mapping[str, Any] | None]:
    """A function that gives the members of a row, and of its event, None for a tombstone.

    The members of the event have two underscores before their names: ``__op``, ``__ts_ms``, and of
    its source ``__source_lsn``. It raises Undecodable.
    """
    return lambda data: None if data in TOMBSTONES else _members(data)


def _members(data: bytes) -> dict[str, Any]:
    try:
        event = read_object(data.decode())
    except UnicodeDecodeError:
        raise Undecodable("is not UTF-8") from None
    except NotJson as error:
        raise Undecodable(str(error)) from None
    if event.keys() == {"schema", "payload"}:
        event = event["payload"]
        if not isinstance(event, dict):
            raise Undecodable("has a schema without a change event of Debezium")
    found = dict(_row(event))
    source = event.get("source")
    if isinstance(source, dict):
        found |= {f"__source_{name}": value for name, value in source.items()}
    return found | {f"__{name}": event.get(name) for name in ("op", "ts_ms")}


def _row(event: Mapping[str, Any]) -> Mapping[str, Any]:
    op = event.get("op")
    place = _ROWS.get(op) if isinstance(op, str) else None
    if place is None:
        known = ", ".join(_ROWS)
        raise Undecodable(f"is no change of a row by Debezium: 'op' is {op!r}, not one of {known}")
    row = event.get(place)
    if not isinstance(row, dict):
        advice = f": {FULL}" if op == DELETION else ""
        raise Undecodable(f"has no row '{place}'{advice}")
    return row
