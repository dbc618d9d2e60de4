# Compiled by mypyc.
"""XREADGROUP: new entries, or pending ones, of one or several streams, and waiting for more."""

from __future__ import annotations

from itertools import chain
from typing import Final

from protocol import errors
from protocol.encoder import bulk, encode
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Encoded, Reply
from server.commands.declare import command
from server.commands.groups import errors as group_errors
from server.commands.groups.group_helpers import consumer_of, emit_claims, emit_seen
from server.commands.streams.entries import (
    MANY,
    Entries,
    Served,
    by_stream,
    held_entries,
    held_range,
    in_portions,
)
from server.commands.streams.read_options import Budget, ReadOptions, keys_to_read, read_options
from server.delivery.agenda import Agenda
from server.delivery.claiming import Refusals
from server.delivery.place import GroupPlace
from server.delivery.policies import Policies
from server.delivery.reading import (
    Reader,
    bury_exhausted,
    deliver_due,
    deliver_selected,
    room_for,
)
from server.road.outcomes import Steps, Wait
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.services import Services
from storage.engine import ids
from storage.engine.effects import Delivered, GroupPositionSet, Redelivered
from storage.engine.groups import Claim, Group, claim_idle
from storage.engine.pending import Consumer, PendingEntry, earliest_time
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

NEW: Final = ids.MAX
"""In place of an ID: entries never delivered (``>``). The highest ID reads the same."""


def _group_of(
    policies: Policies, session: Session, key: bytes, name: bytes
) -> tuple[Stream, Group]:
    stream = session.db.stream(key)
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        made = policies.make_group(session, key, name) if policies.active else None
        if made is None:
            raise CommandError(errors.no_group_in_xreadgroup(key, name))
        return made
    return stream, group


def _history_place(text: bytes) -> int:
    if text == b">":
        return NEW
    if text in (b"$", b"+"):
        raise CommandError(group_errors.meaningless_id(text.decode()))
    return ids.parse(text)


class _GroupRead:
    """One XREADGROUP, which may run several times until it finds something."""

    __slots__ = (
        "_db",
        "_deadline",
        "_group",
        "_incomplete",
        "_options",
        "_places",
        "_policies",
        "_resp3",
        "_session",
    )

    def __init__(
        self, policies: Policies, session: Session, options: ReadOptions, group: bytes
    ) -> None:
        self._policies = policies
        self._incomplete = False
        """Whether there may be more to find than one attempt has looked at."""
        self._session = session
        self._db = db = session.db
        self._resp3 = session.resp3
        self._options = options
        self._group = group
        self._deadline = options.deadline(db.keyspace.now_ms)
        self._places: list[int] = []

    def start(self) -> Reply | Wait | Steps:
        """Checks the streams one after the other, then reads."""
        found: list[tuple[Stream, Group]] = []
        for key, text in zip(self._options.keys, self._options.places, strict=True):
            found.append(_group_of(self._policies, self._session, key, self._group))
            self._places.append(_history_place(text))
        return self._run(found)

    def _retry(self) -> Reply | Wait | Steps:
        policies, session, options = self._policies, self._session, self._options
        if options.usual and (reply := _read_new(policies, session, options)) is not None:
            return reply
        return self._run([_group_of(policies, session, key, self._group) for key in options.keys])

    def _run(self, found: list[tuple[Stream, Group]]) -> Reply | Wait | Steps:
        """Reads what there is, or says what to wait for."""
        options = self._options
        budget = Budget(options)
        served: Served = []
        self._incomplete = False
        for key, place, (stream, group) in zip(options.keys, self._places, found, strict=True):
            entries = self._serve(key, stream, group, place, budget)
            if entries is not None:
                served.append((key, entries))
        if served or options.block is None or any(place != NEW for place in self._places):
            return by_stream(served, self._resp3)
        return Wait(
            options.keys,
            self._deadline,
            self._retry,
            needs_key=True,
            group=self._group if self._reads_as_others(found) else None,
            wake_at=self._next_attempt([group for _, group in found]),
            note_attempt=self._note_attempt,
            note_end=self._note_end,
            reader_of=self._group,
            consumer=options.consumer,
        )

    def _reads_as_others(self, found: list[tuple[Stream, Group]]) -> bool:
        """Whether what this reader does not find no other reader of the group finds either."""
        if self._options.claim is not None or len(found) > 1:
            return False
        agenda = self._agenda_of(self._options.keys[0], *found[0])
        return agenda is None or not agenda.rules.max_pending_consumer

    def _agenda_of(self, key: bytes, stream: Stream, group: Group) -> Agenda | None:
        policies = self._policies
        return policies.of_group(self._db, key, stream, group) if policies.active else None

    def _note_attempt(self) -> None:
        """The consumer has tried to read, whether or not it could find anything."""
        key = self._options.keys[0]
        _, group = _group_of(self._policies, self._session, key, self._group)
        consumer = consumer_of(self._db, key, group, self._options.consumer)
        emit_seen(self._db, key, group, consumer)

    def _note_end(self) -> None:
        """The consumer was there until now, which counts where those are removed who are not."""
        self._db.keyspace.now_ms = self._policies.now
        for key in self._options.keys if self._policies.active else ():
            stream = self._db.values.get(key)
            group = stream.groups.get(self._group) if isinstance(stream, Stream) else None
            if not isinstance(stream, Stream) or group is None:
                continue
            agenda = self._agenda_of(key, stream, group)
            consumer = group.consumers.get(self._options.consumer)
            if agenda is not None and agenda.rules.consumer_ttl and consumer is not None:
                consumer.seen = self._policies.now
                emit_seen(self._db, key, group, consumer)

    def _next_attempt(self, groups: list[Group]) -> int | None:
        """When the first pending entry will have been idle long enough to be claimed; at once where
        there is more to look at."""
        if self._incomplete:
            return self._db.keyspace.now_ms
        if self._options.claim is None:
            return None
        times = [time for group in groups if (time := earliest_time(group.pending)) is not None]
        return min(times) + self._options.claim if times else None

    def _serve(
        self, key: bytes, stream: Stream, group: Group, place: int, budget: Budget
    ) -> Entries | None:
        """What one stream has to report, ``None`` for nothing."""
        consumer = consumer_of(self._db, key, group, self._options.consumer)
        agenda = self._agenda_of(key, stream, group)
        if place != NEW:
            if agenda is not None:
                self._bury_history(key, stream, group, agenda, consumer, place)
            return self._history(key, stream, group, consumer, place, budget)
        if agenda is not None:
            return self._serve_by_policy(key, stream, group, agenda, consumer, budget)
        entries = self._claim(key, stream, group, None, consumer, budget)
        fresh = self._new(key, stream, group, consumer, budget, self._options.count - len(entries))
        if not entries and not fresh[0]:
            emit_seen(self._db, key, group, consumer)
            return None
        return len(entries) + fresh[0], chain(in_portions(entries), fresh[1])

    def _history(
        self,
        key: bytes,
        stream: Stream,
        group: Group,
        consumer: Consumer,
        place: int,
        budget: Budget,
    ) -> Entries:
        """The consumer's own pending entries above ``place``, delivered once more."""
        most = min(self._options.count, budget.entries)
        wanted = group.pending.owned_ids(consumer, place + 1, most)
        if not budget.unlimited:
            found = stream.log.get_many(wanted)
            wanted = wanted[: budget.cut([payload or b"" for payload in found])]
        missing = set(stream.log.missing(wanted))
        live = [each for each in wanted if each not in missing] if missing else wanted
        now = self._db.keyspace.now_ms
        if live:
            group.pending.count_deliveries(live, now)
            group.redelivered += len(live)
            self._db.emit(
                Redelivered(self._db.index, key, group.name, consumer.name, tuple(live), now)
            )
        emit_seen(self._db, key, group, consumer)
        return held_entries(stream, wanted, self._absent)

    def _absent(self, identity: int) -> bytes:
        """What stands for an entry that is pending and no longer in the stream."""
        return b"*2\r\n%b%b" % (bulk(ids.text(identity)), encode(NULL_ARRAY, self._resp3))

    # --- groups with policies -------------------------------------------------------------

    def _serve_by_policy(
        self,
        key: bytes,
        stream: Stream,
        group: Group,
        agenda: Agenda,
        consumer: Consumer,
        budget: Budget,
    ) -> Entries | None:
        """What one stream has to report for ``>`` in a group with policies."""
        if agenda.rules.paused:
            emit_seen(self._db, key, group, consumer)
            return None
        policies = self._policies
        place = policies.place_of(self._db, key, stream, group, agenda)
        entries = self._claim(key, stream, group, place, consumer, budget)
        fits = None if budget.unlimited else budget.fits
        reader = Reader(consumer, self._options.noack, fits)
        count = self._options.count
        due = deliver_due(place, reader, min(count - len(entries), budget.entries))
        entries += [self._shown(payload, before) for payload, before in due]
        room = room_for(agenda, group.pending, consumer)
        fresh: Entries = 0, iter(())
        most = min(count - len(entries), room)
        if agenda.rules.selects and most > 0:
            payloads, self._incomplete = deliver_selected(place, reader, most)
            if self._options.claim is not None:
                payloads = _as_new(payloads)
            entries += payloads
        elif most > 0:
            fresh = self._new(key, stream, group, consumer, budget, most)
        if not entries and not fresh[0]:
            emit_seen(self._db, key, group, consumer)
            return None
        return len(entries) + fresh[0], chain(in_portions(entries), fresh[1])

    def _shown(self, payload: bytes, before: PendingEntry) -> bytes:
        """An entry that was pending, in the shape that the command answers with."""
        if self._options.claim is None:
            return payload
        idle = -1 if before.owner is None else max(0, self._db.keyspace.now_ms - before.time)
        return _with_delivery(payload, idle, before.deliveries)

    def _bury_history(
        self,
        key: bytes,
        stream: Stream,
        group: Group,
        agenda: Agenda,
        consumer: Consumer,
        start: int,
    ) -> None:
        """Reading one's own pending entries delivers them again: not more often than may be."""
        if not agenda.rules.max_deliveries:
            return
        count = min(self._options.count, consumer.owned)
        owned = group.pending.owned_ids(consumer, start + 1, count)
        entries = [entry for each in owned if (entry := group.pending.get(each)) is not None]
        exhausted = [each for each in entries if agenda.rules.is_exhausted(each.deliveries)]
        if exhausted:
            bury_exhausted(self._policies.place_of(self._db, key, stream, group, agenda), exhausted)

    # --- claiming -------------------------------------------------------------------------

    def _claim(
        self,
        key: bytes,
        stream: Stream,
        group: Group,
        place: GroupPlace | None,
        consumer: Consumer,
        budget: Budget,
    ) -> list[bytes]:
        """Pending entries that have been idle for long enough, now the consumer's own."""
        min_idle = self._options.claim
        if min_idle is None:
            return []
        now = self._db.keyspace.now_ms
        refusals = None if place is None else Refusals(place, counting=True)
        refuses = None if refusals is None else refusals.refuses
        claim = Claim(consumer, min_idle, now, now, refuses=refuses)
        most = min(self._options.count, budget.entries)
        if place is not None:
            most = min(most, room_for(place.agenda, group.pending, consumer))
        claims, aged = claim_idle(group, stream.log, most, claim, budget.fits)
        emit_claims(self._db, key, group, claim, claims)
        if refusals is not None:
            refusals.bury()
        entries: list[bytes] = []
        for payload, before in aged:
            idle = -1 if before.owner is None else max(0, now - before.time)
            entries.append(_with_delivery(payload, idle, before.deliveries))
        return entries

    def _new(
        self,
        key: bytes,
        stream: Stream,
        group: Group,
        consumer: Consumer,
        budget: Budget,
        most: int,
    ) -> Entries:
        """Entries never delivered to the group, now pending for the consumer."""
        most = min(most, budget.entries)
        if stream.log.last <= group.last_id or most <= 0:
            return 0, iter(())
        identities = stream.log.ids_of(group.last_id + 1, ids.MAX, most)
        if not budget.unlimited:
            payloads = stream.log.range(group.last_id + 1, ids.MAX, most)
            del identities[budget.cut(payloads) :]
        chunks = held_range(stream, group.last_id + 1, ids.MAX, len(identities))[1]
        if self._options.claim is not None:
            payloads = stream.log.range(group.last_id + 1, ids.MAX, len(identities))
            chunks = map(_as_new, in_portions(payloads))
        if identities:
            place = (self._db, key, stream, group)
            _hand_out(place, consumer, identities, self._options.noack)
        return len(identities), chunks


_Place = tuple[Database, bytes, Stream, Group]
"""A consumer group and where it is."""


def _hand_out(place: _Place, consumer: Consumer, identities: list[int], noack: bool) -> None:
    """Delivers the entries that follow the group's last-delivered-id."""
    db, key, stream, group = place
    now = db.keyspace.now_ms
    stream.deliver(group, consumer, identities, now, noack)
    if noack:
        emit_seen(db, key, group, consumer)
    else:
        given = tuple(identities)
        ones = (1,) * len(given)
        db.emit(Delivered(db.index, key, group.name, consumer.name, given, now, ones, now))
    db.emit(GroupPositionSet(db.index, key, group.name, group.last_id, group.entries_read, False))


def _read_new(policies: Policies, session: Session, options: ReadOptions) -> Encoded | Steps | None:
    """What the usual XREADGROUP answers, with new entries of one stream; ``None`` without any, or
    where there may be many.

    It does what :class:`_GroupRead` would do, in two thirds of the time.
    """
    db, key, name = session.db, options.keys[0], options.group
    assert name is not None
    stream, group = _group_of(policies, session, key, name)
    count = options.count
    if policies.active:
        agenda = policies.of_group(db, key, stream, group)
        if agenda is not None:
            count = min(count, _plain_room(agenda, db, group, options.consumer))
    if count <= 0 or min(count, stream.log.length) >= MANY:
        return None
    identities, chunks = group.cursor.read(stream.log, group.last_id, count)
    if not identities:
        return None
    consumer = consumer_of(db, key, group, options.consumer)
    _hand_out((db, key, stream, group), consumer, identities, options.noack)
    head = b"%1\r\n" if session.resp3 else b"*1\r\n*2\r\n"
    return Encoded(b"".join([head, bulk(key), b"*%d\r\n" % len(identities), *chunks]))


def _plain_room(agenda: Agenda, db: Database, group: Group, name: bytes) -> int:
    """How many new entries a read may be given without more ado; none where policies say more than
    that, or the consumer is not known yet."""
    rules, consumer = agenda.rules, group.consumers.get(name)
    if rules.selects or rules.paused or consumer is None:
        return 0
    if agenda.has_due(group.pending, db.keyspace.now_ms):
        return 0
    return room_for(agenda, group.pending, consumer)


def _as_new(payloads: list[bytes]) -> list[bytes]:
    """Entries that are delivered for the first time, as CLAIM shows them."""
    return [_with_delivery(payload, 0, 0) for payload in payloads]


def _with_delivery(payload: bytes, idle: int, count: int) -> bytes:
    """An entry with its idle time and its delivery count behind its fields (CLAIM)."""
    return b"*4\r\n%b:%d\r\n:%d\r\n" % (payload[4:], idle, count)


def _keys(args: Arguments) -> list[bytes] | None:
    return keys_to_read(args, grouped=True)


@command(
    "XREADGROUP",
    flags="write blocking movablekeys",
    since="5.0.0",
    summary="Reads new or pending entries as a consumer of a group, waiting if there are none.",
    complexity="O(M) for M entries returned, for each stream.",
    syntax="GROUP group consumer [COUNT count] [MAXCOUNT maxcount] [MAXSIZE bytes]"
    " [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
    keys=[KeySpec("RO access", index=4, keyword="STREAMS", last=-1, limit=2, find=_keys)],
)
def xreadgroup(server: Services, session: Session, args: Arguments) -> Reply | Wait | Steps:
    """XREADGROUP GROUP group consumer [options] STREAMS key ... id ...: entries, or null."""
    options = read_options(args, grouped=True)
    policies = server.policies
    if options.usual and (reply := _read_new(policies, session, options)) is not None:
        return reply
    assert options.group is not None
    return _GroupRead(policies, session, options, options.group).start()
