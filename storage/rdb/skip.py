"""Values of the types that Penstock does not hold: passed over, so that what follows can be read.

Only their structure is looked at, not what is in their strings.
"""

from __future__ import annotations

from typing import Final

from storage.rdb.errors import DamagedRDB
from storage.rdb.source import Source

_STRINGS: Final = {1: "list", 2: "set", 14: "list"}
"""Types that are a number and so many strings."""
_ONE: Final = {
    9: "hash",
    10: "list",
    11: "set",
    12: "zset",
    13: "hash",
    16: "hash",
    17: "zset",
    20: "set",
}
"""Types that are one string."""
_ZSET_TEXT: Final = 3
_HASH: Final = 4
_ZSET: Final = 5
_MODULE: Final = 7
_QUICKLIST: Final = 18
_HASH_OF_VALKEY: Final = 22
_HASH_EXPIRING: Final = 24
_HASH_EXPIRING_SMALL: Final = 25

_OTHERS: Final = {
    _ZSET_TEXT: "zset",
    _HASH: "hash",
    _ZSET: "zset",
    _MODULE: "module",
    _QUICKLIST: "list",
    _HASH_EXPIRING: "hash",
    _HASH_EXPIRING_SMALL: "hash",
}
_NO_NUMBER: Final = 253
"""From here on the length of a score stands for a score itself: not a number, infinite ones."""

_MODULE_END, _MODULE_SIGNED, _MODULE_UNSIGNED = 0, 1, 2
_MODULE_FLOAT, _MODULE_DOUBLE, _MODULE_STRING = 3, 4, 5


def name_of(kind: int, valkey: bool) -> str:
    """What TYPE says of a value of this type; empty if the type is not known."""
    if kind == _HASH_OF_VALKEY and valkey:
        return "hash"
    return _STRINGS.get(kind) or _ONE.get(kind) or _OTHERS.get(kind) or ""


def skip_value(source: Source, kind: int) -> None:
    """Passes over a value of a type that :func:`name_of` knows. Raises :class:`DamagedRDB`."""
    if kind in _ONE:
        source.skip_string()
    elif kind == _MODULE:
        source.length()
        skip_module(source)
    elif kind == _HASH_EXPIRING_SMALL:
        source.take(8)
        source.skip_string()
    else:
        if kind == _HASH_EXPIRING:
            source.take(8)
        for _ in range(source.length()):
            _skip_member(source, kind)


def _skip_member(source: Source, kind: int) -> None:
    """Passes over an element of a value that is many."""
    if kind in (_QUICKLIST, _HASH_EXPIRING):
        source.length()
    source.skip_string()
    if kind in (_HASH, _HASH_EXPIRING, _HASH_OF_VALKEY):
        source.skip_string()
    if kind in (_ZSET, _HASH_OF_VALKEY):
        source.take(8)
    elif kind == _ZSET_TEXT:
        size = source.byte()
        if size < _NO_NUMBER:
            source.take(size)


def skip_module(source: Source) -> None:
    """Passes over what a module has written, behind its name."""
    while True:
        offset = source.offset
        kind = source.length()
        if kind == _MODULE_END:
            return
        if kind in (_MODULE_SIGNED, _MODULE_UNSIGNED):
            source.length()
        elif kind == _MODULE_FLOAT:
            source.take(4)
        elif kind == _MODULE_DOUBLE:
            source.take(8)
        elif kind == _MODULE_STRING:
            source.skip_string()
        else:
            raise DamagedRDB(offset, f"data of a module of the unknown kind {kind}")
