"""The segments of a pending entries list, filed under IDs, with what is known of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

from storage.engine.histories import Histories
from storage.engine.pending_segment import Consumer, Segment, Span

SPAN: Final = 64
"""How many bounds have their lowest one noted."""


class Bounds:
    """Numbers by place. The lowest of every :data:`SPAN` is noted, when somebody searches: changes
    of single numbers keep it, and others have it counted anew."""

    __slots__ = ("_lowest", "_values")

    def __init__(self) -> None:
        self._values: list[int] = []
        self._lowest: list[int] = []

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: int) -> int:
        return self._values[at]

    def append(self, value: int) -> None:
        """Adds a number at the end."""
        span = len(self._values) // SPAN
        self._values.append(value)
        if span < len(self._lowest):  # A span that has none noted is counted when it is searched.
            del self._lowest[span:]

    def insert(self, at: int, value: int) -> None:
        """Puts a number in at this place."""
        self._values.insert(at, value)
        del self._lowest[at // SPAN :]

    def remove(self, at: int) -> None:
        """Takes out the number at this place."""
        del self._values[at]
        del self._lowest[at // SPAN :]

    def lower(self, at: int, value: int) -> None:
        """Lowers the number at this place, if it is higher."""
        if value < self._values[at]:
            self._values[at] = value
            if at // SPAN < len(self._lowest):
                self._lowest[at // SPAN] = min(self._lowest[at // SPAN], value)

    def replace(self, at: int, value: int) -> None:
        """Puts another number at this place."""
        self._values[at] = value
        if at // SPAN < len(self._lowest):
            self._lowest[at // SPAN] = self._count(at // SPAN)

    def next(self, at: int, most: int) -> int:
        """The first place from ``at`` on with a number up to ``most``; the length if there is
        none."""
        values = self._values
        for span in range(len(self._lowest), (len(values) + SPAN - 1) // SPAN):
            self._lowest.append(self._count(span))
        while at < len(values):
            if self._lowest[at // SPAN] > most:
                at = (at // SPAN + 1) * SPAN
            elif values[at] <= most:
                return at
            else:
                at += 1
        return len(values)

    def _count(self, span: int) -> int:
        return min(self._values[span * SPAN : (span + 1) * SPAN])

    def copy(self) -> Bounds:
        """Equal, independent bounds."""
        twin = Bounds()
        twin._values = self._values[:]
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        assert self._lowest == [self._count(span) for span in range(len(self._lowest))]


SEGMENT: Final = 512
"""A segment is filled up to this length; one that grows to twice that is cut in two."""

KEPT: Final = 64
"""A last segment shorter than this is kept when nothing in it is pending any more: a group whose
consumers keep up would otherwise begin one for every delivery."""

_RECENT: Final = 128
"""How many segments at the end have unpacked IDs: to pack one costs more than to deliver it, and
most of what is delivered is acknowledged soon."""

_OPENED: Final = 64
"""How many segments may be left with unpacked IDs because entries were put in between."""


class Segments:
    """Segments in the order of their IDs. ``bases`` are the IDs that they are filed under, and
    ``bounds`` has for each a time before which none of its entries was delivered. ``histories``
    tell how deliveries of the entries ended, where a group keeps that."""

    __slots__ = ("_opened", "bases", "bounds", "histories", "segments")

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.bounds = Bounds()
        self.histories = Histories()
        self._opened: list[Segment] = []

    def holder_of(self, entry_id: int) -> int:
        """The number of the segment that has this ID if any has; -1 if it is below all."""
        return bisect_right(self.bases, entry_id) - 1

    def with_base(self, base: int) -> Segment:
        """The segment that is filed under this ID."""
        return self.segments[bisect_left(self.bases, base)]

    def refreshed(self, at: int) -> int:
        """The bound of a segment, made exact, as entries that were delivered earlier may have
        gone."""
        self.bounds.replace(at, self.segments[at].earliest())
        return self.bounds[at]

    def count_found(self, spans: list[Span], time: int) -> None:
        """Entries that were just found were delivered to their owners once more."""
        for segment, places in spans:
            segment.count(places, time, 1, None)
            self.bounds.lower(self.holder_of(segment.base), time)

    # --- beginning and ending -------------------------------------------------------------

    def last_with_room(self, entry_id: int, time: int) -> int:
        """The number of a last segment in which there is room behind all others."""
        while self.segments and self.segments[-1].ids.at(-1) >= entry_id:
            # That one and those above are not pending any more.
            if self.segments[-1].live:
                self.segments[-1].compact()
            else:
                self.remove_segment(len(self.segments) - 1)
        if self.segments and len(self.segments[-1].owners) < SEGMENT:
            return len(self.segments) - 1
        return self.begin(entry_id, time)

    def begin(self, base: int, time: int) -> int:
        """Begins a new last segment; returns its number."""
        if len(self.segments) >= _RECENT:
            self.segments[-_RECENT].ids.pack()
        self.segments.append(Segment(base))
        self.bases.append(base)
        self.bounds.append(time)
        return len(self.segments) - 1

    def file_under(self, entry_id: int) -> None:
        """Files the first segment under a lower ID."""
        segment = self.segments[0]
        for person in segment.slots:
            person.bases[0] = entry_id
        self.bases[0] = segment.base = entry_id

    def remove_segment(self, at: int) -> None:
        """Gives a segment up in which nothing is pending."""
        segment = self.segments[at]
        for person in list(segment.slots):
            leave(segment, person)
        if segment in self._opened:
            self._opened.remove(segment)
        del self.segments[at], self.bases[at]
        self.bounds.remove(at)

    def cut(self, at: int) -> None:
        """Cuts a segment in two."""
        segment = self.segments[at]
        segment.compact()
        piece = segment.cut()
        self.segments.insert(at + 1, piece)
        self.bases.insert(at + 1, piece.base)
        self.bounds.insert(at + 1, self.bounds[at])
        for person in piece.slots:
            insort(person.bases, piece.base)
        for half in (segment, piece):
            for stranger in half.strangers():
                leave(half, stranger)
        self.note_opened(at)
        self.note_opened(at + 1)

    def note_opened(self, at: int) -> None:
        """A segment has unpacked IDs; if it is not the last one, they are packed some time."""
        segment = self.segments[at]
        if at > len(self.segments) - _RECENT or segment in self._opened:
            return
        self._opened.append(segment)
        if len(self._opened) > _OPENED:
            self._opened.pop(0).ids.pack()

    # --- whose entries they have ---------------------------------------------------------

    def slot(self, at: int, owner: Consumer) -> int:
        """The number of a consumer in a segment, -1 if its table is full."""
        segment = self.segments[at]
        known = segment.slots.get(owner)
        if known is not None:
            return known
        slot = segment.free_slot()
        if slot < 0:
            for stranger in segment.strangers():
                leave(segment, stranger)
            slot = segment.free_slot()
        if slot >= 0:
            segment.people[slot] = owner
            segment.slots[owner] = slot
            insort(owner.bases, segment.base)
        return slot

    def copy_to(self, twin: Segments, owners: dict[Consumer, Consumer]) -> None:
        """Makes equal segments of those of ``twin``, with each owner replaced."""
        twin.segments = [segment.copy(owners) for segment in self.segments]
        twin.bases = self.bases[:]
        twin.bounds = self.bounds.copy()
        twin.histories = self.histories.copy()
        for owner, other in owners.items():
            other.owned, other.bases = owner.owned, owner.bases[:]

    def check_segments(self) -> None:
        """Verifies the invariants."""
        assert self.bases == [segment.base for segment in self.segments]
        assert self.bases == sorted(set(self.bases))
        assert len(self.bounds) == len(self.segments)
        self.bounds.check()
        for at, segment in enumerate(self.segments):
            segment.check()
            assert len(segment) <= 2 * SEGMENT
            if at < len(self.segments) - 1:
                assert segment.live
                assert segment.ids.at(-1) < self.bases[at + 1]
            assert segment.live or len(segment) < KEPT
            assert self.bounds[at] <= segment.earliest()
            for person in segment.slots:
                assert segment.base in person.bases


def leave(segment: Segment, owner: Consumer) -> None:
    """Takes a consumer that owns nothing in a segment out of its table."""
    segment.people[segment.slots.pop(owner)] = None
    del owner.bases[bisect_left(owner.bases, segment.base)]
