"""Which of several pending entries comes first: by the number in a field, or by their order where
they have the same value."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

from storage.engine import ids
from storage.engine.fields import Field
from storage.engine.log import EntryLog

_FIRST: Final = -float("inf")
"""The place before those of all numbers."""

# --- ranking ---------------------------------------------------------------------------------


class Ranking:
    """IDs of entries of ``log`` that may be delivered, those with the highest number in ``field``
    first, and then in their order.

    Those with the same number are a list, ascending, so what comes together goes together."""

    __slots__ = ("_alike", "_field", "_length", "_log", "_places", "looked_to")

    def __init__(self, field: Field, log: EntryLog) -> None:
        self._field = field
        self._log = log
        self._alike: dict[float, list[int]] = {}
        self._places: list[float] = []
        self._length = 0
        self.looked_to = ids.MIN
        """The last of the new entries that are here, whether the group has come to them or not."""

    def __len__(self) -> int:
        return self._length

    def add(self, entry_id: int, payload: bytes) -> None:
        """Puts an entry in."""
        self.add_at(entry_id, payload, 0, len(payload))

    def add_at(self, entry_id: int, raw: bytes, start: int, end: int) -> None:
        """Puts an entry in whose RESP form is at these places of ``raw``."""
        self._add(-self._field.number_in(raw, start, end), entry_id)

    def _add(self, place: float, entry_id: int) -> None:
        alike = self._alike.get(place)
        if alike is None:
            self._alike[place] = [entry_id]
            heapq.heappush(self._places, place)
        elif entry_id > alike[-1]:
            alike.append(entry_id)
        else:
            insort(alike, entry_id)
        self._length += 1

    def add_all(self, entry_ids: list[int]) -> None:
        """Puts entries in, and what the stream does not have any more before all others."""
        for at, payload in enumerate(self._log.get_many(entry_ids)):
            if payload is None:
                self._add(_FIRST, entry_ids[at])
            else:
                self.add(entry_ids[at], payload)

    def glance(self, most: int) -> list[int]:
        """Return up to ``most`` of the first ones, as :meth:`take` would; none where it takes long
        to tell, as there are more numbers than that."""
        alike = self._alike[self._places[0]] if self._places else []
        if len(alike) >= most:
            return alike[:most]
        if len(self._places) > most:
            return []
        found: list[int] = []
        for place in sorted(self._places):
            found += self._alike[place]
            if len(found) >= most:
                break
        return found[:most]

    def take(self, most: int) -> list[int]:
        """Takes up to ``most`` of the first ones out, and returns them."""
        taken: list[int] = []
        while self._places and len(taken) < most:
            alike = self._alike[self._places[0]]
            some = alike[: most - len(taken)]
            taken += some
            del alike[: len(some)]
            if not alike:
                del self._alike[heapq.heappop(self._places)]
        self._length -= len(taken)
        return taken


# --- lanes -----------------------------------------------------------------------------------

PIECE: Final = 50_000
"""How many values a piece has at most."""


class _Values:
    """The values of entries, by ID.

    They are in pieces: a dictionary is put together again as it grows, which takes 30 ms where it
    has a million. Nearly always there is one."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[dict[int, bytes]] = [{}]

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def get(self, entry_id: int) -> bytes | None:
        """Return the value of an entry, ``None`` if there is none."""
        for piece in self._pieces:
            value = piece.get(entry_id)
            if value is not None:
                return value
        return None

    def set(self, entry_id: int, value: bytes) -> None:
        """Puts the value of an entry in that is not there."""
        if len(self._pieces[-1]) >= PIECE:
            self._pieces.append({})
        self._pieces[-1][entry_id] = value

    def pop_all(self, entry_ids: Sequence[int]) -> Iterator[bytes | None]:
        """Take out the values of entries; yields ``None`` for one without."""
        if len(self._pieces) == 1:  # A loop over the IDs would unpack each of them.
            return map(self._pieces[0].pop, entry_ids, repeat(None))
        return map(self._pop, entry_ids)

    def _pop(self, entry_id: int) -> bytes | None:
        for at, piece in enumerate(self._pieces):
            value = piece.pop(entry_id, None)
            if value is not None:
                if not piece and len(self._pieces) > 1:
                    del self._pieces[at]
                return value
        return None


class Lane:
    """Pending entries with the same value: all of them, ascending, and those that are in flight."""

    __slots__ = ("ids", "in_flight")

    def __init__(self, ids: list[int], in_flight: set[int]) -> None:
        self.ids = ids
        self.in_flight = in_flight


class Lanes:
    """The lanes of a group, by the value of a field. Entries without it are in none of them."""

    __slots__ = ("_lanes", "_values")

    def __init__(self) -> None:
        self._lanes: dict[bytes, int | Lane] = {}
        self._values = _Values()

    def __contains__(self, entry_id: int) -> bool:
        return self._values.get(entry_id) is not None

    def enter(self, entry_id: int, value: bytes | None, in_flight: bool) -> bool:
        """Puts a pending entry with the value into its lane; whether it is alone there. One that is
        alone and ``in_flight`` is in flight."""
        if value is None:
            return True
        lane = self._lanes.get(value)
        if lane is None:
            self._lanes[value] = entry_id if in_flight else Lane([entry_id], set())
            self._values.set(entry_id, value)
            return True
        if entry_id in self:
            return isinstance(lane, int) or len(lane.ids) == 1
        if isinstance(lane, int):
            lane = self._lanes[value] = Lane([lane], {lane})
        insort(lane.ids, entry_id)
        self._values.set(entry_id, value)
        return False

    @property
    def waiting(self) -> int:
        """How many entries stand behind another one of their lane."""
        return len(self._values) - len(self._lanes)

    def leads(self, entry_id: int) -> bool:
        """Whether no entry of its lane is before this one."""
        lane = self._lane_of(entry_id)
        return lane is None or isinstance(lane, int) or lane.ids[0] == entry_id

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
            value = self._values.get(entry_id)
            assert value is not None
            self._lanes[value] = Lane([lane], set())
        elif lane is not None:
            lane.in_flight.discard(entry_id)

    def leave(self, entry_ids: Sequence[int]) -> list[int]:
        """Entries are pending no more; returns those that may be delivered because of that."""
        freed: list[int] = []
        # Nearly all are alone.
        for at, value in enumerate(self._values.pop_all(entry_ids)):
            lane = None if value is None else self._lanes.pop(value)
            if value is not None and isinstance(lane, Lane) and len(lane.ids) > 1:
                self._lanes[value] = lane
                del lane.ids[bisect_left(lane.ids, entry_ids[at])]
                lane.in_flight.discard(entry_ids[at])
                freed.append(lane.ids[0])
        return freed

    def _lane_of(self, entry_id: int) -> int | Lane | None:
        value = self._values.get(entry_id)
        return None if value is None else self._lanes[value]
