"""Entries that go by themselves: for their age, their size, or as every group has acknowledged
them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from server.config.policies import StreamRules
from storage.engine import ids
from storage.engine.effects import EntriesDeleted, EntryAdded, StreamTrimmed
from storage.engine.stream import Stream
from storage.engine.trimming import ACKED, KEEPREF, Trim, trim
from storage.keyspace.databases import Database

NEVER: Final = 2**62
"""A time that does not come."""

AGE_STEP_MS: Final = 10
"""Entries go for their age at such intervals at most."""

LONGEST_STEP_MS: Final = 1000
"""Where entries are kept for a group the intervals double, up to this one."""

PENDING_PER_MS: Final = 1000
"""So many pending entries put off by a millisecond what follows from an acknowledgement."""

SIZE_STEP_MS: Final = 100
"""Entries go for their size at such intervals: each takes a look at every block."""


class Tally:
    """Counts since the start of the server, or since CONFIG RESETSTAT."""

    def __init__(self) -> None:
        self.reset()

    def counts(self) -> dict[str, int]:
        """Each count under the name that metrics have for it."""
        return {
            "dead_letters": self.dead_letters,
            "redelivered": self.redelivered,
            "consumers_removed": self.consumers_removed,
            "trimmed": self.trimmed,
            "deleted": self.deleted,
        }

    def reset(self) -> None:
        """Sets all of them to zero."""
        self.dead_letters = 0
        self.redelivered = 0
        self.consumers_removed = 0
        self.trimmed = 0
        self.deleted = 0


class StreamAgenda:
    """The memory of the policies of a stream that has some. ``groups_to_make`` are those that an
    XADD makes, each with where it begins (``0`` or ``$``)."""

    def __init__(self, rules: StreamRules, groups_to_make: Sequence[tuple[bytes, bytes]]) -> None:
        self.rules = rules
        self.groups_to_make = groups_to_make
        self.next_look = 0
        """When entries are looked at next for their size."""
        self.not_before = 0
        """When entries are looked at next for their age, if some are kept for a group."""
        self._step = AGE_STEP_MS
        self.in_grace: list[int] = []
        """Entries that every group has acknowledged and that are still kept for groups to come."""

    def find_in_grace(self, stream: Stream) -> None:
        """Notes all entries that no group has to read or to acknowledge."""
        self.in_grace = []
        if self.rules.grace and stream.groups:
            self.in_grace = [each for each in stream.log if not stream.is_referenced(each)]

    def next_due(self, stream: Stream) -> int:
        """When something may have to go, :data:`NEVER` if nothing will."""
        due = NEVER
        rules = self.rules
        if self.in_grace:
            due = (self.in_grace[0] >> 64) + rules.grace
        if rules.retention and stream.log.length:
            due = min(due, max((stream.log.first >> 64) + rules.retention, self.not_before))
        if rules.retention_bytes and stream.log.length:
            due = min(due, self.next_look)
        return due

    def due_after_adding(self, first: int, now: int) -> int:
        """Returns when something may have to go now that entries from the ID ``first`` on were
        added to a stream from which some go by themselves."""
        rules = self.rules
        due = (first >> 64) + rules.retention if rules.retention else NEVER
        if rules.retention_bytes:
            self.next_look = now + SIZE_STEP_MS if self.next_look == NEVER else self.next_look
            due = min(due, self.next_look)
        return due

    def note_kept(self, now: int, removed: int) -> None:
        """Entries that should go are kept for a group: they are looked at again later, and later
        still where nothing could be ``removed``."""
        if removed:
            self._step = AGE_STEP_MS
        self.not_before = now + self._step
        self._step = min(2 * self._step, LONGEST_STEP_MS)
        if self.rules.retention_bytes:
            self.next_look = max(self.not_before, now + SIZE_STEP_MS)

    def wake_early(self, now: int, pending: int) -> None:
        """A group that has so many pending entries has acknowledged some: kept ones may go."""
        soon = now + AGE_STEP_MS + pending // PENDING_PER_MS
        self.not_before = min(self.not_before, soon)
        if self.rules.retention_bytes:
            self.next_look = min(self.next_look, soon)

    def note_clean(self) -> None:
        """Notes that all has gone that should."""
        self.not_before = 0
        self._step = AGE_STEP_MS


def drop_acknowledged(
    db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, entry_ids: Sequence[int]
) -> int:
    """Deletes those of the entries that no group refers to any more (``delete acked``);
    those in their grace later. Returns how many went."""
    rules = agenda.rules
    free = _unreferenced(stream, entry_ids)
    if rules.grace:
        latest = db.keyspace.now_ms - rules.grace
        for each in free:
            if each >> 64 > latest:
                heapq.heappush(agenda.in_grace, each)
        free = [each for each in free if each >> 64 <= latest]
    return _delete(db, key, stream, free)


def _unreferenced(stream: Stream, entry_ids: Sequence[int]) -> list[int]:
    """Returns those of the entries, ascending, that no group has to read or to acknowledge."""
    groups = stream.groups.values()
    last = min([group.last_id for group in groups], default=ids.MAX)
    free = sorted([each for each in entry_ids if each <= last])
    for group in groups:
        pending = group.pending
        if pending and free and pending.first <= free[-1]:
            free = [each for each in free if each not in pending]
    return free


def _delete(db: Database, key: bytes, stream: Stream, entry_ids: list[int]) -> int:
    """Deletes ascending entries. The oldest ones are trimmed, which takes a part of the time."""
    count = len(entry_ids)
    if count and stream.log.ids_of(ids.MIN, ids.MAX, count) == entry_ids:
        return _trim(db, key, stream, True, stream.log.length - count, keep=False)
    deleted = stream.delete(entry_ids)
    if deleted:
        db.emit(EntriesDeleted(db.index, key, tuple(deleted), False))
    return len(deleted)


def clean(db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, tally: Tally) -> None:
    """Removes what has been kept for long enough, and what is too much."""
    now, rules = db.keyspace.now_ms, agenda.rules
    old: list[int] = []
    while agenda.in_grace and (agenda.in_grace[0] >> 64) + rules.grace <= now:
        old.append(heapq.heappop(agenda.in_grace))
    if old:
        tally.deleted += _delete(db, key, stream, _unreferenced(stream, old))
    if rules.trims and now >= agenda.not_before:
        _clean_old_and_many(db, key, stream, agenda, tally)


def _clean_old_and_many(
    db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, tally: Tally
) -> None:
    now, rules = db.keyspace.now_ms, agenda.rules
    removed = kept = 0
    if rules.retention and now >= rules.retention:
        threshold = (now - rules.retention + 1) << 64
        removed = _trim(db, key, stream, False, threshold, rules.keep_unread)
        kept = int(stream.log.length > 0 and stream.log.first < threshold)
    if rules.retention_bytes and now >= agenda.next_look:
        agenda.next_look = NEVER
        surplus = _surplus(stream, rules.retention_bytes)
        if surplus:
            length = stream.log.length - surplus
            gone = _trim(db, key, stream, True, length, rules.keep_unread)
            removed, kept = removed + gone, kept + surplus - gone
    tally.trimmed += removed
    if kept:
        agenda.note_kept(now, removed)
    else:
        agenda.note_clean()


def _surplus(stream: Stream, limit: int) -> int:
    """How many of the oldest entries are more than fit into ``limit`` bytes."""
    blocks = stream.log.blocks
    sizes = [block.node_size() for block in blocks]
    excess = sum(sizes) - limit
    surplus = 0
    for block, size in zip(blocks, sizes, strict=True):
        if excess <= 0:
            break
        count = len(block)
        # Within a block the entries count alike.
        surplus += count if size <= excess else -(-excess * count // size)
        excess -= size
    return surplus


def _trim(
    db: Database, key: bytes, stream: Stream, by_length: bool, threshold: int, keep: bool
) -> int:
    """XTRIM, exact; returns how many entries went. With ``keep`` those stay that a group has to
    read or to acknowledge."""
    done = trim(stream, Trim(by_length, threshold, False, 0, ACKED if keep else KEEPREF))
    if done.holes:
        db.emit(EntriesDeleted(db.index, key, tuple(done.holes), True))
    elif done.removed:
        log = stream.log
        db.emit(StreamTrimmed(db.index, key, done.removed, log.length, log.first))
    return done.removed


def add_entry(db: Database, key: bytes, stream: Stream, items: list[bytes], maxlen: int) -> int:
    """XADD with an ID of its own to a stream, which is made if it is not in the database, and no
    longer than ``maxlen`` entries then, if that is given. Returns the ID.

    Raises :class:`StreamExhausted`."""
    entry_id = stream.next_id(db.keyspace.now_ms)
    created = key not in db.values
    payload = stream.add(entry_id, items)
    if created:
        db.attach(key, stream)
    db.emit(EntryAdded(db.index, key, entry_id, payload, created))
    if maxlen and stream.log.length > maxlen:
        _trim(db, key, stream, True, maxlen, keep=False)
    return entry_id
