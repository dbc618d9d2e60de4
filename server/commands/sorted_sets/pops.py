"""The first and last members of sorted sets, removed at once or as soon as there is one."""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol import errors
from protocol.encoder import array, bulk
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NULL_ARRAY, Encoded, Reply
from server.commands.declare import command
from server.commands.keys.counted_keys import PopOptions
from server.commands.keys.waiting import blocking, wait_end
from server.commands.sorted_sets.scores import written
from server.commands.sorted_sets.selections import listed
from server.core.outcomes import Outcome
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import ZSET, Events
from storage.types.collection import Words
from storage.types.sorted_set import Items, SortedSet

_POPPED: Final[dict[bool, Events]] = {True: ((ZSET, "zpopmin"),), False: ((ZSET, "zpopmax"),)}
_ENDS: Final = (b"MIN", b"MAX")
_NAMES: Final = {True: b"ZPOPMIN", False: b"ZPOPMAX"}
"""The events and names of what is done at the low end, and at the high one."""


def _pop_one(session: Session, key: bytes, value: SortedSet, low: bool) -> bytes:
    """Removes a member at an end, and tells so; returns it and its score, encoded."""
    score, member = value.pop(low=low)
    session.db.changed(key, value, (_NAMES[low], key), _POPPED[low])
    return bulk(member) + written(score, session.resp3)


def _pop_many(session: Session, key: bytes, value: SortedSet, count: int, low: bool) -> Items:
    """Removes up to so many items at an end, and tells so; returns them from that end on."""
    length = len(value)
    most = min(count, length)
    items = value.take(0, most) if low else value.take(length - most, length)
    if len(items):
        words: Words = (_NAMES[low], key, b"%d" % len(items))
        session.db.changed(key, value, words, _POPPED[low], weight=len(items))
    if not low:
        items.reverse()
    return items


# --- at once ---------------------------------------------------------------------------------

_popper = partial(
    command,
    flags="write fast",
    since="5.0.0",
    complexity="O(M*log(N)) in the members that are removed and those of the set.",
    syntax="key [count]",
    keys=[KeySpec("RW access delete")],
)


@_popper("ZPOPMIN", summary="Removes the members of a sorted set with the lowest scores.")
def zpopmin(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members with their scores."""
    return _pop(session, args, True)


@_popper("ZPOPMAX", summary="Removes the members of a sorted set with the highest scores.")
def zpopmax(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members with their scores."""
    return _pop(session, args, False)


def _pop(session: Session, args: Arguments, low: bool) -> Outcome:
    if len(args) > 3:
        raise CommandError(errors.SYNTAX)
    count = integer(args[2], errors.MUST_BE_POSITIVE) if len(args) == 3 else 1
    if count < 0:
        raise CommandError(errors.MUST_BE_POSITIVE)
    key = args[1]
    value = session.db.collection(key, SortedSet)
    if value is None:
        return EMPTY_ARRAY
    if len(args) == 2:
        return Encoded(b"*2\r\n" + _pop_one(session, key, value, low))
    return listed(_pop_many(session, key, value, count, low), True, session.resp3)


# --- once there is one -----------------------------------------------------------------------

_waiter = partial(
    command,
    flags="write blocking fast",
    since="5.0.0",
    complexity="O(log(N)) in the members of the set.",
    syntax="key [key ...] timeout",
    keys=[KeySpec("RW access delete", last=-2)],
    history=[("6.0.0", "A timeout with decimal places.")],
)


@_waiter("BZPOPMIN", summary="Removes the member with the lowest score, once there is one.")
def bzpopmin(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key, the member and its score; null when the time is over."""
    return _pop_later(session, args, True)


@_waiter("BZPOPMAX", summary="Removes the member with the highest score, once there is one.")
def bzpopmax(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key, the member and its score; null when the time is over."""
    return _pop_later(session, args, False)


def _pop_later(session: Session, args: Arguments, low: bool) -> Outcome:
    end = wait_end(args[-1], session.db.keyspace.now_ms)
    keys = args[1:-1]
    return blocking(session, keys, end, partial(_pop_first, session, keys, low), SortedSet)


def _pop_first(session: Session, keys: list[bytes], low: bool) -> Reply:
    """Removes a member of the first sorted set that there is; returns the key with it, or null."""
    for key in keys:
        value = session.db.collection(key, SortedSet)
        if value is not None:
            return Encoded(b"*3\r\n" + bulk(key) + _pop_one(session, key, value, low))
    return None


# --- out of the first of several -------------------------------------------------------------


def _pop_some(session: Session, options: PopOptions) -> Reply:
    """Removes members of the first sorted set that there is; returns the key with them, or null."""
    resp3 = session.resp3
    for key in options.keys:
        value = session.db.collection(key, SortedSet)
        if value is not None:
            items = _pop_many(session, key, value, options.count, options.is_first)
            pairs = [
                b"*2\r\n" + bulk(member) + written(score, resp3) for score, member in items.pairs()
            ]
            return array([bulk(key), array(pairs)])
    return None


@command(
    "ZMPOP",
    flags="write",
    since="7.0.0",
    summary="Removes members at an end of the first sorted set that there is.",
    complexity="O(K+M*log(N)) in the keys, the members that are removed and those of the set.",
    syntax="numkeys key [key ...] <MIN | MAX> [COUNT count]",
    keys=[KeySpec("RW access delete", counted=True)],
)
def zmpop(server: Services, session: Session, args: Arguments) -> Reply:
    """The key and the members with their scores, or null."""
    found = _pop_some(session, PopOptions(args, 1, _ENDS))
    return NULL_ARRAY if found is None else found


@command(
    "BZMPOP",
    flags="write blocking",
    since="7.0.0",
    summary="Removes members at an end of the first sorted set that there is, once there is one.",
    complexity="O(K+M*log(N)) in the keys, the members that are removed and those of the set.",
    syntax="timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
    keys=[KeySpec("RW access delete", index=2, counted=True)],
)
def bzmpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key and the members with their scores; null when the time is over."""
    options = PopOptions(args, 2, _ENDS)
    end = wait_end(args[1], session.db.keyspace.now_ms)
    return blocking(session, options.keys, end, partial(_pop_some, session, options), SortedSet)
