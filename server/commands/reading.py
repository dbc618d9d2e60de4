"""XREAD and XREADGROUP: reading on from a place in one or several streams, and waiting for more."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final

from protocol import errors
from protocol.encoder import bulk, encode
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Encoded, Reply
from server.command_table import Arguments, KeySpec, command
from server.commands.entries import MANY, Entries, held_entries, held_range, in_portions, joined
from server.commands.group_helpers import consumer_of, emit_claims, emit_seen
from server.outcomes import Wait
from server.services import Services
from server.session import Session
from server.steps import Steps
from server.util.arguments import INT64_MAX, integer
from storage import ids
from storage.effects import Delivered, GroupPositionSet, Redelivered
from storage.groups import Claim, Group, claim_idle
from storage.keyspace import Database
from storage.pending import Consumer
from storage.pending_age import earliest_time
from storage.stream import Stream

UNLIMITED: Final = 2**62
_LONG_WAIT: Final = 2**32
"""Milliseconds of BLOCK that nobody asks for, but that may be too many to add to a time."""


class ReadOptions:
    """The arguments of XREAD or XREADGROUP up to the IDs, which :attr:`places` holds as text."""

    __slots__ = (
        "block",
        "claim",
        "consumer",
        "count",
        "group",
        "keys",
        "maxcount",
        "maxsize",
        "noack",
        "places",
        "usual",
    )

    def __init__(self, args: Arguments, grouped: bool) -> None:
        self.block: int | None = None
        self.count = UNLIMITED
        self.maxcount = UNLIMITED
        self.maxsize = UNLIMITED
        self.noack = False
        self.claim: int | None = None
        self.group: bytes | None = None
        self.consumer = b""
        self._scan(args, grouped)
        self._check(grouped)
        self.usual = self._is_usual()

    def _is_usual(self) -> bool:
        """Whether this is an XREADGROUP as most are: new entries of one stream, COUNT or not."""
        return (
            self.places == [b">"]
            and self.claim is None
            and self.has_no_budget
            and (self.block or 0) < _LONG_WAIT
        )

    @property
    def has_no_budget(self) -> bool:
        """Whether neither MAXCOUNT nor MAXSIZE bounds the reply."""
        return self.maxcount == self.maxsize == UNLIMITED

    def _check(self, grouped: bool) -> None:
        """Refuses options that do not go together."""
        if grouped and self.group is None:
            raise CommandError(errors.GROUP_MISSING)
        if self.maxcount < self.count < UNLIMITED:
            raise CommandError(errors.MAXCOUNT_BELOW_COUNT)

    def _scan(self, args: Arguments, grouped: bool) -> None:
        at = 1
        last = len(args) - 1
        while at < last:
            word = args[at].upper()
            if word == b"STREAMS":
                self._take_streams(args, at + 1, grouped)
                return
            if word in _GROUP_OPTIONS and not grouped:
                raise CommandError(errors.group_only_option(word.decode()))
            if word == b"NOACK":
                self.noack = True
                at += 1
            elif word == b"GROUP" and at + 2 <= last:
                self.group, self.consumer = args[at + 1], args[at + 2]
                at += 3
            else:
                self._take_number(word, args[at + 1])
                at += 2
        if at == last and args[at].upper() == b"NOACK" and not grouped:
            raise CommandError(errors.group_only_option("NOACK"))
        raise CommandError(errors.SYNTAX)

    def _take_number(self, word: bytes, value: bytes) -> None:
        if word == b"COUNT":
            count = integer(value)
            self.count = count if count > 0 else UNLIMITED
        elif word == b"BLOCK":
            self.block = integer(value, errors.TIMEOUT_NOT_INTEGER)
            if self.block < 0:
                raise CommandError(errors.TIMEOUT_NEGATIVE)
        elif word == b"CLAIM":
            self.claim = integer(value, errors.CLAIM_NOT_INTEGER)
            if self.claim < 0:
                raise CommandError(errors.CLAIM_NEGATIVE)
        elif word == b"MAXCOUNT":
            self.maxcount = _positive(value, errors.MAXCOUNT_NOT_POSITIVE)
        elif word == b"MAXSIZE":
            self.maxsize = _positive(value, errors.MAXSIZE_NOT_POSITIVE)
        else:
            raise CommandError(errors.SYNTAX)

    def _take_streams(self, args: Arguments, at: int, grouped: bool) -> None:
        count = len(args) - at
        if count % 2:
            if grouped:
                raise CommandError(errors.unbalanced("xreadgroup", " or '>'"))
            raise CommandError(errors.unbalanced("xread", ", '+', or '$'"))
        middle = at + count // 2
        self.keys = args[at:middle]
        self.places = args[middle:]

    def deadline(self, now: int) -> int | None:
        """When waiting ends, ``None`` for never; raises :class:`CommandError` if that overflows."""
        if not self.block:
            return None
        if now + self.block > INT64_MAX:
            raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
        return now + self.block


_SHORT: Final = 16
_GROUP_OPTIONS: Final = frozenset({b"GROUP", b"NOACK", b"CLAIM"})


@lru_cache(maxsize=1024)
def _parsed(args: tuple[bytes, ...], grouped: bool) -> ReadOptions:
    return ReadOptions(list(args), grouped)


def read_options(args: Arguments, grouped: bool) -> ReadOptions:
    """The options of a request; those of short ones are remembered.

    A consumer sends the same request over and over, and parsing it took a third of its time.
    """
    if len(args) <= _SHORT and sum(map(len, args)) <= _SHORT * _SHORT:
        return _parsed(tuple(args), grouped)
    return ReadOptions(args, grouped)


def _positive(value: bytes, error: str) -> int:
    number = integer(value, error)
    if number <= 0:
        raise CommandError(error)
    return number


class Budget:
    """How much a reply may still hold (MAXCOUNT and MAXSIZE); the first entry always fits."""

    __slots__ = ("_empty", "_room", "entries", "unlimited")

    def __init__(self, options: ReadOptions) -> None:
        self.unlimited = options.has_no_budget
        self.entries = options.maxcount
        self._room = options.maxsize
        self._empty = True

    def fits(self, payload: bytes) -> bool:
        """Whether an entry may be added; if so it is counted."""
        if self.entries <= 0 or (self._room <= 0 and not self._empty):
            return False
        self.entries -= 1
        self._room -= len(payload)
        self._empty = False
        return True

    def cut(self, payloads: list[bytes]) -> int:
        """How many of these entries may be added, in order; they are counted."""
        if self.unlimited:
            return len(payloads)
        taken = 0
        while taken < len(payloads) and self.fits(payloads[taken]):
            taken += 1
        return taken


Served = list[tuple[bytes, Entries]]
"""The streams that have something to report, each with its entries."""


def _answer(served: Served, resp3: bool) -> Reply | Steps:
    if not served:
        return NULL_ARRAY
    head, mark = (b"%%%d\r\n", b"") if resp3 else (b"*%d\r\n", b"*2\r\n")
    parts = [(mark + bulk(key), *entries) for key, entries in served]
    return joined(parts, head % len(parts))


# --- XREAD -----------------------------------------------------------------------------------

LAST: Final = -1
"""In place of an ID: just below the last entry (``+``)."""


def _places(db: Database, options: ReadOptions) -> list[int]:
    """After which ID to read each stream, or :data:`LAST`."""
    places: list[int] = []
    for key, text in zip(options.keys, options.places, strict=True):
        stream = db.stream_to_read(key)
        if text == b"$":
            places.append(ids.MIN if stream is None else stream.last_id)
        elif text == b"+":
            places.append(LAST)
        elif text == b">":
            raise CommandError(errors.NEW_ID_OUTSIDE_GROUP)
        else:
            places.append(ids.parse(text))
    return places


def _read(db: Database, options: ReadOptions, places: list[int]) -> Served:
    budget = Budget(options)
    served: Served = []
    for key, place in zip(options.keys, places, strict=True):
        stream = db.stream(key)
        if stream is None or not stream.log.length or place >= stream.log.last:
            continue
        start = stream.log.last if place == LAST else place + 1
        entries = _entries_from(stream, start, options.count, budget)
        if entries[0]:
            served.append((key, entries))
    return served


def _entries_from(stream: Stream, start: int, count: int, budget: Budget) -> Entries:
    """Up to ``count`` entries from ``start`` on; there may be no room for any in the budget."""
    if budget.unlimited:
        return held_range(stream, start, ids.MAX, count)
    payloads = stream.log.range(start, ids.MAX, min(count, budget.entries))
    payloads = payloads[: budget.cut(payloads)]
    return len(payloads), in_portions(payloads)


@command(
    "XREAD",
    -4,
    flags="readonly blocking movablekeys",
    group="stream",
    since="5.0.0",
    summary="Reads entries above given IDs from one or several streams, waiting if there are none.",
    complexity="",
    syntax="[COUNT count] [MAXCOUNT maxcount] [MAXSIZE bytes] [BLOCK milliseconds]"
    " STREAMS key [key ...] id [id ...]",
    keys=[KeySpec("RO access", index=1, keyword="STREAMS", last=-1, limit=2)],
)
def xread(server: Services, session: Session, args: Arguments) -> Reply | Wait | Steps:
    """XREAD [COUNT n] [BLOCK ms] STREAMS key ... id ...: entries by stream, or null."""
    options = read_options(args, grouped=False)
    db = session.db
    deadline = options.deadline(db.keyspace.now_ms)
    places = _places(db, options)

    def read() -> Reply | Wait | Steps:
        served = _read(db, options, places)
        if served or options.block is None:
            return _answer(served, session.resp3)
        return Wait(options.keys, deadline, read, needs_key=False)

    return read()


# --- XREADGROUP ------------------------------------------------------------------------------

NEW: Final = ids.MAX
"""In place of an ID: entries never delivered (``>``). The highest ID reads the same."""


def _group_of(db: Database, key: bytes, name: bytes) -> tuple[Stream, Group]:
    stream = db.stream(key)
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        raise CommandError(errors.no_group_in_xreadgroup(key, name))
    return stream, group


def _history_place(text: bytes) -> int:
    if text == b">":
        return NEW
    if text in (b"$", b"+"):
        raise CommandError(errors.meaningless_id(text.decode()))
    return ids.parse(text)


class _GroupRead:
    """One XREADGROUP, which may run several times until it finds something."""

    __slots__ = ("_db", "_deadline", "_group", "_options", "_places", "_resp3")

    def __init__(self, session: Session, options: ReadOptions, group: bytes) -> None:
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
            found.append(_group_of(self._db, key, self._group))
            self._places.append(_history_place(text))
        return self._run(found)

    def _retry(self) -> Reply | Wait | Steps:
        return self._run([_group_of(self._db, key, self._group) for key in self._options.keys])

    def _run(self, found: list[tuple[Stream, Group]]) -> Reply | Wait | Steps:
        """Reads what there is, or says what to wait for."""
        options = self._options
        budget = Budget(options)
        served: Served = []
        for key, place, (stream, group) in zip(options.keys, self._places, found, strict=True):
            entries = self._serve(key, stream, group, place, budget)
            if entries is not None:
                served.append((key, entries))
        if served or options.block is None or any(place != NEW for place in self._places):
            return _answer(served, self._resp3)
        return Wait(
            options.keys,
            self._deadline,
            self._retry,
            needs_key=True,
            group=self._group if options.claim is None and len(found) == 1 else None,
            wake_at=self._next_claim([group for _, group in found]),
            note_attempt=self._note_attempt,
        )

    def _note_attempt(self) -> None:
        """The consumer has tried to read, whether or not it could find anything."""
        key = self._options.keys[0]
        _, group = _group_of(self._db, key, self._group)
        consumer = consumer_of(self._db, key, group, self._options.consumer)
        emit_seen(self._db, key, group, consumer)

    def _next_claim(self, groups: list[Group]) -> int | None:
        """When the first pending entry will have been idle long enough to be claimed."""
        if self._options.claim is None:
            return None
        times = [time for group in groups if (time := earliest_time(group.pending)) is not None]
        return min(times) + self._options.claim if times else None

    def _serve(
        self, key: bytes, stream: Stream, group: Group, place: int, budget: Budget
    ) -> Entries | None:
        """What one stream has to report, ``None`` for nothing."""
        consumer = consumer_of(self._db, key, group, self._options.consumer)
        if place != NEW:
            return self._history(key, stream, group, consumer, place, budget)
        entries = self._claim(key, stream, group, consumer, budget)
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
            self._db.emit(
                Redelivered(self._db.index, key, group.name, consumer.name, tuple(live), now)
            )
        emit_seen(self._db, key, group, consumer)
        return held_entries(stream, wanted, self._absent)

    def _absent(self, identity: int) -> bytes:
        """What stands for an entry that is pending and no longer in the stream."""
        return b"*2\r\n%b%b" % (bulk(ids.text(identity)), encode(NULL_ARRAY, self._resp3))

    def _claim(
        self, key: bytes, stream: Stream, group: Group, consumer: Consumer, budget: Budget
    ) -> list[bytes]:
        """Pending entries that have been idle for long enough, now the consumer's own."""
        min_idle = self._options.claim
        if min_idle is None:
            return []
        now = self._db.keyspace.now_ms
        claim = Claim(consumer, min_idle, now, now)
        most = min(self._options.count, budget.entries)
        claims, aged = claim_idle(group, stream.log, most, claim, budget.fits)
        emit_claims(self._db, key, group, claim, claims)
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


def _read_new(session: Session, options: ReadOptions) -> Encoded | Steps | None:
    """What the usual XREADGROUP answers, with new entries of one stream; ``None`` without any, or
    where there may be many.

    It does what :class:`_GroupRead` would do, in two thirds of the time.
    """
    db, key, name = session.db, options.keys[0], options.group
    assert name is not None
    stream, group = _group_of(db, key, name)
    if stream.log.last <= group.last_id:
        return None
    if min(options.count, stream.log.length) >= MANY:
        return None
    consumer = consumer_of(db, key, group, options.consumer)
    identities, chunks = stream.log.chunks_with_ids(group.last_id + 1, ids.MAX, options.count)
    _hand_out((db, key, stream, group), consumer, identities, options.noack)
    head = b"%1\r\n" if session.resp3 else b"*1\r\n*2\r\n"
    return Encoded(b"".join([head, bulk(key), b"*%d\r\n" % len(identities), *chunks]))


def _as_new(payloads: list[bytes]) -> list[bytes]:
    """Entries that are delivered for the first time, as CLAIM shows them."""
    return [_with_delivery(payload, 0, 0) for payload in payloads]


def _with_delivery(payload: bytes, idle: int, count: int) -> bytes:
    """An entry with its idle time and its delivery count behind its fields (CLAIM)."""
    return b"*4\r\n%b:%d\r\n:%d\r\n" % (payload[4:], idle, count)


@command(
    "XREADGROUP",
    -7,
    flags="write blocking movablekeys",
    group="stream",
    since="5.0.0",
    summary="Reads new or pending entries as a consumer of a group, waiting if there are none.",
    complexity="O(M) for M entries returned, for each stream.",
    syntax="GROUP group consumer [COUNT count] [MAXCOUNT maxcount] [MAXSIZE bytes]"
    " [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
    keys=[KeySpec("RO access", index=4, keyword="STREAMS", last=-1, limit=2)],
)
def xreadgroup(server: Services, session: Session, args: Arguments) -> Reply | Wait | Steps:
    """XREADGROUP GROUP group consumer [options] STREAMS key ... id ...: entries, or null."""
    options = read_options(args, grouped=True)
    if options.usual and (reply := _read_new(session, options)) is not None:
        return reply
    assert options.group is not None
    return _GroupRead(session, options, options.group).start()
