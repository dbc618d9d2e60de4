"""Which of several pending entries comes first: by the number in a field, or by their order where
they have the same value."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Final

from storage.engine import ids
from storage.engine.entries import Stretch
from storage.engine.fields import Field
from storage.engine.log import EntryLog

_FIRST: Final = -float("inf")
"""The place before those of all numbers."""

# --- ranking ---------------------------------------------------------------------------------


class _Alike:
    """IDs with the same number, ascending, of which those before ``first`` were taken."""

    __slots__ = ("first", "ids")

    def __init__(self, entry_ids: list[int]) -> None:
        self.first = 0
        self.ids = entry_ids

    def __len__(self) -> int:
        return len(self.ids) - self.first

    def add(self, entry_ids: list[int]) -> None:
        """Puts ascending IDs in."""
        if entry_ids[0] > self.ids[-1]:
            self.ids += entry_ids
            return
        for entry_id in entry_ids:
            insort(self.ids, entry_id, self.first)

    def take(self, most: int) -> list[int]:
        """Takes up to ``most`` out, the lowest ones."""
        taken = self.ids[self.first : self.first + most]
        self.first += len(taken)
        if len(self.ids) < 2 * self.first < 2 * len(self.ids):
            del self.ids[: self.first]
            self.first = 0
        return taken


class Ranking:
    """IDs of entries of ``log`` that may be delivered, those with the highest number in ``field``
    first, and then in their order."""

    __slots__ = ("_alike", "_field", "_length", "_log", "_places", "looked_to")

    def __init__(self, field: Field, log: EntryLog) -> None:
        self._field = field
        self._log = log
        self._alike: dict[float, _Alike] = {}
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
        self._add(-self._field.number_in(raw, start, end), [entry_id])

    def add_stretch(self, stretch: Stretch) -> None:
        """Puts consecutive entries in; those that have the same number go together."""
        entry_ids, ends, field = stretch.ids, stretch.ends, self._field
        low, place = 0, -field.number_in(stretch.raw, ends[0], ends[1])
        for at in range(1, len(entry_ids)):
            here = -field.number_in(stretch.raw, ends[at], ends[at + 1])
            if here != place:
                self._add(place, entry_ids[low:at])
                low, place = at, here
        self._add(place, entry_ids[low:])

    def _add(self, place: float, entry_ids: list[int]) -> None:
        alike = self._alike.get(place)
        if alike is None:
            self._alike[place] = _Alike(entry_ids)
            heapq.heappush(self._places, place)
        else:
            alike.add(entry_ids)
        self._length += len(entry_ids)

    def add_all(self, entry_ids: list[int]) -> None:
        """Puts entries in, and what the stream does not have any more before all others."""
        for at, payload in enumerate(self._log.get_many(entry_ids)):
            if payload is None:
                self._add(_FIRST, [entry_ids[at]])
            else:
                self.add(entry_ids[at], payload)

    def glance(self, most: int) -> list[int]:
        """Return up to ``most`` of the first ones, as :meth:`take` would; none where it takes long
        to tell, as there are more numbers than that."""
        found: list[int] = []
        for place in self._first_places(most):
            alike = self._alike[place]
            found += alike.ids[alike.first : alike.first + most - len(found)]
            if len(found) == most:
                break
        return found

    def _first_places(self, most: int) -> list[float]:
        """Return the places of the first ones, in order; none if there are more than ``most``."""
        places = self._places
        if places and len(self._alike[places[0]]) >= most:
            return places[:1]
        return sorted(places) if len(places) <= most else []

    def take(self, most: int) -> list[int]:
        """Takes up to ``most`` of the first ones out, and returns them."""
        taken: list[int] = []
        while self._places and len(taken) < most:
            alike = self._alike[self._places[0]]
            taken += alike.take(most - len(taken))
            if not len(alike):
                del self._alike[heapq.heappop(self._places)]
        self._length -= len(taken)
        return taken


# --- lanes -----------------------------------------------------------------------------------

PIECE: Final = 512
"""A piece is filled up to this length; one that grows to twice that is cut in two."""


class _Piece:
    """Consecutive IDs and their values, ``None`` for what has gone; all before ``first`` has.
    ``live`` is how many have not."""

    __slots__ = ("first", "ids", "live", "values")

    def __init__(self, entry_ids: list[int], values: list[bytes | None]) -> None:
        self.ids = entry_ids
        self.values = values
        self.first = 0
        self.live = len(values) - values.count(None)

    def find(self, entry_id: int) -> int:
        """Return the place of an ID whose value is there, -1 if it is not."""
        place = self.first
        if self.ids[place] != entry_id:
            place = bisect_left(self.ids, entry_id, place)
        is_there = place < len(self.ids) and self.ids[place] == entry_id
        return place if is_there and self.values[place] is not None else -1

    def extend(self, entry_ids: list[int], values: list[bytes]) -> None:
        """Puts IDs in above all others."""
        self.ids += entry_ids
        self.values += values
        self.live += len(values)

    def insert(self, entry_id: int, value: bytes) -> None:
        """Puts an ID in that is not there."""
        del self.ids[: self.first], self.values[: self.first]
        self.first = 0
        place = bisect_left(self.ids, entry_id)
        if place < len(self.ids) and self.ids[place] == entry_id:
            self.values[place] = value
        else:
            self.ids.insert(place, entry_id)
            self.values.insert(place, value)
        self.live += 1

    def pop(self, place: int, entry_ids: list[int], at: int) -> list[bytes | None]:
        """Take out the values from this place on, if the IDs are those from ``at`` on, as far as
        either goes; else the first of them."""
        count = min(len(entry_ids) - at, len(self.ids) - place)
        stop = place + count
        if self.ids[stop - 1] != entry_ids[at + count - 1] or (
            self.ids[place:stop] != entry_ids[at : at + count]
        ):
            count, stop = 1, place + 1
        values = self.values[place:stop]
        gone = values.count(None) if self.live < len(self.ids) - self.first else 0
        self.live -= count - gone
        if place == self.first and self.live:
            self.first = stop
        else:
            self.values[place:stop] = [None] * count
        return values


class _Values:
    """The values of entries, by ID: in pieces, as entries are delivered and acknowledged in runs,
    and as a dictionary is put together again as it grows, which takes 30 ms where it has a
    million. ``bases`` are the IDs that the pieces begin with."""

    __slots__ = ("_bases", "_length", "_new_ids", "_new_values", "_pieces")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._pieces: list[_Piece] = []
        self._length = 0
        self._new_ids: list[int] = []
        self._new_values: list[bytes] = []
        """What was set and is in no piece yet: a run goes into one as a whole."""

    def __len__(self) -> int:
        return self._length + len(self._new_ids)

    def get(self, entry_id: int) -> bytes | None:
        """Return the value of an entry, ``None`` if there is none."""
        self._file()
        if not self._pieces or entry_id > self._pieces[-1].ids[-1]:
            return None
        at = bisect_right(self._bases, entry_id) - 1
        place = -1 if at < 0 else self._pieces[at].find(entry_id)
        return None if place < 0 else self._pieces[at].values[place]

    def set(self, entry_id: int, value: bytes) -> None:
        """Puts the value of an entry in that is not there."""
        self._new_ids.append(entry_id)
        self._new_values.append(value)
        if len(self._new_ids) == PIECE:
            self._file()

    def _file(self) -> None:
        entry_ids, values = self._new_ids, self._new_values
        if not entry_ids:
            return
        self._new_ids, self._new_values = [], []
        self._length += len(values)
        in_order = sorted(entry_ids)
        if entry_ids != in_order:
            by_id = dict(zip(entry_ids, values, strict=True))
            entry_ids, values = in_order, [by_id[entry_id] for entry_id in in_order]
        if self._pieces and entry_ids[0] <= self._pieces[-1].ids[-1]:
            for entry_id, value in zip(entry_ids, values, strict=True):
                self._insert(entry_id, value)
            return
        if not self._pieces or len(self._pieces[-1].ids) >= PIECE:
            self._pieces.append(_Piece([], []))
            self._bases.append(entry_ids[0])
        self._pieces[-1].extend(entry_ids, values)

    def _insert(self, entry_id: int, value: bytes) -> None:
        at = max(bisect_right(self._bases, entry_id) - 1, 0)
        piece = self._pieces[at]
        piece.insert(entry_id, value)
        self._bases[at] = piece.ids[0]
        if len(piece.ids) > 2 * PIECE:
            halves = (slice(None, PIECE), slice(PIECE, None))
            cut = [_Piece(piece.ids[half], piece.values[half]) for half in halves]
            self._pieces[at : at + 1] = [each for each in cut if each.live]
            self._bases[at : at + 1] = [each.ids[0] for each in cut if each.live]

    def pop_all(self, entry_ids: list[int]) -> list[bytes | None]:
        """Take out the values of entries; returns ``None`` for one without."""
        self._file()
        values: list[bytes | None] = []
        while len(values) < len(entry_ids):
            values += self._pop(entry_ids, len(values))
        return values

    def _pop(self, entry_ids: list[int], at: int) -> list[bytes | None]:
        """Take out the values of the entry at this place, and of those behind it that stand in a
        row with it."""
        holder = bisect_right(self._bases, entry_ids[at]) - 1
        place = -1 if holder < 0 else self._pieces[holder].find(entry_ids[at])
        if place < 0:
            return [None]
        piece = self._pieces[holder]
        live = piece.live
        values = piece.pop(place, entry_ids, at)
        self._length -= live - piece.live
        if not piece.live:
            del self._pieces[holder], self._bases[holder]
        return values


class _Ascending:
    """Different IDs, ascending: in pieces, as all that is behind one that comes or goes is moved.
    No ID of a piece is below its base, nor below those of the pieces before it."""

    __slots__ = ("_bases", "_length", "_pieces")

    def __init__(self, entry_id: int) -> None:
        self._bases = [entry_id]
        self._pieces = [[entry_id]]
        self._length = 1

    def __len__(self) -> int:
        return self._length

    @property
    def first(self) -> int:
        """The lowest of them; there has to be one."""
        return self._pieces[0][0]

    def add(self, entry_id: int) -> None:
        """Put an ID in that is not there."""
        at = max(bisect_right(self._bases, entry_id) - 1, 0)
        piece = self._pieces[at]
        insort(piece, entry_id)
        self._bases[at] = min(self._bases[at], entry_id)
        self._length += 1
        if len(piece) > 2 * PIECE:
            self._pieces[at : at + 1] = [piece[:PIECE], piece[PIECE:]]
            self._bases.insert(at + 1, piece[PIECE])

    def remove_all(self, entry_ids: list[int]) -> None:
        """Take out IDs, ascending, all of which are there."""
        at = 0
        while at < len(entry_ids):
            at += self._remove_run(entry_ids, at)
        self._length -= len(entry_ids)

    def _remove_run(self, entry_ids: list[int], at: int) -> int:
        """Take out the ID at this place, and those behind it as far as they stand in a row;
        returns how many."""
        holder = bisect_right(self._bases, entry_ids[at]) - 1
        piece = self._pieces[holder]
        place = bisect_left(piece, entry_ids[at])
        count = min(len(entry_ids) - at, len(piece) - place)
        # So many different ones between the same two are the same ones.
        if piece[place + count - 1] != entry_ids[at + count - 1]:
            count = 1
        del piece[place : place + count]
        if not piece and len(self._pieces) > 1:
            del self._pieces[holder], self._bases[holder]
        return count


class Lane:
    """Pending entries with the same value: all of them, and those that are in flight."""

    __slots__ = ("ids", "in_flight")

    def __init__(self, entry_id: int, in_flight: set[int]) -> None:
        self.ids = _Ascending(entry_id)
        self.in_flight = in_flight


class GroupLanes:
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
        before = len(self._lanes)
        lane = self._lanes.setdefault(value, entry_id)
        if len(self._lanes) > before:
            if not in_flight:
                self._lanes[value] = Lane(entry_id, set())
            self._values.set(entry_id, value)
            return True
        if entry_id in self:
            return isinstance(lane, int) or len(lane.ids) == 1
        if isinstance(lane, int):
            lane = self._lanes[value] = Lane(lane, {lane})
        lane.ids.add(entry_id)
        self._values.set(entry_id, value)
        return False

    @property
    def entries(self) -> int:
        """How many entries are in lanes."""
        return len(self._values)

    @property
    def waiting(self) -> int:
        """How many entries stand behind another one of their lane."""
        return len(self._values) - len(self._lanes)

    def leads(self, entry_id: int) -> bool:
        """Whether no entry of its lane is before this one."""
        lane = self._lane_of(entry_id)
        return lane is None or isinstance(lane, int) or lane.ids.first == entry_id

    def is_next(self, entry_id: int) -> bool:
        """Whether an entry that nobody has is the first of its lane, and nobody has another one."""
        lane = self._lane_of(entry_id)
        if lane is None:
            return True
        return not isinstance(lane, int) and lane.ids.first == entry_id and not lane.in_flight

    def next_instead(self, entry_id: int) -> int | None:
        """The entry of the same lane that may be delivered, if it is another one."""
        lane = self._lane_of(entry_id)
        if lane is None or isinstance(lane, int) or lane.in_flight or lane.ids.first == entry_id:
            return None
        return lane.ids.first

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
            self._lanes[value] = Lane(lane, set())
        elif lane is not None:
            lane.in_flight.discard(entry_id)

    def leave(self, entry_ids: Sequence[int]) -> list[int]:
        """Entries are pending no more; returns the first ones of the lanes that some of them have
        left to others."""
        in_order = sorted(entry_ids)
        shared: dict[bytes, list[int]] = {}
        for at, value in enumerate(self._values.pop_all(in_order)):
            if value is None:
                continue
            lane = self._lanes[value]
            if isinstance(lane, int) or len(lane.ids) == 1:  # As nearly all are.
                del self._lanes[value]
            else:
                shared.setdefault(value, []).append(in_order[at])
        freed: list[int] = []
        for value, left in shared.items():
            lane = self._lanes[value]
            assert isinstance(lane, Lane)
            lane.ids.remove_all(left)
            lane.in_flight.difference_update(left)
            if len(lane.ids):
                freed.append(lane.ids.first)
            else:
                del self._lanes[value]
        return freed

    def _lane_of(self, entry_id: int) -> int | Lane | None:
        value = self._values.get(entry_id)
        return None if value is None else self._lanes[value]
