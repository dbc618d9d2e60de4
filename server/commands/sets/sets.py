"""Sets: members added, removed, asked for, picked at random, walked through."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, Reply
from server.commands.declare import command
from server.commands.keys.random_picks import PickCount, index_first
from server.commands.keys.scan_options import (
    NOTHING_LEFT,
    ScanOptions,
    page_of_elements,
    scan_cursor,
)
from server.core.outcomes import Outcome, write_texts
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import parse_integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import SET, Events
from storage.types.collection import Words
from storage.types.set import SADD, SetValue

SREM: Final = b"SREM"

_ADDED: Final[Events] = ((SET, "sadd"),)
_REMOVED: Final[Events] = ((SET, "srem"),)
_POPPED: Final[Events] = ((SET, "spop"),)

_READ: Final = [KeySpec("RO access")]
_getter = partial(command, flags="readonly fast", keys=[KeySpec("RO")])


def set_to_read(session: Session, key: bytes) -> SetValue | None:
    """The set at a key for a command that reads; raises :class:`WrongType`."""
    return session.db.collection_to_read(key, SetValue, touch=not session.no_touch)


# --- adding and removing ---------------------------------------------------------------------


@command(
    "SADD",
    flags="write denyoom fast",
    since="1.0.0",
    summary="Adds members to a set.",
    complexity="O(N) in the number of members that are named.",
    syntax="key member [member ...]",
    keys=[KeySpec("RW insert")],
    history=[("2.4.0", "Several members at once.")],
)
def sadd(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of the members are new."""
    key = args[1]
    value = session.db.collection_to_fill(key, SetValue)
    added = 0
    value.expect(args[2], len(args) - 2)
    for at in range(2, len(args)):
        added += value.add(args[at])
    if added:
        args[0] = SADD
        session.db.changed(key, value, tuple(args), _ADDED, weight=added)
    return added


@command(
    "SREM",
    flags="write fast",
    since="1.0.0",
    summary="Removes members of a set, and the key with the last of them.",
    complexity="O(N) in the number of members that are named.",
    syntax="key member [member ...]",
    keys=[KeySpec("RW delete")],
    history=[("2.4.0", "Several members at once.")],
)
def srem(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were removed."""
    key = args[1]
    value = session.db.collection(key, SetValue)
    if value is None:
        return 0
    gone = [member for member in args[2:] if value.remove(member)]
    if gone:
        session.db.changed(key, value, (SREM, key, *gone), _REMOVED, weight=len(gone))
    return len(gone)


@command(
    "SMOVE",
    flags="write fast",
    since="1.0.0",
    summary="Moves a member from one set to another.",
    syntax="source destination member",
    keys=[KeySpec("RW access delete"), KeySpec("RW insert", index=2)],
)
def smove(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the member was there and is in the other set now, else 0."""
    database = session.db
    _, source, destination, member = args
    value = database.collection(source, SetValue)
    if value is None:
        return 0
    other = database.collection_to_fill(destination, SetValue)
    if source == destination:
        return int(member in value)
    if not value.remove(member):
        return 0
    database.changed(source, value, (SREM, source, member), _REMOVED)
    other.expect(member, 1)
    if other.add(member):
        database.changed(destination, other, (SADD, destination, member), _ADDED)
    return 1


# --- asking ----------------------------------------------------------------------------------


@_getter("SCARD", since="1.0.0", summary="Tells how many members a set has.", syntax="key")
def scard(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of members; 0 for no key."""
    value = set_to_read(session, args[1])
    return 0 if value is None else len(value)


@_getter(
    "SISMEMBER",
    since="1.0.0",
    summary="Tells whether a set has a member.",
    syntax="key member",
)
def sismember(server: Services, session: Session, args: Arguments) -> Reply:
    """1 or 0."""
    value = set_to_read(session, args[1])
    return int(value is not None and args[2] in value)


@_getter(
    "SMISMEMBER",
    since="6.2.0",
    summary="Tells which members a set has.",
    complexity="O(N) in the number of members that are named.",
    syntax="key member [member ...]",
    keys=_READ,
)
def smismember(server: Services, session: Session, args: Arguments) -> Reply:
    """1 or 0 for each member."""
    value = set_to_read(session, args[1])
    return [int(value is not None and member in value) for member in args[2:]]


@command(
    "SMEMBERS",
    flags="readonly",
    since="1.0.0",
    summary="Lists the members of a set.",
    complexity="O(N) in the number of members.",
    syntax="key",
    keys=_READ,
    tips=("nondeterministic_output_order",),
)
def smembers(server: Services, session: Session, args: Arguments) -> Outcome:
    """Each member."""
    value = set_to_read(session, args[1])
    return members_reply(session, [] if value is None else list(value.ordered()))


def members_reply(session: Session, members: Collection[bytes]) -> Outcome:
    """Members as a set."""
    head = b"~%d" if session.resp3 else b"*%d"
    return write_texts(head % len(members), [*members])


@command(
    "SSCAN",
    flags="readonly",
    since="2.8.0",
    summary="Walks through the members of a set a page at a time.",
    complexity="O(N) in the number of members a call looks at.",
    syntax="key cursor [MATCH pattern] [COUNT count]",
    keys=_READ,
    tips=("nondeterministic_output",),
)
def sscan(server: Services, session: Session, args: Arguments) -> Outcome:
    """The cursor to go on with (0: there is nothing more), and the members of this page."""
    cursor = scan_cursor(args[2])
    value = set_to_read(session, args[1])
    if value is None:
        return NOTHING_LEFT
    names = value.ordered()

    def texts(member: bytes) -> list[bytes]:
        return [bulk(member)] if member in names else []

    options = ScanOptions(args, 3)
    return page_of_elements(cursor, options, value, texts, at_once=value.is_small)


# --- at random -------------------------------------------------------------------------------


@command(
    "SPOP",
    flags="write fast",
    since="1.0.0",
    summary="Removes members of a set at random.",
    complexity="O(N) in the number of members that are removed.",
    syntax="key [count]",
    keys=[KeySpec("RW access delete")],
    tips=("nondeterministic_output",),
    history=[("3.2.0", "The `count` argument.")],
)
def spop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The member, or null; with a count a set of as many."""
    if len(args) > 3:
        raise CommandError(errors.SYNTAX)
    count = parse_integer(args[2]) if len(args) == 3 else 1
    if count is None or count < 0:
        raise CommandError(errors.MUST_BE_POSITIVE)
    key = args[1]
    value = session.db.collection(key, SetValue)
    if value is None:
        return members_reply(session, []) if len(args) == 3 else None
    if steps := index_first(spop, server, session, args, value, count, writes=True):
        return steps
    value.ordered()
    picks = value.members.picks(count)
    value.remove_all(picks)
    if picks:
        words: Words = (SREM, key, *picks) if len(value) else (b"DEL", key)
        session.db.changed(key, value, words, _POPPED, weight=len(picks))
    return members_reply(session, picks) if len(args) == 3 else bulk(picks[0])


@command(
    "SRANDMEMBER",
    flags="readonly",
    since="1.0.0",
    summary="Picks members of a set at random.",
    complexity="O(N) in the number of members that are picked.",
    syntax="key [count]",
    keys=_READ,
    tips=("nondeterministic_output",),
    history=[("2.6.0", "The `count` argument.")],
)
def srandmember(server: Services, session: Session, args: Arguments) -> Outcome:
    """A member, or null; with a count so many, which may repeat themselves if it is negative."""
    wanted = PickCount(args) if len(args) > 2 else None
    value = set_to_read(session, args[1])
    if value is None:
        return EMPTY_ARRAY if wanted else None
    count = wanted.count if wanted else 1
    if steps := index_first(srandmember, server, session, args, value, count):
        return steps
    if wanted is None:
        return bulk(value.members.pick())
    value.ordered()
    return wanted.reply(value.members, bulk, session.resp3)
