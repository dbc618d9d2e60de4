"""What several sets have in common, or together, or only the first: SINTER, SUNION, SDIFF."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from functools import partial
from itertools import filterfalse, islice
from typing import Any, Final

from server.commands.declare import command
from server.commands.keys.counted_keys import CountedKeys, limit_of
from server.commands.keys.long_work import in_steps
from server.commands.sets.sets import members_reply, set_to_read
from server.core.outcomes import Outcome, Steps, Work
from server.core.table import Arguments, KeySpec
from server.services import Services
from server.state.session import Session
from storage.engine.effects import SET
from storage.steps import result
from storage.types.set import SetValue

Names = dict[bytes, Any]
"""Members, whatever else there is to know of each."""

Combining = Generator[None, None, Collection[bytes]]
"""Work that yields wherever it may be interrupted, and returns members."""

Operation = Callable[[Sequence[Names]], Combining]
"""Combines the members of sets."""

AT_ONCE: Final = 10_000
"""Sets of fewer members in all are combined without giving way, and without copies."""

_STEP: Final = 2_000
"""How many members are looked at in a step."""


def inter(sources: Sequence[Names], most: int = 0) -> Combining:
    """What is in all sets: members of the smallest one, up to ``most`` if that is not 0."""
    smallest, *others = sorted(sources, key=len)
    found: list[bytes] = []
    left = iter(smallest)
    while some := list(islice(left, _STEP)):
        # Filters are in C: a third of what a loop here takes.
        for other in others:
            some[:] = filter(other.__contains__, some)
        found += some
        if 0 < most <= len(found):
            return found[:most]
        yield
    return found


def union(sources: Sequence[Names]) -> Combining:
    """What is in any set."""
    found: Names = {}
    for source in sources:
        left = iter(source)
        while some := dict.fromkeys(islice(left, _STEP)):
            found.update(some)
            yield
    return found


def diff(sources: Sequence[Names]) -> Combining:
    """What is in the first set and in no other."""
    first, *others = sources
    found: list[bytes] = []
    left = iter(first)
    while some := list(islice(left, _STEP)):
        for other in others:
            some[:] = filterfalse(other.__contains__, some)
        found += some
        yield
    return found


def _sources(session: Session, keys: Sequence[bytes]) -> list[Names]:
    """The members of the sets at the keys, none where there is no key. Raises
    :class:`WrongType`."""
    values = [set_to_read(session, key) for key in keys]
    return [{} if value is None else value.ordered() for value in values]


def _copied(sources: Sequence[Names]) -> list[Names]:
    """The members as they are now, for work that gives way."""
    return [source.copy() for source in sources]


# --- as a reply ------------------------------------------------------------------------------

_combiner = partial(
    command,
    flags="readonly",
    since="1.0.0",
    syntax="key [key ...]",
    keys=[KeySpec("RO access", last=-1)],
    tips=("nondeterministic_output_order",),
)


@_combiner(
    "SINTER",
    summary="Lists the members that all of some sets have.",
    complexity="O(N*M) in the members of the smallest set and the number of sets.",
)
def sinter(server: Services, session: Session, args: Arguments) -> Outcome:
    """Each member."""
    return _combined(server, session, args, inter)


@_combiner(
    "SUNION",
    summary="Lists the members that any of some sets has.",
    complexity="O(N) in the members of all sets.",
)
def sunion(server: Services, session: Session, args: Arguments) -> Outcome:
    """Each member."""
    return _combined(server, session, args, union)


@_combiner(
    "SDIFF",
    summary="Lists the members of a set that no other of some sets has.",
    complexity="O(N) in the members of all sets.",
)
def sdiff(server: Services, session: Session, args: Arguments) -> Outcome:
    """Each member."""
    return _combined(server, session, args, diff)


def _combined(server: Services, session: Session, args: Arguments, operation: Operation) -> Outcome:
    keys = args[1:]
    sources = _sources(session, keys)
    if sum(map(len, sources)) <= AT_ONCE:
        return members_reply(session, result(operation(sources)))

    def reply(found: Collection[bytes] | None) -> Outcome:
        if found is not None:
            return members_reply(session, found)
        return Steps(_from_copies(session, operation(_copied(_sources(session, keys)))))

    return in_steps(server, session, operation(sources), reply, keys=keys)


def _from_copies(session: Session, work: Combining) -> Work:
    members = yield from work
    reply = members_reply(session, members)
    return (yield from reply.work) if isinstance(reply, Steps) else [reply]  # type: ignore[list-item]


# --- as a set --------------------------------------------------------------------------------

_storer = partial(
    command,
    flags="write denyoom",
    since="1.0.0",
    syntax="destination key [key ...]",
    keys=[KeySpec("OW update"), KeySpec("RO access", index=2, last=-1)],
)


@_storer(
    "SINTERSTORE",
    summary="Puts the members that all of some sets have into a set.",
    complexity="O(N*M) in the members of the smallest set and the number of sets.",
)
def sinterstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _stored(server, session, args, inter, "sinterstore")


@_storer(
    "SUNIONSTORE",
    summary="Puts the members that any of some sets has into a set.",
    complexity="O(N) in the members of all sets.",
)
def sunionstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _stored(server, session, args, union, "sunionstore")


@_storer(
    "SDIFFSTORE",
    summary="Puts the members of a set that no other of some sets has into a set.",
    complexity="O(N) in the members of all sets.",
)
def sdiffstore(server: Services, session: Session, args: Arguments) -> Outcome:
    """How many members there are."""
    return _stored(server, session, args, diff, "sdiffstore")


def _stored(
    server: Services, session: Session, args: Arguments, operation: Operation, event: str
) -> Outcome:
    keys = args[2:]

    def put(value: SetValue | None) -> Outcome:
        if value is None:  # The sources have changed meanwhile.
            value = result(_set_of(session, operation, _sources(session, keys)))
        if not len(value):
            session.db.delete(args[1])
            return 0
        words = (event.upper().encode(), *args[1:])
        session.db.put(args[1], value, [words], ((SET, event),))
        return len(value)

    sources = _sources(session, keys)
    work = _set_of(session, operation, sources)
    if sum(map(len, sources)) <= AT_ONCE:
        return put(result(work))
    return in_steps(server, session, work, put, keys=keys, writes=True)


def _set_of(
    session: Session, operation: Operation, sources: Sequence[Names]
) -> Generator[None, None, SetValue]:
    found = yield from operation(sources)
    value = SetValue(session.db.keyspace.limits.collections)
    yield from value.filling(found, tight=operation is inter)
    return value


# --- counting --------------------------------------------------------------------------------


_counter = partial(command, flags="readonly", keys=[KeySpec("RO access", counted=True)])


@_counter(
    "SINTERCARD",
    since="7.0.0",
    summary="Counts the members that all of some sets have.",
    complexity="O(N*M) in the members of the smallest set and the number of sets.",
    syntax="numkeys key [key ...] [LIMIT limit]",
)
def sintercard(server: Services, session: Session, args: Arguments) -> Outcome:
    """The number of members, up to the limit."""
    return _counted(server, session, args, inter)


@_counter(
    "SUNIONCARD",
    since="8.10.0",
    summary="Counts the members that any of some sets has.",
    complexity="O(N) in the members of all sets.",
    syntax="numkeys key [key ...] [APPROX] [LIMIT limit]",
)
def sunioncard(server: Services, session: Session, args: Arguments) -> Outcome:
    """The number of members, up to the limit; it is exact with APPROX as well."""
    return _counted(server, session, args, union, b"APPROX")


@_counter(
    "SDIFFCARD",
    since="8.10.0",
    summary="Counts the members of a set that no other of some sets has.",
    complexity="O(N) in the members of all sets.",
    syntax="numkeys key [key ...] [LIMIT limit]",
)
def sdiffcard(server: Services, session: Session, args: Arguments) -> Outcome:
    """The number of members, up to the limit."""
    return _counted(server, session, args, diff)


def _counted(
    server: Services, session: Session, args: Arguments, operation: Operation, flag: bytes = b""
) -> Outcome:
    counted = CountedKeys(args, 1)
    most = limit_of(args, counted.end, flag)
    sources = partial(_sources, session, counted.keys)
    return number_of(server, session, counted.keys, operation, sources(), sources, most)


def number_of(
    server: Services,
    session: Session,
    keys: Sequence[bytes],
    operation: Operation,
    sources: Sequence[Names],
    again: Callable[[], Sequence[Names]],
    most: int,
) -> Outcome:
    """The number of members of the combination, up to ``most`` if that is not 0; ``again`` returns
    the sources as they are then."""
    if operation is inter:
        operation = partial(inter, most=most)

    def count(found: Collection[bytes] | None) -> Outcome:
        if found is None:
            found = result(operation(again()))
        return min(len(found), most) if most else len(found)

    if sum(map(len, sources)) <= AT_ONCE:
        return count(result(operation(sources)))
    return in_steps(server, session, operation(sources), count, keys=keys)
