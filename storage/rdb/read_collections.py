"""Hashes, lists, sets and sorted sets from the types of values that Redis and Valkey write.

Whatever is stored in a packed form becomes texts first (:mod:`storage.rdb.packed`). A value that
could not be, one without elements or with one of them twice, has :class:`DamagedRDB` raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from storage.engine.limits import StreamLimits
from storage.errors import BadBytes
from storage.rdb import codes
from storage.rdb.packed import listpack_texts, ziplist_texts, zipmap_texts
from storage.rdb.source import DamagedRDB, Source
from storage.types.collection import Collection
from storage.types.hash import Hash

_PACKED: Final[dict[int, Callable[[bytes], Iterator[bytes]]]] = {
    codes.HASH_ZIPMAP: zipmap_texts,
    codes.HASH_ZIPLIST: ziplist_texts,
    codes.HASH_LISTPACK: listpack_texts,
}
"""What unpacks the types that are one packed string."""


def _texts(source: Source, kind: int, each: int) -> Iterator[bytes]:
    """Yield the elements of a value in turn, each of which consists of so many strings."""
    unpack = _PACKED.get(kind)
    if unpack is None:
        for _ in range(each * source.length()):
            yield source.string()
        return
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


def read_hash(source: Source, kind: int, limits: StreamLimits) -> Hash:
    """The hash that is stored as this type. Raises :class:`DamagedRDB`."""
    offset = source.offset
    value = Hash(limits.collections)
    texts = _texts(source, kind, 2)
    count = 0
    for field in texts:
        text = next(texts, None)
        if text is None:
            raise DamagedRDB(offset, "a field of a hash without its value")
        value.set(field, text)
        count += 1
    _filled(value, count, offset)
    return value
