"""Reading RDB: files item by item, keys with their values and libraries of functions; payloads.

Keys of types that Penstock does not hold come without a value, so that they can be named. The
caller decides what becomes of them, and keeps nothing if :class:`DamagedRDB` is raised later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from storage.checksums import crc64
from storage.engine.limits import StreamLimits
from storage.rdb import codes
from storage.rdb.decode import read_stream
from storage.rdb.read_collections import read_hash, read_list, read_set, read_sorted_set
from storage.rdb.source import DamagedRDB, Source
from storage.steps import InSteps, result
from storage.types.kinds import Value

_MAGIC: Final = 9
"""Bytes of the name of the format with its version."""
_MODULE_WHEN: Final = 2
_SUM: Final = 8
_FOOTER: Final = 2 + _SUM
"""Bytes behind the value of a payload: the version and the checksum."""


# --- files -----------------------------------------------------------------------------------


class Key(NamedTuple):
    """A key of a database. ``kind`` is what TYPE says; ``value`` is ``None`` for what Penstock does
    not hold. ``expires_at`` is in Unix milliseconds, ``idle`` in seconds; ``frequency`` is that of
    the policies LFU."""

    db: int
    key: bytes
    kind: str
    value: Value | None
    expires_at: int | None
    idle: int | None
    frequency: int | None


class LibraryCode(NamedTuple):
    """The code of a library of functions."""

    code: bytes


class Aux(NamedTuple):
    """A name and a value that a file says of itself."""

    name: bytes
    value: bytes


Item = Key | LibraryCode | Aux


def is_rdb(beginning: bytes) -> bool:
    """Whether a file that begins like this is an RDB file."""
    return beginning.startswith((b"REDIS", b"VALKEY"))


def read_rdb(source: Source, limits: StreamLimits) -> Iterator[Item]:
    """Yield what is in a file, in its order; what is behind the file's end is left in the source.

    Raises :class:`DamagedRDB` as soon as something does not fit, in the end for the checksum, too.
    """
    return _Reader(source, limits).items()


class _Reader:
    """Reads a file. Whatever stands before a key, as its expiry, is kept until the key comes."""

    __slots__ = ("_db", "_expires_at", "_frequency", "_idle", "_limits", "_source", "_valkey")

    def __init__(self, source: Source, limits: StreamLimits) -> None:
        self._source = source
        self._limits = limits
        self._valkey = False
        self._db = 0
        self._clear()

    def _clear(self) -> None:
        self._expires_at: int | None = None
        self._idle: int | None = None
        self._frequency: int | None = None

    def items(self) -> Iterator[Item]:
        """All items."""
        self._begin()
        source = self._source
        while True:
            offset = source.offset
            code = source.byte()
            if code == codes.END:
                break
            if code == codes.AUX:
                name = source.string()
                yield Aux(name, source.string())
            elif code == codes.FUNCTION:
                yield LibraryCode(source.string())
            elif not self._takes(code):
                yield self._key(code, offset)
        self._verify()

    def _begin(self) -> None:
        magic = self._source.take(_MAGIC)
        for name, oldest, newest in (
            (b"REDIS", codes.OLDEST, codes.NEWEST),
            (b"VALKEY", codes.VALKEY, codes.VALKEY),
        ):
            digits = magic[len(name) :]
            if magic.startswith(name) and digits.isdigit():
                version = int(digits)
                if not oldest <= version <= newest:
                    known = f"{oldest} to {newest}" if oldest < newest else f"{newest}"
                    raise DamagedRDB(len(name), f"version {version}, where {known} is known")
                self._valkey = version == codes.VALKEY
                return
        raise DamagedRDB(0, "this is no RDB file: it does not begin with REDIS or VALKEY")

    def _takes(self, code: int) -> bool:
        """Whether this is not the type of a key's value; what follows has been read then."""
        source = self._source
        if code == codes.EXPIRES_MS:
            self._expires_at = source.signed()
        elif code == codes.EXPIRES_S:
            self._expires_at = 1000 * source.signed(4)
        elif code == codes.IDLE:
            self._idle = source.length()
        elif code == codes.FREQUENCY:
            self._frequency = source.byte()
        elif code == codes.SELECT:
            self._db = source.length()
        elif code == codes.RESIZE:
            source.length()
            source.length()
        elif code == codes.SLOT_INFO:
            for _ in range(3):
                source.length()
        elif code == codes.MODULE_AUX:
            self._skip_aux()
        else:
            return False
        return True

    def _skip_aux(self) -> None:
        """Pass over what a module has written outside of keys: its name, when to load it, its
        data."""
        source = self._source
        source.length()
        offset = source.offset
        if source.length() != _MODULE_WHEN:
            raise DamagedRDB(offset, "data of a module that do not say when to load them")
        source.length()
        skip_module(source)

    def _key(self, kind: int, offset: int) -> Key:
        source = self._source
        name = type_name(kind, self._valkey)
        if not name:
            raise DamagedRDB(offset, f"a value of the unknown type {kind}")
        key = source.string()
        value = read_value(source, kind, self._limits)
        found = Key(self._db, key, name, value, self._expires_at, self._idle, self._frequency)
        self._clear()
        return found

    def _verify(self) -> None:
        """Compares the checksum, which is 0 where the server was told to write none."""
        source = self._source
        offset = source.offset
        found = source.checksum()
        told = source.unsigned()
        if told not in (0, found):
            raise DamagedRDB(offset, f"the checksum is {told:016x}, that of the data {found:016x}")


def read_value(source: Source, kind: int, limits: StreamLimits) -> Value | None:
    """A value of a known type; ``None`` for one that Penstock does not hold, which is passed over.

    Raises :class:`DamagedRDB`."""
    if kind == codes.STRING:
        return source.string()
    if kind == _MODULE:
        source.length()
        skip_module(source)
        return None
    return result(_READERS[kind](source, kind, limits))


_READERS: Final[dict[int, Callable[[Source, int, StreamLimits], InSteps[Value]]]] = {
    **dict.fromkeys(codes.STREAMS, read_stream),
    **dict.fromkeys(codes.LISTS, read_list),
    **dict.fromkeys(codes.SETS, read_set),
    **dict.fromkeys(codes.ZSETS, read_sorted_set),
    **dict.fromkeys(codes.HASHES, read_hash),
}
"""What reads the types of values that Penstock holds, beside strings."""


# --- payloads --------------------------------------------------------------------------------


class WrongFooter(Exception):
    """The version of a payload is not known, or its checksum is not right."""


class OtherType(Exception):
    """The payload holds a value of a type that Penstock does not have, which ``kind`` names."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def verify(payload: bytes) -> int:
    """The version of a payload. Raises :class:`WrongFooter`."""
    if len(payload) < _FOOTER:
        raise WrongFooter
    version = int.from_bytes(payload[-_FOOTER:-_SUM], "little")
    if version > codes.NEWEST and version != codes.VALKEY:
        raise WrongFooter
    if crc64(payload[:-_SUM]) != int.from_bytes(payload[-_SUM:], "little"):
        raise WrongFooter
    return version


def restore(payload: bytes, limits: StreamLimits) -> Value:
    """The value in a payload. Raises :class:`WrongFooter`, :class:`OtherType`, or
    :class:`DamagedRDB`."""
    return result(restoring(payload, limits))


def restoring(payload: bytes, limits: StreamLimits) -> InSteps[Value]:
    """Do the same in steps."""
    valkey = verify(payload) == codes.VALKEY
    source = Source([payload[:-_FOOTER]])
    kind = source.byte()
    name = type_name(kind, valkey)
    if not name:
        raise DamagedRDB(0, f"a value of the unknown type {kind}")
    value: Value | None
    if kind in _READERS:
        value = yield from _READERS[kind](source, kind, limits)
    else:
        value = read_value(source, kind, limits)
    if not source.is_at_end():
        raise DamagedRDB(source.offset, "there is more than one value")
    if value is None:
        raise OtherType(name)
    return value


def restore_libraries(payload: bytes) -> list[bytes]:
    """Return the code of each library in a payload of FUNCTION DUMP. Raises :class:`WrongFooter`,
    :class:`OtherType` if there is something else in it, or :class:`DamagedRDB`."""
    if verify(payload) > codes.NEWEST:
        raise WrongFooter
    source = Source([payload[:-_FOOTER]])
    found: list[bytes] = []
    while not source.is_at_end():
        if source.byte() != codes.FUNCTION:
            raise OtherType("value")
        found.append(source.string())
    return found


# --- values of other types -------------------------------------------------------------------

_MODULE: Final = 7

_NAMES: Final = {
    codes.STRING: "string",
    **dict.fromkeys(codes.STREAMS, "stream"),
    **dict.fromkeys(codes.LISTS, "list"),
    **dict.fromkeys(codes.SETS, "set"),
    **dict.fromkeys(codes.HASHES, "hash"),
    **dict.fromkeys(codes.ZSETS, "zset"),
    _MODULE: "module",
}
"""What TYPE says of each type."""

_MODULE_END, _MODULE_SIGNED, _MODULE_UNSIGNED = 0, 1, 2
_MODULE_FLOAT, _MODULE_DOUBLE, _MODULE_STRING = 3, 4, 5


def type_name(kind: int, valkey: bool) -> str:
    """Return what TYPE says of a value of this type; empty if the type is not known."""
    of_valkey = kind == codes.HASH_EXPIRING_VALKEY
    return "" if of_valkey and not valkey else _NAMES.get(kind, "")


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
