# Compiled by mypyc.
"""XREAD: reading on from places in one or several streams, and waiting for more."""

from __future__ import annotations

from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.commands.streams.entries import Entries, Served, by_stream, held_range, in_portions
from server.commands.streams.read_options import Budget, ReadOptions, keys_to_read
from server.road.outcomes import Steps, Wait
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.services import Services
from storage.engine import ids
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

LAST: Final = -1
"""In place of an ID: just below the last entry (``+``)."""


def _places(db: Database, options: ReadOptions) -> list[int]:
    """After which ID to read each stream, or :data:`LAST`."""
    places: list[int] = []
    for key, text in zip(options.keys, options.places, strict=True):
        stream = db.stream_to_read(key)
        if text == b"$":
            places.append(ids.MIN if stream is None else stream.last_id)
        elif text == b"+":
            places.append(LAST)
        elif text == b">":
            raise CommandError(stream_errors.NEW_ID_OUTSIDE_GROUP)
        else:
            places.append(ids.parse(text))
    return places


def _read(db: Database, options: ReadOptions, places: list[int]) -> Served:
    budget = Budget(options)
    served: Served = []
    for key, place in zip(options.keys, places, strict=True):
        stream = db.stream(key)
        if stream is None or not stream.log.length or place >= stream.log.last:
            continue
        start = stream.log.last if place == LAST else place + 1
        entries = _entries_from(stream, start, options.count, budget)
        if entries[0]:
            served.append((key, entries))
    return served


def _entries_from(stream: Stream, start: int, count: int, budget: Budget) -> Entries:
    """Up to ``count`` entries from ``start`` on; there may be no room for any in the budget."""
    if budget.unlimited:
        return held_range(stream, start, ids.MAX, count)
    payloads = stream.log.range(start, ids.MAX, min(count, budget.entries))
    payloads = payloads[: budget.cut(payloads)]
    return len(payloads), in_portions(payloads)


def _keys(args: Arguments) -> list[bytes] | None:
    return keys_to_read(args, grouped=False)


@command(
    "XREAD",
    flags="readonly blocking movablekeys",
    since="5.0.0",
    summary="Reads entries above given IDs from one or several streams, waiting if there are none.",
    complexity="",
    syntax="[COUNT count] [MAXCOUNT maxcount] [MAXSIZE bytes] [BLOCK milliseconds]"
    " STREAMS key [key ...] id [id ...]",
    keys=[KeySpec("RO access", keyword="STREAMS", last=-1, limit=2, find=_keys)],
)
def xread(server: Services, session: Session, args: Arguments) -> Reply | Wait | Steps:
    """XREAD [COUNT n] [BLOCK ms] STREAMS key ... id ...: entries by stream, or null."""
    options = ReadOptions(args, grouped=False)
    db = session.db
    deadline = options.deadline(db.keyspace.now_ms)
    places = _places(db, options)

    def read() -> Reply | Wait | Steps:
        served = _read(db, options, places)
        if served or options.block is None:
            return by_stream(served, session.resp3)
        return Wait(options.keys, deadline, read, needs_key=False)

    return read()
