"""Copies one stream: entries, groups, then counters.

The steps are in such an order that the copy can be cut off after any command and begun again:
:mod:`penstock.migration.plan` finds what is there, and every step does only what is left of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Final, NamedTuple

from penstock.client.connection import Argument, Command, ServerConnection
from penstock.client.errors import CommandRefused
from penstock.migration.model import (
    PLACEHOLDER,
    Counters,
    Digest,
    Entry,
    EntryChange,
    EntryFault,
    GroupState,
    Head,
    Pending,
    PendingChange,
    compare_entries,
    compare_pending,
    entry_id,
    is_placeholder,
    noted,
)
from penstock.migration.plan import REMEDY, Endpoints, Plan, StreamGone, StreamRefused, TargetAction
from penstock.migration.read import (
    PAGE_ENTRIES,
    read_consumers,
    read_entries,
    read_expiry,
    read_groups,
    read_head,
    read_pending,
    read_pending_ids,
)
from storage.engine import ids

NOBODY: Final = b""
"""The consumer that gets what XNACK released, on a target that has no XNACK.

Its entries have a delivery time of 1970, so that XAUTOCLAIM finds them first.
"""

_BATCH: Final = 1000

UNKNOWN_COUNT: Final = -1
"""ENTRIESREAD of a group that does not know how many entries it has read."""

_ANY_GROUP: Final = b"penstock-migration"


class Copied(NamedTuple):
    """Tells what was copied of a stream, for the verification."""

    plan: Plan
    added: int
    """How many entries this run has added."""
    head: Head
    """The source's counters when its groups were read."""
    counters: Counters
    """What the target's counters have been set to."""
    groups: list[CopiedGroup]


def copy_stream(endpoints: Endpoints, plan: Plan, advance: Advance) -> Copied:
    """Executes the plan. Raises :class:`CommandRefused` if either server rejects a command.

    ``advance`` is called with the numbers of entries processed, those already there included.
    """
    key = plan.key
    if plan.action is TargetAction.REPLACE:
        endpoints.target.call("UNLINK", key)
    if plan.action is not TargetAction.CONTINUE:
        _make_stream(endpoints, key)
    added = append_entries(endpoints, plan, advance)
    groups, head = copy_groups(endpoints, key, plan.source)
    remove_extra_entries(endpoints, key, plan.source)
    counters = wanted_counters(plan.source, head)
    set_counters(endpoints, key, counters, groups)
    set_settings(endpoints, key, plan.source)
    set_expiry(endpoints, key, plan.source)
    return Copied(plan, added, head, counters, groups)


def _make_stream(endpoints: Endpoints, key: bytes) -> None:
    """Creates a stream without entries, which only XGROUP CREATE ... MKSTREAM can do."""
    endpoints.target.transact(
        [
            ("XGROUP", "CREATE", key, _ANY_GROUP, "0", "MKSTREAM"),
            ("XGROUP", "DESTROY", key, _ANY_GROUP),
        ]
    )


# --- entries that the target lacks ------------------------------------------------------------


def append_entries(endpoints: Endpoints, plan: Plan, advance: Advance) -> int:
    """Adds the entries above ``plan.after`` up to where the source was; returns how many.

    An entry that was deleted may still be pending in a group. The target can only be told so while
    an entry has that ID, so one is added in its place, in the order of IDs; it is removed later.
    """
    start, stop = plan.after + 1, plan.source.last_id
    groups = read_groups(endpoints.source, plan.key)
    pages = read_entries(endpoints.source, plan.key, start, stop)
    pending = read_pending_ids(endpoints.source, plan.key, groups, start, stop)
    added = 0
    for batch in with_placeholders(pages, pending):
        # In a transaction: if a single entry were refused, it could not be added later.
        endpoints.target.transact([("XADD", plan.key, entry[0], *entry[1]) for entry in batch])
        real = sum(entry[1] is not PLACEHOLDER for entry in batch)
        added += real
        advance(real)
    return added


def with_placeholders(
    pages: Iterable[list[Entry]], pending: Iterator[int]
) -> Iterator[list[Entry]]:
    """The pages with placeholders for those pending IDs that they lack, all in order."""
    waiting = _PendingIds(pending)
    for page in pages:
        due = waiting.up_to(entry_id(page[-1]))
        present = {entry[0] for entry in page} if due else set()
        missing = [id for id in due if ids.text(id) not in present]
        if missing:
            placeholders = map(_placeholder, missing)
            yield from _batches(heapq.merge(page, placeholders, key=entry_id))
        else:
            yield page
    yield from _batches(map(_placeholder, waiting.rest()))


class _PendingIds:
    """Pending IDs in order, of which the next one is known."""

    def __init__(self, pending: Iterator[int]) -> None:
        self._pending = pending
        self._next = next(pending, None)

    def up_to(self, last: int) -> list[int]:
        """Return the IDs up to ``last``, which are then no longer waiting."""
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


def _placeholder(id: int) -> Entry:
    return [ids.text(id), PLACEHOLDER]


def target_head(target: ServerConnection, key: bytes) -> Head:
    """The counters of the target's stream; raises :class:`StreamGone`."""
    head = read_head(target, key)
    if head is None:
        raise StreamGone("removed from the target during the copy")
    return head


# --- entries that the source no longer has ----------------------------------------------------


def remove_extra_entries(endpoints: Endpoints, key: bytes, start: Head) -> None:
    """Removes placeholders, and entries that the source has lost since an earlier run.

    XTRIM removes those before the source's first entry, as it leaves max-deleted-entry-id alone;
    a trimmed stream's often is 0-0, to which no command can set it back.
    """
    now = source_head(endpoints.source, key, start)
    if now.first is not None and entry_id(now.first) <= start.last_id:
        endpoints.target.call("XTRIM", key, "MINID", now.first[0])
    else:
        endpoints.target.call("XTRIM", key, "MAXLEN", 0)
    here = target_head(endpoints.target, key)
    if here.length != now.length - (now.added - start.added):
        _remove_within(endpoints, key, start, now)


def _remove_within(endpoints: Endpoints, key: bytes, start: Head, now: Head) -> None:
    """Compares all entries and removes those that only the target has."""
    wanted = read_entries(endpoints.source, key, ids.MIN, start.last_id)
    found = read_entries(endpoints.target, key, ids.MIN, start.last_id)
    extra = _extra(compare_entries(wanted, found), now.max_deleted)
    for leading, run in groupby(extra, itemgetter(0)):
        while batch := [ids.text(id + leading) for _, id in islice(run, _BATCH)]:
            if leading:
                endpoints.target.call("XTRIM", key, "MINID", batch[-1])
            else:
                endpoints.target.call("XDEL", key, *batch)


def _extra(
    changes: Iterable[int | EntryChange], max_deleted: int | None
) -> Iterator[tuple[bool, int]]:
    """The IDs that only the target has, and whether they come before all that the source has.

    Raises :class:`StreamRefused` at an entry that the target lacks, and at one that cannot have
    been deleted from the source, since that never deleted so high an ID.
    """
    leading = True
    for change in changes:
        if not isinstance(change, EntryChange):
            leading = False
        elif change.fault is not EntryFault.EXTRA or not (
            leading or _was_deleted(change, max_deleted)
        ):
            text = ids.text(change.id).decode()
            fault = change.fault.value
            raise StreamRefused(f"the entry {text} is {fault} on the target; {REMEDY}")
        else:
            yield leading, change.id


def _was_deleted(change: EntryChange, max_deleted: int | None) -> bool:
    assert change.found is not None
    return max_deleted is None or change.id <= max_deleted or is_placeholder(change.found)


# --- counters, settings and expiry ------------------------------------------------------------


def wanted_counters(start: Head, now: Head) -> Counters:
    """The counters that the target should have: those of the source when it ended at the start."""
    if now.last_id == start.last_id:
        return Counters(now.last_id, now.added, now.max_deleted)
    later = now.max_deleted is not None and now.max_deleted > start.last_id
    return Counters(start.last_id, start.added, (start if later else now).max_deleted)


def counters_of(head: Head, wanted: Counters) -> Counters:
    """Return these counters of the target, those left out of which any value will do."""
    max_deleted = None if wanted.max_deleted is None else head.max_deleted
    return Counters(head.last_id, head.added, max_deleted)


def set_counters(
    endpoints: Endpoints, key: bytes, wanted: Counters, groups: list[CopiedGroup]
) -> None:
    """Sets the stream's counters, then the positions of its groups, which depend on them."""
    if counters_of(target_head(endpoints.target, key), wanted) != wanted:
        last = ids.text(wanted.last_id)
        command: list[Argument] = ["XSETID", key, last, "ENTRIESADDED", wanted.added]
        if wanted.max_deleted is not None:
            command += ["MAXDELETEDID", ids.text(min(wanted.max_deleted, wanted.last_id))]
        endpoints.target.call(*command)
    found = {group.name: group for group in read_groups(endpoints.target, key)}
    commands: list[Command] = []
    for group in (each.group for each in groups):
        here = found[group.name]
        if (here.last_id, here.entries_read) != (group.last_id, group.entries_read):
            read = UNKNOWN_COUNT if group.entries_read is None else group.entries_read
            position = (ids.text(group.last_id), "ENTRIESREAD", read)
            commands.append(("XGROUP", "SETID", key, group.name, *position))
    endpoints.target.call_all(commands)


def set_settings(endpoints: Endpoints, key: bytes, source: Head) -> None:
    """Sets how long idempotent IDs are remembered, if both servers support them."""
    here = target_head(endpoints.target, key).settings
    if source.settings is None or here is None or source.settings == here:
        return
    duration, maxsize = source.settings
    endpoints.target.call("XCFGSET", key, "IDMP-DURATION", duration, "IDMP-MAXSIZE", maxsize)


def set_expiry(endpoints: Endpoints, key: bytes, start: Head) -> None:
    """Lets the target's key expire when the source's does.

    Raises :class:`StreamGone` if the source's is gone, which reads as one that never expires."""
    wanted = read_expiry(endpoints.source, key)
    source_head(endpoints.source, key, start)
    if read_expiry(endpoints.target, key) == wanted:
        return
    if wanted is None:
        endpoints.target.call("PERSIST", key)
    else:
        endpoints.target.call("PEXPIREAT", key, wanted)


# --- groups as the target should have them ----------------------------------------------------


class CopiedGroup(NamedTuple):
    """A group as it was copied."""

    group: GroupState
    digest: bytes
    """The digest of its pending entries."""
    pending: int
    """How many of them there were."""
    stand_ins: int
    """How many entries went to :data:`NOBODY`."""


def as_of(group: GroupState, start: Head, now: Head) -> GroupState:
    """The position that a group had when the stream ended where it did at the ``start``.

    A group that has read further since then had read everything up to there.
    """
    if not start.last_id < group.last_id <= now.last_id:
        return group
    read = None if group.entries_read is None else start.added
    return group._replace(last_id=start.last_id, entries_read=read)


def source_head(source: ServerConnection, key: bytes, start: Head) -> Head:
    """The source's counters now; raises :class:`StreamGone` if it is not the same stream."""
    head = read_head(source, key)
    if head is None or head.last_id < start.last_id:
        raise StreamGone("removed from the source, or recreated there, during the copy")
    return head


def source_groups(
    source: ServerConnection, key: bytes, start: Head
) -> tuple[list[GroupState], Head]:
    """The groups as of the ``start``, and the counters now; raises :class:`StreamGone`."""
    try:
        groups = read_groups(source, key)
    except CommandRefused:
        source_head(source, key, start)
        raise
    head = source_head(source, key, start)
    return [as_of(group, start, head) for group in groups], head


class WantedPending:
    """Iterates over the pending entries that a group of the target should have; then sums them up.

    Only entries up to where the source was at the ``start`` count.
    """

    def __init__(self, endpoints: Endpoints, key: bytes, group: GroupState, start: Head) -> None:
        self._rows = read_pending(endpoints.source, key, group.name, start.last_id)
        self._keeps_released = endpoints.target.knows("XNACK")
        self._group = group
        self._owners: set[bytes] = set()
        self._digest = Digest()
        self._stand_ins = 0

    def __iter__(self) -> Iterator[Pending]:
        return noted(map(self._fitting, self._rows), self._digest)

    def _fitting(self, row: Pending) -> Pending:
        if row.owner is None:
            if self._keeps_released:
                return row
            self._stand_ins += 1
            row = row._replace(owner=NOBODY)
        self._owners.add(row.owner or NOBODY)
        return row

    def summary(self) -> CopiedGroup:
        """The summary, to be called after the iteration; owners are among the consumers."""
        consumers = self._group.consumers | self._owners
        group = self._group._replace(consumers=consumers)
        return CopiedGroup(group, self._digest.value(), self._digest.count, self._stand_ins)


# --- changing the target's groups -------------------------------------------------------------


def copy_groups(endpoints: Endpoints, key: bytes, start: Head) -> tuple[list[CopiedGroup], Head]:
    """Creates the groups that the target lacks, and sets the pending entries of each.

    Positions are not set yet: they depend on counters that are restored at the very end. Returns
    what was copied, and the source's counters now. Raises :class:`StreamGone`.
    """
    groups, head = source_groups(endpoints.source, key, start)
    present = {group.name: group.consumers for group in read_groups(endpoints.target, key)}
    missing = [group.name for group in groups if group.name not in present]
    endpoints.target.call_all([("XGROUP", "CREATE", key, name, "0") for name in missing])
    copied = [_copy_group(endpoints, key, group, start) for group in groups]
    return copied, head


def _copy_group(endpoints: Endpoints, key: bytes, group: GroupState, start: Head) -> CopiedGroup:
    wanted = WantedPending(endpoints, key, group, start)
    found = read_pending(endpoints.target, key, group.name, ids.MAX)
    changes = compare_pending(wanted, found)
    while batch := list(islice(changes, _BATCH)):
        _apply(endpoints.target, key, group.name, batch)
    copied = wanted.summary()
    _copy_consumers(endpoints.target, key, copied.group)
    return copied


def _apply(
    target: ServerConnection, key: bytes, group: bytes, changes: list[PendingChange]
) -> None:
    over = [ids.text(change.id) for change in changes if change.wanted is None]
    commands: list[Command] = [("XACK", key, group, *over)] if over else []
    stuck = _without_entry(target, key, [c for c in changes if c.wanted and c.found])
    rows = [c.wanted for c in changes if c.wanted and c.id not in stuck]
    for (owner, time, deliveries), run in groupby(rows, lambda row: row[1:]):
        texts = [ids.text(row.id) for row in run]
        if owner is None:
            words = ("IDS", len(texts), *texts, "RETRYCOUNT", deliveries, "FORCE")
            commands.append(("XNACK", key, group, "FAIL", *words))
        else:
            words = ("TIME", time, "RETRYCOUNT", deliveries, "FORCE", "JUSTID")
            commands.append(("XCLAIM", key, group, owner, 0, *texts, *words))
    target.call_all(commands)


def _without_entry(target: ServerConnection, key: bytes, changes: list[PendingChange]) -> set[int]:
    """The pending IDs without an entry on the target, which a claim would drop."""
    texts = [ids.text(change.id) for change in changes]
    found = target.call_all([("XRANGE", key, text, text) for text in texts])
    return {change.id for change, entry in zip(changes, found, strict=True) if not entry}


def _copy_consumers(target: ServerConnection, key: bytes, group: GroupState) -> None:
    present = read_consumers(target, key, group.name)
    create = [("CREATECONSUMER", name) for name in sorted(group.consumers - present)]
    delete = [("DELCONSUMER", name) for name in sorted(present - group.consumers)]
    target.call_all([("XGROUP", what, key, group.name, name) for what, name in create + delete])


Advance = Callable[[int], None]
"""Called with the number of entries that have been processed since the last call."""
