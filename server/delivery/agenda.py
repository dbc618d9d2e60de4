"""The order of deliveries in a group with policies: which pending entry may be delivered when.

**The idea.** All that policies decide is kept in the pending entries list, by ordinary effects. An
entry that may not be delivered yet, for its time or for those before it, is pending without an
owner (XNACK); the delivery time of such an entry is that before which it is kept back. An entry
that is to be delivered again is pending for its owner, and its delivery time says since when. So
nothing is lost in a crash, and everything here is made from the list again.

**The index.** ``later`` is a heap of ranges of IDs with the time at which one of them may fall due,
``ready`` a heap of ranges that may be delivered. Both only say where to look: what is due is
decided by the pending entry itself when it is taken, so an entry that was acknowledged in between
costs nothing, and one that is named twice is taken once. Entries that are delivered together, or
within a fraction of the shortest delay, or are kept back until the same time, share a range,
however many they are. A range that falls due is looked through a portion at a time: what is due
becomes ranges that are ready, and the rest is filed again. Nothing takes longer than a portion.
Where ranges have become more than twice the pending entries the index is one range again.

**Lanes.** With ``order-by`` one at a time is delivered of the pending entries that have the same
value. They form a lane, in ID order. Only the first of a lane may be delivered, while none of the
lane is in flight, that is, has an owner. Nearly always a lane is one entry that is in flight, and
is then no more than its ID. Of those that nobody has only the first of each lane is in the index:
when it leaves, the next is put there. Lanes are made from the entries themselves, which takes long
if many are pending: it is done in portions, too, and until the last of them nothing is delivered.

**Ranking.** With ``priority-field`` what is taken comes by the number of each, the highest first.
Before anything is taken as many entries are ranked as ``look-ahead`` says: those of the ranges that
are ready, in the order of IDs, and then new ones. One that was acknowledged or claimed meanwhile
stays there until it would be taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from server.config.policies import GroupRules
from server.delivery.lanes import GroupLanes, Ranking
from server.delivery.retention import NEVER
from server.runtime.token_bucket import TokenBucket
from storage.engine import ids
from storage.engine.effects import make
from storage.engine.groups import Group
from storage.engine.log import EntryLog
from storage.engine.pending import Columns, PendingEntry, PendingList

PORTION: Final = 1000
"""How many pending entries are looked at in one go, so that nobody waits long where many are due,
or the index is made."""

BURIED_AT_ONCE: Final = 250
"""The same where each of them may become a dead letter, which takes longer."""

_SLACK: Final = 64
"""Deliveries share a range that are less than this part of the shortest delay apart."""

_SHARED: Final = 64
"""How many entries with different times share a range: they are looked at as often as that has one
that is due."""

_SPARE: Final = 64
"""How many ranges there may always be, even if little is pending."""

_RANGE_BYTES: Final = 160
_IN_LANE_BYTES: Final = 200
_RANKED_BYTES: Final = 40
"""What a range takes, an entry of a lane, and one that is ranked, about."""

_BUILT: Final = -1
"""In place of the ID from which on lanes are still to be made."""

ALL: Final = 0
OWNED: Final = 1
UNOWNED: Final = 2
"""Which of the entries between its IDs a range is of."""


class _Ranges:
    """Puts entries into ranges, a heap of which is ``later``: each is the time at which the first
    of it may fall due, its first and last ID, and of which entries it is."""

    __slots__ = ("_later", "_length", "_range")

    def __init__(self, later: list[list[int]]) -> None:
        self._later = later
        self._range: list[int] = []
        self._length = 0

    def add(self, entry_id: int, due: int, kind: int) -> None:
        """Puts an entry in that may fall due then."""
        last = self._range
        if (
            last
            and last[3] == kind
            and entry_id > last[2]
            and (last[0] == due or self._length < _SHARED)
        ):
            last[0] = min(last[0], due)
            last[2] = entry_id
            self._length += 1
        else:
            self.close()
            self._range = [due, entry_id, entry_id, kind]
            self._length = 1

    def close(self) -> None:
        """Files the range with which it ends: what comes next begins another one."""
        if self._range:
            heapq.heappush(self._later, self._range)
            self._range = []


class Agenda:
    """The index of one group, made for the ``rules`` that it has."""

    def __init__(self, rules: GroupRules) -> None:
        self.rules = rules
        self.stale = True
        """Whether the index must be made again before it is used."""
        self.seen_due = 0 if rules.consumer_ttl else NEVER
        """When a consumer may have been away for too long."""
        self.freed = False
        self.bucket = None if rules.rate is None else TokenBucket(*rules.rate, 0)
        """For how many entries there is room, with ``rate-limit``."""
        self.rate_due = NEVER
        """When there is room for the next that somebody waits for."""
        self.cut_short = False
        """Whether there may be more to take than was looked at."""
        self._later: list[list[int]] = []
        self._ready: list[list[int]] = []
        self._open: list[int] | None = None
        self._exhausted: list[PendingEntry] = []
        self._to_build = _BUILT
        self._portion = BURIED_AT_ONCE if rules.max_deliveries else PORTION
        self.lanes = None if rules.order_by is None else GroupLanes()
        """Which entries wait for others, with ``order-by``."""
        self.ranking: Ranking | None = None
        """What may be delivered by its number, with ``priority-field``; made with the index."""

    # --- making it ------------------------------------------------------------------------

    def refresh(self, pending: PendingList, log: EntryLog) -> None:
        """Makes the index again if it has to be, without its lanes: these are all to be built."""
        if not self.stale:
            return
        self.stale = False
        self._later, self._ready, self._open, self._exhausted = [], [], None, []
        self._to_build = _BUILT
        self.lanes = None if self.rules.order_by is None else GroupLanes()
        if self.rules.priority is not None:
            self.ranking = Ranking(self.rules.priority, log)
        if self.lanes is None:
            if len(pending):
                self._later.append([0, pending.first, pending.last, ALL])
            return
        self._to_build = ids.MIN

    @property
    def is_unbegun(self) -> bool:
        """Whether no lane is there yet, of those that are to be."""
        return self._to_build == ids.MIN

    @property
    def is_building(self) -> bool:
        """Whether the lanes are not all there yet: nothing is delivered before they are."""
        return self._to_build != _BUILT

    def build(self, pending: PendingList, log: EntryLog) -> int:
        """Goes on making lanes, with the next portion of the pending entries; returns how many it
        had."""
        if not self.is_building:
            return 0
        rows = pending.columns(self._to_build, ids.MAX, PORTION)
        if len(rows) < PORTION:
            self._to_build = _BUILT
        else:
            self._to_build = rows.ids[-1] + 1
        for at, payload in enumerate(log.get_many(rows.ids)):
            self.enter(rows.ids[at], payload, rows.owners[at] is not None)
        if rows.ids:
            heapq.heappush(self._later, [0, rows.ids[0], rows.ids[-1], ALL])
        return len(rows)

    # --- lanes ----------------------------------------------------------------------------

    def enter(self, entry_id: int, payload: bytes | None, in_flight: bool) -> None:
        """A pending entry is there, in flight or not; ``payload`` is ``None`` where the stream does
        not have it any more."""
        lanes, field = self.lanes, self.rules.order_by
        if lanes is None or field is None or payload is None or entry_id in lanes:
            return
        lanes.enter(entry_id, field.value_of(payload), in_flight)
        if in_flight:
            lanes.take_off([entry_id])

    def leave(self, entry_ids: Sequence[int]) -> None:
        """Entries are pending no more; ``freed`` tells then if others of their lanes may go on."""
        for first in self.lanes.leave(entry_ids) if self.lanes is not None else ():
            self._make_ready(first, first, UNOWNED)
            self.freed = True

    def land(self, entry_id: int) -> None:
        """An entry is in flight no more, and pending still: the first of its lane may go on."""
        if self.lanes is None:
            return
        self.lanes.land(entry_id)
        first = self.lanes.next_instead(entry_id)
        if first is not None:
            self._make_ready(first, first, UNOWNED)

    def _is_next(self, entry_id: int) -> bool:
        return self.lanes is None or self.lanes.is_next(entry_id)

    def look_ahead(self) -> int:
        """Return how many more entries may be kept back for their turn."""
        if self.lanes is None and self.ranking is None:
            return NEVER
        waiting = 0 if self.lanes is None else self.lanes.waiting
        waiting += 0 if self.ranking is None else len(self.ranking)
        return max(self.rules.look_ahead - waiting, 0)

    # --- filing ---------------------------------------------------------------------------

    def file_delivered(self, entry_ids: Sequence[int], counts: Sequence[int], time: int) -> None:
        """Entries were delivered at ``time``, for the counts-th time."""
        if not self.rules.retries:
            return
        if counts.count(1) == len(counts) and entry_ids[0] <= entry_ids[-1]:
            due = time + self.rules.shortest_delay(1)
            self._file_delivered_run(due, entry_ids[0], entry_ids[-1])
            return
        ranges = _Ranges(self._later)
        for entry_id, count in zip(entry_ids, counts, strict=True):
            ranges.add(entry_id, time + self.rules.delay(count, entry_id), OWNED)
        ranges.close()

    def _file_delivered_run(self, due: int, first: int, last: int) -> None:
        run = self._open
        if (
            run is not None
            and first > run[2]
            and 0 <= due - run[0] <= self.rules.earliest_retry // _SLACK
        ):
            run[2] = last
            return
        self._open = [due, first, last, OWNED]
        heapq.heappush(self._later, self._open)

    def file_released(self, entry_ids: Sequence[int], until: Sequence[int]) -> None:
        """Entries were given back, and may be delivered at these times, at once without any."""
        times = until or (0,) * len(entry_ids)
        if len(entry_ids) > _SHARED:
            self._file_in_ranges(entry_ids, times, False)
            return
        for at, entry_id in enumerate(entry_ids):  # There may be many of others between them.
            self.file(entry_id, times[at])

    def file_kept_back(self, entry_ids: Sequence[int], until: Sequence[int]) -> None:
        """Entries are kept back until these times, or until it is their turn: the read has ranked
        those that may be delivered."""
        self._file_in_ranges(entry_ids, until, self.ranking is not None)

    def _file_in_ranges(self, entry_ids: Sequence[int], until: Sequence[int], ranked: bool) -> None:
        ranges, lanes = _Ranges(self._later), self.lanes
        for at, entry_id in enumerate(entry_ids):
            if not (ranked and until[at] == 0) and (lanes is None or lanes.leads(entry_id)):
                ranges.add(entry_id, until[at], UNOWNED)
            else:
                ranges.close()
        ranges.close()

    def file(self, entry_id: int, due: int) -> None:
        """The entry may be delivered at ``due``."""
        heapq.heappush(self._later, [due, entry_id, entry_id, ALL])

    def bound(self, pending: PendingList) -> None:
        """Begin the index again where it is longer than twice what is pending: most of it is about
        entries that were delivered otherwise since, or are gone. All are to be looked at then, in
        portions."""
        most = 2 * len(pending) + _SPARE
        if self.is_building or max(len(self._later), len(self._ready)) <= most:
            return
        if self.ranking is not None:  # It has what was ready.
            self.stale = True
            return
        self._ready, self._open = [], None
        self._later = [[0, pending.first, pending.last, ALL]] if len(pending) else []

    def memory_usage(self) -> int:
        """Return the bytes that the index takes, about."""
        lanes = 0 if self.lanes is None else self.lanes.entries
        ranked = 0 if self.ranking is None else len(self.ranking)
        ranges = len(self._later) + len(self._ready)
        return _RANGE_BYTES * ranges + _IN_LANE_BYTES * lanes + _RANKED_BYTES * ranked

    def put_back(self, entry_id: int, payload: bytes) -> None:
        """An entry that was taken stays as it is for now."""
        if self.ranking is not None:
            self.ranking.add(entry_id, payload)
        else:
            self._make_ready(entry_id, entry_id, ALL)

    def _make_ready(self, first: int, last: int, kind: int) -> None:
        heapq.heappush(self._ready, [first, last, kind])

    # --- falling due ----------------------------------------------------------------------

    def due_of(self, entry: PendingEntry) -> int:
        """When a pending entry may be delivered, :data:`NEVER` if it is left to its owner."""
        if entry.owner is None:
            return entry.time
        if not self.rules.retries:
            return NEVER
        return entry.time + self.rules.delay(entry.deliveries, entry.id)

    def holds(self, entry: PendingEntry, due_ms: int) -> bool:
        """Whether nobody may have the entry yet, by whatever command: it is kept back for its time
        or for those before it. Only reads give out what is ranked and was never delivered."""
        if entry.owner is not None:
            return False
        if entry.time > due_ms or self.is_building or not self._is_next(entry.id):
            return True
        return self.ranking is not None and not entry.deliveries

    @property
    def next_due(self) -> int:
        """The time at which to look again, :data:`NEVER` if there is none."""
        if self.stale or self.is_building:
            return 0
        return min(self._later[0][0], self.rate_due) if self._later else self.rate_due

    @property
    def has_ready(self) -> bool:
        """Whether there is something to take that has fallen due."""
        return len(self._ready) > 0

    def fall_due(self, pending: PendingList, due_ms: int) -> int:
        """Looks at the next portion of what may have fallen due: ``next_due`` is in the past while
        there is more. Returns about how many entries it has looked at; those that were delivered
        as often as may be are left for :meth:`take_exhausted`."""
        looked_at = 0
        while self._later and self._later[0][0] <= due_ms and looked_at < self._portion:
            looked_at += 1 + self._look_into(heapq.heappop(self._later), pending, due_ms)
        return looked_at

    def _look_into(self, run: list[int], pending: PendingList, due_ms: int) -> int:
        """Sorts the first entries of a range into those that are due and those that are not yet;
        returns how many."""
        if run is self._open:
            self._open = None
        rows = pending.columns(run[1], run[2], self._portion)
        if len(rows) == self._portion and rows.ids[-1] < run[2]:
            heapq.heappush(self._later, [run[0], rows.ids[-1] + 1, run[2], run[3]])
        ranges = _Ranges(self._later)
        ready: list[int] = []
        for at, entry_id in enumerate(rows.ids):
            kind = UNOWNED if rows.owners[at] is None else OWNED
            if run[3] != ALL and run[3] != kind:
                continue
            due = self._due_in(rows, at)
            if due > due_ms:
                if due < NEVER and (kind == OWNED or self._leads(entry_id)):
                    ranges.add(entry_id, due, kind)
            elif self.rules.is_exhausted(rows.counts[at]):
                self._exhausted.append(_entry_in(rows, at))
            elif kind == OWNED or self._may_go(entry_id):
                if ready and ready[2] == kind:
                    ready[1] = entry_id
                    continue
                if ready:
                    heapq.heappush(self._ready, ready)
                ready = [entry_id, entry_id, kind]
        if ready:
            heapq.heappush(self._ready, ready)
        ranges.close()
        return len(rows)

    def _due_in(self, rows: Columns, at: int) -> int:
        if rows.owners[at] is None:
            return rows.times[at]
        if not self.rules.retries:
            return NEVER
        return rows.times[at] + self.rules.delay(rows.counts[at], rows.ids[at])

    def _leads(self, entry_id: int) -> bool:
        return self.lanes is None or self.lanes.leads(entry_id)

    def _may_go(self, entry_id: int) -> bool:
        """Whether it is the turn of an entry that nobody has. Where it is that of another one,
        which was not there yet when that was looked at, this is made ready."""
        if self.lanes is None or self.lanes.is_next(entry_id):
            return True
        first = self.lanes.next_instead(entry_id)
        if first is not None:
            self._make_ready(first, first, UNOWNED)
        return False

    # --- taking ---------------------------------------------------------------------------

    def has_due(self, pending: PendingList, due_ms: int) -> bool:
        """Whether there may be something to take."""
        if self.is_building or self._ready:
            return True
        if not self._later or self._later[0][0] > due_ms:
            return False
        self.fall_due(pending, due_ms)
        return len(self._ready) > 0 or len(self._exhausted) > 0 or self.next_due <= due_ms

    def take(self, group: Group, due_ms: int, most: int) -> list[PendingEntry]:
        """Up to ``most`` pending entries that may be delivered now, about in ID order. Those that
        are not delivered then are to be put back. ``cut_short`` tells then whether there may be
        more, as no more than a portion is looked at."""
        pending = group.pending
        if self.ranking is not None:
            return self._take_ranked(self.ranking, group, due_ms, most)
        self.cut_short = False
        taken: dict[int, PendingEntry] = {}
        looked_at = 0
        while len(taken) < most and self.has_due(pending, due_ms):
            if looked_at >= self._portion or self.is_building or not self._ready:
                self.cut_short = True
                break
            looked_at += 1 + self._take_of(pending, due_ms, most - len(taken), taken)
        return list(taken.values())

    def _take_of(
        self, pending: PendingList, due_ms: int, most: int, taken: dict[int, PendingEntry]
    ) -> int:
        """Takes what is due of the first entries of a range; returns how many were looked at."""
        first, last, kind = heapq.heappop(self._ready)
        most = min(most, self._portion)
        rows = pending.columns(first, last, most)
        if len(rows) == most and rows.ids[-1] < last:
            self._make_ready(rows.ids[-1] + 1, last, kind)
        for at, entry_id in enumerate(rows.ids):
            its = UNOWNED if rows.owners[at] is None else OWNED
            if kind != ALL and kind != its:
                continue
            due = self._due_in(rows, at)
            if due > due_ms:
                # What is due at another time was filed when that was said, but for what was behind
                # another one of its lane then.
                if its == UNOWNED and self.lanes is not None:
                    heapq.heappush(self._later, [due, entry_id, entry_id, UNOWNED])
                continue
            if self.rules.is_exhausted(rows.counts[at]):
                self._exhausted.append(_entry_in(rows, at))
            elif its == OWNED or self._may_go(entry_id):
                taken[entry_id] = _entry_in(rows, at)
        return len(rows)

    def rank(self, pending: PendingList, due_ms: int) -> bool:
        """Ranks a portion of what is ready, in the order of IDs, while there is room for it; false
        if there is more to rank."""
        ranking = self.ranking
        assert ranking is not None
        looked_at = 0
        while looked_at < self._portion and not self.is_building:
            room = self.rules.look_ahead - len(ranking)
            if room > 0 and self._ready:
                found: dict[int, PendingEntry] = {}
                looked_at += 1 + self._take_of(pending, due_ms, room, found)
                ranking.add_all(list(found))
            elif room > 0 and self._later and self._later[0][0] <= due_ms:
                looked_at += self.fall_due(pending, due_ms)
            else:
                return True
        return False

    def _take_ranked(
        self, ranking: Ranking, group: Group, due_ms: int, most: int
    ) -> list[PendingEntry]:
        """Takes as :meth:`take` does, in the order of the numbers. What the group has not come to
        yet is among it, as though it were pending and nobody's."""
        pending, behind = group.pending, group.pending.last
        self.cut_short = not self.rank(pending, due_ms)
        taken: dict[int, PendingEntry] = {}
        looked_at = 0
        while len(taken) < most and len(ranking) and not self.cut_short:
            some = ranking.take(min(most - len(taken), self._portion))
            looked_at += len(some)
            self.cut_short = looked_at >= self._portion
            for entry_id in some:
                entry = None if entry_id > behind else pending.get(entry_id)
                if entry is None:
                    if entry_id > group.last_id:
                        taken[entry_id] = make(PendingEntry, (entry_id, None, 0, 0))
                    # It was acknowledged otherwise, and where it is not due it was claimed.
                elif self.due_of(entry) <= due_ms:
                    if self.rules.is_exhausted(entry.deliveries):
                        self._exhausted.append(entry)
                    elif entry.owner is not None or self._may_go(entry_id):
                        taken[entry_id] = entry
        return list(taken.values())

    def take_exhausted(self) -> list[PendingEntry]:
        """Those that were delivered as often as may be, of what was looked at."""
        exhausted, self._exhausted = self._exhausted, []
        return exhausted


def _entry_in(rows: Columns, at: int) -> PendingEntry:
    return make(PendingEntry, (rows.ids[at], rows.owners[at], rows.times[at], rows.counts[at]))
