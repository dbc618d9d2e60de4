"""Strings that count."""

from __future__ import annotations

from functools import partial

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, INT64_MIN, integer
from server.services import Services
from server.state.session import Session
from storage.types.strings import LONGEST_EMBEDDED

_counter = partial(command, flags="write denyoom fast", keys=[KeySpec("RW access update")])


@_counter(
    "INCR",
    since="1.0.0",
    summary="Adds one to the integer at a key; no key counts as 0.",
    syntax="key",
)
def incr(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum."""
    return _add(session, args[1], 1)


@_counter(
    "DECR",
    since="1.0.0",
    summary="Takes one from the integer at a key; no key counts as 0.",
    syntax="key",
)
def decr(server: Services, session: Session, args: Arguments) -> Reply:
    """The difference."""
    return _add(session, args[1], -1)


@_counter(
    "INCRBY",
    since="1.0.0",
    summary="Adds to the integer at a key; no key counts as 0.",
    syntax="key increment",
)
def incrby(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum."""
    return _add(session, args[1], integer(args[2]))


@_counter(
    "DECRBY",
    since="1.0.0",
    summary="Takes from the integer at a key; no key counts as 0.",
    syntax="key decrement",
)
def decrby(server: Services, session: Session, args: Arguments) -> Reply:
    """The difference."""
    decrement = integer(args[2])
    if decrement == INT64_MIN:
        raise CommandError(string_errors.DECREMENT_OVERFLOW)
    return _add(session, args[1], -decrement)


def _add(session: Session, key: bytes, increment: int) -> int:
    database = session.db
    value = database.string(key)
    total = (0 if value is None else integer(value)) + increment
    if not INT64_MIN <= total <= INT64_MAX:
        raise CommandError(string_errors.INCREMENT_OVERFLOW)
    database.set_string(key, b"%d" % total, database.expires.get(key), "incrby")
    return total


@_counter(
    "INCRBYFLOAT",
    since="2.6.0",
    summary="Adds to the number at a key, with decimal places; no key counts as 0.",
    syntax="key increment",
)
def incrbyfloat(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum as a string."""
    from server.commands.strings import long_double

    database, key = session.db, args[1]
    value = database.string(key)
    try:
        total = long_double.add(b"0" if value is None else value, args[2])
    except ValueError:
        raise CommandError(errors.NOT_A_FLOAT) from None
    except OverflowError:
        raise CommandError(string_errors.INCREMENT_NOT_FINITE) from None
    encoding = "embstr" if len(total) <= LONGEST_EMBEDDED else None
    database.set_string(key, total, database.expires.get(key), "incrbyfloat", encoding)
    return bulk(total)
