# Compiled by mypyc.
"""Lower bounds, one for each piece of a long list, in which low ones are found without looking at
all of them."""

from __future__ import annotations

from typing import Final

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
        self._values.append(value)
        # A span that has none noted is counted when it is searched.
        del self._lowest[(len(self._values) - 1) // SPAN :]

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
