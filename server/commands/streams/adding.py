"""XADD: its options, idempotent producing, and runs of entries that are added at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import OK, Encoded, Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.commands.streams.trimming import TrimOptions, trim_key
from server.core.reasons import EACH, LIMITED
from server.core.table import Arguments, Command, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import (
    DuplicateSuppressed,
    EntriesAdded,
    EntryAdded,
    IdempotencyConfigured,
    IdempotentIDRecorded,
)
from storage.engine.entries import pack
from storage.engine.idempotency import content_iid
from storage.engine.limits import StreamLimits
from storage.engine.log import id_of
from storage.engine.runs import Run
from storage.engine.stream import Stream
from storage.engine.trimming import Trim
from storage.keyspace.databases import Database

# --- options -----------------------------------------------------------------------------------


class IdempotencyOption:
    """``IDMP pid iid`` or ``IDMPAUTO pid``; ``iid`` is ``None`` where the content makes it."""

    __slots__ = ("iid", "producer")

    def __init__(self, producer: bytes, iid: bytes | None) -> None:
        self.producer = producer
        self.iid = iid

    @classmethod
    def take(cls, args: Arguments, at: int) -> IdempotencyOption | None:
        """The option at ``at``, ``None`` if arguments lack; raises :class:`CommandError`."""
        automatic = args[at].upper() == b"IDMPAUTO"
        if len(args) - at < (2 if automatic else 3):
            return None
        producer = args[at + 1]
        if not producer:
            empty = (
                stream_errors.IDMPAUTO_EMPTY_PRODUCER
                if automatic
                else stream_errors.IDMP_EMPTY_PRODUCER
            )
            raise CommandError(empty)
        if not automatic and not args[at + 2]:
            raise CommandError(stream_errors.IDMP_EMPTY_ID)
        return cls(producer, None if automatic else args[at + 2])


class Addition:
    """The arguments of an XADD: its options, its ID (``None`` for ``*``), and where that stands."""

    __slots__ = ("at", "entry_id", "idempotency", "make", "trim")

    def __init__(self, args: Arguments, default_limit: int) -> None:
        self.make = True
        self.entry_id: tuple[int, bool] | None = None
        self.trim: Trim | None = None
        self.idempotency: IdempotencyOption | None = None
        self.at = 2
        if args[2] != b"*":
            self._scan(args, default_limit)
        if len(args) - self.at < 3 or (len(args) - self.at) % 2 == 0:
            raise CommandError(errors.wrong_arity("xadd"))

    def _scan(self, args: Arguments, default_limit: int) -> None:
        """Reads options until one is none: that is the ID."""
        options = TrimOptions()
        at = 2
        while at < len(args) and args[at] != b"*":
            following = self._take(args, at, options)
            if following == at:
                self.entry_id = ids.parse_new(args[at])
                break
            at = following
        self.at = at
        self.trim = options.order(default_limit)
        if self.idempotency is not None and at < len(args) and args[at] != b"*":
            raise CommandError(stream_errors.IDMP_NEEDS_AUTO_ID)

    def _take(self, args: Arguments, at: int, options: TrimOptions) -> int:
        if args[at][:1].isdigit():
            return at
        word = args[at].upper()
        if word == b"NOMKSTREAM":
            self.make = False
            return at + 1
        if word in (b"IDMP", b"IDMPAUTO"):
            if self.idempotency is not None:
                raise CommandError(stream_errors.IDMP_TWICE)
            self.idempotency = IdempotencyOption.take(args, at)
            return at + (3 if word == b"IDMP" else 2) if self.idempotency else at
        return options.take(args, at)


PLAIN: Final = Addition([b"XADD", b"key", b"*", b"field", b"value"], 0)
"""An XADD without options and with an ID made by the server, as most are: ``*`` is argument 2, and
the number of all arguments is odd."""


def addition_of(args: Arguments, limits: StreamLimits) -> Addition:
    """The arguments of an XADD; trimming options before ``*`` are remembered.

    A producer sends the same ones over and over, and parsing them took as long as adding.
    """
    if len(args) > _FEWEST_TRIMMING and args[2] in _THRESHOLDS:
        at = 5 if args[5] == b"*" else 4
        complete = args[at] == b"*" and (len(args) - at) % 2
        if complete and len(args[3]) + len(args[at - 1]) <= _LONGEST_THRESHOLD:
            return _remembered(tuple(args[2:at]), limits.approximate_limit)
    return Addition(args, limits.approximate_limit)


@lru_cache(maxsize=256)
def _remembered(options: tuple[bytes, ...], default_limit: int) -> Addition:
    return Addition([b"XADD", b"key", *options, b"*", b"field", b"value"], default_limit)


_THRESHOLDS: Final = (b"MAXLEN", b"maxlen", b"MINID", b"minid")
_LONGEST_THRESHOLD: Final = 64
_FEWEST_TRIMMING: Final = 6


# --- idempotent producing ----------------------------------------------------------------------


def known_entry(
    option: IdempotencyOption, db: Database, key: bytes, stream: Stream, items: Sequence[bytes]
) -> Encoded | None:
    """The ID of the entry that an XADD with the option has added before, ``None`` if it has not."""
    table = stream.idempotency
    known = table.find(option.producer, _iid(option, items), db.keyspace.due_ms)
    if known is None:
        return None
    table.duplicates += 1
    db.emit(DuplicateSuppressed(db.index, key))
    return bulk(ids.text(known))


def record_addition(
    option: IdempotencyOption,
    db: Database,
    key: bytes,
    stream: Stream,
    items: Sequence[bytes],
    entry_id: int,
) -> None:
    """Notes that an XADD with the option has added the entry ``entry_id``."""
    record_iid(db, key, stream, option.producer, _iid(option, items), entry_id)


def _iid(option: IdempotencyOption, items: Sequence[bytes]) -> bytes:
    return content_iid(items) if option.iid is None else option.iid


def record_iid(
    db: Database, key: bytes, stream: Stream, producer: bytes, iid: bytes, entry_id: int
) -> None:
    """Records an idempotent ID; raises :class:`IdempotentIDTaken` if it stands for another."""
    now = db.keyspace.now_ms
    if stream.idempotency.record(producer, iid, entry_id, now, db.keyspace.due_ms):
        db.emit(IdempotentIDRecorded(db.index, key, producer, iid, entry_id, now))


def _within(arg: bytes, highest: int, error: str) -> int:
    value = integer(arg)
    if not 1 <= value <= highest:
        raise CommandError(error)
    return value


@command(
    "XCFGSET",
    flags="write fast",
    since="8.6.0",
    summary="Sets how long, and how many, idempotent IDs a stream remembers.",
    syntax="key [IDMP-DURATION seconds] [IDMP-MAXSIZE count]",
    keys=[KeySpec("RW update")],
)
def xcfgset(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; an error if there is no such stream."""
    if len(args) == 2:
        raise CommandError(stream_errors.XCFGSET_NOTHING)
    duration: int | None = None
    maxsize: int | None = None
    for at in range(2, len(args), 2):
        word = args[at].upper()
        if word not in (b"IDMP-DURATION", b"IDMP-MAXSIZE") or at + 1 == len(args):
            raise CommandError(errors.SYNTAX)
        if word == b"IDMP-DURATION":
            duration = _within(args[at + 1], 86400, stream_errors.IDMP_DURATION_RANGE)
        else:
            maxsize = _within(args[at + 1], 10000, stream_errors.IDMP_MAXSIZE_RANGE)
    db = session.db
    stream = db.stream(args[1])
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    table = stream.idempotency
    if table.configure(duration or table.duration, maxsize or table.maxsize):
        db.emit(IdempotencyConfigured(db.index, args[1], table.duration, table.maxsize))
    return OK


@command(
    "XIDMPRECORD",
    flags="write denyoom fast",
    since="8.8.0",
    summary="Records which entry an idempotent ID stands for.",
    syntax="key pid iid id",
    keys=[KeySpec("RW update")],
)
def xidmprecord(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, also if that is recorded already."""
    _, key, producer, iid, text = args
    if not producer:
        raise CommandError(stream_errors.XIDMPRECORD_EMPTY_PRODUCER)
    if not iid:
        raise CommandError(stream_errors.XIDMPRECORD_EMPTY_ID)
    entry_id = ids.parse(text)
    stream = session.db.stream(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if stream.log.get(entry_id) is None:
        raise CommandError(stream_errors.IDMP_NO_ENTRY)
    record_iid(session.db, key, stream, producer, iid, entry_id)
    return OK


# --- XADD --------------------------------------------------------------------------------------


_ZERO: Final = (ids.MIN, False)


def _resolve_id(stream: Stream, wanted: tuple[int, bool] | None, now: int) -> int:
    if wanted is None:
        return stream.next_id(now)
    entry_id, open_sequence = wanted
    if open_sequence:
        return stream.next_in(entry_id >> 64)
    return stream.require_above_last(entry_id)


@command(
    "XADD",
    flags="write denyoom fast",
    since="5.0.0",
    summary="Appends an entry to a stream, creating the stream if needed.",
    complexity="O(1) to add an entry; O(N) for N entries trimmed.",
    syntax="key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [IDMPAUTO pid | IDMP pid iid]"
    " [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
    keys=[KeySpec("RW update", notes="may trim what is there, so it updates")],
    tips=["nondeterministic_output"],
    history=[
        ("6.2.0", "NOMKSTREAM, MINID and LIMIT."),
        ("7.0.0", "IDs of the form <ms>-*."),
        ("8.2.0", "KEEPREF, DELREF and ACKED."),
        ("8.6.0", "IDMP and IDMPAUTO."),
    ],
)
def xadd(server: Services, session: Session, args: Arguments) -> Reply:
    """The new entry's ID; null with NOMKSTREAM if there is no stream. With an idempotent ID that is
    known, the ID of its entry."""
    db = session.db
    keyspace = db.keyspace
    plain = args[2] == b"*" and len(args) % 2
    addition = PLAIN if plain else addition_of(args, keyspace.limits)
    key = args[1]
    if addition.entry_id == _ZERO:
        raise CommandError(stream_errors.XADD_ID_ZERO)
    stream = db.stream(key)
    if stream is None and not addition.make:
        return None
    items = args[addition.at + 1 :]
    if addition.idempotency is not None and stream is not None:
        duplicate = known_entry(addition.idempotency, db, key, stream, items)
        if duplicate is not None:
            return duplicate
    created = stream is None
    if stream is None:
        stream = Stream(keyspace.limits)
    before = stream.last_id
    entry_id = _resolve_id(stream, addition.entry_id, keyspace.now_ms)
    payload = stream.add(entry_id, items)
    if created:
        db.attach(key, stream)
    db.emit(EntryAdded(db.index, key, entry_id, payload, created))
    if server.policies.active:
        server.policies.make_groups(db, key, stream, before)
    if addition.idempotency is not None:
        record_addition(addition.idempotency, db, key, stream, items, entry_id)
    if addition.trim is not None:
        trim_key(db, key, stream, addition.trim)
    return Encoded(id_of(payload))


# --- runs of a transaction ---------------------------------------------------------------------


LONGEST_RUN: Final = 2**30
"""How many entries a run has at most."""
_NEARLY_EXHAUSTED: Final = ids.MAX - LONGEST_RUN

Queue = list[tuple[Command, Arguments]]


def open_stream(db: Database, key: bytes, now_ms: int) -> Stream | None:
    """The stream to which a run may be added now, which counts as a use of it; ``None`` if each
    entry needs a look of its own, because the stream is not there or its IDs may run out."""
    stream = db.values.get(key)
    if type(stream) is not Stream or not stream.is_below(_NEARLY_EXHAUSTED):
        return None
    if db.expires and db.expires.get(key, now_ms + 1) <= now_ms:
        return None
    stream.used_ms = db.keyspace.now_ms
    return stream


def _is_possible(server: Services, session: Session, command: Command, args: Arguments) -> bool:
    """Whether nobody looks at each command of the client, or at what each of them changes, and its
    user may run this one, and so all that add to the same key."""
    why = server.state.reasons | session.reasons
    return not why & EACH and (not why & LIMITED or session.account.permits(command, args))


def add_queued(server: Services, session: Session, queue: Queue, at: int) -> list[bytes] | None:
    """Runs the XADDs of a transaction that stand at ``at`` and belong to one run; returns their
    replies. ``None`` if there are not at least two, or they have to run one by one."""
    command, args = queue[at]
    words = len(args)
    if words % 2 == 0 or args[2] != b"*" or at + 1 == len(queue):
        return None
    key = args[1]
    if not _belongs(queue[at + 1], command, words, key):
        return None
    # A command of the transaction may have changed that.
    if not _is_possible(server, session, command, args):
        return None
    db = session.db
    watch = server.state.stopwatch
    started = watch.ns
    stream = open_stream(db, key, db.keyspace.now_ms)
    if stream is None:
        return None
    names: list[bytes] | None = args[3::2]
    head = len(b"*%d\r\n" % (words - 3))
    pieces: list[bytes] = []
    end = at
    while end < len(queue) and _belongs(queue[end], command, words, key):
        items = queue[end][1][3:]
        if items[::2] != names:
            names = None
        pieces.append(pack(tuple(items))[head:])
        end += 1
    bulks: list[bytes] | None = None if names is None else [bulk(name) for name in names]
    run = Run(stream.next_id(db.keyspace.now_ms), words // 2 - 1, bulks, pieces)
    stream.add_run(run)
    db.emit(EntriesAdded(db.index, key, run, True))
    server.reactions.apply(session)
    timings = server.state.timings
    mean = timings.count_run(command, end - at, watch.tick() - started)
    if mean >= timings.threshold:
        for _, args in queue[at:end]:
            timings.notice(session, command, args, mean)
    return run.texts


def _belongs(queued: tuple[Command, Arguments], command: Command, words: int, key: bytes) -> bool:
    other, args = queued
    return other is command and len(args) == words and args[1] == key and args[2] == b"*"
