"""Lists: elements added at the ends and within, asked for, removed."""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, OK, Reply
from server.commands.declare import command
from server.commands.lists import errors as list_errors
from server.core.outcomes import Outcome, write_texts
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, integer, integer_between, parse_integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import LIST, Events
from storage.types.list import ListValue

PUSHED: Final[dict[bool, Events]] = {True: ((LIST, "lpush"),), False: ((LIST, "rpush"),)}
POPPED: Final[dict[bool, Events]] = {True: ((LIST, "lpop"),), False: ((LIST, "rpop"),)}
"""The events of what is done at the left end, and at the right one."""

_SET: Final[Events] = ((LIST, "lset"),)
_INSERTED: Final[Events] = ((LIST, "linsert"),)
_REMOVED: Final[Events] = ((LIST, "lrem"),)
_TRIMMED: Final[Events] = ((LIST, "ltrim"),)

_READ: Final = [KeySpec("RO access")]


def list_to_read(session: Session, key: bytes) -> ListValue | None:
    """The list at a key for a command that reads; raises :class:`WrongType`."""
    return session.db.collection_to_read(key, ListValue, touch=not session.no_touch)


# --- the ends --------------------------------------------------------------------------------

_pusher = partial(
    command,
    flags="write denyoom fast",
    complexity="O(N) in the number of elements that are named.",
    syntax="key element [element ...]",
    keys=[KeySpec("RW insert")],
)


@_pusher(
    "LPUSH",
    since="1.0.0",
    summary="Adds elements at the left end of a list.",
    history=[("2.4.0", "Several elements at once.")],
)
def lpush(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the list."""
    return _push(session, args, b"LPUSH", True)


@_pusher(
    "RPUSH",
    since="1.0.0",
    summary="Adds elements at the right end of a list.",
    history=[("2.4.0", "Several elements at once.")],
)
def rpush(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the list."""
    return _push(session, args, b"RPUSH", False)


@_pusher(
    "LPUSHX",
    since="2.2.0",
    summary="Adds elements at the left end of a list that there is.",
    history=[("4.0.0", "Several elements at once.")],
)
def lpushx(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the list; 0 for no key."""
    return _push(session, args, b"LPUSHX", True, only_there=True)


@_pusher(
    "RPUSHX",
    since="2.2.0",
    summary="Adds elements at the right end of a list that there is.",
    history=[("4.0.0", "Several elements at once.")],
)
def rpushx(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the list; 0 for no key."""
    return _push(session, args, b"RPUSHX", False, only_there=True)


def _push(
    session: Session, args: Arguments, name: bytes, left: bool, only_there: bool = False
) -> int:
    database, key = session.db, args[1]
    value = database.collection_to_fill(key, ListValue)
    if only_there and not len(value):
        return 0
    value.push(args[2:], left=left)
    args[0] = name
    words = tuple(args)
    database.changed(key, value, words, PUSHED[left], wakes=True, weight=len(words) - 2)
    return len(value)


_popper = partial(
    command,
    flags="write fast",
    since="1.0.0",
    complexity="O(N) in the number of elements that are removed.",
    syntax="key [count]",
    keys=[KeySpec("RW access delete")],
    history=[("6.2.0", "The `count` argument.")],
)


@_popper("LPOP", summary="Removes elements at the left end of a list.")
def lpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The element, or null; with a count an array of as many."""
    return _pop(session, args, "lpop", True)


@_popper("RPOP", summary="Removes elements at the right end of a list.")
def rpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The element, or null; with a count an array of as many."""
    return _pop(session, args, "rpop", False)


def _pop(session: Session, args: Arguments, name: str, left: bool) -> Outcome:
    if len(args) > 3:
        raise CommandError(errors.wrong_arity(name))
    key, count = args[1], 1
    if len(args) == 3:
        count = integer(args[2], errors.MUST_BE_POSITIVE)
        if count < 0:
            raise CommandError(errors.MUST_BE_POSITIVE)
    value = session.db.collection(key, ListValue)
    if value is None:
        return NULL_ARRAY if len(args) == 3 else None
    if len(args) == 2:
        return bulk(pop_one(session, key, value, left))
    elements = pop_many(session, key, value, count, left)
    return write_texts(b"*%d" % len(elements), elements)


def pop_one(session: Session, key: bytes, value: ListValue, left: bool) -> bytes:
    """Removes the element at an end, and tells so."""
    element = value.pop(left=left)
    session.db.changed(key, value, (b"LPOP" if left else b"RPOP", key), POPPED[left])
    return element


def pop_many(session: Session, key: bytes, value: ListValue, count: int, left: bool) -> list[bytes]:
    """Removes up to so many elements at an end, and tells so."""
    elements = value.pops(count, left=left)
    if elements:
        words = (b"LPOP" if left else b"RPOP", key, b"%d" % len(elements))
        session.db.changed(key, value, words, POPPED[left], weight=len(elements))
    return elements


# --- asking ----------------------------------------------------------------------------------


@command(
    "LLEN",
    flags="readonly fast",
    since="1.0.0",
    summary="Tells how long a list is.",
    syntax="key",
    keys=[KeySpec("RO")],
)
def llen(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of elements; 0 for no key."""
    value = list_to_read(session, args[1])
    return 0 if value is None else len(value)


@command(
    "LINDEX",
    flags="readonly",
    since="1.0.0",
    summary="Gets the element at an index, which counts from the end if it is negative.",
    complexity="O(N) in the number of elements up to the nearer end.",
    syntax="key index",
    keys=_READ,
)
def lindex(server: Services, session: Session, args: Arguments) -> Reply:
    """The element, or null."""
    value = list_to_read(session, args[1])
    if value is None:
        return None
    index = integer(args[2])
    return bulk(value.elements[index]) if -len(value) <= index < len(value) else None


@command(
    "LRANGE",
    flags="readonly",
    since="1.0.0",
    summary="Lists the elements from one index to another.",
    complexity="O(S+N) in the elements before the first and those of the reply.",
    syntax="key start stop",
    keys=_READ,
)
def lrange(server: Services, session: Session, args: Arguments) -> Outcome:
    """The elements."""
    start, stop = integer(args[2]), integer(args[3])
    value = list_to_read(session, args[1])
    elements = [] if value is None else value.slice(*_span(start, stop, len(value)))
    return write_texts(b"*%d" % len(elements), elements)


def _span(start: int, stop: int, length: int) -> tuple[int, int]:
    """From which index to below which other one; of indexes from the end, or beyond the list."""
    first = max(start + length if start < 0 else start, 0)
    end = min((stop + length if stop < 0 else stop) + 1, length)
    return (first, end) if first < end else (0, 0)


class _PositionOptions:
    """The options of LPOS. Raises :class:`CommandError`."""

    __slots__ = ("count", "most", "rank")

    def __init__(self, args: Arguments) -> None:
        self.rank = 1
        self.count: int | None = None
        self.most = 0
        for at in range(3, len(args), 2):
            if at + 1 == len(args):
                raise CommandError(errors.SYNTAX)
            self._take(args[at].upper(), args[at + 1])

    def _take(self, word: bytes, text: bytes) -> None:
        if word == b"RANK":
            self.rank = integer_between(text, -INT64_MAX, INT64_MAX)
            if self.rank == 0:
                raise CommandError(list_errors.RANK_ZERO)
        elif word == b"COUNT":
            self.count = _not_negative(text, list_errors.NEGATIVE_COUNT)
        elif word == b"MAXLEN":
            self.most = _not_negative(text, list_errors.NEGATIVE_MAXLEN)
        else:
            raise CommandError(errors.SYNTAX)


def _not_negative(text: bytes, error: str) -> int:
    value = parse_integer(text)
    if value is None or value < 0:
        raise CommandError(error)
    return value


@command(
    "LPOS",
    flags="readonly",
    since="6.0.6",
    summary="Finds the indexes of an element.",
    complexity="O(N) in the number of elements that are compared.",
    syntax="key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
    keys=_READ,
)
def lpos(server: Services, session: Session, args: Arguments) -> Reply:
    """The index, or null; with COUNT an array of as many."""
    options = _PositionOptions(args)
    value = list_to_read(session, args[1])
    found = [] if value is None else _positions(value, args[2], options)
    if options.count is not None:
        return [*found]
    return found[0] if found else None


def _positions(value: ListValue, element: bytes, options: _PositionOptions) -> list[int]:
    """The indexes at which the element is found, as many as are asked for."""
    left = options.rank > 0
    wanted = 1 if options.count is None else options.count or len(value)
    places = value.places(
        element, abs(options.rank) - 1, wanted, options.most or len(value), left=left
    )
    return places if left else [len(value) - 1 - place for place in places]


# --- within ----------------------------------------------------------------------------------


@command(
    "LSET",
    flags="write denyoom",
    since="1.0.0",
    summary="Replaces the element at an index, which counts from the end if it is negative.",
    complexity="O(N) in the number of elements up to the nearer end.",
    syntax="key index element",
    keys=[KeySpec("RW update")],
)
def lset(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    _, key, text, element = args
    value = session.db.collection(key, ListValue)
    if value is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if not value.set(integer(text), element):
        raise CommandError(list_errors.INDEX_OUT_OF_RANGE)
    session.db.changed(key, value, (b"LSET", key, text, element), _SET)
    return OK


@command(
    "LINSERT",
    flags="write denyoom",
    since="2.2.0",
    summary="Adds an element beside another one.",
    complexity="O(N) in the number of elements before the other one.",
    syntax="key <BEFORE | AFTER> pivot element",
    keys=[KeySpec("RW insert")],
)
def linsert(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the list; -1 if the other element is not there, 0 for no key."""
    _, key, where, pivot, element = args
    if where.upper() not in (b"BEFORE", b"AFTER"):
        raise CommandError(errors.SYNTAX)
    value = session.db.collection(key, ListValue)
    if value is None:
        return 0
    if not value.insert(pivot, element, before=where.upper() == b"BEFORE"):
        return -1
    session.db.changed(key, value, (b"LINSERT", *args[1:]), _INSERTED)
    return len(value)


@command(
    "LREM",
    flags="write",
    since="1.0.0",
    summary="Removes elements that are equal to one, from the right if the count is negative.",
    complexity="O(N) in the length of the list.",
    syntax="key count element",
    keys=[KeySpec("RW delete")],
)
def lrem(server: Services, session: Session, args: Arguments) -> Reply:
    """How many elements were removed."""
    _, key, text, element = args
    count = integer_between(text, -INT64_MAX, INT64_MAX)
    value = session.db.collection(key, ListValue)
    if value is None:
        return 0
    removed = value.remove(element, count)
    if removed:
        words = (b"LREM", key, text, element)
        session.db.changed(key, value, words, _REMOVED, weight=removed)
    return removed


@command(
    "LTRIM",
    flags="write",
    since="1.0.0",
    summary="Keeps the elements from one index to another.",
    complexity="O(N) in the elements that are removed, or in those kept where they are fewer.",
    syntax="key start stop",
    keys=[KeySpec("RW delete")],
)
def ltrim(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    _, key, first, last = args
    start, stop = integer(first), integer(last)
    value = session.db.collection(key, ListValue)
    if value is not None:
        removed = value.trim(*_span(start, stop, len(value)))
        session.db.changed(key, value, (b"LTRIM", *args[1:]), _TRIMMED, weight=removed)
    return OK
