"""The order of deliveries in a group with policies: which pending entry may be delivered when.

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

**Lanes.** With ``order-by`` one at a time is delivered of the pending entries that have the same
value. They form a lane, in ID order. Only the first of a lane may be delivered, while none of the
lane is in flight, that is, has an owner. Nearly always a lane is one entry that is in flight, and
is then no more than its ID.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

from server.config.policies import GroupRules
from server.delivery.retention import NEVER
from server.runtime.token_bucket import TokenBucket
from storage.engine import ids
from storage.engine.entries import Field
from storage.engine.log import EntryLog
from storage.engine.pending import PendingEntry, PendingList

_AT_ONCE: Final = 1000
"""How many pending entries share a range when the index is made anew."""

_DUE_AT_ONCE: Final = 250
"""How many entries fall due at a time, about, so that nobody waits long where many do."""

_SLACK: Final = 64
"""Deliveries share a range that are less than this part of the shortest delay apart."""


class Agenda:
    """The index of one group, made for the ``rules`` that it has."""

    def __init__(self, rules: GroupRules) -> None:
        self.rules = rules
        self.stale = True
        """Whether the index must be made anew before it is used."""
        self.seen_due = 0 if rules.consumer_ttl else NEVER
        """When a consumer may have been away for too long."""
        self.freed = False
        self.bucket = None if rules.rate is None else TokenBucket(*rules.rate, 0)
        """For how many entries there is room, with ``rate-limit``."""
        self.rate_due = NEVER
        """When there is room for the next that somebody waits for."""
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
            for at, entry_id in enumerate(rows.ids if self.lanes is not None else ()):
                self.enter(entry_id, log.get(entry_id), rows.owners[at] is not None)
            start = rows.ids[-1] + 1

    # --- lanes ----------------------------------------------------------------------------

    def enter(self, entry_id: int, payload: bytes | None, in_flight: bool) -> None:
        """A pending entry is there, in flight or not; ``payload`` is ``None`` where the stream does
        not have it any more."""
        if self.lanes is not None and payload is not None and entry_id not in self.lanes:
            self.lanes.enter(entry_id, payload, in_flight)
            if in_flight:
                self.lanes.take_off([entry_id])

    def leave(self, entry_ids: Sequence[int]) -> None:
        """Entries are pending no more; ``freed`` tells then if others of their lanes may go on."""
        for first in self.lanes.leave(entry_ids) if self.lanes is not None else ():
            heapq.heappush(self._ready, first)
            self.freed = True

    def _is_next(self, entry_id: int) -> bool:
        return self.lanes is None or self.lanes.is_next(entry_id)

    # --- filing ---------------------------------------------------------------------------

    def file_delivered(self, entry_ids: Sequence[int], counts: Sequence[int], time: int) -> None:
        """Entries were delivered at ``time``, for the counts-th time."""
        if not self.rules.retries:
            return
        if counts[-1] == 1 and counts[0] == 1 and entry_ids[0] <= entry_ids[-1]:
            self._file_run(time + self.rules.shortest_delay(1), entry_ids[0], entry_ids[-1])
            return
        for entry_id, count in zip(entry_ids, counts, strict=True):
            self.file(entry_id, time + self.rules.delay(count, entry_id))

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

    def file(self, entry_id: int, due: int) -> None:
        """The entry may be delivered at ``due``."""
        heapq.heappush(self._later, [due, entry_id, entry_id])

    def put_back(self, entry_id: int) -> None:
        """An entry that was taken stays as it is for now."""
        heapq.heappush(self._ready, entry_id)

    # --- taking ---------------------------------------------------------------------------

    def due_of(self, entry: PendingEntry) -> int:
        """When a pending entry may be delivered, :data:`NEVER` if it is left to its owner."""
        if entry.owner is None:
            return entry.time
        if not self.rules.retries:
            return NEVER
        return entry.time + self.rules.delay(entry.deliveries, entry.id)

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
            entry_id = heapq.heappop(self._ready)
            entry = pending.get(entry_id)
            if entry is None or entry_id in seen:
                continue
            due = self.due_of(entry)
            if now < due < NEVER:
                self.file(entry_id, due)
            elif due <= now and (entry.owner is not None or self._is_next(entry_id)):
                seen.add(entry_id)
                taken.append(entry)
            elif due <= now and self.lanes is not None:
                # It may be that this entry was not there yet when another one was looked at.
                first = self.lanes.next_instead(entry_id)
                if first is not None:
                    heapq.heappush(self._ready, first)
        return taken

    def _advance(self, pending: PendingList, now: int) -> None:
        """Files what has fallen due since as ready."""
        for entry_id in self.fall_due(pending, now):
            heapq.heappush(self._ready, entry_id)

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
                due = due + delay(rows.counts[at], rows.ids[at]) if self.rules.retries else NEVER
            if due <= now:
                found.append(rows.ids[at])
            elif due < NEVER:
                self.file(rows.ids[at], due)
        return found

    @property
    def next_due(self) -> int:
        """The time at which to look again, :data:`NEVER` if there is none."""
        return min(self._later[0][0], self.rate_due) if self._later else self.rate_due


def _lanes_of(rules: GroupRules) -> Lanes | None:
    return None if rules.order_by is None else Lanes(rules.order_by)


# --- lanes -----------------------------------------------------------------------------------


class Lane:
    """Pending entries with the same value: all of them, ascending, and those that are in flight."""

    __slots__ = ("ids", "in_flight")

    def __init__(self, ids: list[int], in_flight: set[int]) -> None:
        self.ids = ids
        self.in_flight = in_flight


class Lanes:
    """The lanes of a group, by the value of ``field``. Entries without it are in none of them."""

    __slots__ = ("_field", "_lanes", "_value_of")

    def __init__(self, field: Field) -> None:
        self._field = field
        self._lanes: dict[bytes, int | Lane] = {}
        self._value_of: dict[int, bytes] = {}

    def __contains__(self, entry_id: int) -> bool:
        return entry_id in self._value_of

    def enter(self, entry_id: int, payload: bytes, in_flight: bool) -> bool:
        """Puts a pending entry into its lane; whether it is alone there. One that is alone and
        ``in_flight`` is in flight."""
        value = self._field.value_in(payload)
        if value is None:
            return True
        lane = self._lanes.get(value)
        if lane is None:
            self._lanes[value] = entry_id if in_flight else Lane([entry_id], set())
            self._value_of[entry_id] = value
            return True
        if entry_id in self._value_of:
            return isinstance(lane, int) or len(lane.ids) == 1
        if isinstance(lane, int):
            lane = self._lanes[value] = Lane([lane], {lane})
        insort(lane.ids, entry_id)
        self._value_of[entry_id] = value
        return False

    @property
    def waiting(self) -> int:
        """How many entries stand behind another one of their lane."""
        return len(self._value_of) - len(self._lanes)

    def is_next(self, entry_id: int) -> bool:
        """Whether an entry that nobody has is the first of its lane, and nobody has another one."""
        lane = self._lane_of(entry_id)
        if lane is None:
            return True
        return not isinstance(lane, int) and lane.ids[0] == entry_id and not lane.in_flight

    def next_instead(self, entry_id: int) -> int | None:
        """The entry of the same lane that may be delivered, if it is another one."""
        lane = self._lane_of(entry_id)
        if lane is None or isinstance(lane, int) or lane.in_flight or lane.ids[0] == entry_id:
            return None
        return lane.ids[0]

    def take_off(self, entry_ids: Sequence[int]) -> None:
        """Entries are in flight: consumers have them."""
        for entry_id in entry_ids:
            lane = self._lane_of(entry_id)
            if lane is not None and not isinstance(lane, int):
                lane.in_flight.add(entry_id)

    def land(self, entry_id: int) -> None:
        """An entry is in flight no more, and pending still."""
        lane = self._lane_of(entry_id)
        if isinstance(lane, int):
            self._lanes[self._value_of[entry_id]] = Lane([lane], set())
        elif lane is not None:
            lane.in_flight.discard(entry_id)

    def leave(self, entry_ids: Sequence[int]) -> list[int]:
        """Entries are pending no more; returns those that may be delivered because of that."""
        lanes, value_of = self._lanes, self._value_of
        freed: list[int] = []
        for entry_id in entry_ids:
            value = value_of.pop(entry_id, None)
            if value is None:
                continue
            lane = lanes[value]
            if isinstance(lane, int) or len(lane.ids) == 1:
                del lanes[value]
                continue
            del lane.ids[bisect_left(lane.ids, entry_id)]
            lane.in_flight.discard(entry_id)
            freed.append(lane.ids[0])
        return freed

    def _lane_of(self, entry_id: int) -> int | Lane | None:
        value = self._value_of.get(entry_id)
        return None if value is None else self._lanes[value]
