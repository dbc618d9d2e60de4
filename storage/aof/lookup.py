# Compiled by mypyc.
"""Looks up what the arguments of a command in an append-only file refer to."""

from __future__ import annotations

from storage.aof.errors import LoadError
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database


def stream_at(db: Database, key: bytes) -> Stream:
    """The stream at a key; raises :class:`LoadError` if there is none."""
    value = db.values.get(key)
    if type(value) is not Stream:
        raise LoadError(f"there is no stream at the key {shown(key)}")
    return value


def group_at(db: Database, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """A stream and one of its groups; raises :class:`LoadError` if there is none."""
    stream = stream_at(db, key)
    group = stream.groups.get(name)
    if group is None:
        raise LoadError(f"the stream {shown(key)} has no consumer group {shown(name)}")
    return stream, group


def integer(text: bytes) -> int:
    """The integer that an argument spells; raises :class:`ValueError`."""
    if not text.removeprefix(b"-").isdigit():
        raise ValueError("not an integer")
    return int(text)


def shown(text: bytes) -> str:
    """An argument as messages show it, in one line, cut short if it is long."""
    readable = "".join(
        chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in text[:_LONGEST]
    )
    return f"'{readable}{'...' if len(text) > _LONGEST else ''}'"


_LONGEST = 64
