"""Plain strings: setting and getting them, parts of them, and their digests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from xxhash import xxh3_64_intdigest

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.set_options import (
    COMPARISONS,
    EXISTENCE,
    Lifetime,
    SetCondition,
    SetOptions,
    positive_expiry_time,
    set_key_flags,
)
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT32_MAX, integer, parse_integer
from server.services import Services
from server.state.session import Session
from storage.errors import WrongType
from storage.keyspace.databases import Database
from storage.types.kinds import Value

_LIFETIMES: Final = (
    "EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds"
)
_READ: Final = [KeySpec("RO access")]
_OVERWRITTEN: Final = [KeySpec("OW update")]


def _string(value: bytes | None) -> Reply:
    return None if value is None else bulk(value)


# --- setting ---------------------------------------------------------------------------------


@command(
    "SET",
    flags="write denyoom",
    since="1.0.0",
    summary="Puts a string at a key, whatever was there.",
    complexity="O(1); O(N) in the length of the present string for IFDEQ and IFDNE.",
    syntax="key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest |"
    f" IFDNE ifdne-digest] [GET] [{_LIFETIMES} | KEEPTTL]",
    keys=[
        KeySpec(
            "RW access update variable_flags",
            notes="with GET the old value is read",
            vary=set_key_flags,
        )
    ],
    history=[
        ("2.6.12", "The options `EX`, `PX`, `NX` and `XX`."),
        ("6.0.0", "The option `KEEPTTL`."),
        ("6.2.0", "The options `GET`, `EXAT` and `PXAT`."),
        ("7.0.0", "`NX` and `GET` together."),
        ("8.4.0", "The options `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`."),
    ],
)
def set_(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, or null if the condition is not met; with GET the string that was there."""
    if len(args) == 3:
        session.db.set_string(args[1], args[2])
        return OK
    return _set_with_options(session, args[1], args[2], SetOptions(args))


def _set_with_options(session: Session, key: bytes, value: bytes, options: SetOptions) -> Reply:
    database = session.db
    expires_at = options.lifetime.expires_at(database.keyspace.now_ms, "set")
    event = "set" if expires_at is None else "set expire"
    previous = _previous(session, key, options)
    if options.condition.met_by(previous):
        if options.lifetime.is_without:
            expires_at = database.expires.get(key)
        database.set_string(key, value, expires_at, event)
    elif not options.get:
        return None
    return _string(previous) if options.get else OK  # type: ignore[arg-type]


def _previous(session: Session, key: bytes, options: SetOptions) -> Value | None:
    """Return what is at the key; it must be a string if it is answered with or compared."""
    if options.get:
        return session.db.string_to_read(key, touch=not session.no_touch)
    return session.db.string(key) if options.condition.compares else session.db.get(key)


@command(
    "SETNX",
    flags="write denyoom fast",
    since="1.0.0",
    summary="Puts a string at a key that does not exist.",
    syntax="key value",
    keys=[KeySpec("OW insert")],
    deprecated=("2.6.12", "`SET` with the option `NX`"),
)
def setnx(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the string was set, 0 if the key exists."""
    if session.db.get(args[1]) is not None:
        return 0
    session.db.set_string(args[1], args[2])
    return 1


@command(
    "SETEX",
    flags="write denyoom",
    since="2.0.0",
    summary="Puts a string that expires after some seconds at a key.",
    syntax="key seconds value",
    keys=_OVERWRITTEN,
    deprecated=("2.6.12", "`SET` with the option `EX`"),
)
def setex(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    return _set_expiring(session, args, "setex", 1000)


@command(
    "PSETEX",
    flags="write denyoom",
    since="2.6.0",
    summary="Puts a string that expires after some milliseconds at a key.",
    syntax="key milliseconds value",
    keys=_OVERWRITTEN,
    deprecated=("2.6.12", "`SET` with the option `PX`"),
)
def psetex(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    return _set_expiring(session, args, "psetex", 1)


def _set_expiring(session: Session, args: Arguments, name: str, unit_ms: int) -> Reply:
    database = session.db
    at = positive_expiry_time(args[2], unit_ms, database.keyspace.now_ms, name)
    database.set_string(args[1], args[3], at, "set expire")
    return OK


@command(
    "MSET",
    flags="write denyoom",
    since="1.0.1",
    summary="Puts several strings at their keys at once.",
    complexity="O(N) in the number of keys.",
    syntax="key value [key value ...]",
    keys=[KeySpec("OW update", last=-1, step=2)],
    tips=("request_policy:multi_shard", "response_policy:all_succeeded"),
)
def mset(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    for key, value in _pairs(args, "mset"):
        session.db.set_string(key, value)
    return OK


@command(
    "MSETNX",
    flags="write denyoom",
    since="1.0.1",
    summary="Puts several strings at their keys at once, if none of the keys exists.",
    complexity="O(N) in the number of keys.",
    syntax="key value [key value ...]",
    keys=[KeySpec("OW insert", last=-1, step=2)],
)
def msetnx(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if all strings were set, 0 if none was."""
    pairs = _pairs(args, "msetnx")
    if any(session.db.get(key) is not None for key, _ in pairs):
        return 0
    for key, value in pairs:
        session.db.set_string(key, value)
    return 1


@command(
    "MSETEX",
    flags="write denyoom",
    since="8.4.0",
    summary="Puts several strings at their keys at once, with one expiry for all of them.",
    complexity="O(N) in the number of keys.",
    syntax=f"numkeys key value [key value ...] [NX | XX] [{_LIFETIMES} | KEEPTTL]",
    keys=[KeySpec("OW update", step=2, counted=True)],
    tips=("request_policy:multi_shard", "response_policy:all_succeeded"),
)
def msetex(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if all strings were set, 0 if none was since the condition is not met."""
    database = session.db
    pairs, options = _counted_pairs(args)
    condition, lifetime = SetCondition(EXISTENCE), Lifetime(b"KEEPTTL")
    for option in options:
        word = option.upper()
        if not (condition.take(word, options) or lifetime.take(word, options)):
            raise CommandError(errors.SYNTAX)
    expires_at = lifetime.expires_at(database.keyspace.now_ms, "msetex")
    event = "set" if expires_at is None else "set expire"
    if not all(condition.met_by(database.get(key)) for key, _ in pairs):
        return 0
    for key, value in pairs:
        at = database.expires.get(key) if lifetime.is_without else expires_at
        database.set_string(key, value, at, event)
    return 1


def _counted_pairs(args: Arguments) -> tuple[list[tuple[bytes, bytes]], Iterator[bytes]]:
    """The keys with their values, of which the first argument is the number, and the options."""
    count = parse_integer(args[1])
    if count is None or not 0 < count <= INT32_MAX:
        raise CommandError(string_errors.INVALID_NUMKEYS)
    end = 2 + 2 * count
    if end > len(args):
        raise CommandError(errors.SYNTAX)
    return list(zip(args[2:end:2], args[3:end:2], strict=True)), iter(args[end:])


def _pairs(args: Arguments, name: str) -> list[tuple[bytes, bytes]]:
    if len(args) % 2 == 0:
        raise CommandError(errors.wrong_arity(name))
    return list(zip(args[1::2], args[2::2], strict=True))


# --- getting ---------------------------------------------------------------------------------


@command(
    "GET",
    flags="readonly fast",
    since="1.0.0",
    summary="Gets the string at a key.",
    syntax="key",
    keys=_READ,
)
def get(server: Services, session: Session, args: Arguments) -> Reply:
    """The string, or null."""
    return _string(session.db.string_to_read(args[1], touch=not session.no_touch))


@command(
    "MGET",
    flags="readonly fast",
    since="1.0.0",
    summary="Gets the strings at several keys.",
    complexity="O(N) in the number of keys.",
    syntax="key [key ...]",
    keys=[KeySpec("RO access", last=-1)],
    tips=("request_policy:multi_shard",),
)
def mget(server: Services, session: Session, args: Arguments) -> Reply:
    """The strings, with null for a key that holds none."""
    touch = not session.no_touch
    values = [_string_at(session.db, key, touch) for key in args[1:]]
    return [None if value is None else Bulk(value) for value in values]


def _string_at(database: Database, key: bytes, touch: bool) -> bytes | None:
    try:
        return database.string_to_read(key, touch=touch)
    except WrongType:
        return None


@command(
    "GETDEL",
    flags="write fast",
    since="6.2.0",
    summary="Gets the string at a key and removes the key.",
    syntax="key",
    keys=[KeySpec("RW access delete")],
)
def getdel(server: Services, session: Session, args: Arguments) -> Reply:
    """The string, or null."""
    value = session.db.string_to_read(args[1])
    if value is not None:
        session.db.delete(args[1])
    return _string(value)


@command(
    "GETSET",
    flags="write denyoom fast",
    since="1.0.0",
    summary="Puts a string at a key and gets the one that was there.",
    syntax="key value",
    keys=[KeySpec("RW access update")],
    deprecated=("6.2.0", "`SET` with the option `GET`"),
)
def getset(server: Services, session: Session, args: Arguments) -> Reply:
    """The string that was there, or null."""
    previous = session.db.string_to_read(args[1])
    session.db.set_string(args[1], args[2])
    return _string(previous)


@command(
    "GETEX",
    flags="write fast",
    since="6.2.0",
    summary="Gets the string at a key and sets its expiry or takes it away.",
    syntax=f"key [{_LIFETIMES} | PERSIST]",
    keys=[KeySpec("RW access update", notes="may change the expiry")],
)
def getex(server: Services, session: Session, args: Arguments) -> Reply:
    """The string, or null; the expiry is looked at only if there is a string."""
    lifetime = Lifetime(b"PERSIST")
    options = iter(args[2:])
    for option in options:
        if not lifetime.take(option.upper(), options):
            raise CommandError(errors.SYNTAX)
    database, key = session.db, args[1]
    value = database.string_to_read(key, touch=not session.no_touch)
    if value is not None:
        expires_at = lifetime.expires_at(database.keyspace.now_ms, "getex")
        if lifetime.is_without:
            database.persist(key)
        elif expires_at is not None:
            database.expire_at(key, expires_at)
    return _string(value)


@command(
    "STRLEN",
    flags="readonly fast",
    since="2.2.0",
    summary="Tells the length of a string.",
    syntax="key",
    keys=[KeySpec("RO")],
)
def strlen(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of bytes, 0 for no key."""
    return len(session.db.buffer_to_read(args[1], touch=not session.no_touch) or b"")


# --- parts of strings --------------------------------------------------------------------------


def resolve(start: int, end: int, length: int) -> range:
    """The places between two inclusive ends, of which negative ones count from the end.

    An end that is still before the first place stands for the first, unless both are counted from
    the end and are in the wrong order."""
    if start < 0 and end < 0 and start > end:
        return range(0)
    return clamp(start, end, length)


def clamp(start: int, end: int, length: int) -> range:
    """Resolve ends as BITPOS does, which knows no wrong order until an end is the first place."""
    first = max(start + length if start < 0 else start, 0)
    last = max(end + length if end < 0 else end, 0)
    return range(first, min(last, length - 1) + 1)


_part = partial(
    command,
    flags="readonly",
    summary="Gets a part of a string.",
    complexity="O(N) in the length of the part.",
    syntax="key start end",
    keys=_READ,
)


@_part("GETRANGE", since="2.4.0")
@_part("SUBSTR", since="1.0.0", deprecated=("2.0.0", "`GETRANGE`"))
def getrange(server: Services, session: Session, args: Arguments) -> Reply:
    """The part, empty where there is nothing."""
    start, end = integer(args[2]), integer(args[3])
    buffer = session.db.buffer_to_read(args[1], touch=not session.no_touch) or b""
    part = resolve(start, end, len(buffer))
    return bulk(bytes(buffer[part.start : part.stop]))


@command(
    "SETRANGE",
    flags="write denyoom",
    since="2.2.0",
    summary="Writes over a part of a string, which grows where it is too short.",
    complexity="O(N) in the length of the value, and of the zeros before it.",
    syntax="key offset value",
    keys=[KeySpec("RW update")],
)
def setrange(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the string."""
    database, key, value = session.db, args[1], args[3]
    offset = integer(args[2])
    if offset < 0:
        raise CommandError(string_errors.OFFSET_OUT_OF_RANGE)
    present = database.buffer(key)
    if not value:
        return len(present or b"")
    _check_length(server, offset + len(value))
    return database.overwrite(key, offset, value, "setrange")


@command(
    "APPEND",
    flags="write denyoom fast",
    since="2.0.0",
    summary="Adds bytes to the end of a string; no key counts as an empty string.",
    complexity="O(N) in the length of the value.",
    syntax="key value",
    keys=[KeySpec("RW insert")],
)
def append(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the string."""
    database, key, value = session.db, args[1], args[2]
    present = database.buffer(key)
    if present is None:
        database.set_string(key, value, event="append")
        return len(value)
    _check_length(server, len(present) + len(value))
    return database.overwrite(key, len(present), value, "append")


def _check_length(server: Services, length: int) -> None:
    if length > server.state.config.proto_max_bulk_len:
        raise CommandError(string_errors.STRING_TOO_LONG)


# --- digests -----------------------------------------------------------------------------------


@command(
    "DIGEST",
    flags="readonly fast",
    since="8.4.0",
    summary="Gets the XXH3 digest of a string.",
    complexity="O(N) in the length of the string.",
    syntax="key",
    keys=[KeySpec("RO access")],
)
def digest(server: Services, session: Session, args: Arguments) -> Reply:
    """Sixteen hexadecimal digits, or null for no key.

    512 MB take 25 ms, so it is one step.
    """
    value = session.db.string_to_read(args[1], touch=not session.no_touch)
    return None if value is None else bulk(b"%016x" % xxh3_64_intdigest(value))


def _delex_flags(args: Arguments) -> str:
    """Return what a DELEX does to its key: a condition is about what is there."""
    return "RW access delete" if len(args) > 2 else "RM delete"


@command(
    "DELEX",
    flags="write fast",
    since="8.4.0",
    summary="Removes a key, if the string at it meets a condition.",
    complexity="O(1); O(N) in the length of the string for IFDEQ and IFDNE.",
    syntax="key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
    keys=[KeySpec("RW delete variable_flags", vary=_delex_flags)],
)
def delex(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key was removed, 0 if there is none or the condition is not met."""
    database, key = session.db, args[1]
    if len(args) == 2:
        return int(database.delete(key))
    if len(args) != 4:
        raise CommandError(errors.wrong_arity("delex"))
    condition = SetCondition(COMPARISONS)
    if not condition.take(args[2].upper(), iter(args[3:])):
        raise CommandError(errors.SYNTAX)
    value = database.string(key)
    return int(value is not None and condition.met_by(value) and database.delete(key))
