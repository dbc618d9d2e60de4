"""Hashes, lists, sets and sorted sets from the types of values that Redis and Valkey write.

They are made in steps, as each may have millions of elements.

Whatever is stored in a packed form becomes texts first (:mod:`storage.rdb.packed`). A value that
could not be, one without elements or with one of them twice, has :class:`DamagedRDB` raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import inf, nan
from struct import unpack
from typing import Final

from storage.engine.limits import StreamLimits
from storage.errors import BadBytes
from storage.rdb import codes
from storage.rdb.packed import intset_texts, listpack_texts, ziplist_texts, zipmap_texts
from storage.rdb.source import DamagedRDB, Source
from storage.steps import STEP, InSteps
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

Unpacking = Callable[[bytes], Iterator[bytes]]
"""Yields the elements in a packed string; raises :class:`BadBytes`."""

_PLAIN_NODE: Final = 1
"""What stands before a node of a list that is one element and not packed."""

_PACKED: Final[dict[int, Unpacking]] = {
    codes.LIST_ZIPLIST: ziplist_texts,
    codes.SET_INTSET: intset_texts,
    codes.SET_LISTPACK: listpack_texts,
    codes.ZSET_ZIPLIST: ziplist_texts,
    codes.ZSET_LISTPACK: listpack_texts,
    codes.HASH_ZIPMAP: zipmap_texts,
    codes.HASH_ZIPLIST: ziplist_texts,
    codes.HASH_LISTPACK: listpack_texts,
}
"""What unpacks the types that are one packed string."""


def _texts(source: Source, kind: int, each: int) -> Iterator[bytes]:
    """Yield the elements of a value in turn, each of which consists of so many strings."""
    unpack = _PACKED.get(kind)
    if unpack is not None:
        yield from _unpacked(source, unpack)
        return
    for _ in range(each * source.length()):
        yield source.string()


def _unpacked(source: Source, unpack: Unpacking) -> Iterator[bytes]:
    """Yield the elements in a packed string."""
    offset = source.offset
    data = source.string()
    try:
        yield from unpack(data)
    except BadBytes as error:
        raise DamagedRDB(offset, error.reason) from None
    except IndexError:
        raise DamagedRDB(offset, "a packed value ends early") from None


def _filled(value: Collection, count: int, offset: int) -> None:
    """Raise :class:`DamagedRDB` unless the value has so many elements, and there is one."""
    if not count or len(value) != count:
        raise DamagedRDB(offset, f"a value of {count} elements of which {len(value)} differ")


def read_list(source: Source, kind: int, limits: StreamLimits) -> InSteps[ListValue]:
    """The list that is stored as this type. Raises :class:`DamagedRDB`."""
    offset = source.offset
    value = ListValue(limits.collections)
    in_nodes = kind in (codes.LIST_ZIPLISTS, codes.LIST_NODES)
    elements = _nodes(source, kind) if in_nodes else _texts(source, kind, 1)
    while some := list(islice(elements, STEP)):
        value.push(some, left=False)
        yield
    _filled(value, len(value), offset)
    return value


def _nodes(source: Source, kind: int) -> Iterator[bytes]:
    """Yield the elements of a list that is stored as packed nodes."""
    for _ in range(source.length()):
        if kind == codes.LIST_ZIPLISTS:
            yield from _unpacked(source, ziplist_texts)
        elif source.length() == _PLAIN_NODE:
            yield source.string()
        else:
            yield from _unpacked(source, listpack_texts)


def read_set(source: Source, kind: int, limits: StreamLimits) -> InSteps[SetValue]:
    """The set that is stored as this type. Raises :class:`DamagedRDB`."""
    offset = source.offset
    value = SetValue(limits.collections)
    count = 0
    for member in _texts(source, kind, 1):
        value.add(member)
        count += 1
        if count % STEP == 0:
            yield
    _filled(value, count, offset)
    return value


_SPECIAL: Final = {253: nan, 254: inf, 255: -inf}
"""The scores that stand in place of the length of a text."""


def read_sorted_set(source: Source, kind: int, limits: StreamLimits) -> InSteps[SortedSet]:
    """The sorted set that is stored as this type. Raises :class:`DamagedRDB`."""
    offset = source.offset
    value = SortedSet(limits.collections)
    scores: dict[bytes, float] = {}
    count = 0
    try:
        for member, score in _SCORED.get(kind, _scored_in_pack)(source, kind):
            if score != score:
                raise DamagedRDB(offset, "a score that is not a number")
            scores[member] = score
            count += 1
            if count % STEP == 0:
                yield
    except ValueError:
        raise DamagedRDB(offset, "a member without a score that is a number") from None
    yield from value.filling(scores.keys(), scores.values())
    _filled(value, count, offset)
    return value


Scored = Iterator[tuple[bytes, float]]
"""Members with their scores. Raises :class:`ValueError` for a score that is no number."""


def _scored(source: Source, kind: int) -> Scored:
    for _ in range(source.length()):
        member = source.string()
        yield member, unpack("<d", source.take(8))[0]


def _scored_in_text(source: Source, kind: int) -> Scored:
    for _ in range(source.length()):
        member = source.string()
        size = source.byte()
        yield member, _SPECIAL[size] if size in _SPECIAL else float(source.take(size))


def _scored_in_pack(source: Source, kind: int) -> Scored:
    texts = _texts(source, kind, 2)
    for member in texts:
        yield member, float(next(texts, b""))


_SCORED: Final[dict[int, Callable[[Source, int], Scored]]] = {
    codes.ZSET: _scored,
    codes.ZSET_TEXT: _scored_in_text,
}
"""What reads the types of sorted sets that are not packed."""


def read_hash(source: Source, kind: int, limits: StreamLimits) -> InSteps[Hash]:
    """The hash that is stored as this type. Raises :class:`DamagedRDB`."""
    offset = source.offset
    value = Hash(limits.collections)
    count = 0
    for field, text, at in _FIELDS.get(kind, _fields)(source, kind):
        value.set(field, text)
        if at > 0:
            value.expire_at(field, at)
        count += 1
        if count % STEP == 0:
            yield
    _filled(value, count, offset)
    return value


Fields = Iterator[tuple[bytes, bytes, int]]
"""Fields with their values and the times at which they expire; 0 or less for never."""


def _fields(source: Source, kind: int) -> Fields:
    """The fields of a hash of which none expires."""
    offset = source.offset
    texts = _texts(source, kind, 2)
    for field in texts:
        text = next(texts, None)
        if text is None:
            raise DamagedRDB(offset, "a field of a hash without its value")
        yield field, text, 0


def _expiring_fields(source: Source, kind: int) -> Fields:
    """Times count from the first of them, which stands before all fields; a 0 is for never."""
    first = source.signed()
    for _ in range(source.length()):
        since = source.length()
        field = source.string()
        yield field, source.string(), first + since - 1 if since else 0


def _expiring_fields_in_listpack(source: Source, kind: int) -> Fields:
    """Behind the first time, a listpack of fields, values and times."""
    source.signed()
    offset = source.offset
    texts = list(_texts(source, codes.HASH_LISTPACK, 1))
    try:
        for at in range(0, len(texts), 3):
            yield texts[at], texts[at + 1], int(texts[at + 2])
    except (IndexError, ValueError):
        raise DamagedRDB(offset, "a field of a hash without its value or time") from None


def _fields_of_valkey(source: Source, kind: int) -> Fields:
    """Each field has its time behind its value."""
    for _ in range(source.length()):
        field = source.string()
        text = source.string()
        yield field, text, source.signed()


_FIELDS: Final[dict[int, Callable[[Source, int], Fields]]] = {
    codes.HASH_EXPIRING: _expiring_fields,
    codes.HASH_EXPIRING_LISTPACK: _expiring_fields_in_listpack,
    codes.HASH_EXPIRING_VALKEY: _fields_of_valkey,
}
"""What reads the types of hashes of which fields expire."""
