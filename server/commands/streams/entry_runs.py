# Compiled by mypyc.
"""XADDs that follow each other, added at once: where that can be, and how a transaction does it.

Entries that go to one stream, each with as many fields, are one :class:`~storage.engine.runs.Run`:
they share a lookup, an effect and a piece of the append-only file. The fast path of a pipeline
(:mod:`server.net.adding`) makes runs of the bytes that a client sent; a transaction makes them of
requests that were queued."""

from __future__ import annotations

import time
from typing import Final

from server.road.reasons import EACH, LIMITED
from server.road.session import Session
from server.road.table import Arguments, Command
from server.services import Services
from storage.engine import ids
from storage.engine.effects import EntriesAdded
from storage.engine.entries import pack
from storage.engine.runs import Run
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

LONGEST_RUN: Final = 2**30
"""How many entries a run has at most."""
_NEARLY_EXHAUSTED: Final = ids.MAX - LONGEST_RUN

Queue = list[tuple[Command, Arguments]]

_now_ns = time.perf_counter_ns


def open_stream(db: Database, key: bytes, now_ms: int) -> Stream | None:
    """The stream to which a run may be added now, which counts as a use of it; ``None`` if each
    entry needs a look of its own, because the stream is not there or its IDs may run out."""
    stream = db.values.get(key)
    if type(stream) is not Stream or stream.last_id > _NEARLY_EXHAUSTED:
        return None
    if db.expires and db.expires.get(key, now_ms + 1) <= now_ms:
        return None
    db.used[key] = now_ms
    return stream


def _is_possible(server: Services, session: Session, command: Command, args: Arguments) -> bool:
    """Whether nobody looks at each command of the client, or at what each of them changes, and its
    user may run this one, and so all that add to the same key."""
    why = server.state.reasons | session.reasons
    return not why & EACH and (not why & LIMITED or session.account.permits(command, args))


def add_queued(server: Services, session: Session, queue: Queue, at: int) -> list[bytes] | None:
    """Runs the XADDs of a transaction that stand at ``at`` and belong to one run; returns their
    replies. ``None`` if there are not at least two, or they have to run one by one."""
    command, args = queue[at]
    words = len(args)
    if words % 2 == 0 or args[2] != b"*" or at + 1 == len(queue):
        return None
    key = args[1]
    if not _belongs(queue[at + 1], command, words, key):
        return None
    # A command of the transaction may have changed that.
    if not _is_possible(server, session, command, args):
        return None
    db = session.db
    started = _now_ns()
    stream = open_stream(db, key, db.keyspace.now_ms)
    if stream is None:
        return None
    names: list[bytes] | None = args[3::2]
    head = len(b"*%d\r\n" % (words - 3))
    pieces: list[bytes] = []
    end = at
    while end < len(queue) and _belongs(queue[end], command, words, key):
        items = queue[end][1][3:]
        if items[::2] != names:
            names = None
        pieces.append(pack(tuple(items))[head:])
        end += 1
    run = Run(stream.next_id(db.keyspace.now_ms), words // 2 - 1, names, pieces)
    stream.add_run(run)
    db.emit(EntriesAdded(db.index, key, run, True))
    server.reactions.apply(session)
    timings = server.state.timings
    mean = timings.count_run(command, end - at, _now_ns() - started)
    if mean >= timings.threshold:
        for _, args in queue[at:end]:
            timings.notice(session, command, args, mean)
    return run.texts


def _belongs(queued: tuple[Command, Arguments], command: Command, words: int, key: bytes) -> bool:
    other, args = queued
    return other is command and len(args) == words and args[1] == key and args[2] == b"*"
