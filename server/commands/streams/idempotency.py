# Compiled by mypyc.
"""Idempotent producing: what XADD does with an IDMP option, XCFGSET and XIDMPRECORD."""

from __future__ import annotations

from collections.abc import Sequence

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import OK, Encoded, Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.commands.streams.add_options import IdempotencyOption
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from storage.engine import ids
from storage.engine.effects import DuplicateSuppressed, IdempotencyConfigured, IdempotentIDRecorded
from storage.engine.idempotency import content_iid
from storage.engine.stream import Stream
from storage.keyspace.databases import Database


def known_entry(
    option: IdempotencyOption, db: Database, key: bytes, stream: Stream, items: Sequence[bytes]
) -> Encoded | None:
    """The ID of the entry that an XADD with the option has added before, ``None`` if it has not."""
    table = stream.idempotency
    known = table.find(option.producer, _iid(option, items), db.keyspace.now_ms)
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
    identity: int,
) -> None:
    """Notes that an XADD with the option has added the entry ``identity``."""
    record_iid(db, key, stream, option.producer, _iid(option, items), identity)


def _iid(option: IdempotencyOption, items: Sequence[bytes]) -> bytes:
    return content_iid(items) if option.iid is None else option.iid


def record_iid(
    db: Database, key: bytes, stream: Stream, producer: bytes, iid: bytes, identity: int
) -> None:
    """Records an idempotent ID; raises :class:`IdempotentIDTaken` if it stands for another."""
    now = db.keyspace.now_ms
    if stream.idempotency.record(producer, iid, identity, now):
        db.emit(IdempotentIDRecorded(db.index, key, producer, iid, identity, now))


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
    """XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE count]: OK."""
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
    """XIDMPRECORD key pid iid id: OK, also if that is recorded already."""
    _, key, producer, iid, text = args
    if not producer:
        raise CommandError(stream_errors.XIDMPRECORD_EMPTY_PRODUCER)
    if not iid:
        raise CommandError(stream_errors.XIDMPRECORD_EMPTY_ID)
    identity = ids.parse(text)
    stream = session.db.stream(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if stream.log.get(identity) is None:
        raise CommandError(stream_errors.IDMP_NO_ENTRY)
    record_iid(session.db, key, stream, producer, iid, identity)
    return OK
