# Compiled by mypyc.
"""What is next in a consumer group with policies: which pending entry may be delivered when.

**The idea.** All that policies decide is kept in the pending entries list, by ordinary effects. An
entry that may not be delivered yet, for its time or for those before it, is pending without an
owner (XNACK); the delivery time of such an entry is that before which it is kept back. An entry
that is to be delivered again is pending for its owner, and its delivery time says since when. So
nothing is lost in a crash, and everything here is made anew from the list.

**The index.** ``later`` is a heap of ranges of IDs with the time at which one of them may fall due,
``ready`` a heap of IDs that may be delivered. Both only say where to look: what is due is decided
by the pending entry itself when it is taken, so an entry that was acknowledged in between costs
nothing but its place. Entries delivered together, or within a fraction of the shortest delay, share
a range; those of it that are still pending when it falls due are filed one by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from server.delivery.lanes import Lanes
from server.delivery.rules import NEVER, GroupRules
from storage.engine import ids
from storage.engine.log import EntryLog
from storage.engine.pending import PendingEntry, PendingList

_AT_ONCE: Final = 1000
"""How many pending entries share a range when the index is made anew."""

_DUE_AT_ONCE: Final = 250
"""How many entries fall due at a time, about, so that nobody waits long where many do."""

_SLACK: Final = 64
"""Deliveries share a range that are less than this part of the shortest delay apart."""


class Agenda:
    """The index of one group. ``version`` and ``key`` are those of the rules it was made for."""

    __slots__ = (
        "_later",
        "_open",
        "_ready",
        "freed",
        "key",
        "lanes",
        "rules",
        "seen_due",
        "stale",
        "version",
    )

    def __init__(self, rules: GroupRules, key: bytes, version: int) -> None:
        self.rules = rules
        self.key = key
        self.version = version
        self.stale = True
        """Whether the index must be made anew before it is used."""
        self.seen_due = 0 if rules.consumer_ttl else NEVER
        """When a consumer may have been away for too long."""
        self.freed = False
        self._later: list[list[int]] = []
        self._ready: list[int] = []
        self._open: list[int] | None = None
        self.lanes = _lanes_of(rules)
        """Which entries wait for others, with ``order-by``."""

    # --- making it ------------------------------------------------------------------------

    def refresh(self, pending: PendingList, log: EntryLog) -> None:
        """Makes the index anew if it has to be."""
        if not self.stale:
            return
        self.stale = False
        self._later, self._ready, self._open = [], [], None
        self.lanes = _lanes_of(self.rules)
        start = ids.MIN
        while (rows := pending.columns(start, ids.MAX, _AT_ONCE)).ids:
            heapq.heappush(self._later, [0, rows.ids[0], rows.ids[-1]])
            for at, identity in enumerate(rows.ids if self.lanes is not None else ()):
                self.enter(identity, log.get(identity), rows.owners[at] is not None)
            start = rows.ids[-1] + 1

    # --- lanes ----------------------------------------------------------------------------

    def enter(self, identity: int, payload: bytes | None, flies: bool) -> None:
        """A pending entry is there, in flight or not; ``payload`` is ``None`` where the stream does
        not have it any more."""
        if self.lanes is not None and payload is not None and identity not in self.lanes:
            self.lanes.enter(identity, payload, flies)
            if flies:
                self.lanes.take_off([identity])

    def leave(self, identities: Sequence[int]) -> None:
        """Entries are pending no more; ``freed`` tells then if others of their lanes may go on."""
        for first in self.lanes.leave(identities) if self.lanes is not None else ():
            heapq.heappush(self._ready, first)
            self.freed = True

    def _is_next(self, identity: int) -> bool:
        return self.lanes is None or self.lanes.is_next(identity)

    # --- filing ---------------------------------------------------------------------------

    def file_delivered(self, identities: Sequence[int], counts: Sequence[int], time: int) -> None:
        """Entries were delivered at ``time``, for the counts-th time."""
        if not self.rules.retries:
            return
        if counts[-1] == 1 and counts[0] == 1 and identities[0] <= identities[-1]:
            self._file_run(time + self.rules.delay(1), identities[0], identities[-1])
            return
        for identity, count in zip(identities, counts, strict=True):
            self.file(identity, time + self.rules.delay(count))

    def _file_run(self, due: int, first: int, last: int) -> None:
        run = self._open
        if (
            run is not None
            and first > run[2]
            and 0 <= due - run[0] <= self.rules.earliest_retry // _SLACK
        ):
            run[2] = last
            return
        self._open = [due, first, last]
        heapq.heappush(self._later, self._open)

    def file(self, identity: int, due: int) -> None:
        """The entry may be delivered at ``due``."""
        heapq.heappush(self._later, [due, identity, identity])

    def put_back(self, identity: int) -> None:
        """An entry that was taken stays as it is for now."""
        heapq.heappush(self._ready, identity)

    # --- taking ---------------------------------------------------------------------------

    def due_of(self, entry: PendingEntry) -> int:
        """When a pending entry may be delivered, :data:`NEVER` if it is left to its owner."""
        if entry.owner is None:
            return entry.time
        if not self.rules.retries:
            return NEVER
        return entry.time + self.rules.delay(entry.deliveries)

    def holds(self, entry: PendingEntry, now: int) -> bool:
        """Whether nobody may have the entry yet, by whatever command: it is kept back for its time
        or for those before it."""
        if entry.owner is not None:
            return False
        return entry.time > now or not self._is_next(entry.id)

    def has_due(self, pending: PendingList, now: int) -> bool:
        """Whether there may be something to take."""
        self._advance(pending, now)
        return len(self._ready) > 0

    def take(self, pending: PendingList, now: int, most: int) -> list[PendingEntry]:
        """Up to ``most`` pending entries that may be delivered now, about in ID order. Those that
        are not delivered then are to be put back."""
        taken: list[PendingEntry] = []
        seen: set[int] = set()
        while len(taken) < most and (self._ready or self.has_due(pending, now)):
            identity = heapq.heappop(self._ready)
            entry = pending.get(identity)
            if entry is None or identity in seen:
                continue
            due = self.due_of(entry)
            if now < due < NEVER:
                self.file(identity, due)
            elif due <= now and (entry.owner is not None or self._is_next(identity)):
                seen.add(identity)
                taken.append(entry)
            elif due <= now and self.lanes is not None:
                # It may be that this entry was not there yet when another one was looked at.
                first = self.lanes.next_instead(identity)
                if first is not None:
                    heapq.heappush(self._ready, first)
        return taken

    def _advance(self, pending: PendingList, now: int) -> None:
        """Files what has fallen due since as ready."""
        for identity in self.fall_due(pending, now):
            heapq.heappush(self._ready, identity)

    def fall_due(self, pending: PendingList, now: int) -> list[int]:
        """The entries whose time has come since this was last asked for; they are not filed any
        more until they are put back. If there are many, not all: ``next_due`` is in the past then.
        """
        later = self._later
        due: list[int] = []
        while later and later[0][0] <= now and len(due) < _DUE_AT_ONCE:
            run = heapq.heappop(later)
            if run is self._open:
                self._open = None
            due += self._open_run(pending, run, now)
        return list(dict.fromkeys(due))

    def _open_run(self, pending: PendingList, run: list[int], now: int) -> list[int]:
        """The entries of a range that are due; the others are filed one by one."""
        found: list[int] = []
        rows = pending.columns(run[1], run[2], _DUE_AT_ONCE)
        if len(rows) == _DUE_AT_ONCE:
            heapq.heappush(self._later, [run[0], rows.ids[-1] + 1, run[2]])
        delay = self.rules.delay
        for at in range(len(rows)):
            due = rows.times[at]
            if rows.owners[at] is not None:
                due = due + delay(rows.counts[at]) if self.rules.retries else NEVER
            if due <= now:
                found.append(rows.ids[at])
            elif due < NEVER:
                self.file(rows.ids[at], due)
        return found

    @property
    def next_due(self) -> int:
        """The time at which to look again, :data:`NEVER` if there is none."""
        return self._later[0][0] if self._later else NEVER


def _lanes_of(rules: GroupRules) -> Lanes | None:
    return None if rules.order_by is None else Lanes(rules.order_by)
