"""The segments of a pending entries list, filed under IDs, with what is known of each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

from storage.engine.pending_segment import Consumer, Segment, Span

SPAN: Final = 64
"""How many segments have their lowest bound noted."""

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
    """Segments in the order of their IDs; ``bases`` are the IDs that they are filed under. The
    lowest bound of every :data:`SPAN` is noted when somebody searches: changes of single bounds
    keep it, and what comes or goes has it counted anew."""

    __slots__ = ("_lowest", "_opened", "bases", "segments")

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self._lowest: list[int] = []
        self._opened: list[Segment] = []

    def holder_of(self, entry_id: int) -> int:
        """The number of the segment that has this ID if any has; -1 if it is below all."""
        return bisect_right(self.bases, entry_id) - 1

    def with_base(self, base: int) -> Segment:
        """The segment that is filed under this ID."""
        return self.segments[bisect_left(self.bases, base)]

    # --- bounds ---------------------------------------------------------------------------

    def refreshed(self, at: int) -> int:
        """The bound of a segment that :meth:`next_by` has found, made exact, as entries that were
        delivered earlier may have gone."""
        segment = self.segments[at]
        segment.bound = segment.earliest()
        self._lowest[at // SPAN] = self._count(at // SPAN)
        return segment.bound

    def lower(self, at: int, time: int) -> None:
        """Entries of a segment were delivered at this time."""
        segment, span = self.segments[at], at // SPAN
        if time < segment.bound:
            segment.bound = time
            if span < len(self._lowest) and time < self._lowest[span]:
                self._lowest[span] = time

    def next_by(self, at: int, latest: int) -> int:
        """The number of the first segment from ``at`` on in which something may have been delivered
        at ``latest`` or before; how many segments there are if there is none."""
        segments, lowest = self.segments, self._lowest
        for span in range(len(lowest), (len(segments) + SPAN - 1) // SPAN):
            lowest.append(self._count(span))
        while at < len(segments):
            if lowest[at // SPAN] > latest:
                at = (at // SPAN + 1) * SPAN
            elif segments[at].bound <= latest:
                return at
            else:
                at += 1
        return len(segments)

    def _count(self, span: int) -> int:
        return min([each.bound for each in self.segments[span * SPAN : (span + 1) * SPAN]])

    def count_found(self, spans: list[Span], time: int) -> None:
        """Entries that were just found were delivered to their owners once more."""
        for segment, places in spans:
            segment.count(places, time, 1, None)
            self.lower(self.holder_of(segment.base), time)

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
        self.segments.append(Segment(base, time))
        self.bases.append(base)
        del self._lowest[(len(self.segments) - 1) // SPAN :]
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
        del self._lowest[at // SPAN :]

    def cut(self, at: int) -> None:
        """Cuts a segment in two."""
        segment = self.segments[at]
        segment.compact()
        piece = segment.cut()
        self.segments.insert(at + 1, piece)
        self.bases.insert(at + 1, piece.base)
        del self._lowest[at // SPAN :]
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
        for owner, other in owners.items():
            other.owned, other.bases = owner.owned, owner.bases[:]

    def check_segments(self) -> None:
        """Verifies the invariants."""
        assert self.bases == [segment.base for segment in self.segments]
        assert self.bases == sorted(set(self.bases))
        assert self._lowest == [self._count(span) for span in range(len(self._lowest))]
        for at, segment in enumerate(self.segments):
            segment.check()
            assert len(segment) <= 2 * SEGMENT
            if at < len(self.segments) - 1:
                assert segment.live
                assert segment.ids.at(-1) < self.bases[at + 1]
            assert segment.live or len(segment) < KEPT
            assert segment.bound <= segment.earliest()
            for person in segment.slots:
                assert segment.base in person.bases


def leave(segment: Segment, owner: Consumer) -> None:
    """Takes a consumer that owns nothing in a segment out of its table."""
    segment.people[segment.slots.pop(owner)] = None
    del owner.bases[bisect_left(owner.bases, segment.base)]
