"""Consumer groups: their consumers, deliveries and claims."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from storage.engine import ids
from storage.engine.block import Block
from storage.engine.effects import make
from storage.engine.group_counts import NOTHING_COUNTED, GroupCounts
from storage.engine.log import EntryLog
from storage.engine.pending import (
    FREED,
    HIGHEST,
    Consumer,
    PendingEntry,
    PendingList,
    longest_idle,
)

_NOWHERE: Final = -1
_NO_BLOCK: Final = Block(ids.MIN, [])


class Cursor:
    """A place in the log behind the entry that a group was given last.

    It holds as long as the same block has the same number in the log, with nothing deleted from it
    since, and the group's last-delivered-id is the one that it was noted for. Entries that are
    added do not move it, and packing does not."""

    __slots__ = ("_at", "_block", "_deleted", "_entry_id", "_place")

    def __init__(self) -> None:
        self._entry_id = _NOWHERE
        self._at = 0
        self._block = _NO_BLOCK
        self._deleted = 0
        self._place = 0

    def read(self, log: EntryLog, last_id: int, count: int) -> tuple[list[int], list[bytes]]:
        """The IDs of up to ``count`` entries behind ``last_id``, and their RESP forms in any number
        of pieces; the cursor is moved behind them."""
        blocks = log.blocks
        at, place = self._at, self._place
        if last_id != self._entry_id or not self._holds(blocks):
            at, place = log.place_behind(last_id)
        entry_ids: list[int] = []
        found: list[bytes] = []
        while at < len(blocks):
            block = blocks[at]
            length = len(block)
            high = min(length, place + count)
            if place < high:
                # What these keep of the block has the IDs as well.
                found += block.chunks_at(place, high, log.packer, True)
                entry_ids += block.ids_at(place, high)
                count -= high - place
                self._block, self._at, self._place = block, at, high
                self._deleted = block.taken - length
            if not count:
                break
            at, place = at + 1, 0
        if entry_ids:
            self._entry_id = entry_ids[-1]
        return entry_ids, found

    def _holds(self, blocks: Sequence[Block]) -> bool:
        block = self._block
        return (
            self._at < len(blocks)
            and blocks[self._at] is block
            and block.taken - len(block) == self._deleted
        )


class Group:
    """A consumer group. ``entries_read`` is ``None`` where it is unknown.

    ``delivered`` counts the new entries that consumers were given, and ``acked``, ``claimed``,
    ``redelivered`` and ``released`` what commands have done with pending entries since the group is
    in memory; they are for metrics and tests, and are not kept, and neither is what policies have
    done (``counts``).
    ``policy`` are the group's own policies by name; nothing here looks into them.
    """

    __slots__ = (
        "acked",
        "claimed",
        "consumers",
        "counts",
        "cursor",
        "delivered",
        "entries_read",
        "last_id",
        "name",
        "pending",
        "policy",
        "redelivered",
        "released",
    )

    def __init__(self, name: bytes, last_id: int, entries_read: int | None) -> None:
        self.name = name
        self.last_id = last_id
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.pending = PendingList()
        self.cursor = Cursor()
        self.policy: dict[bytes, bytes] = {}
        self.acked = 0
        self.claimed = 0
        self.delivered = 0
        self.redelivered = 0
        self.released = 0
        self.counts = NOTHING_COUNTED

    def own_counts(self) -> GroupCounts:
        """Return what policies have done, to be added to."""
        if self.counts is NOTHING_COUNTED:
            self.counts = GroupCounts()
        return self.counts

    def add_consumer(self, name: bytes, now: int) -> Consumer:
        """A new consumer, seen now and never active."""
        consumer = self.consumers[name] = Consumer(name, now)
        return consumer

    def remove_consumer(self, name: bytes) -> list[int]:
        """Removes a consumer; returns the pending entries that went with it."""
        return self.pending.remove_owner(self.consumers.pop(name))

    def deliver(self, entry_ids: list[int], consumer: Consumer, now: int) -> None:
        """Makes ascending entries pending for ``consumer``, delivered once."""
        pending = self.pending
        if pending.ends_below(entry_ids[0]):
            pending.append_run(entry_ids, consumer, now)
        else:
            for entry_id in entry_ids:
                pending.set(entry_id, consumer, now, 1)
        consumer.active = now

    @property
    def columns(self) -> list[object]:
        """Return what holds the pending entries, in pieces that can be freed one by one."""
        return [*self.pending.segments, *self.pending.extras.histories.pieces()]

    def acknowledge(self, entry_ids: list[int], counting: bool = False) -> list[int]:
        """Takes entries out of the pending entries list; returns those that were in it.
        ``counting`` is for what consumers acknowledge themselves."""
        gone = self.pending.remove_all(entry_ids, counting)
        if counting:
            self.acked += len(gone)
        return gone

    def hand_over(self, entry_id: int, consumer: Consumer, time: int, count: int, now: int) -> None:
        """Makes an entry pending for ``consumer`` with this delivery time and count."""
        self.pending.set(entry_id, consumer, time, min(count, HIGHEST))
        consumer.active = now

    def copy(self) -> Group:
        """An equal, independent group."""
        twin = Group(self.name, self.last_id, self.entries_read)
        owners: dict[Consumer, Consumer] = {}
        for name, consumer in self.consumers.items():
            other = twin.add_consumer(name, consumer.seen)
            other.active = consumer.active
            owners[consumer] = other
        twin.pending = self.pending.copy(owners)
        twin.policy = self.policy.copy()
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        self.pending.check()
        owned = 0
        for name, consumer in self.consumers.items():
            assert consumer.name == name
            self.pending.check_owner(consumer)
            owned += consumer.owned
        assert owned + self.pending.unowned == len(self.pending)


class Claim:
    """How entries are to be claimed: for whom, with which delivery time, after which idle time.

    ``deliveries`` replaces the delivery count; where it is ``None`` the count goes up by one if
    ``counting``. ``force`` makes entries pending that are not. An entry that could be claimed is
    not if ``refuses``, given its ID and how it is pending, says so.
    """

    __slots__ = (
        "consumer",
        "counting",
        "deliveries",
        "force",
        "min_idle",
        "now",
        "refuses",
        "time",
    )

    def __init__(
        self,
        consumer: Consumer,
        min_idle: int,
        time: int,
        now: int,
        deliveries: int | None = None,
        counting: bool = True,
        force: bool = False,
        refuses: Callable[[int, PendingEntry], bool] | None = None,
    ) -> None:
        self.consumer = consumer
        self.min_idle = min_idle
        self.time = time
        self.now = now
        self.deliveries = deliveries
        self.counting = counting
        self.force = force
        self.refuses = refuses


class Claims:
    """The outcome of claiming: the IDs and delivery counts of entries claimed, and IDs dropped
    because the stream lacks them. Those of XCLAIM that were looked up have their RESP forms in
    ``payloads``."""

    __slots__ = ("counts", "dropped", "ids", "payloads")

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.counts: list[int] = []
        self.dropped: list[int] = []
        self.payloads: list[bytes] = []


class Aged(NamedTuple):
    """An entry that was claimed for its age: its RESP form, and how it was pending before."""

    payload: bytes
    before: PendingEntry


def claim_one(group: Group, entry_id: int, present: bool, claim: Claim, claims: Claims) -> bool:
    """Claims one entry if it may be claimed; false if it is too young or not pending.

    A pending entry that is not ``present`` in the stream any more is dropped, however young it is
    (XCLAIM and XAUTOCLAIM since Redis 7.0).
    """
    found = group.pending.find(entry_id)
    if not present:
        if found is not None:
            group.pending.remove(entry_id)
            claims.dropped.append(entry_id)
        return found is not None
    if found is None:
        return claim.force and _claim_unpending(group, entry_id, claim, claims)
    segment, place = group.pending.segments[found[0]], found[1]
    idle = claim.now - segment.stamps[2 * place]
    if max(0, idle) < claim.min_idle and segment.owners[place] != FREED:
        return False
    if claim.refuses is not None and claim.refuses(entry_id, segment.entry(place)):
        return False
    count = claim.deliveries
    if count is None:
        count = segment.stamps[2 * place + 1] + claim.counting
    count = min(count, HIGHEST)
    group.pending.change(entry_id, found, claim.consumer, claim.time, count)
    claim.consumer.active = claim.now
    claims.ids.append(entry_id)
    claims.counts.append(count)
    return True


def _claim_unpending(group: Group, entry_id: int, claim: Claim, claims: Claims) -> bool:
    """Makes an entry pending that is not (FORCE)."""
    count = 1 + claim.counting if claim.deliveries is None else claim.deliveries
    group.hand_over(entry_id, claim.consumer, claim.time, count, claim.now)
    claims.ids.append(entry_id)
    claims.counts.append(count)
    return True


def _claim_run(
    group: Group, log: EntryLog, run: list[int], claim: Claim, claims: Claims, pending: bool
) -> None:
    """Claims what may be claimed of ascending IDs, as :func:`claim_one` does one by one;
    ``pending`` tells that all of them surely are."""
    if claim.refuses is not None:
        for entry_id in run:
            claim_one(group, entry_id, entry_id in log, claim, claims)
        return
    missing = log.missing(run)
    if missing:
        claims.dropped.extend(group.acknowledge(missing))
        gone = set(missing)
        run = [entry_id for entry_id in run if entry_id not in gone]
    latest = claim.now - claim.min_idle if claim.min_idle else HIGHEST
    count = None if claim.deliveries is None else min(claim.deliveries, HIGHEST)
    taken, counts = group.pending.take_over(
        run, claim.consumer, claim.time, latest, int(claim.counting), count, pending
    )
    if taken:
        claim.consumer.active = claim.now
        claims.ids.extend(taken)
        claims.counts.extend(counts)


def claim_ids(group: Group, log: EntryLog, entry_ids: list[int], claim: Claim) -> Claims:
    """Claims the entries with these IDs, in this order (XCLAIM)."""
    claims = Claims()
    if not claim.force and len(entry_ids) > 1 and is_ascending(entry_ids):
        _claim_run(group, log, entry_ids, claim, claims, False)
        return claims
    for entry_id in entry_ids:
        payload = log.get(entry_id)
        if claim_one(group, entry_id, payload is not None, claim, claims) and payload is not None:
            claims.payloads.append(payload)
    return claims


def is_ascending(entry_ids: list[int]) -> bool:
    """Whether each ID is above the one before."""
    return all(map(operator.lt, entry_ids, entry_ids[1:]))


_WINDOW: Final = 10_000
"""How many entries are looked up at a time."""

MOST_REFUSABLE: Final = 1000
"""How many entries are examined at most where each may be refused, which takes longer."""

_REFUSED_AT_ONCE: Final = 100
"""How many entries are looked up together at least once some were refused."""


def claim_scanning(
    group: Group, log: EntryLog, start: int, most: int, claim: Claim
) -> tuple[int, Claims]:
    """Claims up to ``most`` entries from ``start`` on, examining ten times as many (XAUTOCLAIM), or
    :data:`MOST_REFUSABLE` where they may be refused.

    Returns the ID at which to go on, 0 at the end of the list.
    """
    claims = Claims()
    attempts = most * 10 if claim.refuses is None else min(most * 10, MOST_REFUSABLE)
    following = start
    while attempts and len(claims.ids) + len(claims.dropped) < most:
        left = most - len(claims.ids) - len(claims.dropped)
        window = group.pending.ids_from(following, min(attempts, left, _WINDOW))
        if not window:
            return 0, claims
        _claim_run(group, log, window, claim, claims, True)
        attempts -= len(window)
        following = window[-1] + 1
    rest = group.pending.ids_from(following, 1)
    return (rest[0] if rest else 0), claims


def claim_idle(
    group: Group, log: EntryLog, most: int, claim: Claim, fits: Callable[[bytes], bool]
) -> tuple[Claims, list[Aged]]:
    """Claims up to ``most`` idle entries: those freed by XNACK, then those that policies had kept
    back, then those that waited longest.

    Ends before the first entry whose RESP form does not fit. In a group with policies, which refuse
    what they keep back, only those that have an owner are claimed: a read delivers the others. It
    ends there, too, when :data:`MOST_REFUSABLE` were refused.
    """
    claims = Claims()
    aged: list[Aged] = []
    refused: set[int] = set()
    while len(claims.ids) < most and len(refused) < MOST_REFUSABLE:
        candidates = _unowned(group.pending, claim, most - len(claims.ids))
        candidates = candidates or _idle(group.pending, claim, most, claims, refused)
        for entry_id in candidates:
            if len(claims.ids) == most:
                break
            payload = log.get(entry_id)
            before = group.pending.get(entry_id)
            assert before is not None
            if payload is not None and not fits(payload):
                return claims, aged
            if not claim_one(group, entry_id, payload is not None, claim, claims):
                refused.add(entry_id)
            elif payload is not None:
                aged.append(make(Aged, (payload, before)))
        if not candidates:
            break
    return claims, aged


def _unowned(pending: PendingList, claim: Claim, wanted: int) -> list[int]:
    """The next that have no owner; each of them is claimed, or dropped."""
    if claim.refuses is not None:
        return []
    if len(pending.extras.released):
        return list(islice(pending.extras.released, wanted))
    return pending.columns_unowned(ids.MIN, wanted).ids


def _idle(
    pending: PendingList, claim: Claim, most: int, claims: Claims, refused: set[int]
) -> list[int]:
    """The next that have an owner; with no min-idle-time, those just claimed are not claimed
    again."""
    wanted = max(most - len(claims.ids), _REFUSED_AT_ONCE if refused else 0)
    if claim.refuses is not None:
        wanted = min(wanted, MOST_REFUSABLE - len(refused))
    done = refused.union(claims.ids)
    # Times may lie ahead of a clock that was set back; nothing is too young for 0.
    latest = claim.now - claim.min_idle if claim.min_idle else HIGHEST
    idle = longest_idle(pending, latest, wanted + len(done))
    return [entry.id for entry in idle if entry.id not in done][:wanted]
