"""Copies of all data, kept in memory and put back: for tests that begin from the same state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from storage.engine.effects import GENERIC, Events
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace
from storage.types.collection import Collection, Words
from storage.types.kinds import Value, kind_of

RESTORED: Final[Events] = ((GENERIC, "restore"),)


class Kept(NamedTuple):
    """A copy of what was at a key. ``value`` is nobody else's, and never changes."""

    value: Value
    expires_at: int | None
    used: int
    encoding: str | None


Copy = list[dict[bytes, Kept]]
"""What was in each database, in their order."""


def copy_of(keyspace: Keyspace) -> Copy:
    """A copy of all databases as they are. Libraries of functions are not in it."""
    return [_kept(database) for database in keyspace.databases]


def _kept(database: Database) -> dict[bytes, Kept]:
    return {
        key: Kept(
            kind_of(value).copy(value),
            database.expires.get(key),
            database.used_at(key),
            database.encodings.get(key),
        )
        for key, value in database.values.items()
    }


def put_back(keyspace: Keyspace, copy: Copy) -> None:
    """Puts what was copied in place of everything there is, but for keys that have expired since.

    The copy is as it was, and can be put back again."""
    for database in keyspace.databases:
        database.flush()
    for database, kept in zip(keyspace.databases, copy, strict=True):
        for key, each in kept.items():
            if each.expires_at is None or not keyspace.is_due(each.expires_at):
                _put(database, key, each)


def _put(database: Database, key: bytes, kept: Kept) -> None:
    value, at = kept.value, kept.expires_at
    if isinstance(value, Stream):
        database.put_back(key, value, at)
    elif isinstance(value, Collection):
        database.put(key, value.copy(), again(key, value, at), RESTORED, at)
    else:
        database.set_string(key, bytes(value), at, "restore", kept.encoding)
    database.used[key] = kept.used


def again(key: bytes, value: Collection, expires_at: int | None) -> Iterator[Words]:
    """Yield the commands that make a collection anew at a free key, with its expiry."""
    yield from value.words(key)
    if expires_at is not None:
        yield (b"PEXPIREAT", key, b"%d" % expires_at)
