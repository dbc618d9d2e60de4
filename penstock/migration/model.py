"""What a stream consists of besides its entries, as values that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
"""Those of a stream for which nobody has asked for others."""


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
    """Those of a stream's counters that XSETID sets."""

    last_id: int
    added: int
    max_deleted: int | None
    """``None`` if any value is correct."""


class Group(NamedTuple):
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
