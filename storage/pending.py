"""The pending entries list (PEL) of a group: which entry was delivered to whom, when, how often.

**The idea.** An object for every pending entry costs more than the entry: its creation, its memory,
and above all the garbage collector that has to visit it. So the list is stored in columns. A
:class:`Segment` has four parallel lists: IDs, owners, delivery times and delivery counts.
Delivering a hundred entries extends four lists; acknowledging one is two bisections and four
deletions in lists of at most ``2 * SEGMENT`` elements; a claim changes slices of columns.

**Two indexes.** By ID, ``_lasts`` holds the last ID of each segment, and is bisected first. By
owner, each :class:`Consumer` has the sorted IDs that it owns, so reading its history never searches
the group's list. By delivery time there is only a bound: no entry of a segment was delivered before
its ``oldest``. XPENDING IDLE skips segments that are too recent, and XREADGROUP CLAIM searches the
few that may hold the longest idle entries. Delivery times mostly ascend with IDs, so these are few:
a million pending entries have about two thousand bounds. The bound only ever gets too low (an
acknowledgement leaves it alone) and is made exact when its segment is searched.

**Entries without an owner**, which XNACK has released, stay in their segment with the owner
``None``; ``released`` keeps them in the order of their release.

**Invariants** (the tests call :meth:`PendingList.check`):

- IDs ascend strictly over all segments, and the four columns of a segment are equally long.
- No segment is empty, and none is longer than ``2 * SEGMENT``.
- An ID is in ``owner.ids`` exactly if its row names that owner, and in ``released`` exactly if its
  row names none.
- ``segment.oldest`` is at most the least delivery time of the segment.

A pending entry may be missing from the stream: trimming and XDEL leave the list alone, and
XAUTOCLAIM, XCLAIM and reads remove or report such entries. The list therefore never looks into the
log.

**Rejected.** A sorted index of (time, ID): 100 bytes more for each pending entry, which every
acknowledgement would pay for, asked for or not. Claims that go entry by entry: XAUTOCLAIM of many
entries took five times as long. Decisions 3 and 15.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from storage.effects import make
from storage.sorted_ids import SEGMENT, SortedIDs

NEVER: Final = -1
"""The active-time of a consumer that was never given anything."""

MOST: Final = 2**63 - 1
"""The highest delivery count; counting on stays there."""


class Consumer:
    """A consumer of a group. ``seen`` and ``active`` are Unix milliseconds, ``active`` may be
    :data:`NEVER`; ``ids`` are the pending entries it owns."""

    __slots__ = ("active", "ids", "name", "seen")

    def __init__(self, name: bytes, seen: int) -> None:
        self.name = name
        self.seen = seen
        self.active = NEVER
        self.ids = SortedIDs()


class PendingEntry(NamedTuple):
    """One pending entry as it stood when it was looked up; ``owner`` is ``None`` after XNACK."""

    id: int
    owner: Consumer | None
    time: int
    deliveries: int


_SOME: Final = 16
"""How many more entries than are wanted are looked at, as some may be too young."""

_Aged = tuple[int, int, Consumer, int]
"""Delivery time, ID, owner and delivery count: a pending entry in the order of its age."""


class Columns(NamedTuple):
    """Pending entries, a column each: IDs, owners, delivery times, delivery counts."""

    ids: list[int]
    owners: list[Consumer | None]
    times: list[int]
    counts: list[int]

    def add(self, segment: Segment, places: Sequence[int], latest: int) -> None:
        """Adds the entries at these places that were delivered at ``latest`` or before."""
        times = segment.times
        due = [place for place in places if times[place] <= latest]
        self.ids.extend([segment.ids[place] for place in due])
        self.owners.extend([segment.owners[place] for place in due])
        self.times.extend([times[place] for place in due])
        self.counts.extend([segment.counts[place] for place in due])

    def first(self, most: int) -> Columns:
        """The first ``most`` of them."""
        if len(self.ids) <= most:
            return self
        return Columns(self.ids[:most], self.owners[:most], self.times[:most], self.counts[:most])


def _places_in(identities: list[int], run: list[int]) -> Sequence[int]:
    """The places among ``identities`` of those that are there; both are ascending."""
    low = bisect_left(identities, run[0])
    if identities[low : low + len(run)] == run:
        return range(low, low + len(run))
    found: list[int] = []
    for identity in run:
        low = bisect_left(identities, identity, low)
        if identities[low] == identity:
            found.append(low)
    return found


class Segment:
    """Consecutive pending entries, a column each."""

    __slots__ = ("counts", "ids", "oldest", "owners", "times")

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.owners: list[Consumer | None] = []
        self.times: list[int] = []
        self.counts: list[int] = []
        self.oldest = 0

    def cut(self, low: int, high: int) -> Segment:
        """A new segment with the entries at these places."""
        piece = Segment()
        piece.ids = self.ids[low:high]
        piece.owners = self.owners[low:high]
        piece.times = self.times[low:high]
        piece.counts = self.counts[low:high]
        piece.oldest = self.oldest
        return piece

    def refresh(self) -> None:
        """Makes ``oldest`` exact, where entries that were delivered earlier have gone."""
        self.oldest = min(self.times)

    def owned_until(self, latest: int) -> Iterator[_Aged]:
        """The owned entries that were delivered at ``latest`` or before."""
        columns = zip(self.times, self.ids, self.owners, self.counts, strict=True)
        for time, identity, owner, deliveries in columns:
            if time <= latest and owner is not None:
                yield time, identity, owner, deliveries

    def entry(self, at: int) -> PendingEntry:
        """The entry at a place."""
        values = (self.ids[at], self.owners[at], self.times[at], self.counts[at])
        return make(PendingEntry, values)


def _counted(counts: list[int], more: int) -> list[int]:
    """The delivery counts after so many more."""
    if max(counts) <= MOST - more:
        return [count + more for count in counts]
    return [min(count + more, MOST) for count in counts]


def _earliest(segment: Segment) -> tuple[int, int]:
    """No entry of the segment comes before this one by time and ID."""
    return segment.oldest, segment.ids[0]


class PendingList:
    """All pending entries of a group, in ID order."""

    __slots__ = ("_lasts", "_length", "_segments", "released")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._lasts: list[int] = []
        self._length = 0
        self.released: OrderedDict[int, None] = OrderedDict()
        """The entries that XNACK has freed, in the order in which they will be claimed."""

    def __len__(self) -> int:
        return self._length

    @property
    def segments(self) -> Sequence[Segment]:
        """The pieces in order, to look at."""
        return self._segments

    # --- looking up -----------------------------------------------------------------------

    def find(self, identity: int) -> tuple[Segment, int] | None:
        """Where the entry with this ID is: its segment, and its place there."""
        at = bisect_left(self._lasts, identity)
        if at == len(self._lasts):
            return None
        segment = self._segments[at]
        place = bisect_left(segment.ids, identity)
        return (segment, place) if segment.ids[place] == identity else None

    def get(self, identity: int) -> PendingEntry | None:
        """The pending entry with this ID, or ``None``."""
        found = self.find(identity)
        return None if found is None else found[0].entry(found[1])

    def __contains__(self, identity: int) -> bool:
        return self.find(identity) is not None

    @property
    def first(self) -> int:
        """The lowest pending ID; the list must not be empty."""
        return self._segments[0].ids[0]

    @property
    def last(self) -> int:
        """The highest pending ID, -1 if there is none."""
        return self._lasts[-1] if self._lasts else -1

    def between(self, start: int, end: int) -> list[int]:
        """The pending IDs from ``start`` to ``end``."""
        found: list[int] = []
        for at in range(bisect_left(self._lasts, start), len(self._segments)):
            identities = self._segments[at].ids
            if identities[0] > end:
                break
            found += identities[bisect_left(identities, start) : bisect_right(identities, end)]
        return found

    def ids_from(self, start: int, count: int) -> list[int]:
        """Up to ``count`` pending IDs from ``start`` on."""
        found: list[int] = []
        at = bisect_left(self._lasts, start)
        while at < len(self._segments) and len(found) < count:
            identities = self._segments[at].ids
            low = bisect_left(identities, start)
            found += identities[low : low + count - len(found)]
            at += 1
        return found

    def scan(self, start: int) -> Iterator[PendingEntry]:
        """The entries from ``start`` on. The list must not change while it is walked."""
        for at in range(bisect_left(self._lasts, start), len(self._segments)):
            segment = self._segments[at]
            for place in range(bisect_left(segment.ids, start), len(segment.ids)):
                yield segment.entry(place)

    def _places(self, run: list[int]) -> Iterator[tuple[Segment, Sequence[int]]]:
        """Where the pending ones of these ascending IDs are: segments, and places there."""
        at = 0
        while at < len(run):
            index = bisect_left(self._lasts, run[at])
            if index == len(self._lasts):
                return
            segment = self._segments[index]
            stop = bisect_right(run, segment.ids[-1], at)
            yield segment, _places_in(segment.ids, run[at:stop])
            at = stop

    def columns(self, start: int, end: int, most: int) -> Columns:
        """Up to ``most`` entries from ``start`` to ``end``."""
        found = Columns([], [], [], [])
        at = bisect_left(self._lasts, start)
        while at < len(self._segments) and len(found.ids) < most:
            segment = self._segments[at]
            low = bisect_left(segment.ids, start)
            high = min(bisect_right(segment.ids, end), low + most - len(found.ids))
            if low >= high:
                break
            found.ids.extend(segment.ids[low:high])
            found.owners.extend(segment.owners[low:high])
            found.times.extend(segment.times[low:high])
            found.counts.extend(segment.counts[low:high])
            at += 1
        return found

    def columns_until(self, start: int, end: int, latest: int, most: int) -> Columns:
        """Up to ``most`` entries from ``start`` to ``end`` that were delivered at ``latest`` or
        before.

        Segments in which nothing was delivered so early are passed over.
        """
        found = Columns([], [], [], [])
        for at in range(bisect_left(self._lasts, start), len(self._segments)):
            segment = self._segments[at]
            if segment.ids[0] > end or len(found.ids) >= most:
                break
            if segment.oldest <= latest:
                segment.refresh()
            if segment.oldest <= latest:
                low, high = bisect_left(segment.ids, start), bisect_right(segment.ids, end)
                found.add(segment, range(low, high), latest)
        return found.first(most)

    def columns_owned(
        self, owner: Consumer, start: int, end: int, latest: int, most: int
    ) -> Columns:
        """The same as :meth:`columns_until`, of one consumer's entries."""
        found = Columns([], [], [], [])
        while len(found.ids) < most:
            run = owner.ids.from_(start, min(most - len(found.ids) + _SOME, SEGMENT))
            inside = run[: bisect_right(run, end)]
            for segment, places in self._places(inside):
                found.add(segment, places, latest)
            if not run or len(inside) < len(run):
                break
            start = run[-1] + 1
        return found.first(most)

    def longest_idle(self, latest: int, count: int) -> list[PendingEntry]:
        """Up to ``count`` owned entries delivered at ``latest`` or before, by time, then by ID."""
        oldest = islice(self._by_age(latest), count)
        return [make(PendingEntry, (row[1], row[2], row[0], row[3])) for row in oldest]

    def _by_age(self, latest: int) -> Iterator[_Aged]:
        """All of them, by time, then by ID; a segment is looked into when its turn has come."""
        waiting: list[_Aged] = []
        for segment in sorted((s for s in self._segments if s.oldest <= latest), key=_earliest):
            while waiting and waiting[0] < _earliest(segment):
                yield heapq.heappop(waiting)
            segment.refresh()
            for aged in segment.owned_until(latest):
                heapq.heappush(waiting, aged)
        while waiting:
            yield heapq.heappop(waiting)

    def earliest_time(self) -> int | None:
        """The earliest delivery time of an owned entry, ``None`` if there is none."""
        entries = self.longest_idle(2**63, 1)
        return entries[0].time if entries else None

    # --- changing -------------------------------------------------------------------------

    def append_run(self, run: Sequence[int], owner: Consumer, time: int) -> None:
        """Makes ascending IDs above all others pending for ``owner``, delivered at ``time``."""
        if self._segments and len(self._segments[-1].ids) < SEGMENT:
            segment = self._segments[-1]
            segment.oldest = min(segment.oldest, time)
        else:
            segment = Segment()
            segment.oldest = time
            self._segments.append(segment)
            self._lasts.append(0)
        count = len(run)
        segment.ids += run
        segment.owners += [owner] * count
        segment.times += [time] * count
        segment.counts += [1] * count
        self._lasts[-1] = run[-1]
        self._length += count
        owner.ids.add_run(run)
        self._cut(len(self._segments) - 1)

    def set(self, identity: int, owner: Consumer | None, time: int, count: int) -> None:
        """Gives an entry this owner, delivery time and count; it is made pending if it is not.

        Without an owner it goes to the end of :attr:`released`.
        """
        self.change(identity, self.find(identity) or self._make_room(identity), owner, time, count)

    def change(
        self,
        identity: int,
        found: tuple[Segment, int],
        owner: Consumer | None,
        time: int,
        count: int,
    ) -> None:
        """The same for a pending entry that :meth:`find` has just found."""
        segment, place = found
        before = segment.owners[place]
        if before is not owner:
            if before is not None:
                before.ids.remove(identity)
            if owner is not None:
                owner.ids.add(identity)
        if self.released:
            self.released.pop(identity, None)
        if owner is None:
            self.released[identity] = None
        segment.owners[place] = owner
        segment.times[place] = time
        segment.counts[place] = count
        if time < segment.oldest:
            segment.oldest = time

    def take_over(
        self,
        run: list[int],
        owner: Consumer,
        time: int,
        latest: int,
        more: int,
        count: int | None,
    ) -> tuple[list[int], list[int]]:
        """Gives ``owner`` the entries with these ascending IDs that are pending and have no owner
        or were delivered at ``latest`` or before, with this delivery time.

        Each counts ``more`` deliveries than before, or ``count`` if that is given. Returns their
        IDs and their delivery counts."""
        taken: list[int] = []
        counts: list[int] = []
        for segment, places in self._places(run):
            times, owners = segment.times, segment.owners
            due = [at for at in places if times[at] <= latest or owners[at] is None]
            if not due:
                continue
            before = [segment.counts[at] for at in due]
            after = _counted(before, more) if count is None else [count] * len(due)
            identities = [segment.ids[at] for at in due]
            self._change_owner([owners[at] for at in due], identities, owner)
            for at, number in zip(due, after, strict=True):
                owners[at] = owner
                times[at] = time
                segment.counts[at] = number
            segment.oldest = min(segment.oldest, time)
            taken += identities
            counts += after
        return taken, counts

    def _change_owner(
        self, former: list[Consumer | None], identities: list[int], owner: Consumer
    ) -> None:
        """Moves ascending IDs from their owners to another one."""
        moved: dict[Consumer | None, list[int]] = {}
        for before, identity in zip(former, identities, strict=True):
            moved.setdefault(before, []).append(identity)
        for before, run in moved.items():
            if before is owner:
                continue
            if before is not None:
                before.ids.remove_run(run)
            else:
                for identity in run:
                    del self.released[identity]
            owner.ids.add_run(run)

    def _make_room(self, identity: int) -> tuple[Segment, int]:
        """Inserts an unowned entry and returns its place."""
        at = min(bisect_left(self._lasts, identity), max(len(self._segments) - 1, 0))
        if not self._segments:
            self._segments.append(Segment())
            self._segments[0].oldest = 2**63
            self._lasts.append(identity)
        segment = self._segments[at]
        place = bisect_left(segment.ids, identity)
        for column, value in zip(
            (segment.ids, segment.owners, segment.times, segment.counts),
            (identity, None, 2**63, 0),
            strict=True,
        ):
            column.insert(place, value)  # type: ignore[attr-defined]
        self._lasts[at] = segment.ids[-1]
        self._length += 1
        self._cut(at)
        found = self.find(identity)
        assert found is not None
        return found

    def count_deliveries(self, identities: list[int], time: int) -> None:
        """Ascending pending entries were delivered to their owners once more."""
        at = 0
        while at < len(identities):
            found = self.find(identities[at])
            assert found is not None
            segment, low = found
            high = min(len(segment.ids), low + len(identities) - at)
            if segment.ids[low:high] != identities[at : at + high - low]:
                high = low + 1
            segment.times[low:high] = [time] * (high - low)
            segment.counts[low:high] = _counted(segment.counts[low:high], 1)
            segment.oldest = min(segment.oldest, time)
            at += high - low

    def remove(self, identity: int) -> bool:
        """The entry is no longer pending; false if it was not."""
        at = bisect_left(self._lasts, identity)
        if at == len(self._lasts):
            return False
        segment = self._segments[at]
        place = bisect_left(segment.ids, identity)
        if segment.ids[place] != identity:
            return False
        owner = segment.owners[place]
        if owner is None:
            del self.released[identity]
        else:
            owner.ids.remove(identity)
        del segment.ids[place], segment.owners[place], segment.times[place], segment.counts[place]
        self._length -= 1
        if not segment.ids:
            del self._segments[at], self._lasts[at]
        else:
            self._lasts[at] = segment.ids[-1]
        return True

    def _cut(self, at: int) -> None:
        """Cuts a segment that has grown too long into pieces."""
        segment = self._segments[at]
        length = len(segment.ids)
        if length <= 2 * SEGMENT:
            return
        pieces = [segment.cut(i, i + SEGMENT) for i in range(0, length, SEGMENT)]
        self._segments[at : at + 1] = pieces
        self._lasts[at : at + 1] = [piece.ids[-1] for piece in pieces]

    # --- the rest -------------------------------------------------------------------------

    def copy(self, owners: dict[Consumer, Consumer]) -> PendingList:
        """An equal list in which each owner is replaced by its counterpart."""
        twin = PendingList()
        for segment in self._segments:
            piece = segment.cut(0, len(segment.ids))
            piece.owners = [None if owner is None else owners[owner] for owner in segment.owners]
            twin._segments.append(piece)
        twin._lasts = self._lasts[:]
        twin._length = self._length
        twin.released = self.released.copy()
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        everything = list(self.scan(0))
        identities = [entry.id for entry in everything]
        assert identities == sorted(set(identities))
        assert len(identities) == self._length
        assert {e.id for e in everything if e.owner is None} == set(self.released)
        assert self._lasts == [segment.ids[-1] for segment in self._segments]
        for segment in self._segments:
            columns = (segment.ids, segment.owners, segment.times, segment.counts)
            assert {len(column) for column in columns} == {len(segment.ids)}
            assert 0 < len(segment.ids) <= 2 * SEGMENT
            assert segment.oldest <= min(segment.times)
        for entry in everything:
            assert entry.owner is None or entry.id in entry.owner.ids
