"""Lists: elements in a row, with both ends at hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, islice
from typing import Final

from storage.engine.limits import CollectionLimits, Table
from storage.engine.nodes import element_size
from storage.types.collection import SAMPLE, Collection, Words, in_portions

RPUSH: Final = b"RPUSH"

SIZES: Final = (4096, 8192, 16384, 32768, 65536)
"""Up to how many bytes a list is small for the limits -1 to -5."""

SAFE_BYTES: Final = 8192
"""Up to how many bytes it is, where the limit is a number of elements."""

FEW_MATCHES: Final = 8
"""So many equal elements are removed one by one. Beyond that the others make a new list, since to
go on at an index takes longer the higher it is."""

FEW_INDEXES: Final = 64
"""Elements at so many indexes are looked up one by one, which is faster than to pass over those
before them."""

_FRAME: Final = 7
"""Bytes of a listpack without elements."""


class ListValue(Collection):
    """A list. ``elements`` is for reading; it is changed by the methods."""

    __slots__ = ("_bytes", "_large", "elements")

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__(limits)
        self.elements: deque[bytes] = deque()
        self._bytes = _FRAME
        self._large = False

    def __len__(self) -> int:
        return len(self.elements)

    # --- ends -----------------------------------------------------------------------------

    def push(self, elements: Sequence[bytes], *, left: bool) -> None:
        """Adds elements at an end, one after the other."""
        self._grow(elements)
        if left:
            self.elements.extendleft(elements)
        else:
            self.elements.extend(elements)
        for element in elements:
            self._bytes += element_size(element)

    def pop(self, *, left: bool) -> bytes:
        """Removes the element at an end; there has to be one."""
        element = self._take(left)
        self._shrink()
        return element

    def pops(self, count: int, *, left: bool) -> list[bytes]:
        """Removes up to so many elements from an end, the outer ones first."""
        elements = self.elements
        take = elements.popleft if left else elements.pop
        popped = [take() for _ in range(min(count, len(elements)))]
        self._bytes = self._bytes - sum(map(element_size, popped)) if elements else _FRAME
        self._shrink()
        return popped

    def turn(self, *, left: bool, to_left: bool) -> bytes:
        """Moves the element at an end to an end; there has to be one. Returns it."""
        element = self._take(left)
        self.push([element], left=to_left)
        self._shrink()
        return element

    def _take(self, left: bool) -> bytes:
        element = self.elements.popleft() if left else self.elements.pop()
        self._bytes -= element_size(element)
        return element

    # --- within ---------------------------------------------------------------------------

    def set(self, index: int, element: bytes) -> bool:
        """Replaces the element at an index; returns whether there is one."""
        self._grow([element])
        elements = self.elements
        if not -len(elements) <= index < len(elements):
            return False
        self._bytes += element_size(element) - element_size(elements[index])
        elements[index] = element
        return True

    def insert(self, pivot: bytes, element: bytes, *, before: bool) -> bool:
        """Adds an element beside the first one that is equal to ``pivot``, if there is one."""
        self._grow([element])
        try:
            at = self.elements.index(pivot)
        except ValueError:
            return False
        self.elements.insert(at if before else at + 1, element)
        self._bytes += element_size(element)
        return True

    def remove(self, element: bytes, count: int) -> int:
        """Removes elements equal to this one: the first ``count``, the last ones if that is
        negative, all for 0. Returns how many."""
        if count < 0:
            self.elements.reverse()
        removed = self._remove_first(element, abs(count) or len(self.elements))
        if count < 0:
            self.elements.reverse()
        if removed:
            self._bytes -= removed * element_size(element)
            self._shrink()
        return removed

    def _remove_first(self, element: bytes, most: int) -> int:
        elements, at = self.elements, 0
        for removed in range(min(most, FEW_MATCHES)):
            try:
                at = elements.index(element, at)
            except ValueError:
                return removed
            del elements[at]
        if most <= FEW_MATCHES:
            return most
        self.elements = deque(_without(elements, element, most - FEW_MATCHES))
        return FEW_MATCHES + len(elements) - len(self.elements)

    def trim(self, start: int, end: int) -> int:
        """Keeps the elements from an index to below another; returns how many were removed."""
        elements = self.elements
        after = len(elements) - end
        if start + after < end - start:
            self.pops(start, left=True)
            self.pops(after, left=False)
        else:
            self.elements = deque(islice(elements, start, end))
            self._bytes = _FRAME + sum(map(element_size, self.elements))
            self._shrink()
            self._limits.disposal.drop(elements)
        return start + after

    # --- to read --------------------------------------------------------------------------

    def slice(self, start: int, end: int) -> list[bytes]:
        """The elements from an index to below another, or to the end."""
        elements = self.elements
        end = min(end, len(elements))
        if end - start <= FEW_INDEXES:
            return [elements[at] for at in range(start, end)]
        if start <= len(elements) // 2:
            return list(islice(elements, start, end))
        back = list(islice(reversed(elements), len(elements) - end, len(elements) - start))
        return back[::-1]

    def places(
        self, element: bytes, skipped: int, wanted: int, most: int, *, left: bool
    ) -> list[int]:
        """The indexes of ``wanted`` elements equal to this one, behind as many that are skipped,
        among the first ``most`` from an end, from which they are counted."""
        if not left:
            self.elements.reverse()
        try:
            return self._places(element, skipped, wanted, most)
        finally:
            if not left:
                self.elements.reverse()

    def _places(self, element: bytes, skipped: int, wanted: int, most: int) -> list[int]:
        try:
            first = self.elements.index(element, 0, most)
        except ValueError:
            return []
        if wanted == 1 and not skipped:
            return [first]
        equal = map(element.__eq__, islice(self.elements, first, most))
        return list(islice(compress(count(first), equal), skipped, skipped + wanted))

    # --- encodings ------------------------------------------------------------------------

    def _grow(self, elements: Sequence[bytes]) -> None:
        """Becomes large if these elements would be too much, whether they are added or not."""
        if not self._large:
            size = self._bytes
            for element in elements:
                size += len(element)
            self._large = self._exceeds(size, len(self.elements) + len(elements), 1)

    def _shrink(self) -> None:
        if self._large:
            self._large = self._exceeds(self._bytes, len(self.elements), 2)

    def _exceeds(self, size: int, count: int, divisor: int) -> bool:
        """Whether that many bytes and elements are more than the limit, or a part of it."""
        limit = self._limits.list_max_listpack_size
        if limit < 0:
            return size > SIZES[min(-limit, len(SIZES)) - 1] // divisor
        return size > SAFE_BYTES or count > max(limit, 1) // divisor

    # --- as a value -----------------------------------------------------------------------

    def copy(self) -> ListValue:
        """Return a list of its own that is equal to this one."""
        copy = ListValue(self._limits)
        copy.elements.extend(self.elements)
        copy._bytes, copy._large = self._bytes, self._large
        return copy

    def encoding(self) -> str:
        """``listpack`` or ``quicklist``."""
        return "quicklist" if self._large else "listpack"

    def words(self, key: bytes) -> Iterator[Words]:
        """RPUSHs."""
        return in_portions((RPUSH, key), iter(self.elements))

    def sample(self) -> Sequence[int]:
        """How many bytes some elements have."""
        return list(map(len, islice(self.elements, SAMPLE)))

    def tables(self) -> Sequence[Table]:
        """What holds its elements."""
        return [self.elements]

    def check(self) -> None:
        """Verifies the invariants."""
        assert self._bytes == _FRAME + sum(map(element_size, self.elements))


def _without(elements: Iterable[bytes], element: bytes, most: int) -> list[bytes]:
    """The elements without the first ``most`` that are equal to this one."""
    kept: list[bytes] = []
    for each in elements:
        if most and each == element:
            most -= 1
        else:
            kept.append(each)
    return kept
