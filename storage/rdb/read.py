# Compiled by mypyc.
"""RDB files, read item by item: keys with their values, and libraries of functions.

Keys of types that Penstock does not hold come without a value, so that they can be named. The
caller decides what becomes of them, and keeps nothing if :class:`DamagedRDB` is raised later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from storage.engine.limits import StreamLimits
from storage.rdb import codes
from storage.rdb.decode import read_stream
from storage.rdb.errors import DamagedRDB
from storage.rdb.skip import name_of, skip_module, skip_value
from storage.rdb.source import Source
from storage.types.kinds import Value

_MAGIC: Final = 9
"""Bytes of the name of the format with its version."""
_MODULE_WHEN: Final = 2


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


class Library(NamedTuple):
    """The code of a library of functions."""

    code: bytes


class Aux(NamedTuple):
    """What a file says of itself."""

    name: bytes
    value: bytes


Item = Key | Library | Aux


def is_rdb(beginning: bytes) -> bool:
    """Whether a file that begins like this is an RDB file."""
    return beginning.startswith((b"REDIS", b"VALKEY"))


def read_rdb(source: Source, limits: StreamLimits) -> Iterator[Item]:
    """What is in a file, in its order; what is behind the file's end is left in the source.

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
                yield Library(source.string())
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
        """What a module has written outside of keys: its name, when to load it, its data."""
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


def type_name(kind: int, valkey: bool = False) -> str:
    """What TYPE says of a value of this type; empty if the type is not known."""
    if kind == codes.STRING:
        return "string"
    return "stream" if kind in codes.STREAMS else name_of(kind, valkey)


def read_value(source: Source, kind: int, limits: StreamLimits) -> Value | None:
    """A value of a known type; ``None`` for one that Penstock does not hold, which is passed over.

    Raises :class:`DamagedRDB`."""
    if kind == codes.STRING:
        return source.string()
    if kind in codes.STREAMS:
        return read_stream(source, kind, limits)
    skip_value(source, kind)
    return None
