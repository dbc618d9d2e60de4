"""Appends the entries that the target lacks, and placeholders for pending IDs without an entry."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from penstock.migration.plan import Ends, Plan
from penstock.migration.read import PAGE_ENTRIES, read_entries, read_groups, read_pending_ids
from penstock.migration.values import PLACEHOLDER, Entry, entry_id
from storage import ids

Advance = Callable[[int], None]
"""Is told how many more entries have been dealt with."""


def append_entries(ends: Ends, plan: Plan, advance: Advance) -> int:
    """Adds the entries above ``plan.after`` up to where the source was; returns how many.

    An entry that was deleted may still be pending in a group. The target can only be told so while
    an entry has that ID, so one is added in its place, in the order of IDs; it is removed later.
    """
    start, stop = plan.after + 1, plan.source.last_id
    groups = read_groups(ends.source, plan.key)
    pages = read_entries(ends.source, plan.key, start, stop)
    pending = read_pending_ids(ends.source, plan.key, groups, start, stop)
    added = 0
    for batch in with_placeholders(pages, pending):
        # In a transaction, since a single entry that is refused would leave a gap for ever.
        ends.target.transact([("XADD", plan.key, entry[0], *entry[1]) for entry in batch])
        real = sum(entry[1] is not PLACEHOLDER for entry in batch)
        added += real
        advance(real)
    return added


def with_placeholders(
    pages: Iterable[list[Entry]], pending: Iterator[int]
) -> Iterator[list[Entry]]:
    """The pages with placeholders for those pending IDs that they lack, all in order."""
    waiting = _Waiting(pending)
    for page in pages:
        due = waiting.up_to(entry_id(page[-1]))
        present = {entry[0] for entry in page} if due else set()
        lacking = [identity for identity in due if ids.text(identity) not in present]
        if lacking:
            placeholders = map(_placeholder, lacking)
            yield from _batches(heapq.merge(page, placeholders, key=entry_id))
        else:
            yield page
    yield from _batches(map(_placeholder, waiting.rest()))


class _Waiting:
    """Pending IDs in order, of which the next one is known."""

    def __init__(self, pending: Iterator[int]) -> None:
        self._pending = pending
        self._next = next(pending, None)

    def up_to(self, last: int) -> list[int]:
        """Those up to ``last``, which are then no longer waiting."""
        due = []
        while self._next is not None and self._next <= last:
            due.append(self._next)
            self._next = next(self._pending, None)
        return due

    def rest(self) -> Iterator[int]:
        """All the others."""
        if self._next is not None:
            yield self._next
            yield from self._pending


def _batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    while batch := list(islice(entries, PAGE_ENTRIES)):
        yield batch


def _placeholder(identity: int) -> Entry:
    return [ids.text(identity), PLACEHOLDER]
