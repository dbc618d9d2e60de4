"""The IDs of the entries of a segment, by place.

An ID above 2**62 is an object of 48 bytes. A packed column, to which nobody adds, keeps a code for
each instead: the distance in milliseconds from the first ID, above as many bits as the longest
sequence number has. Codes ascend as IDs do, so they are bisected themselves, and those of a segment
mostly have room in two bytes each, so that few lines of a cache are looked at. IDs that are too far
apart for 64 bits stay as they are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress
from typing import Final

from storage.engine.compression import fitting
from storage.engine.ids import HALF, decode

_BITS: Final = 64
"""How many bits a code has, at most."""
_NO_CODES: Final[Sequence[int]] = ()
"""What unpacked columns have in common."""


class IDColumn:
    """Ascending IDs by place, packed or not."""

    __slots__ = ("_base", "_codes", "_mask", "_open", "_shift")

    def __init__(self, entry_ids: list[int]) -> None:
        self._open: list[int] | None = entry_ids
        self._codes = _NO_CODES
        self._base = 0
        self._shift = 0
        self._mask = 0

    def __len__(self) -> int:
        return len(self._codes) if self._open is None else len(self._open)

    @property
    def is_packed(self) -> bool:
        """Whether the IDs are kept as codes."""
        return self._open is None

    # --- looking up -----------------------------------------------------------------------

    def at(self, place: int) -> int:
        """The ID at a place, which may be counted from the end."""
        if self._open is not None:
            return self._open[place]
        code = self._codes[place]
        return ((code >> self._shift) + self._base) << 64 | code & self._mask

    def codes(self, low: int, high: int) -> tuple[list[int], int, int]:
        """The codes at these places, the milliseconds that they begin at, and how many bits a
        sequence number has in them: 64 where they are the IDs themselves."""
        if self._open is not None:
            return self._open[low:high], 0, _BITS
        return list(self._codes[low:high]), self._base, self._shift

    def slice(self, low: int, high: int) -> list[int]:
        """The IDs at the places from ``low`` to below ``high``."""
        if self._open is not None:
            return self._open[low:high]
        return decode(self._codes[low:high], self._base, self._shift, self._mask)

    def pick(self, places: Sequence[int]) -> list[int]:
        """The IDs at these ascending places."""
        if isinstance(places, range):
            return self.slice(places.start, places.stop)
        if self._open is not None:
            return [self._open[place] for place in places]
        codes = [self._codes[place] for place in places]
        return decode(codes, self._base, self._shift, self._mask)

    def before(self, entry_id: int) -> int:
        """How many IDs are lower."""
        if self._open is not None:
            return bisect_left(self._open, entry_id)
        ms, seq = (entry_id >> 64) - self._base, entry_id & HALF
        if ms < 0:
            return 0
        if seq > self._mask:
            return bisect_right(self._codes, ms << self._shift | self._mask)
        return bisect_left(self._codes, ms << self._shift | seq)

    def find(self, entry_id: int, low: int) -> int:
        """The place of this ID from ``low`` on, -1 if it is not there."""
        entry_ids = self._open
        if entry_ids is not None:
            if entry_ids[low] == entry_id:
                return low
            place = bisect_left(entry_ids, entry_id, low)
            return place if place < len(entry_ids) and entry_ids[place] == entry_id else -1
        codes, seq = self._codes, entry_id & HALF
        if seq > self._mask:
            return -1
        code = (entry_id >> 64) - self._base << self._shift | seq
        if codes[low] == code:
            return low
        place = bisect_left(codes, code, low)
        return place if place < len(codes) and codes[place] == code else -1

    # --- changing -------------------------------------------------------------------------

    def extend(self, run: Sequence[int]) -> None:
        """Adds IDs above all others."""
        entry_ids = self.unpacked() if self._open is None else self._open
        entry_ids.extend(run)

    def insert(self, place: int, entry_id: int) -> None:
        """Puts in an ID that belongs at this place."""
        self.unpacked().insert(place, entry_id)

    def unpacked(self) -> list[int]:
        """The IDs themselves, which are kept as such from now on."""
        entry_ids = self._open
        if entry_ids is None:
            entry_ids = self._open = self.slice(0, len(self._codes))
            self._codes = _NO_CODES
        return entry_ids

    def pack(self) -> None:
        """Keeps codes instead of the IDs, if they have room in 64 bits."""
        entry_ids = self._open
        if not entry_ids:
            return
        times = [entry_id >> 64 for entry_id in entry_ids]
        numbers = [entry_id & HALF for entry_id in entry_ids]
        base, shift = times[0], max(numbers).bit_length()
        if (times[-1] - base).bit_length() + shift > _BITS:
            return
        pairs = zip(times, numbers, strict=True)
        self._codes = fitting([time - base << shift | number for time, number in pairs])
        self._base, self._shift, self._mask = base, shift, (1 << shift) - 1
        self._open = None

    def keep(self, chosen: Sequence[int]) -> None:
        """Keeps the IDs at the places where there is no 0, packed as they are."""
        if self._open is not None:
            self._open = list(compress(self._open, chosen))
        else:
            self._codes = fitting(list(compress(self._codes, chosen)))

    def copy(self) -> IDColumn:
        """An equal, independent column."""
        twin = IDColumn([])
        twin._open = None if self._open is None else self._open[:]
        twin._codes = self._codes[:]
        twin._base, twin._shift, twin._mask = self._base, self._shift, self._mask
        return twin
