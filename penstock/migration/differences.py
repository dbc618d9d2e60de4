"""Compares two streams while both are read, and yields the differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from penstock.migration.model import Entry, Pending, entry_id

# --- entries ---------------------------------------------------------------------------------


class Fault(Enum):
    """What can be wrong with an entry on the target."""

    MISSING = "missing"
    EXTRA = "too many"
    DIFFERENT = "different"


class EntryChange(NamedTuple):
    """One entry that the two servers do not have with the same content."""

    id: int
    fault: Fault
    found: Entry | None = None
    """The target's, if it has one."""


class _Pages:
    """Entries that are read a page at a time."""

    def __init__(self, pages: Iterable[list[Entry]]) -> None:
        self._pages = iter(pages)
        self.page: list[Entry] = []

    def fill(self) -> int:
        """How many entries of this page are left to compare; 0 only at the end."""
        if not self.page:
            self.page = next(self._pages, [])
        return len(self.page)

    def skip(self, count: int) -> None:
        """Drops entries that have been compared."""
        self.page = self.page[count:]


def compare_entries(
    source: Iterable[list[Entry]], target: Iterable[list[Entry]]
) -> Iterator[int | EntryChange]:
    """The differences between two streams' entries, both given in pages.

    Between the differences come numbers: how many entries were equal.
    """
    wanted, found = _Pages(source), _Pages(target)
    while shared := min(wanted.fill(), found.fill()):
        # Most pages are equal, and comparing lists as a whole is fast.
        if wanted.page[:shared] == found.page[:shared]:
            yield shared
            wanted.skip(shared)
            found.skip(shared)
        else:
            yield from _compare_pages(wanted, found)
    while wanted.fill():
        yield from (EntryChange(entry_id(entry), Fault.MISSING) for entry in wanted.page)
        wanted.page = []
    while found.fill():
        yield from (EntryChange(entry_id(entry), Fault.EXTRA, entry) for entry in found.page)
        found.page = []


def _compare_pages(wanted: _Pages, found: _Pages) -> Iterator[int | EntryChange]:
    """Compares entry by entry until one of the two pages is over."""
    here = there = 0
    while here < len(wanted.page) and there < len(found.page):
        entry, other = wanted.page[here], found.page[there]
        wanted_id, found_id = entry_id(entry), entry_id(other)
        here += wanted_id <= found_id
        there += found_id <= wanted_id
        if entry == other:
            yield 1
        elif wanted_id == found_id:
            yield EntryChange(wanted_id, Fault.DIFFERENT, other)
        elif wanted_id < found_id:
            yield EntryChange(wanted_id, Fault.MISSING)
        else:
            yield EntryChange(found_id, Fault.EXTRA, other)
    wanted.skip(here)
    found.skip(there)


# --- pending entries -------------------------------------------------------------------------


class PendingChange(NamedTuple):
    """One pending entry that differs between the two servers."""

    id: int
    wanted: Pending | None
    """``None`` if it is not pending on the source."""
    found: Pending | None
    """``None`` if it is not pending on the target."""


def compare_pending(wanted: Iterable[Pending], found: Iterable[Pending]) -> Iterator[PendingChange]:
    """The differences between two lists of pending entries, both in the order of IDs."""
    others = iter(found)
    other = next(others, None)
    for row in wanted:
        while other is not None and other.id < row.id:
            yield PendingChange(other.id, None, other)
            other = next(others, None)
        match = other if other is not None and other.id == row.id else None
        if match != row:
            yield PendingChange(row.id, row, match)
        if match is not None:
            other = next(others, None)
    while other is not None:
        yield PendingChange(other.id, None, other)
        other = next(others, None)
