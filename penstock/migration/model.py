"""Values of which a stream consists besides its entries, and how two streams differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from storage.engine import ids

Entry = list[Any]
"""An entry as XRANGE answers it: its ID, and a list of fields and values."""

PLACEHOLDER: Final = [b"penstock-migration", b"placeholder"]
"""The field and value of an entry added in place of a deleted one while its ID is claimed."""


def entry_id(entry: Entry) -> int:
    """The ID of an entry, as an integer."""
    return ids.parse(entry[0])


def is_placeholder(entry: Entry) -> bool:
    """Whether the entry is a placeholder that an earlier run has added."""
    return bool(entry[1] == PLACEHOLDER)


class Settings(NamedTuple):
    """How long (seconds) and how many idempotent IDs of a producer a stream remembers."""

    duration: int
    maxsize: int


USUAL_SETTINGS: Final = Settings(100, 100)
"""The settings of a stream for which nobody has asked for others."""


class Head(NamedTuple):
    """A stream's counters; IDs are integers, as :mod:`storage.engine.ids` makes them."""

    length: int
    last_id: int
    max_deleted: int | None
    """``None`` if the server does not keep it (before Redis 7.0)."""
    added: int
    first: Entry | None
    last: Entry | None
    settings: Settings | None
    """``None`` if the server does not support idempotent producing."""
    remembered: int
    """How many idempotent IDs it remembers. No command returns them."""

    def has_same_entries(self, other: Head) -> bool:
        """Whether nothing was added to the stream, or removed from it, between the two."""
        return self._replace(remembered=0) == other._replace(remembered=0)


class Counters(NamedTuple):
    """The counters of a stream that XSETID sets."""

    last_id: int
    added: int
    max_deleted: int | None
    """``None`` if any value is correct."""


class GroupState(NamedTuple):
    """A consumer group without its pending entries."""

    name: bytes
    last_id: int
    entries_read: int | None
    """``None`` if unknown."""
    consumers: frozenset[bytes]
    pending: int
    """How many entries are pending."""


class Pending(NamedTuple):
    """A pending entry: when it was delivered last (Unix ms), and how often."""

    id: int
    owner: bytes | None
    """``None`` if XNACK released it; the time is 0 then."""
    time: int
    deliveries: int


class Digest:
    """A hash over pending entries, to find out later whether they have changed."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.count = 0
        """How many entries were added."""

    def add(self, row: Pending) -> None:
        """Adds one pending entry."""
        self.count += 1
        owner = b"-" if row.owner is None else b"%d %s" % (len(row.owner), row.owner)
        self._hash.update(b"%d %d %d " % (row.id, row.time, row.deliveries))
        self._hash.update(owner)

    def value(self) -> bytes:
        """The hash of the entries added so far."""
        return self._hash.digest()


def noted(rows: Iterable[Pending], digest: Digest) -> Iterator[Pending]:
    """Yields the pending entries and adds each to the digest."""
    for row in rows:
        digest.add(row)
        yield row


# --- differences of entries -------------------------------------------------------------------


class EntryFault(Enum):
    """A kind of fault of an entry on the target."""

    MISSING = "missing"
    EXTRA = "too many"
    DIFFERENT = "different"


class EntryChange(NamedTuple):
    """An entry that the two servers do not have with the same content."""

    id: int
    fault: EntryFault
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
        yield from (EntryChange(entry_id(entry), EntryFault.MISSING) for entry in wanted.page)
        wanted.page = []
    while found.fill():
        yield from (EntryChange(entry_id(entry), EntryFault.EXTRA, entry) for entry in found.page)
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
            yield EntryChange(wanted_id, EntryFault.DIFFERENT, other)
        elif wanted_id < found_id:
            yield EntryChange(wanted_id, EntryFault.MISSING)
        else:
            yield EntryChange(found_id, EntryFault.EXTRA, other)
    wanted.skip(here)
    found.skip(there)


# --- differences of pending entries -----------------------------------------------------------


class PendingChange(NamedTuple):
    """A pending entry that differs between the two servers."""

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
