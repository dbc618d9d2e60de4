"""Several sorted sets, and sets, in one: ZUNION, ZINTER, ZDIFF, and their like that store it.

The members of sets count 1. Scores are added in the order in which Redis adds them, from the
smallest source to the largest, since sums of floating-point numbers depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from server.commands.declare import command
from server.commands.keys.counted_keys import limit_of
from server.commands.keys.long_work import in_steps
from server.commands.sets.combining import AT_ONCE, inter, number_of
from server.commands.sorted_sets import errors as zset_errors
from server.commands.sorted_sets.ranges import store
from server.commands.sorted_sets.scores import score_of
from server.commands.sorted_sets.selections import listed, listed_each
from server.core.outcomes import Outcome, Steps, Work
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import ZSET
from storage.errors import WrongType
from storage.steps import result
from storage.types.set import SetValue
from storage.types.sorted_set import Item, SortedSet, in_order, items_of

_STEP: Final = 2_000
"""How many members are looked at in a step."""

Scores = dict[bytes, float]

Combining = Generator[None, None, Scores]
"""Work that yields wherever it may be interrupted, and returns members with their scores."""

# --- the sources -----------------------------------------------------------------------------


class Weighed(NamedTuple):
    """The members of one source with their scores, ``None`` for those of a set, and by how much
    scores are multiplied."""

    scores: dict[bytes, Any]
    weight: float = 1.0


_SCORES: Final[dict[type, Callable[[Any], dict[bytes, Any]]]] = {
    SetValue: SetValue.ordered,
    SortedSet: lambda value: value.scores,
}
"""What can be combined, and its members."""


def _scores(session: Session, key: bytes) -> dict[bytes, Any]:
    """The members of the value at a key, none if there is none. Raises :class:`WrongType`."""
    value = session.db.read(key, touch=not session.no_touch)
    if value is None:
        return {}
    members = _SCORES.get(type(value))
    if members is None:
        raise WrongType
    return members(value)


def _product(score: float | None, weight: float) -> float:
    """A score times its weight, which is not a number for infinity times 0."""
    return weight if score is None else weight * score


def _weighted(score: float | None, weight: float) -> float:
    """A score times its weight, where infinity times 0 is 0."""
    product = _product(score, weight)
    return product if product == product else 0.0


# --- combining -------------------------------------------------------------------------------

Aggregate = Callable[[float, float], float]


def _sum(one: float, two: float) -> float:
    total = one + two
    return total if total == total else 0.0  # Infinity and -infinity.


def _least(one: float, two: float) -> float:
    return two if two < one else one


def _most(one: float, two: float) -> float:
    return two if two > one else one


_AGGREGATES: Final[dict[bytes, Aggregate]] = {
    b"SUM": _sum,
    b"MIN": _least,
    b"MAX": _most,
    b"COUNT": _sum,
}


def _union(sources: Sequence[Weighed], aggregate: Aggregate) -> Combining:
    """What is in any source."""
    found: Scores = {}
    for scores, weight in sorted(sources, key=_size):
        left = iter(scores.items())
        while some := list(islice(left, _STEP)):
            for member, score in some:
                weighted = _weighted(score, weight)
                former = found.get(member)
                found[member] = weighted if former is None else aggregate(former, weighted)
            yield
    return found


def _inter(sources: Sequence[Weighed], aggregate: Aggregate) -> Combining:
    """What is in all sources."""
    smallest, *others = sorted(sources, key=_size)
    found: Scores = {}
    left = iter(smallest.scores.items())
    while some := list(islice(left, _STEP)):
        for member, score in some:
            if all(member in other.scores for other in others):
                total = _weighted(score, smallest.weight)
                for scores, weight in others:
                    # That the product may not be a number counts here, as in Redis.
                    total = aggregate(total, _product(scores[member], weight))
                found[member] = total
        yield
    return found


def _diff(sources: Sequence[Weighed], aggregate: Aggregate) -> Combining:
    """What is in the first source and in no other."""
    first, *others = sources
    found: Scores = {}
    left = iter(first.scores.items())
    while some := list(islice(left, _STEP)):
        for member, score in some:
            if not any(member in other.scores for other in others):
                found[member] = _weighted(score, 1.0)
        yield
    return found


def _size(source: Weighed) -> int:
    return len(source.scores)


# --- what is asked for -----------------------------------------------------------------------

Operation = Callable[[Sequence[Weighed], Aggregate], Combining]


def _keys(args: Arguments, first: int) -> tuple[list[bytes], int]:
    """The keys, whose number is the argument ``first``, and the place of what follows them. Raises
    :class:`CommandError`."""
    count = integer(args[first])
    if count < 1:
        raise CommandError(zset_errors.no_keys(args[0].decode().lower()))
    end = first + 1 + count
    if end > len(args):
        raise CommandError(errors.SYNTAX)
    return args[first + 1 : end], end


class Combination:
    """What a command asks for: sources, of which the argument ``first`` is the number, and options.
    Raises :class:`CommandError` or :class:`WrongType`."""

    __slots__ = ("_aggregate", "_counts", "_operation", "_sources", "has_scores", "keys")

    def __init__(
        self, session: Session, args: Arguments, operation: Operation, first: int = 1
    ) -> None:
        self.keys, end = _keys(args, first)
        self._operation = operation
        self._sources = [Weighed(_scores(session, key)) for key in self.keys]
        self._aggregate: Aggregate = _sum
        self._counts = False
        self.has_scores = False
        self._options(args, end, lists=first == 1)

    def _options(self, args: Arguments, at: int, *, lists: bool) -> None:
        weighs = self._operation is not _diff
        while at < len(args):
            word = args[at].upper()
            left = len(args) - at - 1
            if word == b"WITHSCORES" and lists:
                self.has_scores = True
            elif word == b"AGGREGATE" and weighs and left:
                at += 1
                self._take_aggregate(args[at])
            elif word == b"WEIGHTS" and weighs and left >= len(self._sources):
                self._weigh(args[at + 1 : at + 1 + len(self._sources)])
                at += len(self._sources)
            else:
                raise CommandError(errors.SYNTAX)
            at += 1

    def _take_aggregate(self, word: bytes) -> None:
        aggregate = _AGGREGATES.get(word.upper())
        if aggregate is None:
            raise CommandError(errors.SYNTAX)
        self._aggregate = aggregate
        self._counts = word.upper() == b"COUNT"

    def _weigh(self, texts: list[bytes]) -> None:
        weights = [score_of(text, zset_errors.NOT_A_WEIGHT) for text in texts]
        self._sources = [
            Weighed(source.scores, weight)
            for source, weight in zip(self._sources, weights, strict=True)
        ]

    @property
    def is_long(self) -> bool:
        """Whether it is combined in steps where others need not see it done at once."""
        return sum(map(_size, self._sources)) > AT_ONCE

    def hold(self) -> None:
        """Keeps the sources as they are now."""
        self._sources = [Weighed(source.scores.copy(), source.weight) for source in self._sources]

    def combined(self) -> Combining:
        """Return the work of combining."""
        sources = self._sources
        if self._counts:
            sources = [Weighed(dict.fromkeys(scores), weight) for scores, weight in sources]
        return self._operation(sources, self._aggregate)


# --- listed ----------------------------------------------------------------------------------

_lister = partial(
    command, flags="readonly", since="6.2.0", keys=[KeySpec("RO access", counted=True)]
)
_OPTIONS: Final = "[WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX | COUNT>]"
_HISTORY: Final = [("8.8.0", "`COUNT`, which adds the weights alone.")]
_UNION_TIME: Final = "O(N+M*log(M)) in the members of all sets and those of the result."
_INTER_TIME: Final = "O(N*K+M*log(M)) in the members of the smallest set, the sets and the result."


@_lister(
    "ZUNION",
    summary="Lists the members that any of some sorted sets has.",
    complexity=_UNION_TIME,
    syntax=f"numkeys key [key ...] {_OPTIONS} [WITHSCORES]",
    history=_HISTORY,
)
def zunion(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(server, session, args, _union)


@_lister(
    "ZINTER",
    summary="Lists the members that all of some sorted sets have.",
    complexity=_INTER_TIME,
    syntax=f"numkeys key [key ...] {_OPTIONS} [WITHSCORES]",
    history=_HISTORY,
)
def zinter(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(server, session, args, _inter)


@_lister(
    "ZDIFF",
    summary="Lists the members of a sorted set that no other of some has.",
    complexity=_UNION_TIME,
    syntax="numkeys key [key ...] [WITHSCORES]",
)
def zdiff(server: Services, session: Session, args: Arguments) -> Outcome:
    """The members, with WITHSCORES each with its score."""
    return _list(server, session, args, _diff)


def _list(server: Services, session: Session, args: Arguments, operation: Operation) -> Outcome:
    combination = Combination(session, args, operation)
    if not combination.is_long:
        return _listed(session, combination, result(_ordered(combination)))

    def reply(items: list[Item] | None) -> Outcome:
        if items is not None:
            return _listed(session, combination, items)
        again = Combination(session, args, operation)
        again.hold()
        return Steps(_from_copies(session, again))

    work = _ordered(combination)
    return in_steps(server, session, work, reply, keys=combination.keys)


def _ordered(combination: Combination) -> Generator[None, None, list[Item]]:
    scores = yield from combination.combined()
    return (yield from in_order(zip(scores.values(), scores.keys(), strict=True)))


def _from_copies(session: Session, combination: Combination) -> Work:
    items = yield from _ordered(combination)
    reply = _listed(session, combination, items)
    return (yield from reply.work) if isinstance(reply, Steps) else [reply]  # type: ignore[list-item]


def _listed(session: Session, combination: Combination, items: list[Item]) -> Outcome:
    has_scores, resp3 = combination.has_scores, session.resp3
    if len(items) > AT_ONCE:
        return listed_each(items, len(items), has_scores, resp3)
    return listed(items_of(items), has_scores, resp3)


# --- stored ----------------------------------------------------------------------------------

_storer = partial(
    command,
    flags="write denyoom",
    since="2.0.0",
    keys=[KeySpec("OW update"), KeySpec("RO access", index=2, counted=True)],
)


@_storer(
    "ZUNIONSTORE",
    summary="Puts the members that any of some sorted sets has into a sorted set.",
    complexity=_UNION_TIME,
    syntax=f"destination numkeys key [key ...] {_OPTIONS}",
    history=_HISTORY,
)
def zunionstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _store(server, session, args, _union, "zunionstore")


@_storer(
    "ZINTERSTORE",
    summary="Puts the members that all of some sorted sets have into a sorted set.",
    complexity=_INTER_TIME,
    syntax=f"destination numkeys key [key ...] {_OPTIONS}",
    history=_HISTORY,
)
def zinterstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _store(server, session, args, _inter, "zinterstore")


@_storer(
    "ZDIFFSTORE",
    since="6.2.0",
    summary="Puts the members of a sorted set that no other of some has into a sorted set.",
    complexity=_UNION_TIME,
    syntax="destination numkeys key [key ...]",
)
def zdiffstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _store(server, session, args, _diff, "zdiffstore")


def _store(
    server: Services, session: Session, args: Arguments, operation: Operation, event: str
) -> Outcome:
    events = ((ZSET, event),)

    def put(value: SortedSet | None) -> Outcome:
        if value is None:  # The sources have changed meanwhile.
            value = result(_set_of(session, Combination(session, args, operation, 2)))
        return store(session, args, value, events)

    combination = Combination(session, args, operation, 2)
    work = _set_of(session, combination)
    if not combination.is_long:
        return put(result(work))
    return in_steps(server, session, work, put, keys=combination.keys, writes=True)


def _set_of(session: Session, combination: Combination) -> Generator[None, None, SortedSet]:
    scores = yield from combination.combined()
    value = SortedSet(session.db.keyspace.limits.collections)
    yield from value.filling(scores.keys(), scores.values())
    return value


# --- counted ---------------------------------------------------------------------------------


@command(
    "ZINTERCARD",
    flags="readonly",
    since="7.0.0",
    summary="Counts the members that all of some sorted sets have.",
    complexity="O(N*K) in the members of the smallest set and the number of sets.",
    syntax="numkeys key [key ...] [LIMIT limit]",
    keys=[KeySpec("RO access", counted=True)],
)
def zintercard(server: Services, session: Session, args: Arguments) -> Outcome:
    """The number of members, up to the limit."""
    keys, end = _keys(args, 1)

    def sources() -> list[dict[bytes, Any]]:
        return [_scores(session, key) for key in keys]

    return number_of(server, session, keys, inter, sources(), sources, limit_of(args, end))
