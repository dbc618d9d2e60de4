# Compiled by mypyc.
"""A keyspace as an RDB file, for servers that replicate it and for SAVE.

What the format has no place for is left out: idempotent IDs with their retention, where blocks had
entries that are deleted, and, for Redis 7.0, active-times of consumers. Pending entries that XNACK
has released are pending for the consumer ``""`` since 1970, as in the append-only file for other
servers. The keyspace must not change while it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from storage.checksums import crc64
from storage.keyspace.databases import Database, Keyspace
from storage.rdb import codes
from storage.rdb.encode import (
    length,
    milliseconds,
    needed_version,
    raw,
    string,
    value_pieces,
    value_type,
)

CHUNK: Final = 64 * 1024
"""How many bytes a chunk has at least, but for the last one."""


def write_rdb(
    keyspace: Keyspace,
    *,
    version: int,
    aux: Iterable[tuple[bytes, bytes]] = (),
    libraries: bool = True,
    keys: bool = True,
) -> Iterator[bytes]:
    """The contents of an RDB file, in chunks.

    ``version`` is :data:`codes.REDIS_7_0`, :data:`codes.REDIS_7_2`, or :data:`codes.VALKEY`, which
    differs from the second only in how strings of 16378, 2097146 and 268435450 bytes are stored:
    Valkey 9 reads no such entries from Redis's files, and Redis none from Valkey's. ``aux`` are
    names and values for its beginning, which say who has written it (``redis-ver``...).
    ``libraries`` of functions and ``keys`` may be left out."""
    parts: list[bytes] = []
    size = checksum = 0
    pieces = chain(
        _beginning(version, aux),
        _libraries(keyspace) if libraries else (),
        _keys(keyspace, version) if keys else (),
        (bytes((codes.END,)),),
    )
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= CHUNK:
            chunk = b"".join(parts)
            checksum = crc64(chunk, checksum)
            yield chunk
            parts.clear()
            size = 0
    chunk = b"".join(parts)
    yield chunk + crc64(chunk, checksum).to_bytes(8, "little")


def version_for(keyspace: Keyspace) -> int:
    """The oldest version that holds all of the keyspace that any version holds."""
    versions = [codes.REDIS_7_0]
    for database in keyspace.databases:
        versions += map(needed_version, database.values.values())
    return max(versions)


def _beginning(version: int, aux: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    yield b"VALKEY%03d" % version if version == codes.VALKEY else b"REDIS%04d" % version
    for name, value in aux:
        yield bytes((codes.AUX,)) + raw(name) + string(value)


def _libraries(keyspace: Keyspace) -> Iterator[bytes]:
    for code in keyspace.libraries.values():
        yield bytes((codes.FUNCTION,)) + raw(code)


def _keys(keyspace: Keyspace, version: int) -> Iterator[bytes]:
    for database in keyspace.databases:
        if database.values:
            yield from _database(database, version)


def _database(database: Database, version: int) -> Iterator[bytes]:
    yield bytes((codes.SELECT,)) + length(database.index)
    sizes = length(len(database.values)) + length(len(database.expires))
    yield bytes((codes.RESIZE,)) + sizes
    for key, value in database.values.items():
        at = database.expires.get(key)
        if at is not None:
            yield bytes((codes.EXPIRES_MS,)) + milliseconds(at)
        yield bytes((value_type(value, version),)) + string(key)
        yield from value_pieces(value, version)
