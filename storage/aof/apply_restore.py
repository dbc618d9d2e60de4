# Compiled by mypyc.
"""RESTORE in an append-only file: Redis writes it for keys that a client restored or moved here."""

from __future__ import annotations

from storage.aof.errors import LoadError
from storage.aof.lookup import integer, shown
from storage.engine.stream import Stream
from storage.keyspace.databases import Database
from storage.rdb.read import OtherType, WrongFooter, restore
from storage.rdb.source import DamagedRDB

_VALUED = (b"IDLETIME", b"FREQ")


def restore_stream(db: Database, args: list[bytes]) -> bool:
    """Puts the stream of a payload at its key; false, and nothing is done, if it is a string, or if
    its time to live is not a time.

    Raises :class:`LoadError`, or :class:`ValueError` and :class:`IndexError` for arguments that
    cannot be right.
    """
    key, at, payload = args[1], integer(args[2]), args[3]
    options = _options(args)
    if at and b"ABSTTL" not in options:
        return False
    try:
        value = restore(payload, db.keyspace.limits)
    except WrongFooter:
        raise LoadError("the version or the checksum of the payload is wrong") from None
    except OtherType as other:
        raise LoadError(f"a {other.kind}, where Penstock holds streams and strings") from None
    except DamagedRDB as error:
        raise LoadError(f"the payload is damaged {error}") from None
    if not isinstance(value, Stream):
        return False
    if key in db.values:
        if b"REPLACE" not in options:
            raise LoadError(f"the key {shown(key)} is there already")
        db.unload(key)
    db.load(key, value, at or None)
    return True


def _options(args: list[bytes]) -> set[bytes]:
    """The options that have no value."""
    found: set[bytes] = set()
    at = 4
    while at < len(args):
        word = args[at].upper()
        if word in _VALUED:
            integer(args[at + 1])
            at += 1
        elif word in (b"REPLACE", b"ABSTTL"):
            found.add(word)
        else:
            raise ValueError("an unknown option")
        at += 1
    return found
