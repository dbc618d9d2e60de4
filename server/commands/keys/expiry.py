"""When keys expire: setting it, asking for it, taking it away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import expiry_time
from server.services import Services
from server.state.session import Session

_UPDATED: Final = [KeySpec("RW update")]
_OPTIONS: Final = "[NX | XX | GT | LT]"
_FLAGS: Final = frozenset({b"NX", b"XX", b"GT", b"LT"})

_NO_KEY: Final = -2
_NO_EXPIRY: Final = -1

_setter = partial(
    command,
    flags="write fast",
    keys=_UPDATED,
    history=[("7.0.0", "The options `NX`, `XX`, `GT` and `LT`.")],
)
_teller = partial(command, flags="readonly fast", syntax="key", keys=[KeySpec("RO access")])


# --- setting ---------------------------------------------------------------------------------


@_setter(
    "EXPIRE",
    since="1.0.0",
    summary="Lets a key expire after some seconds.",
    syntax=f"key seconds {_OPTIONS}",
)
def expire(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key will expire then, 0 if there is no key or an option forbids it."""
    return _expire(session, args, "expire", 1000, session.db.keyspace.now_ms)


@_setter(
    "PEXPIRE",
    since="2.6.0",
    summary="Lets a key expire after some milliseconds.",
    syntax=f"key milliseconds {_OPTIONS}",
)
def pexpire(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key will expire then, 0 if there is no key or an option forbids it."""
    return _expire(session, args, "pexpire", 1, session.db.keyspace.now_ms)


@_setter(
    "EXPIREAT",
    since="1.2.0",
    summary="Lets a key expire at a Unix time.",
    syntax=f"key unix-time-seconds {_OPTIONS}",
)
def expireat(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key will expire then, 0 if there is no key or an option forbids it."""
    return _expire(session, args, "expireat", 1000, 0)


@_setter(
    "PEXPIREAT",
    since="2.6.0",
    summary="Lets a key expire at a Unix time in milliseconds.",
    syntax=f"key unix-time-milliseconds {_OPTIONS}",
)
def pexpireat(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key will expire then, 0 if there is no key or an option forbids it."""
    return _expire(session, args, "pexpireat", 1, 0)


def _expire(session: Session, args: Arguments, name: str, unit_ms: int, since_ms: int) -> int:
    """Sets an expiry; one that is not in the future deletes the key."""
    flags = _condition(args[3:])
    at = expiry_time(args[2], unit_ms, since_ms, name)
    database, key = session.db, args[1]
    if database.use(key) is None or not _allows(flags, database.expires.get(key), at):
        return 0
    database.expire_at(key, at)
    return 1


def _condition(options: list[bytes]) -> frozenset[bytes]:
    """The flags among NX, XX, GT and LT that are given."""
    for option in options:
        if option.upper() not in _FLAGS:
            raise CommandError(key_errors.unsupported_option(option))
    flags = frozenset(option.upper() for option in options)
    if b"NX" in flags and len(flags) > 1:
        raise CommandError(key_errors.EXPIRE_NX_WITH_OTHERS)
    if {b"GT", b"LT"} <= flags:
        raise CommandError(key_errors.EXPIRE_GT_WITH_LT)
    return flags


def _allows(flags: frozenset[bytes], current: int | None, at: int) -> bool:
    """Whether the expiry may change from ``current`` to ``at``; none is later than any."""
    if b"NX" in flags:
        return current is None
    if b"XX" in flags and current is None:
        return False
    if b"GT" in flags:
        return current is not None and at > current
    return b"LT" not in flags or current is None or at < current


@command(
    "PERSIST",
    flags="write fast",
    since="2.2.0",
    summary="Takes a key's expiry away.",
    syntax="key",
    keys=_UPDATED,
)
def persist(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key had an expiry, else 0."""
    return int(session.db.persist(args[1]))


# --- asking ----------------------------------------------------------------------------------


def _tell(session: Session, key: bytes, shown: Callable[[int], int]) -> int:
    """Return what ``shown`` makes of the key's expiry, -1 if it has none, -2 if there is no key."""
    if session.db.read(key, touch=False) is None:
        return _NO_KEY
    at = session.db.expires.get(key)
    return _NO_EXPIRY if at is None else shown(at)


def _seconds(milliseconds: int) -> int:
    return (milliseconds + 500) // 1000


@_teller(
    "TTL",
    since="1.0.0",
    summary="Tells in how many seconds a key expires.",
    tips=("nondeterministic_output",),
    history=[("2.8.0", "The reply -2.")],
)
def ttl(server: Services, session: Session, args: Arguments) -> Reply:
    """Seconds, rounded to the nearest; -1 for a key that never expires, -2 for no key."""
    now = session.db.keyspace.now_ms
    return _tell(session, args[1], lambda at: _seconds(at - now))


@_teller(
    "PTTL",
    since="2.6.0",
    summary="Tells in how many milliseconds a key expires.",
    tips=("nondeterministic_output",),
    history=[("2.8.0", "The reply -2.")],
)
def pttl(server: Services, session: Session, args: Arguments) -> Reply:
    """Milliseconds; -1 for a key that never expires, -2 for no key."""
    now = session.db.keyspace.now_ms
    return _tell(session, args[1], lambda at: at - now)


@_teller("EXPIRETIME", since="7.0.0", summary="Tells the Unix time at which a key expires.")
def expiretime(server: Services, session: Session, args: Arguments) -> Reply:
    """The Unix time in seconds; -1 for a key that never expires, -2 for no key."""
    return _tell(session, args[1], _seconds)


@_teller(
    "PEXPIRETIME",
    since="7.0.0",
    summary="Tells the Unix time in milliseconds at which a key expires.",
)
def pexpiretime(server: Services, session: Session, args: Arguments) -> Reply:
    """The Unix time in milliseconds; -1 for a key that never expires, -2 for no key."""
    return _tell(session, args[1], lambda at: at)
