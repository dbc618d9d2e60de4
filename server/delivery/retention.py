"""Entries that go by themselves: for their age, their size, or as every group has acknowledged
them."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from server.config.policies import StreamRules
from storage.engine import ids
from storage.engine.effects import EntriesDeleted, EntryAdded, StreamTrimmed
from storage.engine.stream import Stream
from storage.engine.trimming import KEEPREF, Trim, needed_by_none, trim
from storage.keyspace.databases import Database

NEVER: Final = 2**61
"""A time that does not come; compiled code has room for it where others are."""

AGE_STEP_MS: Final = 10
"""Entries go for their age at such intervals at most."""

LONGEST_STEP_MS: Final = 1000
"""Where entries are kept for a group the intervals double, up to this one."""

PENDING_PER_MS: Final = 1000
"""So many pending entries put off by a millisecond what follows from an acknowledgement."""

SIZE_STEP_MS: Final = 100
"""Entries go for their size at such intervals: each takes a look at every block that fits."""

LOOKED_AT: Final = 2000
"""How many entries are looked at in a slice where some of them may be needed yet, and how many go
at most whose grace is over; the others have their turn in the next slice."""

FEW_GROUPS: Final = 50
"""Of more groups than this fewer entries are looked at in a slice: each asks every group."""

_SPARE: Final = 64
"""How many entries in their grace may always be noted, even if the stream has few."""

MEASURED: Final = 2000
"""How many entries are measured in a slice, about; a block that is looked at counts as one."""


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
        self.grace_sought_from: int | None = ids.MIN if rules.grace else None
        """From which ID on there may be others of that kind; ``None`` if all are found."""
        self.age_from = self.size_from = ids.MIN
        """Where the look goes on for entries that are too old, or too many, and that no group needs
        any more."""
        self.begin_sum()
        self.summed_to = ids.MIN
        """The stream's last ID when the blocks began to be added up."""
        self.removed = 0
        """How many entries such a look has removed so far."""
        self.unfinished = False
        """Whether the last slice has left something to do at once."""

    def begin_sum(self) -> None:
        """Has the blocks added up anew, from the newest one on."""
        self.fits_from = ids.MAX + 1
        """From which block on, named by its first ID, all fit into the bytes of the policy."""
        self.room = self.rules.retention_bytes
        """How many bytes of these are left."""

    def find_in_grace(self, stream: Stream) -> int:
        """Notes some more of the entries that no group has to read or to acknowledge; returns how
        many were looked at at most."""
        if self.grace_sought_from is None:
            return 0
        following = 0
        if stream.groups:
            start, most = self.grace_sought_from, _looked_at(stream)
            found, following = needed_by_none(stream, start, ids.MAX, most)
            for entry_id in found:
                heapq.heappush(self.in_grace, entry_id)
        self.grace_sought_from = following or None
        self.unfinished = following > 0
        return LOOKED_AT

    def note_in_grace(self, entry_ids: Sequence[int]) -> None:
        """Notes entries that the last group has acknowledged, unless they will be found anyway."""
        for entry_id in entry_ids:
            if self.grace_sought_from is None or entry_id < self.grace_sought_from:
                heapq.heappush(self.in_grace, entry_id)

    def bound(self, stream: Stream) -> None:
        """Seek what is in its grace again where more is noted than twice what the stream has: most
        of that has gone otherwise."""
        if len(self.in_grace) > 2 * stream.log.length + _SPARE:
            self.in_grace = []
            self.grace_sought_from = ids.MIN

    def next_due(self, stream: Stream, after: int = -AGE_STEP_MS) -> int:
        """When something may have to go, :data:`NEVER` if nothing will. Where it was looked at
        ``after`` that time, what is too old or too much does not go entry after entry."""
        rules = self.rules
        if self.unfinished or self.grace_sought_from is not None:
            return 0
        due = NEVER
        if rules.retention and stream.log.length:
            due = max((stream.log.first >> 64) + rules.retention, self.not_before)
        if rules.retention_bytes and stream.log.length:
            due = min(due, self.next_look)
        due = max(due, after + AGE_STEP_MS)
        if self.in_grace:
            due = min(due, (self.in_grace[0] >> 64) + rules.grace)
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


def _looked_at(stream: Stream) -> int:
    """How many entries are looked at in a slice where each of the groups may need them."""
    return max(LOOKED_AT * FEW_GROUPS // max(len(stream.groups), FEW_GROUPS), 1)


def drop_acknowledged(
    db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, entry_ids: Sequence[int]
) -> int:
    """Deletes those of the entries that no group refers to any more (``delete acked``);
    those in their grace later. Returns how many went."""
    free = _unreferenced(stream, entry_ids)
    if agenda.rules.grace:
        over = bisect_left(free, max(db.keyspace.due_ms - agenda.rules.grace + 1, 0) << 64)
        agenda.note_in_grace(free[over:])
        agenda.bound(stream)
        del free[over:]
    return _delete(db, key, stream, free)


def _unreferenced(stream: Stream, entry_ids: Sequence[int]) -> list[int]:
    """Returns those of the entries, ascending, that no group has to read or to acknowledge."""
    groups = stream.groups.values()
    free = sorted(entry_ids)
    del free[bisect_right(free, min([group.last_id for group in groups], default=ids.MAX)) :]
    for group in groups:
        pending = group.pending
        if pending and free and pending.first <= free[-1]:
            free = [each for each in free if each not in pending]
    return free


def _delete(
    db: Database, key: bytes, stream: Stream, entry_ids: list[int], trimmed: bool = False
) -> int:
    """Deletes ascending entries; ``trimmed`` as in :class:`.EntriesDeleted`. The oldest ones are
    trimmed, which takes a part of the time."""
    count = len(entry_ids)
    if not count:
        return 0
    if stream.log.ids_of(ids.MIN, ids.MAX, count) == entry_ids:
        return _trim(db, key, stream, stream.log.length - count)
    if trimmed:
        deleted = [entry_id for entry_id in entry_ids if stream.log.delete(entry_id)]
    else:
        deleted = stream.delete(entry_ids)
    if deleted:
        db.emit(EntriesDeleted(db.index, key, tuple(deleted), trimmed))
    return len(deleted)


def clean(db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, tally: Tally) -> int:
    """Removes what has been kept for long enough, and what is too much, or a slice of it: then
    ``agenda.unfinished`` is set. Returns about how many entries it had to do with."""
    due, rules = db.keyspace.due_ms, agenda.rules
    agenda.unfinished = False
    looked_at = agenda.find_in_grace(stream)
    old: list[int] = []
    while agenda.in_grace and (agenda.in_grace[0] >> 64) + rules.grace <= due:
        if len(old) == LOOKED_AT:
            agenda.unfinished = True
            break
        old.append(heapq.heappop(agenda.in_grace))
    if old:
        tally.deleted += _delete(db, key, stream, _unreferenced(stream, old))
    if rules.trims and agenda.not_before <= due:
        looked_at += _clean_old_and_many(db, key, stream, agenda, tally)
    return looked_at + len(old)


def _clean_old_and_many(
    db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, tally: Tally
) -> int:
    """Removes what is too old, then what is too much; returns about how many entries it had to do
    with."""
    due, rules = db.keyspace.due_ms, agenda.rules
    keep = rules.keep_unread and len(stream.groups) > 0
    before, kept = stream.log.length, 0
    if rules.retention and rules.retention <= due:
        kept = _clean_old(db, key, stream, agenda, (due - rules.retention + 1) << 64, keep)
    if rules.retention_bytes and agenda.next_look <= due:
        kept += _clean_many(db, key, stream, agenda, keep)
    removed = before - stream.log.length
    tally.trimmed += removed
    agenda.removed += removed
    if agenda.unfinished:
        return LOOKED_AT
    if kept:
        agenda.note_kept(db.keyspace.now_ms, agenda.removed)
    else:
        agenda.note_clean()
    agenda.removed = 0
    return LOOKED_AT if keep else 0


def _clean_old(
    db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, threshold: int, keep: bool
) -> int:
    """Removes entries below an ID; returns if there are still some."""
    log = stream.log
    if keep:
        agenda.age_from = _remove_unneeded(
            db, key, stream, agenda.age_from, threshold, stream.log.length
        )
        agenda.unfinished = agenda.unfinished or agenda.age_from > 0
    else:
        _trim(db, key, stream, log.length - log.count_below(threshold))
    return int(log.length > 0 and log.first < threshold)


def _clean_many(db: Database, key: bytes, stream: Stream, agenda: StreamAgenda, keep: bool) -> int:
    """Removes entries until the others are small enough; returns how many too many are left."""
    log = stream.log
    surplus = _surplus(stream, agenda)
    if surplus < 0:
        agenda.unfinished = True
        return 0
    least = log.length - surplus
    if surplus and keep:
        agenda.size_from = _remove_unneeded(db, key, stream, agenda.size_from, ids.MAX + 1, surplus)
        agenda.unfinished = agenda.unfinished or agenda.size_from > 0
    elif surplus:
        _trim(db, key, stream, least)
    if not agenda.size_from:
        has_grown = stream.last_id > agenda.summed_to
        agenda.next_look = db.keyspace.now_ms + SIZE_STEP_MS if has_grown else NEVER
    return log.length - least


def _remove_unneeded(
    db: Database, key: bytes, stream: Stream, start: int, end: int, most: int
) -> int:
    """Removes up to ``most`` of the next entries from ``start`` to below ``end`` that no group has
    to read or to acknowledge; returns the ID at which to go on, 0 at the end."""
    free, following = needed_by_none(stream, start, end, _looked_at(stream))
    removed = _delete(db, key, stream, free[:most], trimmed=True)
    return following if removed < most else 0


def _surplus(stream: Stream, agenda: StreamAgenda) -> int:
    """Return how many of the oldest entries do not fit into the bytes of the policy together with
    all newer ones; -1 if some are to be looked at yet, where the next slice goes on."""
    log = stream.log
    at = bisect_left(log.block_keys, agenda.fits_from)
    if agenda.fits_from > ids.MAX:
        agenda.summed_to = stream.last_id
    left, surplus = MEASURED, 0
    while at and left > 0:
        at -= 1
        block = log.blocks[at]
        left -= 1 + block.unmeasured
        size = block.node_size()
        if size > agenda.room:
            older = log.length - log.count_above(block.first - 1)
            # Within a block the entries count alike.
            surplus = older - (agenda.room - size) * len(block) // size
            at = 0
        else:
            agenda.fits_from = block.first
            agenda.room -= size
    if at:
        return -1
    agenda.begin_sum()
    return surplus


def _trim(db: Database, key: bytes, stream: Stream, length: int) -> int:
    """XTRIM MAXLEN, exact; returns how many entries went."""
    removed = trim(stream, Trim(True, length, False, 0, KEEPREF)).removed
    if removed:
        log = stream.log
        db.emit(StreamTrimmed(db.index, key, removed, log.length, log.first))
    return removed


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
        _trim(db, key, stream, maxlen)
    return entry_id
