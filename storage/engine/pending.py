"""The pending entries list (PEL) of a group: which entry was delivered to whom, when, how often.

**The idea.** An object for every pending entry costs more than the entry: its creation, its memory,
and above all the garbage collector that has to visit it. So the list is stored in columns of native
integers, in segments of some :data:`SEGMENT` entries (:mod:`storage.engine.pending_segment`).
Delivering a hundred entries extends three columns; acknowledging one finds its place and marks it;
a claim changes slices of columns. New entries go into the last segment, whose IDs are a list; those
of a segment are packed when there are many behind it.

**Indexes.** By ID, ``bases`` holds the ID under which each segment is filed, and is bisected
first. By owner, a segment has a byte for each entry, and a :class:`Consumer` has the bases of the
segments that know it. By delivery time a segment has only a ``bound``: none of its entries was
delivered before. XPENDING IDLE passes over segments that are too recent, 64 at a time, and
XREADGROUP CLAIM searches the few that may hold the longest idle entries. The bound only ever gets
too low (an acknowledgement leaves it alone) and is made exact when its segment is searched.

**Entries without an owner** stay in their segment. ``extras.released`` keeps those that XNACK has
freed, in the order of their release. Those that a policy keeps back, which may be very many, are
put in like a run that is delivered.

**Invariants** (the tests call :meth:`PendingList.check`):

- Bases ascend, and the IDs of a segment lie between its base and the next one.
- No segment is longer than ``2 * SEGMENT``. All but the last have a pending entry, and the last has
  one or is shorter than :data:`KEPT`.
- A consumer owns as many entries as name it, and its ``bases`` are those of all segments in whose
  tables it is. It may be in the table of a segment of which it owns nothing any more.
- An ID in ``extras.released`` is pending without an owner; ``unowned`` is how many entries are.
- The bound of a segment is at most the least delivery time of its pending entries.

A pending entry may be missing from the stream: trimming and XDEL leave the list alone, and
XAUTOCLAIM, XCLAIM and reads remove or report such entries. The list never looks into the log.

**Rejected.** A sorted index of (time, ID): 100 bytes more for each pending entry, which every
acknowledgement would pay for, asked for or not. A sorted list of its IDs for each consumer: half of
the memory, and half of the time of an acknowledgement. Claims that go entry by entry: XAUTOCLAIM of
many entries took five times as long. Decisions 3 and 15.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from storage.engine.effects import make
from storage.engine.extras import NO_EXTRAS, Extras
from storage.engine.ids import MAX
from storage.engine.pending_segment import (
    FREED,
    HIGHEST,
    NEVER,
    Aged,
    Columns,
    Consumer,
    PendingEntry,
    Segment,
    Span,
    ids_in,
)
from storage.engine.pending_segments import KEPT, SEGMENT, Segments, leave
from storage.engine.waits import Waits

__all__ = [
    "FREED",
    "HIGHEST",
    "NEVER",
    "Columns",
    "Consumer",
    "PendingEntry",
    "PendingList",
    "Segment",
    "Span",
    "ids_in",
]


class PendingList(Segments):
    """All pending entries of a group, in ID order."""

    __slots__ = ("_length", "extras", "unowned")

    def __init__(self) -> None:
        super().__init__()
        self._length = 0
        self.extras = NO_EXTRAS
        """What is kept of some entries, to look at."""
        self.unowned = 0
        """How many entries have no owner: XNACK has freed them, or a policy keeps them back."""

    def __len__(self) -> int:
        return self._length

    def own_extras(self) -> Extras:
        """Return what is kept of some entries, to be added to."""
        if self.extras is NO_EXTRAS:
            self.extras = Extras()
        return self.extras

    # --- looking up -----------------------------------------------------------------------

    def find(self, entry_id: int) -> tuple[int, int] | None:
        """Where the entry with this ID is: the number of its segment, and its place there."""
        at = self.holder_of(entry_id)
        if at < 0:
            return None
        place = self.segments[at].find(entry_id)
        return None if place < 0 else (at, place)

    def get(self, entry_id: int) -> PendingEntry | None:
        """The pending entry with this ID, or ``None``."""
        found = self.find(entry_id)
        return None if found is None else self.entry(found)

    def entry(self, found: tuple[int, int]) -> PendingEntry:
        """The pending entry that :meth:`find` has just found."""
        return self.segments[found[0]].entry(found[1])

    def __contains__(self, entry_id: int) -> bool:
        return self.find(entry_id) is not None

    @property
    def first(self) -> int:
        """The lowest pending ID; the list must not be empty."""
        segment = self.segments[0]
        return segment.ids.at(segment.first)

    @property
    def last(self) -> int:
        """The highest pending ID, -1 if there is none."""
        if not self._length:
            return -1
        segment = self.segments[-1] if self.segments[-1].live else self.segments[-2]
        return segment.ids.at(segment.last)

    def ends_below(self, entry_id: int) -> bool:
        """Whether all pending IDs are lower than this one."""
        segments = self.segments
        # The last ID of a segment may be that of an entry which is not pending any more.
        return not segments or segments[-1].ids.at(-1) < entry_id or self.last < entry_id

    def between(self, start: int, end: int) -> list[int]:
        """The pending IDs from ``start`` to ``end``."""
        return ids_in(self.spans(start, end, self._length))

    def ids_from(self, start: int, count: int) -> list[int]:
        """Up to ``count`` pending IDs from ``start`` on."""
        return ids_in(self.spans(start, MAX, count))

    def owned_ids(self, owner: Consumer, start: int, count: int) -> list[int]:
        """Return up to ``count`` pending IDs from ``start`` on that a consumer owns."""
        return ids_in(self.owned_from(owner, start, count))

    def owned_from(self, owner: Consumer, start: int, count: int) -> list[Span]:
        """Return up to ``count`` pending IDs of ``owner`` from ``start`` on, as spans."""
        found: list[Span] = []
        at = max(bisect_right(owner.bases, start) - 1, 0)
        while at < len(owner.bases) and count > 0:
            segment = self.with_base(owner.bases[at])
            places = segment.owned_places(owner, start, count)
            if places:
                found.append((segment, places))
                count -= len(places)
            elif start <= segment.base:
                leave(segment, owner)
                continue
            at += 1
        return found

    def scan(self, start: int) -> Iterator[PendingEntry]:
        """The entries from ``start`` on. The list must not change while it is walked."""
        for segment, places in self.spans(start, MAX, self._length):
            for place in places:
                yield segment.entry(place)

    def columns(self, start: int, end: int, most: int) -> Columns:
        """Up to ``most`` entries from ``start`` to ``end``."""
        return Columns(self.spans(start, end, most))

    def spans(self, start: int, end: int, most: int, latest: int = HIGHEST) -> list[Span]:
        """Where up to ``most`` entries from ``start`` to ``end`` are that were delivered at
        ``latest`` or before; segments in which nothing was are passed over."""
        found: list[Span] = []
        every = latest == HIGHEST
        at = max(self.holder_of(start), 0)
        at = at if every else self.next_by(at, latest)
        while at < len(self.segments) and most > 0 and self.bases[at] <= end:
            segment = self.segments[at]
            if every:
                places = segment.places_between(start, end, most)
            elif self.refreshed(at) <= latest:
                places = segment.due(segment.places_between(start, end, len(segment)), latest)
                places = places[:most]
            else:
                places = ()
            found.append((segment, places))
            most -= len(places)
            at = at + 1 if every else self.next_by(at + 1, latest)
        return found

    def spans_owned(
        self, owner: Consumer, start: int, end: int, latest: int, most: int
    ) -> list[Span]:
        """Return what :meth:`spans` does, of one consumer's entries."""
        found: list[Span] = []
        at = max(bisect_right(owner.bases, start) - 1, 0)
        while at < len(owner.bases) and most > 0 and owner.bases[at] <= end:
            segment = self.with_base(owner.bases[at])
            places = segment.owned_places(owner, start, len(segment) if latest < HIGHEST else most)
            if places and segment.ids.at(places[-1]) > end:
                places = places[: bisect_left(places, segment.ids.before(end + 1))]
            places = segment.due(places, latest)[:most]
            found.append((segment, places))
            most -= len(places)
            at += 1
        return found

    def columns_unowned(self, start: int, most: int) -> Columns:
        """Return up to ``most`` entries from ``start`` on that have no owner."""
        found = Columns()
        at = max(self.holder_of(start), 0)
        while self.unowned and at < len(self.segments) and len(found) < most:
            segment = self.segments[at]
            segment.add_to(found, segment.places_with(FREED, start, most - len(found)))
            at += 1
        return found

    # --- delivering -----------------------------------------------------------------------

    def append_run(self, run: Sequence[int], owner: Consumer, time: int) -> None:
        """Makes ascending IDs above all others pending for ``owner``, delivered at ``time``."""
        done = 0
        while done < len(run):
            at = self.last_with_room(run[done], time)
            slot = self.slot(at, owner)
            if slot < 0:
                at = self.begin(run[done], time)
                slot = self.slot(at, owner)
            segment = self.segments[at]
            stop = done + SEGMENT - len(segment.owners)
            piece = run if not done and len(run) <= stop else run[done:stop]
            segment.extend(piece, slot, time)
            self.lower(at, time)
            done += len(piece)
        self._length += len(run)
        owner.owned += len(run)

    def keep_back(self, run: Sequence[int], until: Sequence[int]) -> None:
        """Makes ascending IDs pending without an owner, never delivered, each with a time before
        which it is kept back. Nobody will claim them in the order of their release."""
        if not self.ends_below(run[0]):
            for entry_id, time in zip(run, until, strict=True):
                self.set(entry_id, None, time, 0)
                self.extras.released.remove(entry_id)
            return
        done = 0
        while done < len(run):
            at = self.last_with_room(run[done], until[done])
            segment = self.segments[at]
            stop = done + SEGMENT - len(segment.owners)
            times = until[done:stop]
            segment.keep_back(run[done:stop], times)
            self.lower(at, min(times))
            done += len(times)
        self._length += len(run)
        self.unowned += len(run)
        delayed = self.own_extras().delayed
        for time in until:
            delayed.add(time)

    # --- changing single entries ----------------------------------------------------------

    def set(self, entry_id: int, owner: Consumer | None, time: int, count: int) -> None:
        """Gives an entry this owner, delivery time and count; it is made pending if it is not.

        Without an owner it goes to the end of :attr:`released`.
        """
        self.change(entry_id, self.find(entry_id) or self._insert(entry_id), owner, time, count)

    def change(
        self,
        entry_id: int,
        found: tuple[int, int],
        owner: Consumer | None,
        time: int,
        count: int,
    ) -> None:
        """Give a pending entry that :meth:`find` has just found these values."""
        at, place = found
        slot = FREED
        if owner is not None:
            slot = self.slot(at, owner)
            if slot < 0:
                at, place, slot = self._slot_for(entry_id, owner)
            owner.owned += 1
        else:
            self.unowned += 1
        segment = self.segments[at]
        stamps = segment.stamps
        before = segment.people[segment.owners[place]]
        if before is not None:
            before.owned -= 1
        else:
            self.unowned -= 1
            self._waits(stamps[2 * place + 1]).leave(stamps[2 * place])
        self.extras.released.remove(entry_id)
        if owner is None:
            self.own_extras().released.add((entry_id,))
            self._waits(count).add(time)
        segment.owners[place] = slot
        stamps[2 * place], stamps[2 * place + 1] = time, count
        self.lower(at, time)

    def _insert(self, entry_id: int) -> tuple[int, int]:
        """Puts an unowned entry in; returns where it is."""
        at = self.holder_of(entry_id)
        if not self.segments or (
            at == len(self.segments) - 1
            and len(self.segments[at]) >= SEGMENT
            and self.segments[at].ids.at(-1) < entry_id
        ):
            at = self._begin_with(entry_id)
        else:
            if at < 0:
                at = 0
                self.file_under(entry_id)
            self.segments[at].insert(entry_id)
            self.note_opened(at)
        self._length += 1
        self.unowned += 1
        if len(self.segments[at]) > 2 * SEGMENT:
            self.cut(at)
        found = self.find(entry_id)
        assert found is not None
        return found

    def _begin_with(self, entry_id: int) -> int:
        """Begins a new last segment with one unowned entry."""
        at = self.begin(entry_id, HIGHEST)
        self.segments[at].extend([entry_id], FREED, HIGHEST)
        return at

    def remove(self, entry_id: int) -> bool:
        """The entry is no longer pending; false if it was not."""
        return self._remove_from([entry_id], 0) > 0

    def remove_all(self, entry_ids: list[int], acked: bool = False) -> list[int]:
        """The entries are no longer pending; returns the IDs of those that were. Where they were
        ``acked``, their owners count them."""
        gone: list[int] = []
        at = 0
        while at < len(entry_ids):
            count = self._remove_from(entry_ids, at, acked)
            if count == len(entry_ids):
                return entry_ids
            gone += entry_ids[at : at + count]
            at += max(count, 1)
        return gone

    def _remove_from(self, entry_ids: list[int], at: int, acked: bool = False) -> int:
        """Takes out the entry with the ID at place ``at``, and those with the IDs behind it that
        stand in a row with it and have the same owner; returns how many, 0 if it is not pending."""
        holder = self.holder_of(entry_ids[at])
        if holder < 0:
            return 0
        segment = self.segments[holder]
        place = segment.find(entry_ids[at])
        if place < 0:
            return 0
        count = segment.count_alike(place, entry_ids, at)
        owner = segment.people[segment.owners[place]]
        if owner is not None:
            owner.owned -= count
            if acked:
                owner.acked += count
        else:
            self._forget_unowned(segment, range(place, place + count))
        self._length -= count
        if self.extras.histories.size:
            self.extras.histories.forget(entry_ids[at : at + count])
        if segment.live > count:
            segment.drop(place, count)
        elif holder == len(self.segments) - 1 and len(segment.owners) < KEPT:
            segment.drop_rest()
        else:
            self.remove_segment(holder)
        return count

    def _forget_unowned(self, segment: Segment, places: Sequence[int]) -> None:
        """Entries without an owner will have one, or are pending no more."""
        self.unowned -= len(places)
        extras = self.extras
        for entry_id in segment.ids_at(places) if len(extras.released) else ():
            extras.released.remove(entry_id)
        if extras.delayed.some or extras.backing_off.some:
            for place in places:
                self._waits(segment.stamps[2 * place + 1]).leave(segment.stamps[2 * place])

    def _waits(self, deliveries: int) -> Waits:
        """Return what counts an entry without an owner that was delivered so often."""
        return self.extras.backing_off if deliveries else self.extras.delayed

    def remove_owner(self, owner: Consumer) -> list[int]:
        """Remove everything that the consumer owns; returns it."""
        owned = self.owned_ids(owner, 0, owner.owned)
        self.remove_all(owned)
        for base in owner.bases[:]:
            leave(self.with_base(base), owner)
        return owned

    def release_owned(self, owner: Consumer, most: int) -> tuple[list[int], list[int]]:
        """Take up to ``most`` entries from a consumer, as if it had not been given them that time:
        they have no owner then. Returns their IDs and delivery counts."""
        released: list[int] = []
        counts: list[int] = []
        while owner.bases and len(released) < most:
            at = self.holder_of(owner.bases[0])
            segment = self.segments[at]
            places = segment.owned_places(owner, segment.base, most - len(released))
            if not places:
                leave(segment, owner)
                continue
            released += segment.ids_at(places)
            counts += segment.free(places)
            self.lower(at, 0)
        self.own_extras().released.add(released)
        self.unowned += len(released)
        owner.owned -= len(released)
        return released, counts

    def _slot_for(self, entry_id: int, owner: Consumer) -> tuple[int, int, int]:
        """Where a pending entry is and the number of the consumer there; a segment with too many
        consumers is cut."""
        while True:
            found = self.find(entry_id)
            assert found is not None
            slot = self.slot(found[0], owner)
            if slot >= 0:
                return found[0], found[1], slot
            self.cut(found[0])

    # --- changing many --------------------------------------------------------------------

    def take_over(
        self,
        run: list[int],
        owner: Consumer,
        time: int,
        latest: int,
        more: int,
        count: int | None,
        pending: bool = False,
    ) -> tuple[list[int], list[int]]:
        """Gives ``owner`` the entries with these ascending IDs that are pending and have no owner
        or were delivered at ``latest`` or before, with this delivery time.

        Each counts ``more`` deliveries than before, or ``count`` if that is given; ``pending``
        tells that all IDs surely are. Returns their IDs and their delivery counts."""
        taken: list[int] = []
        counts: list[int] = []
        done = 0
        while done < len(run):
            at = self.holder_of(run[done])
            if at < 0:
                done = bisect_left(run, self.bases[0]) if self.bases else len(run)
                continue
            part = run[done : self._end_of(at, run, done)]
            due = self._due(at, part, latest, pending)
            if due and owner not in self.segments[at].slots:
                # The segment may be cut for that.
                at = self._slot_for(self.segments[at].ids.at(due[0]), owner)[0]
                part = run[done : self._end_of(at, run, done)]
                due = self._due(at, part, latest, pending)
            if due:
                segment = self.segments[at]
                taken += part if len(due) == len(part) else segment.ids_at(due)
                self._give(at, due, owner)
                counts += segment.count(due, time, more, count)
                self.lower(at, time)
            done += len(part)
        return taken, counts

    def _end_of(self, at: int, run: list[int], done: int) -> int:
        """Up to where IDs of a run belong into this segment."""
        if at == len(self.segments) - 1:
            return len(run)
        return bisect_left(run, self.bases[at + 1], done)

    def _due(self, at: int, run: list[int], latest: int, pending: bool) -> Sequence[int]:
        """The places of those of these IDs that have no owner or were delivered by then."""
        segment = self.segments[at]
        places = segment.places_of_pending(run) if pending else segment.places_of(run)
        due = segment.due(places, latest)
        if len(due) < len(places) and self.unowned:
            owners, stamps = segment.owners, segment.stamps
            return [each for each in places if owners[each] == FREED or stamps[2 * each] <= latest]
        return due

    def _give(self, at: int, places: Sequence[int], owner: Consumer) -> None:
        """Changes the owner of the entries at these places."""
        segment = self.segments[at]
        former = segment.owned_by(places)
        first = former[0]
        if former.count(first) < len(former):
            for place, before in zip(places, former, strict=True):
                if before is None:
                    self._forget_unowned(segment, (place,))
                else:
                    before.owned -= 1
        elif first is not None:
            first.owned -= len(former)
        else:
            self._forget_unowned(segment, places)
        segment.give(places, owner)
        owner.owned += len(places)

    def count_deliveries(self, entry_ids: list[int], time: int) -> None:
        """Ascending pending entries were delivered to their owners once more."""
        done = 0
        while done < len(entry_ids):
            at = self.holder_of(entry_ids[done])
            stop = self._end_of(at, entry_ids, done)
            segment = self.segments[at]
            self.count_found([(segment, segment.places_of_pending(entry_ids[done:stop]))], time)
            done = stop

    # --- the rest -------------------------------------------------------------------------

    def copy(self, owners: dict[Consumer, Consumer]) -> PendingList:
        """An equal list in which each owner is replaced by its counterpart."""
        twin = PendingList()
        self.copy_to(twin, owners)
        twin._length, twin.unowned = self._length, self.unowned
        twin.extras = self.extras.copy()
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        everything = list(self.scan(0))
        assert len(everything) == self._length
        unowned = {entry.id for entry in everything if entry.owner is None}
        assert unowned.issuperset(self.extras.released)
        assert len(unowned) == self.unowned
        self._check_waits()
        self.check_segments()

    def _check_waits(self) -> None:
        for delayed, waits in ((True, self.extras.delayed), (False, self.extras.backing_off)):
            times = [
                entry.time
                for entry in self.scan(0)
                if entry.owner is None and (entry.deliveries == 0) is delayed
            ]
            waits.check(times)

    def check_owner(self, owner: Consumer) -> None:
        """Verifies what a consumer knows of its entries."""
        assert owner.bases == [each.base for each in self.segments if owner in each.slots]
        assert owner.owned == sum(entry.owner is owner for entry in self.scan(0))


# --- in the order of their age ---------------------------------------------------------------


def longest_idle(pending: PendingList, latest: int, count: int) -> list[PendingEntry]:
    """Up to ``count`` owned entries delivered at ``latest`` or before, by time, then by ID."""
    oldest = islice(_by_age(pending, latest), count)
    return [make(PendingEntry, (row[1], row[2], row[0], row[3])) for row in oldest]


def earliest_time(pending: PendingList) -> int | None:
    """The earliest delivery time of an owned entry, ``None`` if there is none."""
    entries = longest_idle(pending, HIGHEST, 1)
    return entries[0].time if entries else None


def _by_age(pending: PendingList, latest: int) -> Iterator[Aged]:
    """All of them, by time, then by ID; a segment is looked into when its turn has come."""
    waiting: list[Aged] = []
    for earliest, base, at in sorted(_bounds(pending, latest)):
        while waiting and waiting[0][:2] < (earliest, base):
            yield heapq.heappop(waiting)
        pending.refreshed(at)
        for aged in pending.segments[at].owned_until(latest):
            heapq.heappush(waiting, aged)
    while waiting:
        yield heapq.heappop(waiting)


def _bounds(pending: PendingList, latest: int) -> Iterator[tuple[int, int, int]]:
    """The segments in which something may have been delivered by then: no entry of one comes before
    its bound and its base. Their numbers follow."""
    at = pending.next_by(0, latest)
    while at < len(pending.segments):
        segment = pending.segments[at]
        yield segment.bound, segment.base, at
        at = pending.next_by(at + 1, latest)
