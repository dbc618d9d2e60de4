"""A segment of a pending entries list: consecutive entries in columns of their values.

A delivery time and the delivery count are native integers, one behind the other in one column: who
looks for one needs the other, and most segments are in no cache. An owner is one byte, a number in
the segment's own table of consumers, so one consumer's entries are found as fast as a byte in a
byte string. An entry that is no longer pending keeps its place with the owner :data:`GONE`: taking
it out writes one byte. When three of four places behind the first entry are such, the segment is
put together again: where half of them were enough, that would be most of what it costs to
acknowledge entries in any order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import compress, islice
from struct import pack
from sys import byteorder
from typing import Final, NamedTuple

from storage.engine.effects import make
from storage.engine.id_column import IDColumn

NEVER: Final = -1
"""The active-time of a consumer that was never given anything."""

HIGHEST: Final = 2**63 - 1
"""The highest delivery count, and the latest delivery time; counting on stays there."""

FREED: Final = 0
"""The owner of an entry that has none: XNACK has freed it, or a policy keeps it back."""
GONE: Final = 255
"""The owner of an entry that is not pending any more."""
MOST_OWNERS: Final = 254
"""How many consumers have a number in a segment."""
FEW: Final = 12
"""Up to so many entries are looked at one by one, which takes less than copies of their parts."""
_SPARSE: Final = 4
"""How many places there are for each pending entry, at most."""
_BYTES: Final = [bytes([number]) for number in range(GONE + 1)]
"""The owners, one byte each."""
_GONE: Final = _BYTES[GONE]
_EMPTY: Final = array("q")
"""To copy it takes a third of what it takes to make a column."""
_PENDING: Final = bytes([1] * GONE + [0])
"""By owner, whether an entry is pending."""
_OWNED: Final = bytes([0] + [1] * (GONE - 1) + [0])
"""By owner, whether an entry has one."""


class Consumer:
    """A consumer of a group. ``seen`` and ``active`` are Unix milliseconds, ``active`` may be
    :data:`NEVER`; ``owned`` is the number of pending entries it owns, and ``bases`` tells which
    segments they are in: all segments whose tables it is in, ascending.

    ``acked`` and ``redelivered`` count entries that it has acknowledged, and that it was given
    again, since it is in memory. ``link`` is where its last request came from, which nothing here
    looks into."""

    __slots__ = ("acked", "active", "bases", "link", "name", "owned", "redelivered", "seen")

    def __init__(self, name: bytes, seen: int) -> None:
        self.name = name
        self.seen = seen
        self.active = NEVER
        self.owned = 0
        self.bases: list[int] = []
        self.acked = 0
        self.redelivered = 0
        self.link: object = None


class PendingEntry(NamedTuple):
    """One pending entry as it stood when it was looked up; ``owner`` is ``None`` after XNACK."""

    id: int
    owner: Consumer | None
    time: int
    deliveries: int


Aged = tuple[int, int, Consumer, int]
"""Delivery time, ID, owner and delivery count: a pending entry in the order of its age."""


class Columns:
    """Pending entries, a column each: IDs, owners, delivery times, delivery counts."""

    __slots__ = ("counts", "ids", "owners", "times")

    def __init__(self, spans: Sequence[Span] = ()) -> None:
        self.ids: list[int] = []
        self.owners: list[Consumer | None] = []
        self.times: list[int] = []
        self.counts: list[int] = []
        for segment, places in spans:
            segment.add_to(self, places)

    def __len__(self) -> int:
        return len(self.ids)


class Segment:
    """Consecutive pending entries. ``base`` is at most the first ID, and the segment is filed under
    it; places below ``first`` have no pending entry, ``live`` is the number of those that have.
    None of these was delivered before ``bound``."""

    __slots__ = (
        "base",
        "bound",
        "first",
        "ids",
        "live",
        "owners",
        "people",
        "slots",
        "stamps",
    )

    def __init__(self, base: int, bound: int) -> None:
        self.base = base
        self.bound = bound
        self.first = 0
        self.live = 0
        self.ids = IDColumn([])
        self.owners = bytearray()
        self.stamps = _EMPTY[:]
        """Of each entry the delivery time, and the delivery count."""
        self.people: list[Consumer | None] = [None]
        """The consumers by number; nobody has the number 0, or one that is free again."""
        self.slots: dict[Consumer, int] = {}
        """The numbers by consumer."""

    def __len__(self) -> int:
        return len(self.owners)

    # --- looking up -----------------------------------------------------------------------

    def find(self, entry_id: int) -> int:
        """The place of the pending entry with this ID, -1 if there is none."""
        if not self.live:
            return -1
        place = self.ids.find(entry_id, self.first)
        return place if place >= 0 and self.owners[place] != GONE else -1

    def count_alike(self, place: int, entry_ids: list[int], at: int) -> int:
        """Return how many IDs from ``at`` on are those of the entries from this place on that have
        the same owner as the first of them, which is one."""
        owners, slot = self.owners, self.owners[place]
        most = min(len(entry_ids) - at, len(owners) - place)
        end = place + most
        if most > 1 and (
            self.ids.at(end - 1) == entry_ids[at + most - 1]
            and owners.count(slot, place, end) == most
            and self.ids.slice(place, end) == entry_ids[at : at + most]
        ):
            return most
        count = 1
        while (
            count < most
            and owners[place + count] == slot
            and self.ids.at(place + count) == entry_ids[at + count]
        ):
            count += 1
        return count

    def pending_places(self, low: int, high: int, most: int) -> Sequence[int]:
        """The first ``most`` places with a pending entry, from ``low`` to below ``high``."""
        low, owners = max(low, self.first), self.owners
        end = min(high, low + most)
        if self.live == len(owners) - self.first or (
            most > FEW and owners.find(GONE, low, end) < 0
        ):
            return range(low, end)
        if most > FEW:
            pending = owners[low:high].translate(_PENDING)
            return list(islice(compress(range(low, high), pending), most))
        places: list[int] = []
        while low < high and len(places) < most:
            if owners[low] != GONE:
                places.append(low)
            low += 1
        return places

    def places_between(self, start: int, end: int, most: int) -> Sequence[int]:
        """The first ``most`` places with an ID from ``start`` to ``end``."""
        low = 0 if start <= self.base else self.ids.before(start)
        high = len(self) if self.ids.at(-1) <= end else self.ids.before(end + 1)
        return self.pending_places(low, high, most)

    @property
    def last(self) -> int:
        """The last place with a pending entry; there must be one."""
        owners = self.owners
        return len(owners if owners[-1] != GONE else owners.rstrip(_GONE)) - 1

    def places_of(self, run: list[int]) -> Sequence[int]:
        """The places of those of these ascending IDs that are pending."""
        low = self.ids.before(run[0])
        high = low + len(run)
        if self.owners.find(GONE, low, high) < 0 and self.ids.slice(low, high) == run:
            return range(low, high)
        places = [self.find(entry_id) for entry_id in run]
        return [place for place in places if place >= 0]

    def places_of_pending(self, run: list[int]) -> Sequence[int]:
        """Return the places of these ascending IDs, each of which is pending: as many as there are
        places from the first to the last one's have all of these."""
        low, high = self.ids.before(run[0]), self.ids.before(run[-1]) + 1
        return range(low, high) if high - low == len(run) else self.places_of(run)

    def owned_places(self, owner: Consumer, start: int, most: int) -> Sequence[int]:
        """The first ``most`` places of entries of this consumer from the ID ``start`` on."""
        return self.places_with(self.slots[owner], start, most)

    def places_with(self, slot: int, start: int, most: int) -> Sequence[int]:
        """Return the first ``most`` places of entries whose owner has this number from the ID
        ``start`` on."""
        low = self.owners.find(slot, 0 if start <= self.base else self.ids.before(start))
        if low < 0:
            return ()
        high = min(len(self), low + most)
        if self.owners.count(slot, low, high) == high - low:
            return range(low, high)
        places: list[int] = []
        while low >= 0 and len(places) < most:
            places.append(low)
            low = self.owners.find(slot, low + 1)
        return places

    def ids_at(self, places: Sequence[int]) -> list[int]:
        """The IDs at these ascending places."""
        return self.ids.pick(places)

    def entry(self, at: int) -> PendingEntry:
        """The entry at a place."""
        owner = self.people[self.owners[at]]
        time, count = self.stamps[2 * at], self.stamps[2 * at + 1]
        return make(PendingEntry, (self.ids.at(at), owner, time, count))

    def times_at(self, low: int, high: int) -> list[int]:
        """Return the delivery times at the places from ``low`` to below ``high``."""
        return self.stamps[2 * low : 2 * high : 2].tolist()

    def counts_at(self, low: int, high: int) -> list[int]:
        """Return the delivery counts at these places."""
        return self.stamps[2 * low + 1 : 2 * high : 2].tolist()

    def add_to(self, columns: Columns, places: Sequence[int]) -> None:
        """Adds the entries at these ascending places to columns."""
        if not places:
            return
        low, high = places[0], places[-1] + 1
        entry_ids, owners = self.ids.slice(low, high), self._owners_at(low, high)
        times, counts = self.times_at(low, high), self.counts_at(low, high)
        if len(places) < high - low:
            entry_ids = [entry_ids[place - low] for place in places]
            owners = [owners[place - low] for place in places]
            times = [times[place - low] for place in places]
            counts = [counts[place - low] for place in places]
        columns.ids.extend(entry_ids)
        columns.owners.extend(owners)
        columns.times.extend(times)
        columns.counts.extend(counts)

    def owned_by(self, places: Sequence[int]) -> list[Consumer | None]:
        """Return who owns the entries at these places."""
        if isinstance(places, range):
            return self._owners_at(places.start, places.stop)
        return [self.people[self.owners[place]] for place in places]

    def _owners_at(self, low: int, high: int) -> list[Consumer | None]:
        """Return who owns these entries; nobody owns those that are gone."""
        owners, people = self.owners[low:high], self.people
        if owners.count(owners[0]) == len(owners) and owners[0] != GONE:
            return [people[owners[0]]] * len(owners)
        return [None if slot == GONE else people[slot] for slot in list(owners)]

    def due(self, places: Sequence[int], latest: int) -> Sequence[int]:
        """Return those of these places where an entry was delivered at ``latest`` or before."""
        if latest >= HIGHEST:
            return places
        stamps = self.stamps
        due = [place for place in places if stamps[2 * place] <= latest]
        return places if len(due) == len(places) else due

    def earliest(self) -> int:
        """When the first of the pending entries was delivered."""
        if self.live == len(self):
            return min(self.stamps[::2])
        return min(compress(self.stamps[::2], self.owners.translate(_PENDING)), default=HIGHEST)

    def earliest_owned(self) -> int:
        """Return when the first of the entries that have an owner was delivered; :data:`HIGHEST` if
        none has."""
        if self.owners.find(FREED) < 0:
            return self.earliest()
        owned = self.owners.translate(_OWNED)
        return min(compress(self.stamps[::2], owned), default=HIGHEST)

    def delivery_counts(self) -> array[int]:
        """How often each of the pending entries was delivered."""
        if self.live == len(self):
            return self.stamps[1::2]
        return array("q", compress(self.stamps[1::2], self.owners.translate(_PENDING)))

    def owned_until(self, latest: int) -> Iterator[Aged]:
        """The owned entries that were delivered at ``latest`` or before."""
        for place in self.due(self.pending_places(0, len(self), len(self)), latest):
            owner = self.people[self.owners[place]]
            if owner is not None:
                time, count = self.stamps[2 * place], self.stamps[2 * place + 1]
                yield time, self.ids.at(place), owner, count

    # --- changing -------------------------------------------------------------------------

    def extend(self, run: Sequence[int], slot: int, time: int) -> None:
        """Adds entries with these IDs, which are above all others, delivered once."""
        count = len(run)
        if not self.live:
            self.first = len(self.owners)
        self.ids.extend(run)
        if count == 1:
            self.owners.append(slot)
            self.stamps.append(time)
            self.stamps += _ONCE
        else:
            self.owners += _BYTES[slot] * count
            self.stamps.frombytes((_native(time) + _ONE) * count)
        self.live += count

    def keep_back(self, run: Sequence[int], until: Sequence[int]) -> None:
        """Adds entries with these IDs, which are above all others, without an owner and never
        delivered, each with its time."""
        if not self.live:
            self.first = len(self.owners)
        self.ids.extend(run)
        self.owners += _BYTES[FREED] * len(run)
        stamps = array("q", (0,)) * (2 * len(run))
        stamps[::2] = array("q", until)
        self.stamps += stamps
        self.live += len(run)

    def insert(self, entry_id: int) -> int:
        """Makes an ID pending that was not, without an owner; returns its place."""
        place = self.ids.before(entry_id)
        if place < len(self) and self.ids.at(place) == entry_id:
            self.owners[place] = FREED
            self.stamps[2 * place] = HIGHEST
        else:
            self.ids.insert(place, entry_id)
            self.owners.insert(place, FREED)
            self.stamps[2 * place : 2 * place] = array("q", (HIGHEST, 0))
        self.first = min(self.first, place) if self.live else place
        self.live += 1
        return place

    def drop(self, place: int, count: int) -> None:
        """So many entries from this place on are not pending any more, but others are."""
        owners = self.owners
        if count == 1:
            owners[place] = GONE
        else:
            owners[place : place + count] = _GONE * count
        self.live -= count
        if place == self.first:
            place += count
            while owners[place] == GONE:
                place += 1
            self.first = place
        elif len(owners) - self.first > _SPARSE * self.live:
            self.compact()

    def drop_rest(self) -> None:
        """Let nothing in the segment be pending any more."""
        self.owners[self.first :] = _GONE * (len(self.owners) - self.first)
        self.live = 0

    def give(self, places: Sequence[int], owner: Consumer) -> None:
        """Changes the owner of the entries at these places."""
        slot = self.slots[owner]
        if isinstance(places, range):
            self.owners[places.start : places.stop] = _BYTES[slot] * len(places)
        else:
            for place in places:
                self.owners[place] = slot

    def free(self, places: Sequence[int]) -> list[int]:
        """Let the entries at these places have no owner, delivered once less; returns their
        delivery counts."""
        owners, stamps = self.owners, self.stamps
        freed: list[int] = []
        for place in places:
            count = max(stamps[2 * place + 1] - 1, 0)
            owners[place], stamps[2 * place], stamps[2 * place + 1] = FREED, 0, count
            freed.append(count)
        return freed

    def count(self, places: Sequence[int], time: int, more: int, count: int | None) -> list[int]:
        """The entries at these places were delivered at this time, ``more`` times than before or
        ``count`` times; returns their delivery counts."""
        if not isinstance(places, range):
            return self._count_each(places, time, more, count)
        low, high = places.start, places.stop
        self.stamps[2 * low : 2 * high : 2] = array("q", (time,)) * (high - low)
        if count is None:
            counts = _counted(self.counts_at(low, high), more)
        else:
            counts = [count] * (high - low)
        self.stamps[2 * low + 1 : 2 * high : 2] = _column(counts)
        return counts

    def _count_each(
        self, places: Sequence[int], time: int, more: int, count: int | None
    ) -> list[int]:
        stamps = self.stamps
        found: list[int] = []
        for place in places:
            number = min(stamps[2 * place + 1] + more, HIGHEST) if count is None else count
            stamps[2 * place], stamps[2 * place + 1] = time, number
            found.append(number)
        return found

    def compact(self) -> None:
        """Gives up the places without a pending entry."""
        pending = self.owners.translate(_PENDING)
        self.ids.keep(pending)
        both = bytearray(2 * len(pending))
        both[::2] = both[1::2] = pending
        self.stamps = array("q", compress(self.stamps, both))
        self.owners = bytearray(compress(self.owners, pending))
        self.first = 0

    def cut(self) -> Segment:
        """Cuts the upper half off, which becomes a new segment with the same table."""
        middle = len(self) // 2
        piece = Segment(self.ids.at(middle), self.bound)
        entry_ids = self.ids.slice(0, len(self))
        self.ids, piece.ids = IDColumn(entry_ids[:middle]), IDColumn(entry_ids[middle:])
        self.owners, piece.owners = self.owners[:middle], self.owners[middle:]
        self.stamps, piece.stamps = self.stamps[: 2 * middle], self.stamps[2 * middle :]
        piece.people, piece.slots = self.people[:], self.slots.copy()
        piece.live = len(piece)
        self.live = middle
        return piece

    # --- the table of consumers -----------------------------------------------------------

    def free_slot(self) -> int:
        """A number that no consumer has, -1 if all are taken."""
        if len(self.people) <= MOST_OWNERS:
            self.people.append(None)
            return len(self.people) - 1
        return self.people.index(None, 1) if None in self.people[1:] else -1

    def strangers(self) -> list[Consumer]:
        """The consumers in the table that own none of the entries."""
        return [person for person, slot in self.slots.items() if slot not in self.owners]

    def held(self) -> Segment:
        """Return the entries as they are now, for who only reads them."""
        twin = Segment(self.base, self.bound)
        twin.first, twin.live = self.first, self.live
        twin.ids, twin.owners = self.ids.copy(), self.owners[:]
        twin.stamps = self.stamps[:]
        twin.people = self.people[:]
        return twin

    def copy(self, owners: dict[Consumer, Consumer]) -> Segment:
        """An equal segment in which each consumer is replaced by its counterpart."""
        twin = self.held()
        twin.people = [None if person is None else owners[person] for person in self.people]
        twin.slots = {owners[person]: slot for person, slot in self.slots.items()}
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        entry_ids = self.ids.slice(0, len(self))
        assert entry_ids == sorted(set(entry_ids))
        assert len(self.ids) == len(self.owners) == len(self.stamps) // 2
        assert self.base <= entry_ids[0]
        assert self.live == len(self) - self.owners.count(GONE)
        assert self.first == 0 or self.owners[: self.first].count(GONE) == self.first
        assert not self.live or self.owners[self.first] != GONE
        assert self.people[0] is None
        people = {person: slot for slot, person in enumerate(self.people) if person is not None}
        assert self.slots == people
        assert set(self.owners) <= {FREED, GONE, *self.slots.values()}


Span = tuple[Segment, Sequence[int]]
"""Pending entries: ascending places in a segment."""


def ids_in(spans: list[Span]) -> list[int]:
    """The IDs of entries that were found."""
    found: list[int] = []
    for segment, places in spans:
        found += segment.ids_at(places)
    return found


def _native(value: int) -> bytes:
    """Return a value as columns hold it: an array made of one takes five times as long."""
    return value.to_bytes(8, byteorder, signed=True)


_ONE: Final = _native(1)
"""The count of an entry that was delivered once."""
_ONCE: Final = array("q", (1,))
"""The same as a column, which takes less to add than a number."""


def _column(numbers: list[int]) -> array[int]:
    """Return numbers as a column; an array that is given a list parses an argument for each."""
    first = numbers[0]
    if numbers.count(first) == len(numbers):
        return array("q", (first,)) * len(numbers)
    return array("q", pack(f"={len(numbers)}q", *numbers))


def _counted(counts: list[int], more: int) -> list[int]:
    """The delivery counts after so many more."""
    first = counts[0]
    if counts.count(first) == len(counts):
        return [min(first + more, HIGHEST)] * len(counts)
    return [min(count + more, HIGHEST) for count in counts]
