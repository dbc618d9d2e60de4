# Compiled by mypyc.
"""Trimming a stream, and what becomes of the references to what goes."""

from __future__ import annotations

from storage.engine.effects import Acknowledged, EntriesDeleted, StreamTrimmed
from storage.engine.stream import Stream
from storage.engine.trimming import Trim, trim
from storage.keyspace.databases import Database


def trim_key(db: Database, key: bytes, stream: Stream, order: Trim) -> int:
    """Trims the stream at ``key``; returns how many entries were removed."""
    if order.by_length and stream.log.length <= order.threshold:
        return 0
    done = trim(stream, order)
    if done.holes:
        db.emit(EntriesDeleted(db.index, key, tuple(done.holes), True))
    elif done.removed:
        log = stream.log
        db.emit(StreamTrimmed(db.index, key, done.removed, log.length, log.first))
    acknowledge_everywhere(db, key, done.references)
    return done.removed


def acknowledge_everywhere(db: Database, key: bytes, references: dict[bytes, list[int]]) -> None:
    """Tells of references that went from the pending entries lists of groups."""
    for group, gone in references.items():
        db.emit(Acknowledged(db.index, key, group, tuple(gone)))
