"""The types of values that a key may hold, a row each.

A value is looked up by its class, as strings are bare bytes, on which nothing could hang. Whatever
differs by type is a column here, or a table by class where it belongs to a form of files
(:mod:`storage.rdb.write`, :mod:`storage.aof.snapshot`); nobody else asks what a value is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from storage.engine.stream import Stream
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet
from storage.types.strings import Buffer, encoding_of

Value = Stream | Collection | bytes | bytearray


class Kind(NamedTuple):
    """A type of values."""

    name: str
    """What TYPE says."""
    copy: Callable[[Any], Any]
    """Makes a value of its own, which does not change with the other one."""
    memory: Callable[[Any], int]
    """The bytes that a value takes, about."""
    encoding: Callable[[Any], str]
    """What OBJECT ENCODING says of a value of which nothing else is known."""
    check: Callable[[Any], None]
    """Verifies the invariants of a value."""
    sizes: str = ""
    """What INFO keysizes calls the lengths of such values; empty if it tells of none."""


def _nothing_to_check(value: Buffer) -> None:
    """Any bytes are a string."""


STRING: Final = Kind("string", bytes, len, encoding_of, _nothing_to_check, "strings_sizes")
STREAM: Final = Kind(
    "stream", Stream.copy, Stream.memory_usage, lambda stream: "stream", Stream.check
)

HASH: Final = Kind("hash", Hash.copy, Hash.memory, Hash.encoding, Hash.check, "hashes_items")

SET: Final = Kind(
    "set", SetValue.copy, SetValue.memory, SetValue.encoding, SetValue.check, "sets_items"
)

LIST: Final = Kind(
    "list", ListValue.copy, ListValue.memory, ListValue.encoding, ListValue.check, "lists_items"
)

ZSET: Final = Kind(
    "zset", SortedSet.copy, SortedSet.memory, SortedSet.encoding, SortedSet.check, "zsets_items"
)

KINDS: Final[dict[type, Kind]] = {
    bytes: STRING,
    bytearray: STRING,
    Hash: HASH,
    ListValue: LIST,
    SetValue: SET,
    SortedSet: ZSET,
    Stream: STREAM,
}


def kind_of(value: Value) -> Kind:
    """Return the row of a value's type."""
    return KINDS[type(value)]
