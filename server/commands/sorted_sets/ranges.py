"""Ranges of sorted sets by rank, score and member: listed, stored, counted, removed."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Final

from protocol.encoder import array_line
from protocol.replies import EMPTY_ARRAY, Reply
from server.commands.declare import command
from server.commands.keys.long_work import in_steps
from server.commands.sets.combining import AT_ONCE
from server.commands.sorted_sets.selections import (
    LEX,
    RANK,
    SCORE,
    LexRange,
    Range,
    RankRange,
    ScoreRange,
    Selection,
    listed,
)
from server.commands.sorted_sets.sorted_sets import set_to_read
from server.core.outcomes import Outcome, write_texts
from server.core.table import Arguments, KeySpec
from server.services import Services
from server.state.session import Session
from storage.engine.effects import ZSET, Events
from storage.engine.limits import CollectionLimits
from storage.steps import result
from storage.types.sorted_set import Items, SortedSet

_READ: Final = [KeySpec("RO access")]
_COMPLEXITY: Final = "O(log(N)+M) in the members of the set and those of the range."
_STORED: Final[Events] = ((ZSET, "zrangestore"),)

# --- listed ----------------------------------------------------------------------------------

_lister = partial(command, flags="readonly", keys=_READ, complexity=_COMPLEXITY)


@_lister(
    "ZRANGE",
    since="1.2.0",
    summary="Lists the members in a range of ranks, scores or members.",
    syntax="key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
    history=[("6.2.0", "The `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options.")],
)
def zrange(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    if len(args) > 4:
        return _list(session, args, None)
    ranks = RankRange(args[2], args[3])
    value = set_to_read(session, args[1])
    if value is None:
        return EMPTY_ARRAY
    names = value.names(*ranks.span(value))
    return write_texts(array_line(len(names)), names)


@_lister(
    "ZREVRANGE",
    since="1.2.0",
    summary="Lists the members in a range of ranks that count from the last one.",
    syntax="key start stop [WITHSCORES]",
    deprecated=("6.2.0", "`ZRANGE` with `REV`"),
)
def zrevrange(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(session, args, RANK, True)


@_lister(
    "ZRANGEBYSCORE",
    since="1.0.5",
    summary="Lists the members in a range of scores.",
    syntax="key min max [WITHSCORES] [LIMIT offset count]",
    deprecated=("6.2.0", "`ZRANGE` with `BYSCORE`"),
    history=[("2.0.0", "The `WITHSCORES` option.")],
)
def zrangebyscore(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(session, args, SCORE)


@_lister(
    "ZREVRANGEBYSCORE",
    since="2.2.0",
    summary="Lists the members in a range of scores from the highest on.",
    syntax="key max min [WITHSCORES] [LIMIT offset count]",
    deprecated=("6.2.0", "`ZRANGE` with `REV` and `BYSCORE`"),
    history=[("2.1.6", "Ends that do not belong to the range.")],
)
def zrevrangebyscore(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(session, args, SCORE, True)


@_lister(
    "ZRANGEBYLEX",
    since="2.8.9",
    summary="Lists the members in a range of members, all of which have the same score.",
    syntax="key min max [LIMIT offset count]",
    deprecated=("6.2.0", "`ZRANGE` with `BYLEX`"),
)
def zrangebylex(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members."""
    return _list(session, args, LEX)


@_lister(
    "ZREVRANGEBYLEX",
    since="2.8.9",
    summary="Lists the members in a range of members from the last on.",
    syntax="key max min [LIMIT offset count]",
    deprecated=("6.2.0", "`ZRANGE` with `REV` and `BYLEX`"),
)
def zrevrangebylex(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members."""
    return _list(session, args, LEX, True)


def _list(session: Session, args: Arguments, by: str | None, reverse: bool = False) -> Outcome:
    selection = Selection(args, by, reverse)
    items = selection.items(set_to_read(session, args[1]))
    return listed(items, selection.has_scores, session.resp3)


# --- stored ----------------------------------------------------------------------------------


@command(
    "ZRANGESTORE",
    flags="write denyoom",
    since="6.2.0",
    summary="Puts the members in a range of ranks, scores or members into a sorted set.",
    complexity=_COMPLEXITY,
    syntax="dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
    keys=[KeySpec("OW update"), KeySpec("RO access", index=2)],
)
def zrangestore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    selection = Selection(args, None, first=3, lists=False)

    limits = session.db.keyspace.limits.collections

    def work() -> Generator[None, None, SortedSet]:
        items = selection.items(set_to_read(session, args[2]))
        _lose_zeros(items, limits, is_counted=selection.by == RANK)
        value = SortedSet(limits)
        yield from value.filling(items.members, items.scores)
        return value

    def put(value: SortedSet | None) -> Outcome:
        return store(session, args, result(work()) if value is None else value, _STORED)

    source = set_to_read(session, args[2])
    if source is None or len(source) <= AT_ONCE:
        return put(None)
    return in_steps(server, session, work(), put, keys=args[2:3], writes=True)


def _lose_zeros(items: Items, limits: CollectionLimits, *, is_counted: bool) -> None:
    """Turns -0 into 0 where Redis does: it adds the items one by one, and loses the sign as long as
    the value is small; it is not from the first one on, if their number is known before and too
    large."""
    most = limits.zset_max_listpack_entries
    if is_counted and len(items) > most:
        return
    for at, member in enumerate(items.members[:most]):
        if len(member) > limits.zset_max_listpack_value:
            break
        items.scores[at] += 0.0


def store(session: Session, args: Arguments, value: SortedSet, events: Events) -> int:
    """Puts a sorted set at the key that is the first argument, in place of whatever is there, or
    nothing if it is empty; returns how many members it has."""
    database, key = session.db, args[1]
    if not len(value):
        database.delete(key)
        return 0
    database.put(key, value, [(args[0].upper(), *args[1:])], events)
    return len(value)


# --- counted ---------------------------------------------------------------------------------

_counter = partial(
    command,
    flags="readonly fast",
    keys=_READ,
    complexity="O(log(N)) in the members of the set.",
    syntax="key min max",
)


@_counter("ZCOUNT", since="2.0.0", summary="Counts the members in a range of scores.")
def zcount(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of members; 0 for no key."""
    return _count(session, args, ScoreRange(args[2], args[3]))


@_counter("ZLEXCOUNT", since="2.8.9", summary="Counts the members in a range of members.")
def zlexcount(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of members; 0 for no key."""
    return _count(session, args, LexRange(args[2], args[3]))


def _count(session: Session, args: Arguments, asked: Range) -> int:
    value = set_to_read(session, args[1])
    if value is None:
        return 0
    start, stop = asked.span(value)
    return max(stop - start, 0)


# --- removed ---------------------------------------------------------------------------------

_remover = partial(command, flags="write", keys=[KeySpec("RW delete")], complexity=_COMPLEXITY)


@_remover(
    "ZREMRANGEBYRANK",
    since="2.0.0",
    summary="Removes the members in a range of ranks.",
    syntax="key start stop",
)
def zremrangebyrank(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were removed."""
    return _remove(session, args, RankRange(args[2], args[3]), "zremrangebyrank")


@_remover(
    "ZREMRANGEBYSCORE",
    since="1.2.0",
    summary="Removes the members in a range of scores.",
    syntax="key min max",
)
def zremrangebyscore(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were removed."""
    return _remove(session, args, ScoreRange(args[2], args[3]), "zremrangebyscore")


@_remover(
    "ZREMRANGEBYLEX",
    since="2.8.9",
    summary="Removes the members in a range of members.",
    syntax="key min max",
)
def zremrangebylex(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were removed."""
    return _remove(session, args, LexRange(args[2], args[3]), "zremrangebylex")


def _remove(session: Session, args: Arguments, asked: Range, event: str) -> int:
    database, key = session.db, args[1]
    value = database.collection(key, SortedSet)
    if value is None:
        return 0
    start, stop = asked.span(value)
    gone = len(value)
    if start == 0 and stop == gone:  # As a whole: its memory is freed little by little.
        value = SortedSet(database.keyspace.limits.collections)
    else:
        gone = len(value.take(start, stop)) if start < stop else 0
    if gone:
        words = (event.upper().encode(), *args[1:])
        database.changed(key, value, words, ((ZSET, event),), weight=gone)
    return gone
