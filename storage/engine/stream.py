"""One stream: its entries, its counters, its consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from storage.engine import ids
from storage.engine.block import LoadedRun
from storage.engine.effects import Times
from storage.engine.groups import Group
from storage.engine.idempotency import IdempotencyTable
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog
from storage.engine.nodes import radix_tree_nodes
from storage.engine.runs import USUAL, Moment, Run
from storage.errors import IDTooSmall, StreamExhausted

if TYPE_CHECKING:
    from mypy_extensions import i64

_HALF: Final = 2**63
_ALL: Final = 2**64
_SMALL: Final = 2**61
"""Up to here a number needs no object of its own where compiled."""


def signed(value: int) -> int:
    """The counter, or the difference of two, as a signed number of 64 bits."""
    if -_SMALL <= value <= _SMALL:
        return value
    return (value + _HALF) % _ALL - _HALF


def unsigned(value: int) -> int:
    """The counter that is shown or written down as ``value``."""
    return value % _ALL


class Stream:
    """A stream value. ``max_deleted_id`` is the highest ID removed by anything but trimming,
    ``entries_added`` how many entries there ever were.

    ``policy`` are the stream's own policies by name; nothing here looks into them. ``used_ms`` is
    when a command has last read or changed it."""

    __slots__ = (
        "_last_id",
        "_last_ms",
        "_last_seq",
        "_limits",
        "entries_added",
        "groups",
        "idempotency",
        "log",
        "max_deleted_id",
        "policy",
        "used_ms",
    )

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self.used_ms: i64 = ids.UNKNOWN
        self.log = EntryLog(limits)
        self.groups: dict[bytes, Group] = {}
        self._last_id = ids.MIN
        self._last_ms: i64 = ids.UNKNOWN
        self._last_seq: i64 = ids.UNKNOWN
        """The halves of :attr:`last_id`, where they are known; -1 else."""
        self.max_deleted_id = ids.MIN
        self.entries_added = 0
        self.idempotency = IdempotencyTable(limits.idmp_duration, limits.idmp_maxsize)
        self.policy: dict[bytes, bytes] = {}

    def __del__(self) -> None:
        for group in self.groups.values():
            self._limits.disposal.keep(group.columns)

    def drop_group(self, name: bytes) -> bool:
        """Removes a consumer group; whether there was one."""
        group = self.groups.pop(name, None)
        if group is not None:
            self._limits.disposal.keep(group.columns)
        return group is not None

    # --- adding and deleting --------------------------------------------------------------

    @property
    def last_id(self) -> int:
        """The highest ID ever taken."""
        return self._last_id

    @last_id.setter
    def last_id(self, entry_id: int) -> None:
        self._last_id = entry_id
        self._last_ms = self._last_seq = ids.UNKNOWN

    def is_below(self, entry_id: int) -> bool:
        """Whether :attr:`last_id` is below this ID, which has milliseconds above
        :data:`.ids.NATIVE`."""
        return self._last_ms >= 0 or self._last_id < entry_id

    def admits(self, ms: i64, seq: i64) -> bool:
        """Return whether the ID with these halves is above :attr:`last_id`."""
        if self._last_ms >= 0:
            return ms > self._last_ms or (ms == self._last_ms and seq > self._last_seq)
        return ids.join(ms, seq) > self._last_id

    def next_usual(self, moment: Moment) -> i64:
        """Return the sequence number of an entry that is added at this moment, if it is a usual one
        with the milliseconds of that; -1 if not. Most integers of 128 bits are avoided so."""
        if self._last_ms == moment.ms:
            following = self._last_seq + 1
            if following < USUAL:
                return following
            return ids.UNKNOWN
        if moment.first > self._last_id:
            return 0
        above = self._last_id + 1 - moment.first
        return above if above < USUAL else ids.UNKNOWN

    def next_id(self, now: int) -> int:
        """The ID of an entry added now (``*``). Raises :class:`StreamExhausted`."""
        return self.next_from(now << 64)

    def next_from(self, first: int) -> int:
        """Return ``first``, the lowest ID of a time, or else the next ID above :attr:`last_id`.
        Raises :class:`StreamExhausted`."""
        if first > self.last_id:
            return first
        if self.last_id == ids.MAX:
            raise StreamExhausted
        return self.last_id + 1

    def next_in(self, ms: int) -> int:
        """The next ID with these milliseconds (``ms-*``).

        Raises :class:`StreamExhausted` or :class:`IDTooSmall`.
        """
        if self.last_id == ids.MAX:
            raise StreamExhausted
        last_ms, last_seq = ids.split(self.last_id)
        if ms > last_ms:
            return ms << 64
        if ms < last_ms or last_seq == ids.HALF:
            raise IDTooSmall
        return self.last_id + 1

    def require_above_last(self, entry_id: int) -> int:
        """Return ``entry_id`` if an entry may take it.

        Raises :class:`StreamExhausted` or :class:`IDTooSmall`.
        """
        if self.last_id == ids.MAX:
            raise StreamExhausted
        if entry_id <= self.last_id:
            raise IDTooSmall
        return entry_id

    def add(self, entry_id: int, items: list[bytes]) -> bytes:
        """Appends an entry, whose ID is above :attr:`last_id`; returns its RESP form."""
        payload = self.log.append(entry_id, items)
        self.last_id = entry_id
        self.entries_added += 1
        return payload

    def add_loaded(self, run: LoadedRun) -> None:
        """Appends the entries of a run, of which the IDs are above :attr:`last_id`."""
        self.log.append_loaded(run)
        self.last_id = run.entry_ids[-1]
        self.entries_added += len(run.entry_ids)

    def add_packed(
        self, entry_id: int, ms: i64, seq: i64, payload: bytes, size: i64, alike: bool
    ) -> None:
        """Appends an entry with an ID above :attr:`last_id`, of which this is the RESP form; the
        others are as for :meth:`.Block.append`."""
        self.log.append_packed(entry_id, ms, seq, payload, size, alike)
        self._last_id, self._last_ms, self._last_seq = entry_id, ms, seq
        self.entries_added += 1

    def add_run(self, run: Run) -> list[bytes]:
        """Appends entries whose IDs are above :attr:`last_id`; returns their RESP forms."""
        payloads = self.log.append_run(run)
        self._last_id, self._last_ms = run.last, run.ms
        self._last_seq = run.seq + len(payloads) - 1 if run.ms >= 0 else ids.UNKNOWN
        self.entries_added += len(payloads)
        return payloads

    def delete(self, entry_ids: Sequence[int]) -> list[int]:
        """Removes single entries; returns the IDs of those that were there."""
        deleted = [entry_id for entry_id in entry_ids if self.log.delete(entry_id)]
        if deleted:
            self.max_deleted_id = max(self.max_deleted_id, *deleted)
            for group in self.groups.values():
                group.pending.extras.histories.forget(deleted)
        return deleted

    def trim(self, count: int) -> None:
        """Removes so many of the oldest entries."""
        self.log.trim_to_length(self.log.length - count)
        first = self.log.first if self.log.length else ids.MAX + 1
        for group in self.groups.values():
            group.pending.extras.histories.forget_below(first)

    def set_counters(self, last_id: int, entries_added: int, max_deleted_id: int) -> bool:
        """Set the counters if they fit the entries, and return whether they do.

        Only last-generated-id has to: no entry may lie above it. RESTORE takes a
        max-deleted-entry-id above that on any server, and a number of entries below the length,
        as it is after 64 bits."""
        if last_id < self.log.last:
            return False
        self.last_id = last_id
        self.entries_added = entries_added
        self.max_deleted_id = max_deleted_id
        return True

    # --- references of groups to entries --------------------------------------------------

    def is_referenced(self, entry_id: int) -> bool:
        """Whether some group has yet to be given the entry, or to acknowledge it."""
        return any(
            entry_id > group.last_id or entry_id in group.pending for group in self.groups.values()
        )

    def pending_between(self, start: int, end: int) -> set[int]:
        """The IDs from ``start`` to ``end`` that are pending in some group."""
        found: set[int] = set()
        for group in self.groups.values():
            found.update(group.pending.between(start, end))
        return found

    def drop_references(self, entry_ids: list[int]) -> dict[bytes, list[int]]:
        """Takes the entries out of every pending entries list; returns what went, by group."""
        dropped = {
            name: group.acknowledge(entry_ids)
            for name, group in self.groups.items()
            if group.pending
        }
        return {name: gone for name, gone in dropped.items() if gone}

    def refers_below(self, entry_id: int) -> bool:
        """Whether a lower ID than this is pending in some group."""
        return any(
            group.pending.first < entry_id for group in self.groups.values() if group.pending
        )

    def drop_references_below(self, entry_id: int) -> dict[bytes, list[int]]:
        """Takes lower IDs than this out of every pending entries list; returns what went, by
        group."""
        return {
            name: group.acknowledge(group.pending.between(ids.MIN, entry_id - 1))
            for name, group in self.groups.items()
            if group.pending and group.pending.first < entry_id
        }

    # --- groups ---------------------------------------------------------------------------

    def add_group(self, name: bytes, last_id: int, entries_read: int | None) -> Group:
        """A new consumer group, which will be given the entries above ``last_id``."""
        group = self.groups[name] = Group(name, last_id, entries_read)
        return group

    def groups_in_order(self) -> list[Group]:
        """The groups by name, byte by byte."""
        return [self.groups[name] for name in sorted(self.groups)]

    def seen_and_active_times(self) -> list[Times]:
        """Return when the consumers of a group were seen and active, for each group with one whose
        two times differ."""
        times: list[Times] = []
        for group in self.groups_in_order():
            consumers = group.consumers.values()
            if any(one.seen != one.active for one in consumers):
                every = tuple([(one.name, one.seen, one.active) for one in consumers])
                times.append((group.name, every))
        return times

    def pass_over(self, group: Group, entry_ids: list[int]) -> None:
        """Moves the group past the ascending entries, which follow its last-delivered-id: they
        count as read."""
        read, position = group.entries_read, group.last_id
        if read is not None and self.max_deleted_id < position and self.log.begins_by(position):
            group.entries_read = read + len(entry_ids)
        else:
            self._count_reads(group, entry_ids)
        group.last_id = entry_ids[-1]

    # --- entries-read and lag -------------------------------------------------------------

    def _count_reads(self, group: Group, entry_ids: list[int]) -> None:
        """Carries entries-read over a delivery.

        Once counting one by one is sound it stays so for the rest of the delivery.
        """
        read, position, first = group.entries_read, group.last_id, self.log.first
        added = unsigned(self.entries_added)
        for index, entry_id in enumerate(entry_ids):
            if read is not None and position >= first and not self._deleted_ahead(position):
                read += len(entry_ids) - index
                break
            if added:
                read = self._estimate(entry_id, first)
            position = entry_id
        group.entries_read = read

    def _deleted_ahead(self, position: int) -> bool:
        """Whether an entry at or above ``position`` was deleted, so that counting is not sound."""
        return self.max_deleted_id > 0 and self.max_deleted_id >= position and self.log.length > 0

    def estimate_read(self, entry_id: int) -> int | None:
        """How many entries were ever added up to this ID; ``None`` where that cannot be told."""
        return self._estimate(entry_id, self.log.first)

    def _estimate(self, entry_id: int, first: int) -> int | None:
        """Return :meth:`estimate_read`, given the lowest live ID."""
        added, length = unsigned(self.entries_added), self.log.length
        if added == 0:
            return 0
        if length == 0 and entry_id <= self.last_id:
            return added
        if ids.MIN != entry_id < self.max_deleted_id:
            return None
        if entry_id == self.last_id:
            return added
        if entry_id > self.last_id:
            return None
        if self.max_deleted_id == ids.MIN or self.max_deleted_id < first:
            if entry_id < first:
                return added - length
            if entry_id == first:
                return added - length + 1
        return None

    def lag(self, group: Group) -> int | None:
        """How many entries the group has still to be given; ``None`` where that cannot be told."""
        if unsigned(self.entries_added) == 0 or self.log.length == 0:
            return 0
        first, position = self.log.first, group.last_id
        if position < first and self.max_deleted_id < first:
            return self.log.length
        if group.entries_read is not None and not self._deleted_ahead(position):
            return signed(self.entries_added - group.entries_read)
        estimate = self.estimate_read(position)
        return None if estimate is None else signed(self.entries_added - estimate)

    def undelivered(self, group: Group) -> int:
        """How many entries of the stream lie above what the group was given last.

        Unlike :meth:`lag`, which tells what Redis tells from its counters, this counts them, so it
        is known whatever was deleted, and never counts an entry that is gone."""
        if self.log.last <= group.last_id:
            return 0
        return self.log.count_above(group.last_id)

    # --- the rest -------------------------------------------------------------------------

    @property
    def tree_nodes(self) -> int:
        """The size of the tree that files the blocks (``radix-tree-nodes``)."""
        return radix_tree_nodes(self.log.block_keys)

    def memory_usage(self) -> int:
        """Bytes that the stream takes, about: entries, pending entries, consumers, records."""
        entries = self.log.memory_usage()
        pending = sum(len(group.pending) for group in self.groups.values())
        consumers = sum(
            len(name) for group in self.groups.values() for name in group.consumers
        ) + 400 * sum(len(group.consumers) for group in self.groups.values())
        histories = sum(group.pending.extras.histories.size for group in self.groups.values())
        records = 200 * self.idempotency.tracked
        return 1000 + entries + 80 * pending + histories + consumers + records

    def copy(self) -> Stream:
        """An equal, independent stream."""
        twin = Stream(self._limits)
        twin.log = self.log.copy()
        twin.groups = {name: group.copy() for name, group in self.groups.items()}
        twin.last_id = self.last_id
        twin.max_deleted_id = self.max_deleted_id
        twin.entries_added = self.entries_added
        twin.idempotency = self.idempotency.copy()
        twin.policy = self.policy.copy()
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        self.log.check()
        assert self.log.last <= self.last_id
        for name, group in self.groups.items():
            assert group.name == name
            group.check()
            for entry_id in group.pending.extras.histories.ids():
                assert entry_id in self.log
                assert entry_id in group.pending
        self.idempotency.check()
