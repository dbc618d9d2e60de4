"""Makes the consumer groups of the target's stream equal to those of the source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final, NamedTuple

from penstock.client.connection import Command, Connection
from penstock.client.errors import CommandRefused
from penstock.migration.differences import PendingChange, compare_pending
from penstock.migration.model import Digest, Group, Head, Pending, noted
from penstock.migration.plan import Endpoints, StreamGone
from penstock.migration.read import read_consumers, read_groups, read_head, read_pending
from storage.engine import ids

NOBODY: Final = b""
"""The consumer that gets what XNACK released, on a target that has no XNACK.

Its entries have a delivery time of 1970, so that XAUTOCLAIM finds them first.
"""

_BATCH: Final = 1000


# --- what the target should have -------------------------------------------------------------


class CopiedGroup(NamedTuple):
    """A group as it was copied."""

    group: Group
    digest: bytes
    """The digest of its pending entries."""
    pending: int
    """How many of them there were."""
    stand_ins: int
    """How many entries went to :data:`NOBODY`."""


def as_of(group: Group, start: Head, now: Head) -> Group:
    """The position that a group had when the stream ended where it did at the ``start``.

    A group that has read further since then had read everything up to there.
    """
    if not start.last_id < group.last_id <= now.last_id:
        return group
    read = None if group.entries_read is None else start.added
    return group._replace(last_id=start.last_id, entries_read=read)


def source_head(source: Connection, key: bytes, start: Head) -> Head:
    """The source's counters now; raises :class:`StreamGone` if it is not the same stream."""
    head = read_head(source, key)
    if head is None or head.last_id < start.last_id:
        raise StreamGone("removed from the source, or made anew there, during the copy")
    return head


def source_groups(source: Connection, key: bytes, start: Head) -> tuple[list[Group], Head]:
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

    def __init__(self, endpoints: Endpoints, key: bytes, group: Group, start: Head) -> None:
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


# --- changing the target ---------------------------------------------------------------------


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


def _copy_group(endpoints: Endpoints, key: bytes, group: Group, start: Head) -> CopiedGroup:
    wanted = WantedPending(endpoints, key, group, start)
    found = read_pending(endpoints.target, key, group.name, ids.MAX)
    changes = compare_pending(wanted, found)
    while batch := list(islice(changes, _BATCH)):
        _apply(endpoints.target, key, group.name, batch)
    copied = wanted.summary()
    _copy_consumers(endpoints.target, key, copied.group)
    return copied


def _apply(target: Connection, key: bytes, group: bytes, changes: list[PendingChange]) -> None:
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


def _without_entry(target: Connection, key: bytes, changes: list[PendingChange]) -> set[int]:
    """The pending IDs without an entry on the target, which a claim would drop."""
    texts = [ids.text(change.id) for change in changes]
    found = target.call_all([("XRANGE", key, text, text) for text in texts])
    return {change.id for change, entry in zip(changes, found, strict=True) if not entry}


def _copy_consumers(target: Connection, key: bytes, group: Group) -> None:
    present = read_consumers(target, key, group.name)
    create = [("CREATECONSUMER", name) for name in sorted(group.consumers - present)]
    delete = [("DELCONSUMER", name) for name in sorted(present - group.consumers)]
    target.call_all([("XGROUP", what, key, group.name, name) for what, name in create + delete])
