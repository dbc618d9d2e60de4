"""XREADGROUP: new entries, or pending ones, of one or several streams, and waiting for more.

Which way a request takes:

*The usual one.* Nearly all reads want new entries (``>``) of one stream, with no CLAIM and no bound
on the bytes. Where something is there to be delivered, :func:`_read_usual` answers from the group's
cursor: nothing is searched. It finds the group once, as :class:`.RuledGroup` if it has policies,
and hands this on to the general way where it cannot answer itself: there is nothing new, there is
so much that the reply is put together in steps, the consumer is not known yet to the policies, or
they want more than a limit to what is in flight.

*That of many streams.* Where new entries of several streams are wanted, and no group has policies,
most of the streams have nothing new: :meth:`_GroupRead._run_new` notes that the consumer was there,
and has only the others read in the general way.

*The general one.* A :class:`_GroupRead` is one request, which may be tried several times. It finds
all groups first, as an error in the last stream must leave the first one as it was. Then each
stream has its turn:

- An ID in place of ``>`` asks for *history*: the consumer's own pending entries above it, which
  counts as delivering them once more. With ``max-deliveries`` those that were delivered as often as
  may be become dead letters first. History is never waited for.
- With ``>``, *claims* come first (CLAIM: pending entries of anybody that have been idle for long
  enough), then in a group with policies what is *due* again, then *new* entries. Where the policies
  look at the fields of entries, the new ones are chosen by :func:`.deliver_selected`; everywhere
  else they are what follows the last-delivered-id, with policies or without. With
  ``priority-field`` both are one: :func:`.deliver_ranked` takes whichever has the highest number.

Where nothing is found, the consumer was seen all the same. If the request may wait, it says so with
a :class:`.Wait`, and each attempt begins anew with looking for the groups: they may have been made
again meanwhile.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from protocol import errors
from protocol.encoder import bulk, encode, error_line
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Encoded, Reply
from server.commands.declare import command
from server.commands.groups import errors as group_errors
from server.commands.streams.entries import (
    MANY,
    Entries,
    Served,
    by_stream,
    held_entries,
    held_range,
    in_portions,
)
from server.commands.streams.reading import Budget, ReadOptions, keys_to_read, options_of
from server.core.outcomes import Steps, Wait, Work
from server.core.table import Arguments, KeySpec
from server.delivery.group_ref import (
    READ_AGAIN,
    GroupRef,
    RuledGroup,
    find_group,
    group_of_value,
)
from server.delivery.policies import PolicyState
from server.delivery.reading import (
    EntryRefusals,
    GroupReader,
    deliver_due,
    deliver_first,
    deliver_ranked,
    deliver_selected,
    readable_again,
)
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import Redelivered
from storage.engine.groups import Claim, Group, claim_idle
from storage.engine.pending import Consumer, PendingEntry, Span, earliest_time, ids_in
from storage.engine.stream import Stream
from storage.errors import WrongType

NEW: Final = ids.MAX
"""In place of an ID: entries never delivered (``>``). The highest ID reads the same."""


def _group_to_read(policies: PolicyState, session: Session, key: bytes, name: bytes) -> GroupRef:
    """Returns the group, with its policies if it has any; raises :class:`CommandError` without
    one."""
    if policies.active:
        ref = policies.group_to_read(session, key, name)
    else:
        ref = find_group(session.db, key, name)
    if ref is None:
        raise CommandError(errors.no_group_in_xreadgroup(key, name))
    return ref


def _start_of(text: bytes) -> int:
    """Returns the ID above which history is asked for, or :data:`NEW`."""
    if text == b">":
        return NEW
    if text in (b"$", b"+"):
        raise CommandError(group_errors.meaningless_id(text.decode()))
    return ids.parse(text)


# --- the usual way ---------------------------------------------------------------------------


def _read_usual(session: Session, options: ReadOptions, ref: GroupRef) -> Encoded | None:
    """Returns new entries of one stream; ``None``, with nothing done, where this is not the way."""
    count = options.count
    if isinstance(ref, RuledGroup):
        count = min(count, _plain_room(ref, options.consumer))
    log = ref.stream.log
    if count <= 0 or min(count, log.length) >= MANY:
        return None
    if isinstance(ref, RuledGroup) and ref.agenda.rules.selects:
        consumer = ref.consumer(options.consumer, session.link)
        reader = GroupReader(consumer, options.noack, False, None)
        if ref.agenda.ranking is not None:
            number, chunks = deliver_first(ref, reader, count)
        else:
            number, chunks, _ = deliver_selected(ref, reader, count)
    else:
        entry_ids, chunks = ref.group.cursor.read(log, ref.group.last_id, count)
        number = len(entry_ids)
        if number:
            ref.hand_out(ref.consumer(options.consumer, session.link), entry_ids, options.noack)
    if not number:
        return None
    head = b"%1\r\n" if session.resp3 else b"*1\r\n*2\r\n"
    return Encoded(b"".join([head, bulk(ref.key), b"*%d\r\n" % number, *chunks]))


def _plain_room(ruled: RuledGroup, name: bytes) -> int:
    """Returns how many new entries a read may be given without more ado; 0 where policies say more
    than that, or the consumer is not known yet."""
    rules, consumer = ruled.agenda.rules, ruled.group.consumers.get(name)
    if rules.paused or consumer is None:
        return 0
    if ruled.agenda.has_due(ruled.group.pending, ruled.due):
        return 0
    return ruled.room_for(consumer)


# --- the general way -------------------------------------------------------------------------


class _GroupRead:
    """An XREADGROUP that may run several times until it finds something."""

    def __init__(
        self, server: Services, session: Session, options: ReadOptions, group: bytes
    ) -> None:
        self._reactions = server.reactions
        self._policies = server.policies
        self._may_go_on = server.due_work.going_on()
        self._incomplete = False
        """Whether there may be more to find than one attempt has looked at."""
        self._session = session
        self._options = options
        self._group = group
        self._deadline = options.deadline(session.db.keyspace.now_ms)
        self._starts: list[int] = []

    def start(self, first: GroupRef | None) -> Reply | Wait | Steps:
        """Checks the streams one after the other, then reads; ``first`` is the group of the first
        one if that has been found already."""
        if first is None and self._is_plain():
            self._starts = [NEW] * len(self._options.keys)
            return self._run_new()
        found: list[GroupRef] = []
        for key, text in zip(self._options.keys, self._options.places, strict=True):
            found.append(first or self._find(key))
            self._starts.append(_start_of(text))
            first = None
        return self._run(found)

    def _find(self, key: bytes) -> GroupRef:
        return _group_to_read(self._policies, self._session, key, self._group)

    def _retry(self) -> Reply | Wait | Steps:
        options = self._options
        if self._is_plain():
            return self._run_new()
        if not options.is_usual:
            return self._run([self._find(key) for key in options.keys])
        ref = self._find(options.keys[0])
        # A waiting reader passes over no more at a time than one attempt does.
        selects = isinstance(ref, RuledGroup) and ref.agenda.rules.selects
        reply = None if selects else _read_usual(self._session, options, ref)
        return self._run([ref]) if reply is None else reply

    def _run(self, found: list[GroupRef]) -> Reply | Wait | Steps:
        """Reads what there is, or says what to wait for."""
        options = self._options
        served = self._attempt(found)
        if not served and self._incomplete and options.block is None:
            return Steps(self._look_further())
        if served or options.block is None or any(start != NEW for start in self._starts):
            return by_stream(served, self._session.resp3)
        for ref in found:
            if isinstance(ref, RuledGroup):
                self._policies.await_next(ref)
        group = self._group if self._reads_as_others(found) else None
        return self._wait(group, self._next_attempt(found))

    def _wait(self, group: bytes | None, wake_at: int | None) -> Wait:
        options = self._options
        return Wait(
            options.queues(self._session.db.index),
            self._deadline,
            self._retry,
            kind=None,
            group=group,
            wake_at=wake_at,
            note_attempt=self._note_attempt,
            note_end=self._note_end,
            reader_of=self._group,
            consumer=options.consumer,
        )

    def _attempt(self, found: list[GroupRef]) -> Served:
        """Reads what is found without looking at very much; returns it by stream."""
        budget = Budget(self._options)
        served: Served = []
        self._incomplete = False
        for ref, start in zip(found, self._starts, strict=True):
            entries = self._serve(ref, start, budget)
            if entries is not None:
                served.append((ref.key, entries))
        return served

    def _look_further(self) -> Work:
        """Attempts to read until something is found, or there is no more to look at, or nothing may
        be written any more: what was kept back until then is for other reads."""
        served: Served = []
        while not served and self._incomplete:
            yield
            if not self._may_go_on():
                break
            try:
                served = self._attempt([self._find(key) for key in self._options.keys])
            except CommandError as error:
                return [error_line(error.text)]
            except WrongType:
                return [error_line(errors.WRONG_TYPE)]
        reply = by_stream(served, self._session.resp3)
        if isinstance(reply, Steps):
            return (yield from reply.work)
        return [encode(reply, self._session.resp3)]

    # --- new entries of many streams ------------------------------------------------------

    def _is_plain(self) -> bool:
        """Whether new entries of several streams are wanted, none of whose groups has policies."""
        options = self._options
        return options.wants_new and not options.is_usual and not self._policies.active

    def _run_new(self) -> Reply | Wait | Steps:
        """Does as :meth:`_run`."""
        served = self._attempt_new()
        if served or self._options.block is None:
            return by_stream(served, self._session.resp3)
        return self._wait(None, None)

    def _attempt_new(self) -> Served:
        """Finds all groups, then reads those that may be given something, and makes nothing for any
        of the others."""
        db, link, keys = self._session.db, self._session.link, self._options.keys
        name, reader = self._group, self._options.consumer
        streams: list[Stream] = []
        groups: list[Group] = []
        for key in keys:
            stream = db.stream(key)
            group = None if stream is None else stream.groups.get(name)
            if stream is None or group is None:
                raise CommandError(errors.no_group_in_xreadgroup(key, name))
            streams.append(stream)
            groups.append(group)
        now, is_told = db.keyspace.now_ms, self._reactions.record is not None
        budget = Budget(self._options)
        served: Served = []
        for at in range(len(keys)):
            stream, group = streams[at], groups[at]
            consumer = group.consumers.get(reader)
            if consumer is None or stream.last_id > group.last_id:
                entries = self._serve(GroupRef(db, keys[at], stream, group), NEW, budget)
                if entries is not None:
                    served.append((keys[at], entries))
            else:
                consumer.seen = now
                consumer.link = link
                if is_told:
                    GroupRef(db, keys[at], stream, group).emit_seen(consumer)
        return served

    # --- waiting --------------------------------------------------------------------------

    def _reads_as_others(self, found: list[GroupRef]) -> bool:
        """Whether what this reader does not find no other reader of the group finds either."""
        if self._options.claim is not None or len(found) > 1:
            return False
        ref = found[0]
        return not isinstance(ref, RuledGroup) or not ref.agenda.rules.max_pending_consumer

    def _note_attempt(self) -> None:
        """The consumer has tried to read, whether or not it could find anything."""
        ref = self._find(self._options.keys[0])
        ref.emit_seen(ref.consumer(self._options.consumer))

    def _note_end(self) -> None:
        """The consumer was there until now, which counts where those are removed who are not."""
        db, policies = self._session.db, self._policies
        db.keyspace.now_ms = policies.now
        for key in self._options.keys if policies.active else ():
            ref = group_of_value(db, key, db.values.get(key), self._group)
            ruled = None if ref is None else policies.ruled(ref)
            if ruled is None or not ruled.agenda.rules.consumer_ttl:
                continue
            consumer = ruled.group.consumers.get(self._options.consumer)
            if consumer is not None:
                consumer.seen = policies.now
                ruled.emit_seen(consumer)

    def _next_attempt(self, found: list[GroupRef]) -> int | None:
        """When the first pending entry will have been idle long enough to be claimed; soon where
        there is more to look at, with others answered before."""
        if self._incomplete:
            return self._session.db.keyspace.due_ms + 1
        if self._options.claim is None:
            return None
        pending = [ref.group.pending for ref in found]
        times = [time for each in pending if (time := earliest_time(each)) is not None]
        return min(times) + self._options.claim if times else None

    # --- one stream -----------------------------------------------------------------------

    def _serve(self, ref: GroupRef, start: int, budget: Budget) -> Entries | None:
        """Reads one stream; returns what it has to report, ``None`` for nothing."""
        options = self._options
        consumer = ref.consumer(options.consumer, self._session.link)
        ruled = ref if isinstance(ref, RuledGroup) else None
        if start != NEW:
            return self._history(ref, consumer, start, budget)
        entries: list[bytes] = []
        fresh: Entries = 0, iter(())
        if ruled is None:
            entries = self._claim(ref, consumer, budget)
            fresh = self._new(ref, consumer, budget, options.count - len(entries))
        elif not ruled.agenda.rules.paused:
            entries = self._claim(ref, consumer, budget)
            fresh = self._serve_by_policy(ruled, consumer, budget, entries)
        if not entries and not fresh[0]:
            ref.emit_seen(consumer)
            return None
        return len(entries) + fresh[0], chain(in_portions(entries), fresh[1])

    def _serve_by_policy(
        self, ruled: RuledGroup, consumer: Consumer, budget: Budget, entries: list[bytes]
    ) -> Entries:
        """Adds what is due, or chosen by the policies, to what was claimed; returns the new entries
        of a group whose policies choose none."""
        options = self._options
        fits = None if budget.unlimited else budget.fits
        reader = GroupReader(consumer, options.noack, options.claim is not None, fits)
        ruled.agenda.build(ruled.group.pending, ruled.stream.log)
        most = min(options.count - len(entries), budget.entries, ruled.allowed)
        ranks = ruled.agenda.ranking is not None
        due, more = (deliver_ranked if ranks else deliver_due)(ruled, reader, most)
        entries += [self._shown(payload, before) for payload, before in due]
        if more or ranks:
            self._incomplete = self._incomplete or more
            return 0, iter(())
        most = min(options.count - len(entries), ruled.room_for(consumer))
        if most <= 0:
            return 0, iter(())
        if not ruled.agenda.rules.selects:
            return self._new(ruled, consumer, budget, most)
        count, pieces, more = deliver_selected(ruled, reader, most)
        self._incomplete = self._incomplete or more
        return count, iter([_as_new(pieces) if reader.apart else pieces])

    def _history(self, ref: GroupRef, consumer: Consumer, start: int, budget: Budget) -> Entries:
        """Delivers the consumer's own pending entries above ``start`` once more."""
        db, group, log = ref.db, ref.group, ref.stream.log
        most = min(self._options.count, budget.entries)
        spans: list[Span] = []
        if isinstance(ref, RuledGroup):
            wanted = readable_again(ref, consumer, start + 1, most)
        else:
            spans = group.pending.owned_from(consumer, start + 1, most)
            wanted = ids_in(spans)
        found = len(wanted)
        if not budget.unlimited:
            payloads = log.get_many(wanted)
            wanted = wanted[: budget.cut([payload or b"" for payload in payloads])]
        missing: list[int] = []

        def absent(entry_id: int) -> bytes:
            missing.append(entry_id)
            return self._absent(entry_id)

        entries = held_entries(ref.stream, wanted, absent)
        live = wanted
        if missing:
            gone = set(missing)
            live = [each for each in wanted if each not in gone]
        if live:
            if spans and len(live) == found:
                group.pending.count_found(spans, ref.now)
            else:
                group.pending.count_deliveries(live, ref.now)
            group.redelivered += len(live)
            consumer.redelivered += len(live)
            db.emit(Redelivered(db.index, ref.key, group.name, consumer.name, tuple(live), ref.now))
            if isinstance(ref, RuledGroup):
                ref.note_all_ended(consumer, live, READ_AGAIN)
        ref.emit_seen(consumer)
        return entries

    def _absent(self, entry_id: int) -> bytes:
        """Returns what stands for an entry that is pending and no longer in the stream."""
        null = encode(NULL_ARRAY, self._session.resp3)
        return b"*2\r\n%b%b" % (bulk(ids.text(entry_id)), null)

    def _claim(self, ref: GroupRef, consumer: Consumer, budget: Budget) -> list[bytes]:
        """Makes pending entries that have been idle for long enough the consumer's own (CLAIM);
        returns them as they are shown."""
        if self._options.claim is None:
            return []
        now = ref.now
        most = min(self._options.count, budget.entries)
        refusals: EntryRefusals | None = None
        if isinstance(ref, RuledGroup):
            refusals = EntryRefusals(ref, counting=True)
            most = min(most, ref.room_for(consumer))
        refuses = None if refusals is None else refusals.refuses
        claim = Claim(consumer, self._options.claim, now, now, refuses=refuses)
        claims, aged = claim_idle(ref.group, ref.stream.log, most, claim, budget.fits)
        ref.emit_claims(claim, claims)
        if refusals is not None:
            refusals.settle()
        if isinstance(ref, RuledGroup):
            ref.spend(len(claims.ids))
        return [self._shown(payload, before) for payload, before in aged]

    def _shown(self, payload: bytes, before: PendingEntry) -> bytes:
        """Returns an entry that was pending, in the shape that the command answers with."""
        if self._options.claim is None:
            return payload
        now = self._session.db.keyspace.now_ms
        idle = -1 if before.owner is None else max(0, now - before.time)
        return _with_delivery(payload, idle, before.deliveries)

    def _new(self, ref: GroupRef, consumer: Consumer, budget: Budget, most: int) -> Entries:
        """Delivers entries that follow the group's last-delivered-id."""
        log, start = ref.stream.log, ref.group.last_id + 1
        most = min(most, budget.entries)
        if log.last < start or most <= 0:
            return 0, iter(())
        entry_ids = log.ids_of(start, ids.MAX, most)
        if not budget.unlimited:
            del entry_ids[budget.cut(log.range(start, ids.MAX, most)) :]
        chunks = held_range(ref.stream, start, ids.MAX, len(entry_ids))[1]
        if self._options.claim is not None:
            chunks = map(_as_new, in_portions(log.range(start, ids.MAX, len(entry_ids))))
        if entry_ids:
            ref.hand_out(consumer, entry_ids, self._options.noack)
        return len(entry_ids), chunks


def _as_new(payloads: list[bytes]) -> list[bytes]:
    """Returns entries that are delivered for the first time, as CLAIM shows them."""
    return [_with_delivery(payload, 0, 0) for payload in payloads]


def _with_delivery(payload: bytes, idle: int, count: int) -> bytes:
    """Returns an entry with its idle time and its delivery count behind its fields (CLAIM)."""
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
    """The entries of each stream that has some, or null. With an ID in the place of ``>`` the
    consumer's pending entries above it, also if there are none."""
    options = options_of(session, args, grouped=True)
    policies, name = server.policies, options.group
    assert name is not None
    ref: GroupRef | None = None
    if options.is_usual:
        ref = _group_to_read(policies, session, options.keys[0], name)
        if (reply := _read_usual(session, options, ref)) is not None:
            return reply
    return _GroupRead(server, session, options, name).start(ref)
