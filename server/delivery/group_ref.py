"""A consumer group and where it is: how commands and policies find one, and what they do to it.

A method that changes the group emits the effects that tell of it, unless its name says that it only
emits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from server.delivery.agenda import Agenda
from server.delivery.happenings import LEFT, Happening, Happenings
from server.delivery.retention import NEVER, StreamAgenda, Tally
from server.state.session import Link
from storage.engine import ids
from storage.engine.effects import (
    Acknowledged,
    ConsumerCreated,
    ConsumerDeleted,
    ConsumerSeen,
    Delivered,
    DeliveriesEnded,
    GroupCreated,
    GroupPositionSet,
    KeptBack,
    Released,
    make,
)
from storage.engine.groups import Claim, Claims, Group
from storage.engine.histories import EndedDelivery
from storage.engine.pending import Consumer, PendingEntry
from storage.engine.stream import Stream
from storage.keyspace.databases import Database
from storage.types.kinds import Value

RELEASED: Final = 1000
"""How many entries are taken from absent consumers in a slice; others have their turn then."""

TIMED_OUT: Final = b"timeout"
CLAIMED: Final = b"claimed"
READ_AGAIN: Final = b"read-again"
CONSUMER_GONE: Final = b"consumer-ttl"
"""How a delivery ended that nobody gave back: it was delivered again at its time, or claimed, or
its consumer read it once more, or was removed."""


class GroupRef:
    """A consumer group of the stream at a key of a database."""

    __slots__ = ("db", "group", "key", "stream")

    def __init__(self, db: Database, key: bytes, stream: Stream, group: Group) -> None:
        self.db = db
        self.key = key
        self.stream = stream
        self.group = group

    @property
    def now(self) -> int:
        """The time of the running command."""
        return self.db.keyspace.now_ms

    @property
    def due(self) -> int:
        """Up to which time things are due for the running command."""
        return self.db.keyspace.due_ms

    def happening(self, kind: str, user: bytes = b"", number: int = 1) -> Happening:
        """Return what happens to the group now."""
        return Happening(self.now, kind, self.db.index, self.key, self.group.name, user, number)

    def as_it_is_now(self) -> GroupRef | None:
        """Return the group of that name at that key, ``None`` without one: others may have been
        served since it was found."""
        return group_of_value(self.db, self.key, self.db.values.get(self.key), self.group.name)

    # --- consumers ------------------------------------------------------------------------

    def consumer(self, name: bytes, link: Link | None = None) -> Consumer:
        """Return the consumer of that name, seen now; it is made if there is none. ``link`` is
        where the request comes from that it makes."""
        now = self.db.keyspace.now_ms
        consumer = self.group.consumers.get(name)
        if consumer is None:
            consumer = self.group.add_consumer(name, now)
            db, group = self.db, self.group.name
            db.emit(make(ConsumerCreated, (db.index, self.key, group, name, now)))
        consumer.seen = now
        if link is not None:
            consumer.link = link
        return consumer

    def remove_consumer(self, name: bytes) -> int:
        """Remove a consumer; returns how many pending entries went with it."""
        removed = self.group.remove_consumer(name)
        db, group = self.db, self.group.name
        db.emit(ConsumerDeleted(db.index, self.key, group, name, tuple(removed)))
        return len(removed)

    def emit_seen(self, consumer: Consumer) -> None:
        """Tell when the consumer was last seen and active."""
        seen, active = consumer.seen, consumer.active
        self.db.emit(
            ConsumerSeen(self.db.index, self.key, self.group.name, consumer.name, seen, active)
        )

    # --- entries --------------------------------------------------------------------------

    def hand_out(self, consumer: Consumer, entry_ids: list[int], noack: bool) -> None:
        """Deliver the entries that follow the group's last-delivered-id; with ``noack`` they are
        not pending then."""
        self.stream.pass_over(self.group, entry_ids)
        if noack:
            self.group.delivered += len(entry_ids)
            self.emit_seen(consumer)
        else:
            self.make_pending(consumer, entry_ids, True)
        self.emit_position()

    def make_pending(self, consumer: Consumer, entry_ids: list[int], new: bool) -> None:
        """Make ascending entries, which were never delivered, pending for the consumer; ``new`` as
        in :class:`.Delivered`."""
        now, group = self.db.keyspace.now_ms, self.group
        group.delivered += len(entry_ids)
        group.deliver(entry_ids, consumer, now)
        self.emit_delivered(consumer, tuple(entry_ids), now, (1,) * len(entry_ids), new)

    def emit_delivered(
        self,
        consumer: Consumer,
        entry_ids: tuple[int, ...],
        time: int,
        counts: tuple[int, ...],
        new: bool = False,
    ) -> None:
        """Tell that the entries are the consumer's, with this delivery time and these counts;
        ``new`` as in :class:`.Delivered`."""
        db, group = self.db, self.group.name
        now = db.keyspace.now_ms
        db.emit(
            Delivered(db.index, self.key, group, consumer.name, entry_ids, time, counts, now, new)
        )

    def emit_position(self, explicit: bool = False) -> None:
        """Tell how far the group has read."""
        db, group = self.db, self.group
        last_id, read = group.last_id, group.entries_read
        db.emit(GroupPositionSet(db.index, self.key, group.name, last_id, read, explicit))

    def emit_claims(self, claim: Claim, claims: Claims) -> None:
        """Tell which entries changed hands, and which were dropped because the stream lacks
        them; counts the claims."""
        group = self.group
        if claims.dropped:
            self.emit_acknowledged(claims.dropped)
        if claims.ids:
            group.claimed += len(claims.ids)
            if claim.counting:
                group.redelivered += len(claims.ids)
                claim.consumer.redelivered += len(claims.ids)
            self.emit_delivered(claim.consumer, tuple(claims.ids), claim.time, tuple(claims.counts))

    def emit_acknowledged(self, entry_ids: list[int], words: Sequence[bytes] = ()) -> None:
        """Tell that the entries are pending no more."""
        name = self.group.name
        self.db.emit(Acknowledged(self.db.index, self.key, name, tuple(entry_ids), words))

    def emit_released(
        self, entry_ids: list[int], counts: list[int], times: Sequence[int] = ()
    ) -> None:
        """Tell that the entries have no owner any more; ``times`` are those before which a policy
        keeps them back, if any does."""
        db, name = self.db, self.group.name
        if times:
            self.group.pending.extras.backing_off.at(self.due)
        released, kept_back = tuple(entry_ids), tuple(times)
        db.emit(Released(db.index, self.key, name, released, tuple(counts), kept_back))


class RuledGroup(GroupRef):
    """A consumer group with policies, and what is kept of them: ``of_stream`` are the policies of
    the stream, if any, and ``circle_of`` tells through which streams dead letters would come
    back."""

    __slots__ = ("_circle_of", "agenda", "happenings", "of_stream", "tally")

    def __init__(
        self,
        ref: GroupRef,
        agenda: Agenda,
        of_stream: StreamAgenda | None,
        tally: Tally,
        happenings: Happenings,
        circle_of: Callable[[Database, bytes, bytes], list[bytes]],
    ) -> None:
        super().__init__(ref.db, ref.key, ref.stream, ref.group)
        self.agenda = agenda
        self.of_stream = of_stream
        self.tally = tally
        self.happenings = happenings
        self._circle_of = circle_of

    def circle(self) -> list[bytes]:
        """Return the streams through which dead letters would come back to this one now: keys may
        have got other names, and policies with them, since where they go was set."""
        return self._circle_of(self.db, self.key, self.agenda.rules.dead_letter)

    def note_ended(self, before: Iterable[PendingEntry], how: bytes, reason: bytes = b"") -> None:
        """Keep how deliveries of entries ended that are pending still, if the group does so; they
        are given as they were ``before``. One that nobody had counts if a reason is given."""
        if not self.agenda.rules.reasons:
            return
        log, now = self.stream.log, self.now
        ended = [each for each in before if (each.owner or reason) and each.id in log]
        if not ended:
            return
        entry_ids = tuple([each.id for each in ended])
        consumers = tuple([b"" if each.owner is None else each.owner.name for each in ended])
        histories = self.group.pending.own_extras().histories
        for entry_id, consumer in zip(entry_ids, consumers, strict=True):
            histories.note(entry_id, EndedDelivery(now, consumer, how, reason))
        db, name = self.db, self.group.name
        db.emit(DeliveriesEnded(db.index, self.key, name, entry_ids, consumers, now, how, reason))

    def note_all_ended(self, consumer: Consumer, entry_ids: list[int], how: bytes) -> None:
        """Keep that deliveries to a consumer ended, if the group does so."""
        if self.agenda.rules.reasons:
            self.note_ended([PendingEntry(each, consumer, 0, 0) for each in entry_ids], how)

    def room_for(self, consumer: Consumer) -> int:
        """Return how many more entries the consumer may have in flight."""
        rules, pending = self.agenda.rules, self.group.pending
        room = ids.MAX
        if rules.max_pending:
            room = rules.max_pending - (len(pending) - pending.unowned)
        if rules.max_pending_consumer:
            room = min(room, rules.max_pending_consumer - consumer.owned)
        return max(min(room, self.allowed), 0)

    @property
    def allowed(self) -> int:
        """How many more entries the group may be given now, for its ``rate-limit``."""
        bucket = self.agenda.bucket
        return ids.MAX if bucket is None else bucket.room(self.now, self.due)

    def spend(self, count: int) -> None:
        """Note that the group was given so many."""
        bucket = self.agenda.bucket
        if bucket is not None:
            bucket.spend(count)

    def hand_out(self, consumer: Consumer, entry_ids: list[int], noack: bool) -> None:
        """Deliver as :meth:`GroupRef.hand_out`."""
        super().hand_out(consumer, entry_ids, noack)
        self.spend(len(entry_ids))

    def keep_back(self, entry_ids: list[int], until: list[int]) -> None:
        """Make ascending entries, which were never delivered, pending without an owner, each until
        a time."""
        db = self.db
        self.group.pending.keep_back(entry_ids, until)
        self.group.pending.extras.delayed.at(self.due)
        db.emit(KeptBack(db.index, self.key, self.group.name, tuple(entry_ids), tuple(until)))

    def remove_absent(self, parked: set[bytes]) -> int:
        """Take their entries from consumers that were not seen for as long as ``consumer-ttl``
        says, and remove them; those who wait for entries count as seen now. Notes when to look
        next: at once after :data:`RELEASED` entries and consumers. Returns how many these were."""
        now, due, ttl = self.now, self.due, self.agenda.rules.consumer_ttl
        earliest = NEVER
        done = 0
        for consumer in list(self.group.consumers.values()):
            if consumer.name in parked:
                earliest = min(earliest, now + ttl)
            elif consumer.seen + ttl > due:
                earliest = min(earliest, consumer.seen + ttl)
            elif done < RELEASED:
                done += self._remove_absent(consumer, RELEASED - done)
        self.agenda.seen_due = earliest if done < RELEASED else due
        return done

    def _remove_absent(self, consumer: Consumer, most: int) -> int:
        """XNACK SILENT for up to ``most`` of its entries, then XGROUP DELCONSUMER if it has no
        others; returns how many entries and consumers that were."""
        released, counts = self.group.pending.release_owned(consumer, most)
        if released:
            self.group.released += len(released)
            self.emit_released(released, counts)
            self.note_all_ended(consumer, released, CONSUMER_GONE)
        if consumer.owned or len(released) == most:
            return most
        self.remove_consumer(consumer.name)
        self.tally.consumers_removed += 1
        self.happenings.note(self.happening(LEFT))
        return len(released) + 1


def add_group(
    db: Database, key: bytes, stream: Stream, name: bytes, last_id: int, entries_read: int | None
) -> GroupRef:
    """Make a consumer group, which will be given the entries above ``last_id``."""
    group = stream.add_group(name, last_id, entries_read)
    db.emit(GroupCreated(db.index, key, name, last_id, entries_read))
    return GroupRef(db, key, stream, group)


def find_group(db: Database, key: bytes, name: bytes) -> GroupRef | None:
    """Return the group, ``None`` without one; raises :class:`.WrongType` for a key that is no
    stream. Updates the time at which the key was used."""
    stream = db.stream(key)
    if stream is None:
        return None
    group = stream.groups.get(name)
    return None if group is None else GroupRef(db, key, stream, group)


def group_of_value(db: Database, key: bytes, value: Value | None, name: bytes) -> GroupRef | None:
    """Return the group of what is at the key, ``None`` if that is no stream or has no such group.
    It is no use of the key."""
    if not isinstance(value, Stream):
        return None
    group = value.groups.get(name)
    return None if group is None else GroupRef(db, key, value, group)


def existing_group(db: Database, key: bytes, name: bytes) -> GroupRef:
    """Return the group; raises :class:`CommandError` (NOGROUP) without one."""
    ref = find_group(db, key, name)
    if ref is None:
        raise CommandError(errors.no_group(key, name))
    return ref


def group_of_key(db: Database, key: bytes, name: bytes) -> GroupRef:
    """Return the group for XGROUP, which tells a missing key and a missing group apart in the
    :class:`CommandError` that it raises."""
    ref = find_group(db, key, name)
    if ref is not None:
        return ref
    if db.get(key) is None:
        raise CommandError(errors.GROUP_NEEDS_KEY)
    raise CommandError(errors.no_group_for_key(name, key))
