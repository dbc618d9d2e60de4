"""Sorted sets: members added, counted up and removed, asked for, walked through."""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NULL_ARRAY, Encoded, Reply
from server.commands.declare import command
from server.commands.keys.random_picks import PickCount
from server.commands.keys.scan_options import (
    NOTHING_LEFT,
    ScanOptions,
    page_of_elements,
    scan_cursor,
)
from server.commands.sorted_sets import errors as zset_errors
from server.commands.sorted_sets.scores import score_of, text_of, written
from server.core.outcomes import Outcome
from server.core.table import Arguments, KeySpec
from server.services import Services
from server.state.session import Session
from storage.engine.effects import ZSET, Events
from storage.types.collection import Words
from storage.types.sorted_set import ZADD, SortedSet

_READ: Final = [KeySpec("RO access")]
_ADDED: Final[Events] = ((ZSET, "zadd"),)
_COUNTED: Final[Events] = ((ZSET, "zincr"),)
_REMOVED: Final[Events] = ((ZSET, "zrem"),)

_getter = partial(command, flags="readonly fast", keys=_READ)
_LOGARITHMIC: Final = "O(log(N)) in the number of members."


def set_to_read(session: Session, key: bytes) -> SortedSet | None:
    """The sorted set at a key for a command that reads; raises :class:`WrongType`."""
    return session.db.collection_to_read(key, SortedSet, touch=not session.no_touch)


# --- adding ----------------------------------------------------------------------------------

_NX: Final = 1
_XX: Final = 2
_GT: Final = 4
_LT: Final = 8
_CH: Final = 16
_INCR: Final = 32
_FLAGS: Final = {b"NX": _NX, b"XX": _XX, b"GT": _GT, b"LT": _LT, b"CH": _CH, b"INCR": _INCR}


@command(
    "ZADD",
    flags="write denyoom fast",
    since="1.2.0",
    summary="Adds members to a sorted set, or gives those that are there another score.",
    complexity="O(M*log(N)) in the members that are named and those of the set.",
    syntax="key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
    keys=[KeySpec("RW update")],
    history=[
        ("2.4.0", "Several members at once."),
        ("3.0.2", "The `XX`, `NX`, `CH` and `INCR` options."),
        ("6.2.0", "The `GT` and `LT` options."),
    ],
)
def zadd(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were added, with CH or changed; with INCR the score, or null."""
    at, count, flags = 2, len(args), 0
    while at < count and (flag := _FLAGS.get(args[at].upper())) is not None:
        flags |= flag
        at += 1
    if at == count or (count - at) % 2:
        raise CommandError(errors.SYNTAX)
    if flags:
        _check(flags, count - at)
    scores = [score_of(text) for text in args[at::2]]
    args[0] = ZADD
    return _add(session, tuple(args), flags, scores, args[at + 1 :: 2])


def _check(flags: int, words: int) -> None:
    """Raises :class:`CommandError` for options that do not go together."""
    if flags & _NX and flags & _XX:
        raise CommandError(zset_errors.NX_WITH_XX)
    if bool(flags & _NX) + bool(flags & _GT) + bool(flags & _LT) > 1:
        raise CommandError(zset_errors.GT_WITH_OTHERS)
    if flags & _INCR and words > 2:
        raise CommandError(zset_errors.ONE_INCREMENT)


@command(
    "ZINCRBY",
    flags="write denyoom fast",
    since="1.2.0",
    summary="Adds to the score of a member of a sorted set; no member counts as 0.",
    complexity=_LOGARITHMIC,
    syntax="key increment member",
    keys=[KeySpec("RW access update")],
)
def zincrby(server: Services, session: Session, args: Arguments) -> Reply:
    """The score."""
    scores = [score_of(args[2])]
    return _add(session, (b"ZINCRBY", *args[1:]), _INCR, scores, args[3:])


def _add(
    session: Session, words: Words, flags: int, scores: list[float], members: list[bytes]
) -> Reply:
    key = words[1]
    value = session.db.collection_to_fill(key, SortedSet)
    # Redis, too, does not ask which members are there already, or how long the others are.
    value.expect(len(members), 0 if len(value) else len(members[0]))
    added = updated = 0
    result: float | None = None
    for at in range(len(members)):
        member = members[at]
        former = value.scores.get(member)
        score = _new_score(former, scores[at], flags)
        if score is None:
            continue
        result = score
        if former is None:
            added += 1
        elif score == former:
            continue
        else:
            updated += 1
        value.set(member, score)
    if added or updated:
        events = _COUNTED if flags & _INCR else _ADDED
        session.db.changed(key, value, words, events, weight=added + updated)
    if flags & _INCR:
        return None if result is None else Encoded(written(result, session.resp3))
    return added + updated if flags & _CH else added


def _new_score(former: float | None, score: float, flags: int) -> float | None:
    """The score that a member gets, which had ``former`` or was not there; ``None`` if the options
    leave it alone."""
    if not flags:
        return score
    if former is None:
        return None if flags & _XX else score
    if flags & _NX:
        return None
    if flags & _INCR:
        score += former
        if score != score:
            raise CommandError(zset_errors.NOT_A_NUMBER)
    if (flags & _GT and score <= former) or (flags & _LT and score >= former):
        return None
    return score


# --- removing --------------------------------------------------------------------------------


@command(
    "ZREM",
    flags="write fast",
    since="1.2.0",
    summary="Removes members of a sorted set, and the key with the last of them.",
    complexity="O(M*log(N)) in the members that are named and those of the set.",
    syntax="key member [member ...]",
    keys=[KeySpec("RW delete")],
    history=[("2.4.0", "Several members at once.")],
)
def zrem(server: Services, session: Session, args: Arguments) -> Reply:
    """How many members were removed."""
    key = args[1]
    value = session.db.collection(key, SortedSet)
    if value is None:
        return 0
    gone = [member for member in args[2:] if value.remove(member)]
    if gone:
        session.db.changed(key, value, (b"ZREM", key, *gone), _REMOVED, weight=len(gone))
    return len(gone)


# --- asking ----------------------------------------------------------------------------------


@_getter(
    "ZCARD",
    since="1.2.0",
    summary="Tells how many members a sorted set has.",
    syntax="key",
    keys=[KeySpec("RO")],
)
def zcard(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of members; 0 for no key."""
    value = set_to_read(session, args[1])
    return 0 if value is None else len(value)


@_getter(
    "ZSCORE",
    since="1.2.0",
    summary="Gets the score of a member of a sorted set.",
    syntax="key member",
)
def zscore(server: Services, session: Session, args: Arguments) -> Reply:
    """The score, or null."""
    return _score(session, set_to_read(session, args[1]), args[2])


@_getter(
    "ZMSCORE",
    since="6.2.0",
    summary="Gets the scores of members of a sorted set.",
    complexity="O(N) in the number of members that are named.",
    syntax="key member [member ...]",
)
def zmscore(server: Services, session: Session, args: Arguments) -> Reply:
    """The score of each member, or null."""
    value = set_to_read(session, args[1])
    return [_score(session, value, member) for member in args[2:]]


def _score(session: Session, value: SortedSet | None, member: bytes) -> Reply:
    score = None if value is None else value.scores.get(member)
    return None if score is None else Encoded(written(score, session.resp3))


_ranker = partial(
    _getter,
    since="2.0.0",
    complexity=_LOGARITHMIC,
    syntax="key member [WITHSCORE]",
    history=[("7.2.0", "The `WITHSCORE` option.")],
)


@_ranker("ZRANK", summary="Tells how many members of a sorted set stand before one.")
def zrank(server: Services, session: Session, args: Arguments) -> Reply:
    """The rank, or null; with WITHSCORE the rank and the score."""
    return _rank(session, args, "zrank", False)


@_ranker("ZREVRANK", summary="Tells how many members of a sorted set stand behind one.")
def zrevrank(server: Services, session: Session, args: Arguments) -> Reply:
    """The rank, or null; with WITHSCORE the rank and the score."""
    return _rank(session, args, "zrevrank", True)


def _rank(session: Session, args: Arguments, name: str, reverse: bool) -> Reply:
    if len(args) > 4:
        raise CommandError(errors.wrong_arity(name))
    has_score = len(args) == 4
    if has_score and args[3].upper() != b"WITHSCORE":
        raise CommandError(errors.SYNTAX)
    value = set_to_read(session, args[1])
    score = None if value is None else value.scores.get(args[2])
    if value is None or score is None:
        return NULL_ARRAY if has_score else None
    rank = value.before(score, args[2])
    if reverse:
        rank = len(value) - 1 - rank
    return [rank, Encoded(written(score, session.resp3))] if has_score else rank


# --- all of it, or any -----------------------------------------------------------------------


@command(
    "ZSCAN",
    flags="readonly",
    since="2.8.0",
    summary="Walks through the members of a sorted set a page at a time.",
    complexity="O(N) in the number of members a call looks at.",
    syntax="key cursor [MATCH pattern] [COUNT count]",
    keys=_READ,
    tips=("nondeterministic_output",),
)
def zscan(server: Services, session: Session, args: Arguments) -> Outcome:
    """The cursor to go on with (0: there is nothing more), and the members of this page, each with
    its score."""
    cursor = scan_cursor(args[2])
    value = set_to_read(session, args[1])
    if value is None:
        return NOTHING_LEFT
    options, scores, is_small = ScanOptions(args, 3), value.scores, value.is_small

    def texts(member: bytes) -> list[bytes]:
        score = scores.get(member)
        if score is None:
            return []
        # Of a large value Redis tells the scores with 17 digits here, and only here.
        return [bulk(member), bulk(text_of(score) if is_small else b"%.17g" % score)]

    return page_of_elements(cursor, options, value, texts, at_once=is_small)


@command(
    "ZRANDMEMBER",
    flags="readonly",
    since="6.2.0",
    summary="Picks members of a sorted set at random.",
    complexity="O(N) in the number of members that are picked.",
    syntax="key [count [WITHSCORES]]",
    keys=_READ,
    tips=("nondeterministic_output",),
)
def zrandmember(server: Services, session: Session, args: Arguments) -> Outcome:
    """A member, or null; with a count so many, which may repeat themselves if it is negative."""
    if len(args) == 2:
        value = set_to_read(session, args[1])
        return None if value is None else bulk(value.members.pick())
    wanted = PickCount(args, b"WITHSCORES")
    value = set_to_read(session, args[1])
    if value is None:
        return EMPTY_ARRAY
    scores, resp3 = value.scores, session.resp3
    return wanted.reply(value.members, lambda member: written(scores[member], resp3), resp3)
