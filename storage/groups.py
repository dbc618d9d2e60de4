"""Consumer groups: who is in them, what they have been given, and how entries change hands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.pending import MOST, Consumer, PendingEntry, PendingList
from storage.records import make

if TYPE_CHECKING:
    from storage.log import EntryLog


class Group:
    """A consumer group. ``entries_read`` is ``None`` where it is unknown."""

    __slots__ = ("consumers", "entries_read", "last_id", "name", "pending")

    def __init__(self, name: bytes, last_id: int, entries_read: int | None) -> None:
        self.name = name
        self.last_id = last_id
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.pending = PendingList()

    def add_consumer(self, name: bytes, now: int) -> Consumer:
        """A new consumer, seen now and never active."""
        consumer = self.consumers[name] = Consumer(name, now)
        return consumer

    def remove_consumer(self, name: bytes) -> int:
        """Removes a consumer; returns how many pending entries went with it."""
        consumer = self.consumers.pop(name)
        owned = list(consumer.ids)
        for identity in owned:
            self.pending.remove(identity)
        return len(owned)

    @property
    def columns(self) -> list[object]:
        """What holds the pending entries, in pieces that can be freed one by one."""
        pieces: list[object] = list(self.pending.segments)
        for consumer in self.consumers.values():
            pieces += consumer.ids.segments
        return pieces

    def acknowledge(self, identities: Iterable[int]) -> list[int]:
        """Takes entries out of the pending entries list; returns those that were in it."""
        remove = self.pending.remove
        return [identity for identity in identities if remove(identity)]

    def hand_over(self, identity: int, consumer: Consumer, time: int, count: int, now: int) -> None:
        """Makes an entry pending for ``consumer`` with this delivery time and count."""
        self.pending.set(identity, consumer, time, min(count, MOST))
        consumer.active = now

    def copy(self) -> Group:
        """An equal, independent group."""
        twin = Group(self.name, self.last_id, self.entries_read)
        owners: dict[Consumer, Consumer] = {}
        for name, consumer in self.consumers.items():
            other = twin.add_consumer(name, consumer.seen)
            other.active = consumer.active
            other.ids = consumer.ids.copy()
            owners[consumer] = other
        twin.pending = self.pending.copy(owners)
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        self.pending.check()
        owned = 0
        for name, consumer in self.consumers.items():
            assert consumer.name == name
            consumer.ids.check()
            for identity in consumer.ids:
                entry = self.pending.get(identity)
                assert entry is not None
                assert entry.owner is consumer
            owned += len(consumer.ids)
        assert owned + len(self.pending.released) == len(self.pending)


class Claim:
    """How entries are to be claimed: for whom, with which delivery time, after which idle time.

    ``deliveries`` replaces the delivery count; where it is ``None`` the count goes up by one if
    ``counting``. ``force`` makes entries pending that are not.
    """

    __slots__ = ("consumer", "counting", "deliveries", "force", "min_idle", "now", "time")

    def __init__(
        self,
        consumer: Consumer,
        min_idle: int,
        time: int,
        now: int,
        deliveries: int | None = None,
        counting: bool = True,
        force: bool = False,
    ) -> None:
        self.consumer = consumer
        self.min_idle = min_idle
        self.time = time
        self.now = now
        self.deliveries = deliveries
        self.counting = counting
        self.force = force


class Claimed(NamedTuple):
    """An entry that changed hands: its RESP form, and how it was pending before."""

    id: int
    payload: bytes
    deliveries: int
    before: PendingEntry | None


class Claims(NamedTuple):
    """The outcome of claiming: entries claimed, and IDs dropped because the stream lacks them."""

    claimed: list[Claimed]
    dropped: list[int]


def claim_one(
    group: Group, identity: int, payload: bytes | None, claim: Claim, claims: Claims
) -> bool:
    """Claims one entry if it may be claimed; false if it is too young or not pending.

    ``payload`` is what the stream has at the ID. A pending entry that the stream no longer has is
    dropped, however young it is (XCLAIM and XAUTOCLAIM since Redis 7.0).
    """
    found = group.pending.find(identity)
    if payload is None:
        if found is not None:
            group.pending.remove(identity)
            claims.dropped.append(identity)
        return found is not None
    if found is None:
        return claim.force and _claim_unpending(group, identity, payload, claim, claims)
    before = found[0].entry(found[1])
    if before.owner is not None and max(0, claim.now - before.time) < claim.min_idle:
        return False
    count = before.deliveries + claim.counting if claim.deliveries is None else claim.deliveries
    count = min(count, MOST)
    group.pending.change(identity, found, claim.consumer, claim.time, count)
    claim.consumer.active = claim.now
    claims.claimed.append(make(Claimed, (identity, payload, count, before)))
    return True


def _claim_unpending(
    group: Group, identity: int, payload: bytes, claim: Claim, claims: Claims
) -> bool:
    """Makes an entry pending that is not (FORCE)."""
    count = 1 + claim.counting if claim.deliveries is None else claim.deliveries
    group.hand_over(identity, claim.consumer, claim.time, count, claim.now)
    claims.claimed.append(Claimed(identity, payload, count, None))
    return True


def claim_ids(group: Group, log: EntryLog, identities: Sequence[int], claim: Claim) -> Claims:
    """Claims the entries with these IDs, in this order (XCLAIM)."""
    claims = Claims([], [])
    for identity in identities:
        claim_one(group, identity, log.get(identity), claim, claims)
    return claims


_WINDOW: Final = 10_000
"""How many entries are looked up at a time."""


def claim_scanning(
    group: Group, log: EntryLog, start: int, most: int, claim: Claim
) -> tuple[int, Claims]:
    """Claims up to ``most`` entries from ``start`` on, examining ten times as many (XAUTOCLAIM).

    Returns the ID at which to go on, 0 at the end of the list.
    """
    claims = Claims([], [])
    attempts = most * 10
    following = start
    while attempts and most:
        window = group.pending.ids_from(following, min(attempts, most, _WINDOW))
        if not window:
            return 0, claims
        for identity, payload in zip(window, log.get_many(window), strict=True):
            most -= claim_one(group, identity, payload, claim, claims)
            attempts -= 1
        following = window[-1] + 1
    rest = group.pending.ids_from(following, 1)
    return (rest[0] if rest else 0), claims


def claim_idle(
    group: Group, log: EntryLog, most: int, claim: Claim, fits: Callable[[bytes], bool]
) -> Claims:
    """Claims up to ``most`` idle entries: those freed by XNACK, then those that waited longest.

    Ends before the first entry whose RESP form does not fit.
    """
    claims = Claims([], [])
    while len(claims.claimed) < most:
        candidates = _idle(group.pending, claim, most, claims)
        for identity in candidates:
            payload = log.get(identity)
            if payload is not None and not fits(payload):
                return claims
            claim_one(group, identity, payload, claim, claims)
        if not candidates:
            break
    return claims


def _idle(pending: PendingList, claim: Claim, most: int, claims: Claims) -> list[int]:
    """The next candidates; with no min-idle-time, those just claimed are not claimed again."""
    wanted = most - len(claims.claimed)
    if pending.released:
        return list(islice(pending.released, wanted))
    done = {entry.id for entry in claims.claimed}
    # Times may lie ahead of a clock that was set back; nothing is too young for 0.
    latest = claim.now - claim.min_idle if claim.min_idle else MOST
    idle = pending.longest_idle(latest, wanted + len(done))
    return [entry.id for entry in idle if entry.id not in done][:wanted]
