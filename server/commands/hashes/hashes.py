"""Hashes: setting fields, getting them, counting in them, walking through them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Final

from protocol import errors
from protocol.encoder import array_line, bulk, bulk_pairs
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, OK, Reply
from server.commands.declare import command
from server.commands.hashes import errors as hash_errors
from server.commands.keys.random_picks import PickCount, index_first
from server.commands.keys.scan_options import (
    NOTHING_LEFT,
    ScanOptions,
    page_of_elements,
    scan_cursor,
)
from server.commands.strings import errors as string_errors
from server.core.outcomes import FEW_TEXTS, Outcome, write_texts
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, INT64_MIN, integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import HASH, Events
from storage.types.collection import Words
from storage.types.hash import FIELDS, HSET, Hash

_READ: Final = [KeySpec("RO access")]
_LOOK: Final = [KeySpec("RO")]
SET: Final[Events] = ((HASH, "hset"),)
DELETED: Final[Events] = ((HASH, "hdel"),)
_COUNTED: Final[Events] = ((HASH, "hincrby"),)
_COUNTED_WITH_DECIMALS: Final[Events] = ((HASH, "hincrbyfloat"),)

_setter = partial(command, flags="write denyoom fast")
_getter = partial(command, flags="readonly fast", keys=_READ)
_lister = partial(command, flags="readonly", keys=_READ, complexity="O(N) in the number of fields.")


def hash_to_read(session: Session, key: bytes) -> Hash | None:
    """The hash at a key for a command that reads; raises :class:`WrongType`."""
    return session.db.collection_to_read(key, Hash, touch=not session.no_touch)


# --- setting ---------------------------------------------------------------------------------


@_setter(
    "HSET",
    since="2.0.0",
    summary="Gives fields of a hash their values.",
    complexity="O(N) in the number of fields.",
    syntax="key field value [field value ...]",
    keys=[KeySpec("RW update")],
    history=[("4.0.0", "Several fields at once.")],
)
def hset(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of the fields are new."""
    return _set(session, args, "hset")


@_setter(
    "HMSET",
    since="2.0.0",
    summary="Gives fields of a hash their values.",
    complexity="O(N) in the number of fields.",
    syntax="key field value [field value ...]",
    keys=[KeySpec("RW update")],
    deprecated=("4.0.0", "`HSET` with several fields"),
)
def hmset(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    _set(session, args, "hmset")
    return OK


def _set(session: Session, args: Arguments, name: str) -> int:
    if len(args) % 2:
        raise CommandError(errors.wrong_arity(name))
    database, key = session.db, args[1]
    value = database.collection_to_fill(key, Hash)
    created = 0
    for at in range(2, len(args), 2):
        created += value.set(args[at], args[at + 1])
    args[0] = HSET
    database.changed(key, value, tuple(args), SET, weight=len(args) // 2 - 1)
    return created


@_setter(
    "HSETNX",
    since="2.0.0",
    summary="Gives a field of a hash a value, if there is no such field.",
    syntax="key field value",
    keys=[KeySpec("RW insert")],
)
def hsetnx(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the field was set, 0 if there is one."""
    _, key, field, text = args
    value = session.db.collection_to_fill(key, Hash)
    if field in value.fields:
        return 0
    value.set(field, text)
    session.db.changed(key, value, (HSET, key, field, text), SET)
    return 1


@command(
    "HDEL",
    flags="write fast",
    since="2.0.0",
    summary="Removes fields of a hash, and the key with the last of them.",
    complexity="O(N) in the number of fields that are named.",
    syntax="key field [field ...]",
    keys=[KeySpec("RW delete")],
    history=[("2.4.0", "Several fields at once.")],
)
def hdel(server: Services, session: Session, args: Arguments) -> Reply:
    """How many fields were removed."""
    value = session.db.collection(args[1], Hash)
    return 0 if value is None else remove_fields(session, args[1], value, args[2:], DELETED)


def remove_fields(
    session: Session, key: bytes, value: Hash, fields: Iterable[bytes], events: Events
) -> int:
    """Removes fields, tells so, and returns how many there were."""
    gone = [field for field in fields if value.remove(field)]
    if gone:
        session.db.changed(key, value, (b"HDEL", key, *gone), events, weight=len(gone))
    return len(gone)


# --- counting --------------------------------------------------------------------------------


@_setter(
    "HINCRBY",
    since="2.0.0",
    summary="Adds to the integer in a field of a hash; no field counts as 0.",
    syntax="key field increment",
    keys=[KeySpec("RW access update")],
)
def hincrby(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum."""
    _, key, field, text = args
    increment = integer(text)
    value = session.db.collection_to_fill(key, Hash)
    present = value.fields.get(field)
    total = increment
    if present is not None:
        total += integer(present, hash_errors.NOT_AN_INTEGER)
    if not INT64_MIN <= total <= INT64_MAX:
        raise CommandError(string_errors.INCREMENT_OVERFLOW)
    value.edit(field, b"%d" % total)
    session.db.changed(key, value, (b"HINCRBY", key, field, text), _COUNTED)
    return total


@_setter(
    "HINCRBYFLOAT",
    since="2.6.0",
    summary="Adds to the number in a field of a hash, with decimal places; no field counts as 0.",
    syntax="key field increment",
    keys=[KeySpec("RW access update")],
)
def hincrbyfloat(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum as a string."""
    from server.commands.strings import long_double

    _, key, field, text = args
    try:
        finite = long_double.parse(text) is not None
    except ValueError:
        raise CommandError(errors.NOT_A_FLOAT) from None
    if not finite:
        raise CommandError(hash_errors.INFINITE_INCREMENT)
    value = session.db.collection_to_fill(key, Hash)
    try:
        total = long_double.add(value.fields.get(field, b"0"), text)
    except ValueError:
        raise CommandError(hash_errors.NOT_A_FLOAT) from None
    except OverflowError:
        raise CommandError(string_errors.INCREMENT_NOT_FINITE) from None
    value.edit(field, total)
    words: Words = (HSET, key, field, total)
    if field in value.times:
        words = (b"HSETEX", key, b"KEEPTTL", FIELDS, b"1", field, total)
    session.db.changed(key, value, words, _COUNTED_WITH_DECIMALS)
    return bulk(total)


# --- getting ---------------------------------------------------------------------------------


def text_or_null(text: bytes | None) -> Reply:
    """A string, or null."""
    return None if text is None else bulk(text)


@_getter(
    "HGET",
    since="2.0.0",
    summary="Gets the value of a field of a hash.",
    syntax="key field",
)
def hget(server: Services, session: Session, args: Arguments) -> Reply:
    """The value, or null."""
    value = hash_to_read(session, args[1])
    return None if value is None else text_or_null(value.fields.get(args[2]))


@_getter(
    "HMGET",
    since="2.0.0",
    summary="Gets the values of fields of a hash.",
    complexity="O(N) in the number of fields that are named.",
    syntax="key field [field ...]",
)
def hmget(server: Services, session: Session, args: Arguments) -> Reply:
    """The value of each field, or null."""
    value = hash_to_read(session, args[1])
    return [text_or_null(None if value is None else value.fields.get(each)) for each in args[2:]]


@_getter(
    "HSTRLEN",
    since="3.2.0",
    summary="Tells how long the value of a field of a hash is.",
    syntax="key field",
    keys=_LOOK,
)
def hstrlen(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of bytes; 0 for no field."""
    value = hash_to_read(session, args[1])
    return 0 if value is None else len(value.fields.get(args[2], b""))


@_getter(
    "HEXISTS",
    since="2.0.0",
    summary="Tells whether a hash has a field.",
    syntax="key field",
    keys=_LOOK,
)
def hexists(server: Services, session: Session, args: Arguments) -> Reply:
    """1 or 0."""
    value = hash_to_read(session, args[1])
    return int(value is not None and args[2] in value.fields)


@_getter(
    "HLEN", since="2.0.0", summary="Tells how many fields a hash has.", syntax="key", keys=_LOOK
)
def hlen(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of fields; 0 for no key."""
    value = hash_to_read(session, args[1])
    return 0 if value is None else len(value)


# --- all of it -------------------------------------------------------------------------------


@_lister(
    "HGETALL",
    since="2.0.0",
    summary="Lists the fields of a hash with their values.",
    syntax="key",
    tips=("nondeterministic_output_order",),
)
def hgetall(server: Services, session: Session, args: Arguments) -> Outcome:
    """A map of all fields."""
    value = hash_to_read(session, args[1])
    fields = {} if value is None else value.fields
    head = b"%%%d" % len(fields) if session.resp3 else array_line(2 * len(fields))
    if 2 * len(fields) <= FEW_TEXTS:
        return bulk_pairs(head, fields)
    return write_texts(head, [*chain.from_iterable(fields.items())])


@_lister(
    "HKEYS",
    since="2.0.0",
    summary="Lists the fields of a hash.",
    syntax="key",
    tips=("nondeterministic_output_order",),
)
def hkeys(server: Services, session: Session, args: Arguments) -> Outcome:
    """Each field."""
    value = hash_to_read(session, args[1])
    texts = [] if value is None else list(value.fields)
    return write_texts(b"*%d" % len(texts), texts)


@_lister(
    "HVALS",
    since="2.0.0",
    summary="Lists the values of a hash.",
    syntax="key",
    tips=("nondeterministic_output_order",),
)
def hvals(server: Services, session: Session, args: Arguments) -> Outcome:
    """The value of each field."""
    value = hash_to_read(session, args[1])
    texts = [] if value is None else list(value.fields.values())
    return write_texts(b"*%d" % len(texts), texts)


@command(
    "HSCAN",
    flags="readonly",
    since="2.8.0",
    summary="Walks through the fields of a hash a page at a time.",
    complexity="O(N) in the number of fields a call looks at.",
    syntax="key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
    keys=_READ,
    tips=("nondeterministic_output",),
    history=[("7.4.0", "The `NOVALUES` option.")],
)
def hscan(server: Services, session: Session, args: Arguments) -> Outcome:
    """The cursor to go on with (0: there is nothing more), and the fields of this page."""
    cursor = scan_cursor(args[2])
    value = hash_to_read(session, args[1])
    if value is None:
        return NOTHING_LEFT
    options = ScanOptions(args, 3, valued=True)
    fields, has_values = value.fields, options.has_values

    def texts(field: bytes) -> list[bytes]:
        text = fields.get(field)
        if text is None:
            return []
        return [bulk(field), bulk(text)] if has_values else [bulk(field)]

    return page_of_elements(cursor, options, value, texts, at_once=value.is_small)


# --- at random -------------------------------------------------------------------------------


@command(
    "HRANDFIELD",
    flags="readonly",
    since="6.2.0",
    summary="Picks fields of a hash at random.",
    complexity="O(N) in the number of fields that are picked.",
    syntax="key [count [WITHVALUES]]",
    keys=_READ,
    tips=("nondeterministic_output",),
)
def hrandfield(server: Services, session: Session, args: Arguments) -> Outcome:
    """A field, or null; with a count so many, which may repeat themselves if it is negative."""
    wanted = PickCount(args, b"WITHVALUES") if len(args) > 2 else None
    value = hash_to_read(session, args[1])
    if value is None:
        return EMPTY_ARRAY if wanted else None
    count = wanted.count if wanted else 1
    if steps := index_first(hrandfield, server, session, args, value, count):
        return steps
    if wanted is None:
        return bulk(value.members.pick())
    fields = value.fields.copy() if wanted.is_long else value.fields
    return wanted.reply(value.members, lambda field: bulk(fields[field]), session.resp3)
