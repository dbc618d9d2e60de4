# Compiled by mypyc.
"""A column of ascending IDs, in a form that takes little memory when nobody adds to it.

An ID above 2**62 is an object of 48 bytes. A packed column keeps a code of 8 bytes for each
instead: the distance in milliseconds from the first ID, above as many bits as the longest sequence
number has. Codes ascend as IDs do, so they are bisected themselves. IDs that are too far apart for
that stay as they are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from storage.engine.ids import HALF

_BITS: Final = 64
"""How many bits a code has."""


class IDColumn:
    """Ascending IDs by place, packed or not."""

    __slots__ = ("_base", "_codes", "_mask", "_open", "_shift")

    def __init__(self, identities: list[int]) -> None:
        self._open: list[int] | None = identities
        self._codes = array("Q")
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

    def slice(self, low: int, high: int) -> list[int]:
        """The IDs at the places from ``low`` to below ``high``."""
        if self._open is not None:
            return self._open[low:high]
        base, shift, mask = self._base, self._shift, self._mask
        codes = self._codes[low:high].tolist()
        if not shift:
            return [(code + base) << 64 for code in codes]
        return [((code >> shift) + base) << 64 | code & mask for code in codes]

    def before(self, identity: int) -> int:
        """How many IDs are lower."""
        if self._open is not None:
            return bisect_left(self._open, identity)
        ms, seq = (identity >> 64) - self._base, identity & HALF
        if ms < 0:
            return 0
        if seq > self._mask:
            return bisect_right(self._codes, ms << self._shift | self._mask)
        return bisect_left(self._codes, ms << self._shift | seq)

    def find(self, identity: int, low: int) -> int:
        """The place of this ID from ``low`` on, -1 if it is not there."""
        identities = self._open
        if identities is not None:
            if identities[low] == identity:
                return low
            place = bisect_left(identities, identity, low)
            return place if place < len(identities) and identities[place] == identity else -1
        codes, seq = self._codes, identity & HALF
        if seq > self._mask:
            return -1
        code = (identity >> 64) - self._base << self._shift | seq
        if codes[low] == code:
            return low
        place = bisect_left(codes, code, low)
        return place if place < len(codes) and codes[place] == code else -1

    # --- changing -------------------------------------------------------------------------

    def extend(self, run: Sequence[int]) -> None:
        """Adds IDs above all others."""
        self.unpacked().extend(run)

    def insert(self, place: int, identity: int) -> None:
        """Puts in an ID that belongs at this place."""
        self.unpacked().insert(place, identity)

    def unpacked(self) -> list[int]:
        """The IDs themselves, which are kept as such from now on."""
        identities = self._open
        if identities is None:
            identities = self._open = self.slice(0, len(self._codes))
            self._codes = array("Q")
        return identities

    def pack(self) -> None:
        """Keeps codes instead of the IDs, if they have room in 64 bits."""
        identities = self._open
        if not identities:
            return
        times = [identity >> 64 for identity in identities]
        numbers = [identity & HALF for identity in identities]
        base, shift = times[0], max(numbers).bit_length()
        if (times[-1] - base).bit_length() + shift > _BITS:
            return
        pairs = zip(times, numbers, strict=True)
        self._codes = array("Q", [time - base << shift | number for time, number in pairs])
        self._base, self._shift, self._mask = base, shift, (1 << shift) - 1
        self._open = None

    def copy(self) -> IDColumn:
        """An equal, independent column."""
        twin = IDColumn([])
        twin._open = None if self._open is None else self._open[:]
        twin._codes = self._codes[:]
        twin._base, twin._shift, twin._mask = self._base, self._shift, self._mask
        return twin
