# Compiled by mypyc.
"""XPENDING, XCLAIM, XAUTOCLAIM and XNACK: pending entries, and how they change hands."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NULL_ARRAY, Bulk, Encoded, Reply
from server.commands.declare import command
from server.commands.groups import errors as group_errors
from server.commands.groups.group_helpers import consumer_of, emit_claims, emit_seen, existing_group
from server.commands.groups.pending_lines import pending_lines
from server.commands.streams.entries import Part, held_entries, in_portions, joined
from server.delivery import errors as policy_errors
from server.delivery.claiming import Refusals
from server.delivery.dead_letters import FATAL, bury
from server.delivery.place import GroupPlace
from server.road.outcomes import Steps
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer, parse_integer
from server.services import Services
from storage.engine import ids
from storage.engine.effects import GroupPositionSet, Released
from storage.engine.groups import Claim, Claims, Group, claim_ids, claim_scanning, is_ascending
from storage.engine.pending import MOST, PendingEntry
from storage.engine.stream import Stream
from storage.errors import InvalidID
from storage.keyspace.databases import Database

# --- XPENDING --------------------------------------------------------------------------------


class _PendingRange(NamedTuple):
    """The arguments of XPENDING's long form."""

    min_idle: int
    start: int
    end: int
    most: int
    consumer: bytes | None


def _pending_range(args: Arguments) -> _PendingRange | None:
    """The range asked for, ``None`` for the summary; raises :class:`CommandError`."""
    if len(args) == 3:
        return None
    if not 6 <= len(args) <= 9:
        raise CommandError(errors.SYNTAX)
    at, min_idle = 3, 0
    if args[3].upper() == b"IDLE":
        at, min_idle = 5, integer(args[4])
        if len(args) < 8:
            raise CommandError(errors.SYNTAX)
    count = integer(args[at + 2])
    start, end = ids.parse_start(args[at]), ids.parse_end(args[at + 1])
    consumer = args[at + 3] if len(args) > at + 3 else None
    return _PendingRange(min_idle, start, end, count, consumer)


@command(
    "XPENDING",
    flags="readonly",
    since="5.0.0",
    summary="Shows the pending entries of a consumer group.",
    complexity="O(N) for N entries returned; O(1) for the summary.",
    syntax="key group [[IDLE min-idle-time] start end count [consumer]]",
    keys=[KeySpec("RO access")],
    tips=["nondeterministic_output"],
    history=[("6.2.0", "IDLE, and bounds that exclude their ID.")],
)
def xpending(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """XPENDING key group [[IDLE ms] start end count [consumer]]: a summary, or entries."""
    wanted = _pending_range(args)
    _, group = existing_group(session.db, args[1], args[2])
    if wanted is None:
        return _summary(group)
    return _listing(group, wanted, session.db.keyspace.now_ms)


def _summary(group: Group) -> Reply:
    pending = group.pending
    if not pending:
        return [0, None, None, NULL_ARRAY]
    owners: list[Reply] = [
        [Bulk(name), str(group.consumers[name].owned)]
        for name in sorted(group.consumers)
        if group.consumers[name].owned
    ]
    return [len(pending), Bulk(ids.text(pending.first)), Bulk(ids.text(pending.last)), owners]


def _listing(group: Group, wanted: _PendingRange, now: int) -> Reply | Steps:
    latest = now - wanted.min_idle if wanted.min_idle > 0 else MOST
    if wanted.most <= 0:
        return EMPTY_ARRAY
    most, pending = wanted.most, group.pending
    if wanted.consumer is None and latest == MOST:
        columns = pending.columns(wanted.start, wanted.end, most)
    elif wanted.consumer is None:
        columns = pending.columns_until(wanted.start, wanted.end, latest, most)
    elif wanted.consumer in group.consumers:
        owner = group.consumers[wanted.consumer]
        columns = pending.columns_owned(owner, wanted.start, wanted.end, latest, most)
    else:
        return EMPTY_ARRAY
    return joined([(b"", len(columns), pending_lines(columns, now))])


# --- XCLAIM and XAUTOCLAIM -------------------------------------------------------------------


class _ClaimOptions:
    """The arguments of XCLAIM from the first ID on."""

    __slots__ = ("count", "force", "ids", "justid", "last_id", "time")

    def __init__(self, args: Arguments, now: int) -> None:
        self.ids: list[int] = []
        self.time = now
        self.count: int | None = None
        self.force = self.justid = False
        self.last_id = ids.MIN
        at = 5
        while at < len(args) and (identity := _id_or_none(args[at])) is not None:
            self.ids.append(identity)
            at += 1
        while at < len(args):
            at = self._take(args, at, now)
        self.time = now if not 0 <= self.time <= now else self.time

    def _take(self, args: Arguments, at: int, now: int) -> int:
        word = args[at].upper()
        if word == b"FORCE":
            self.force = True
        elif word == b"JUSTID":
            self.justid = True
        elif word in _VALUE_OPTIONS and at + 1 < len(args):
            self._take_value(word, args[at + 1], now)
            return at + 2
        else:
            raise CommandError(group_errors.unrecognized_option("XCLAIM", args[at]))
        return at + 1

    def _take_value(self, word: bytes, value: bytes, now: int) -> None:
        if word == b"LASTID":
            self.last_id = ids.parse(value)
            return
        number = integer(value, group_errors.invalid_claim_option(word.decode()))
        if word == b"IDLE":
            self.time = now - number
        elif word == b"TIME":
            self.time = number
        else:
            self.count = number if number >= 0 else None


_VALUE_OPTIONS: Final = frozenset({b"IDLE", b"TIME", b"RETRYCOUNT", b"LASTID"})


def _id_or_none(text: bytes) -> int | None:
    try:
        return ids.parse(text)
    except InvalidID:
        return None


def _claimed(stream: Stream, claims: Claims, justid: bool) -> Part:
    """The entries claimed, or their IDs alone."""
    if justid:
        return _texts(claims.ids)
    if len(claims.ids) > 1 and is_ascending(claims.ids):
        return b"", *held_entries(stream, claims.ids, ids.text)
    payloads = [stream.log.get(identity) or b"" for identity in claims.ids]
    return b"", len(payloads), in_portions(payloads)


def _refusals(
    server: Services, db: Database, key: bytes, stream: Stream, group: Group, counting: bool
) -> Refusals | None:
    """What may not be claimed in a group with policies, ``None`` for one without."""
    place = _place(server, db, key, stream, group)
    return None if place is None else Refusals(place, counting)


def _place(
    server: Services, db: Database, key: bytes, stream: Stream, group: Group
) -> GroupPlace | None:
    """The group with its policies, ``None`` for one without."""
    policies = server.policies
    agenda = policies.of_group(db, key, stream, group) if policies.active else None
    return None if agenda is None else policies.place_of(db, key, stream, group, agenda)


def _texts(identities: list[int]) -> Part:
    """An array of IDs."""
    return b"", len(identities), map(_bulks, in_portions(identities))


def _bulks(identities: list[int]) -> list[bytes]:
    return [bulk(ids.text(identity)) for identity in identities]


@command(
    "XCLAIM",
    flags="write fast",
    since="5.0.0",
    summary="Makes a consumer the owner of pending entries of others.",
    complexity="O(log N) for each ID, with N pending entries.",
    syntax="key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds]"
    " [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    keys=[KeySpec("RW update")],
    tips=["nondeterministic_output"],
)
def xclaim(server: Services, session: Session, args: Arguments) -> Encoded | Steps:
    """XCLAIM key group consumer min-idle id [id ...] [options]: the entries claimed."""
    db, key = session.db, args[1]
    stream, group = existing_group(db, key, args[2])
    min_idle = max(0, integer(args[4], group_errors.invalid_min_idle("XCLAIM")))
    now = db.keyspace.now_ms
    options = _ClaimOptions(args, now)
    if options.last_id > group.last_id:
        group.last_id = options.last_id
        db.emit(
            GroupPositionSet(db.index, key, group.name, group.last_id, group.entries_read, False)
        )
    consumer = consumer_of(db, key, group, args[3])
    refusals = _refusals(server, db, key, stream, group, not options.justid)
    claim = Claim(
        consumer,
        min_idle,
        options.time,
        now,
        options.count,
        not options.justid,
        options.force and (refusals is None or refusals.allows_force),
        None if refusals is None else refusals.refuses,
    )
    claims = claim_ids(group, stream.log, options.ids, claim)
    emit_claims(db, key, group, claim, claims)
    if refusals is not None:
        refusals.bury()
    if not claims.ids:
        emit_seen(db, key, group, consumer)
    return joined([_claimed(stream, claims, options.justid)])


_MOST_CLAIMED: Final = 2**63 // 16 - 1


def _autoclaim_options(args: Arguments) -> tuple[int, bool]:
    """COUNT and JUSTID of XAUTOCLAIM."""
    count, justid = 100, False
    at = 6
    while at < len(args):
        word = args[at].upper()
        if word == b"JUSTID":
            justid = True
            at += 1
        elif word == b"COUNT" and at + 1 < len(args):
            count = integer(args[at + 1], group_errors.COUNT_NOT_POSITIVE)
            if not 1 <= count <= _MOST_CLAIMED:
                raise CommandError(group_errors.COUNT_NOT_POSITIVE)
            at += 2
        else:
            raise CommandError(errors.SYNTAX)
    return count, justid


@command(
    "XAUTOCLAIM",
    flags="write fast",
    since="6.2.0",
    summary="Makes a consumer the owner of pending entries that have been idle for long.",
    complexity="O(1) if COUNT is small.",
    syntax="key group consumer min-idle-time start [COUNT count] [JUSTID]",
    keys=[KeySpec("RW delete")],
    tips=["nondeterministic_output"],
    history=[("7.0.0", "A third element: the IDs dropped because the stream lacks them.")],
)
def xautoclaim(server: Services, session: Session, args: Arguments) -> Encoded | Steps:
    """XAUTOCLAIM key group consumer min-idle start [COUNT n] [JUSTID]: next, claimed, dropped."""
    min_idle = max(0, integer(args[4], group_errors.invalid_min_idle("XAUTOCLAIM")))
    start = ids.parse_start(args[5])
    count, justid = _autoclaim_options(args)
    db, key = session.db, args[1]
    stream, group = existing_group(db, key, args[2])
    now = db.keyspace.now_ms
    consumer = consumer_of(db, key, group, args[3])
    refusals = _refusals(server, db, key, stream, group, not justid)
    refuses = None if refusals is None else refusals.refuses
    claim = Claim(consumer, min_idle, now, now, counting=not justid, refuses=refuses)
    following, claims = claim_scanning(group, stream.log, start, count, claim)
    emit_claims(db, key, group, claim, claims)
    if refusals is not None:
        refusals.bury()
    if not claims.ids:
        emit_seen(db, key, group, consumer)
    head = b"*3\r\n" + bulk(ids.text(following))
    return joined([_claimed(stream, claims, justid), _texts(claims.dropped)], head)


# --- XNACK -----------------------------------------------------------------------------------

_MODES: Final = frozenset({b"SILENT", b"FAIL", b"FATAL"})


class _NackOptions:
    """The arguments of XNACK behind its mode."""

    __slots__ = ("count", "force", "ids", "mode")

    def __init__(self, args: Arguments) -> None:
        self.mode = args[3].upper()
        self.count: int | None = None
        self.force = False
        self.ids: list[int] | None = None
        if self.mode not in _MODES:
            raise CommandError(group_errors.NACK_MODE)
        at = 4
        while at < len(args):
            at = self._take(args, at)

    def wanted(self) -> list[int]:
        """The IDs to free; raises :class:`CommandError` if none were given."""
        if self.ids is None:
            raise CommandError(group_errors.NACK_NO_IDS)
        return self.ids

    def _take(self, args: Arguments, at: int) -> int:
        word = args[at].upper()
        more = len(args) - 1 - at
        if word == b"FORCE":
            self.force = True
            return at + 1
        if word == b"RETRYCOUNT" and more:
            self.count = integer(args[at + 1])
            if self.count < 0:
                raise CommandError(group_errors.NACK_RETRYCOUNT_NEGATIVE)
            return at + 2
        if word == b"IDS" and more and self.ids is None:
            return self._take_ids(args, at + 1)
        raise CommandError(group_errors.unrecognized_option("XNACK", args[at]))

    def _take_ids(self, args: Arguments, at: int) -> int:
        count = parse_integer(args[at])
        if count is None or count <= 0:
            raise CommandError(group_errors.NACK_NUMIDS_NOT_POSITIVE)
        texts = args[at + 1 : at + 1 + count]
        if len(texts) < count:
            raise CommandError(group_errors.NACK_NUMIDS_MISMATCH)
        self.ids = [ids.parse(text) for text in texts]
        return at + 1 + count

    def count_after(self, before: PendingEntry | None) -> int:
        """The delivery count that a freed entry has."""
        if self.count is not None:
            return self.count
        if self.mode == b"FATAL":
            return MOST
        count = 0 if before is None else before.deliveries
        return max(0, count - 1) if self.mode == b"SILENT" else count


@command(
    "XNACK",
    flags="write fast",
    since="8.8.0",
    summary="Gives pending entries back: they stay pending, without an owner.",
    complexity="O(log N) for each ID, with N pending entries.",
    syntax="key group <SILENT | FAIL | FATAL> IDS numids id [id ...] [RETRYCOUNT count] [FORCE]",
    keys=[KeySpec("RW update")],
)
def xnack(server: Services, session: Session, args: Arguments) -> Reply:
    """XNACK key group mode IDS numids id [id ...] [RETRYCOUNT n] [FORCE]: how many were freed."""
    db, key = session.db, args[1]
    options = _NackOptions(args)
    wanted = options.wanted()
    stream, group = existing_group(db, key, args[2])
    place = _place(server, db, key, stream, group)
    if place is not None and options.mode == b"FATAL" and place.agenda.rules.dead_letter:
        return _give_up(place, wanted, options.force)
    freed: list[int] = []
    counts: list[int] = []
    times: list[int] = []
    for identity in wanted:
        before = group.pending.get(identity)
        if before is None and not (options.force and stream.log.get(identity) is not None):
            continue
        count = options.count_after(before)
        delay = 0 if place is None else place.agenda.rules.delay_of_released(count)
        times.append(db.keyspace.now_ms + delay if delay else 0)
        group.pending.set(identity, None, times[-1], count)
        freed.append(identity)
        counts.append(count)
    if freed:
        group.released += len(freed)
        kept_back = tuple(times) if any(times) else ()
        db.emit(Released(db.index, key, group.name, tuple(freed), tuple(counts), kept_back))
    return len(freed)


def _give_up(place: GroupPlace, wanted: list[int], force: bool) -> int:
    """XNACK FATAL where there is a stream for dead letters; returns how many have gone there."""
    entries: list[PendingEntry] = []
    for identity in dict.fromkeys(wanted):
        entry = place.group.pending.get(identity)
        if entry is None and force and place.stream.log.get(identity) is not None:
            entry = PendingEntry(identity, None, 0, 0)
        if entry is not None:
            entries.append(entry)
    kept = bury(place, entries, FATAL)
    if kept:
        target = place.agenda.rules.dead_letter
        raise CommandError(policy_errors.cannot_bury(target, place.circle()))
    return len(entries)
