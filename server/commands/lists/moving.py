"""Elements that go from one list to another, or out of the first of several, at once or as soon as
there is one."""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol import errors
from protocol.encoder import array, bulk
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Reply
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.commands.keys.counted_keys import PopOptions
from server.commands.keys.waiting import blocking, wait_end
from server.commands.lists.lists import POPPED, PUSHED, pop_many, pop_one
from server.core.outcomes import Outcome, Steps, write_texts
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import parse_integer
from server.services import Services
from server.state.session import Session
from storage.types.collection import Words
from storage.types.list import ListValue

_HOW_MANY: Final = "[<COUNT | EXACTLY> count <OBO | BULK>]"
_ENDS: Final = (b"LEFT", b"RIGHT")
_MOVED: Final = [KeySpec("RW access delete"), KeySpec("RW insert", index=2)]


def _is_left(word: bytes) -> bool:
    """Whether a word names the left end. Raises :class:`CommandError`."""
    if word.upper() not in _ENDS:
        raise CommandError(errors.SYNTAX)
    return word.upper() == _ENDS[0]


def _end(args: Arguments, session: Session) -> int | None:
    return wait_end(args[-1], session.db.keyspace.now_ms)


# --- from list to list -----------------------------------------------------------------------


@command(
    "LMOVE",
    flags="write denyoom",
    since="6.2.0",
    summary="Moves an element from an end of a list to an end of another, or of the same.",
    syntax="source destination <LEFT | RIGHT> <LEFT | RIGHT>",
    keys=_MOVED,
)
def lmove(server: Services, session: Session, args: Arguments) -> Reply:
    """The element, or null."""
    _, source, destination, out, into = args
    return _move(session, source, destination, _is_left(out), _is_left(into))


@command(
    "RPOPLPUSH",
    flags="write denyoom",
    since="1.2.0",
    summary="Moves an element from the right end of a list to the left end of another.",
    syntax="source destination",
    keys=_MOVED,
    deprecated=("6.2.0", "`LMOVE` with `RIGHT` and `LEFT`"),
)
def rpoplpush(server: Services, session: Session, args: Arguments) -> Reply:
    """The element, or null."""
    return _move(session, args[1], args[2], False, True)


@command(
    "BLMOVE",
    flags="write denyoom blocking",
    since="6.2.0",
    summary="Moves an element between lists as LMOVE does, once there is one.",
    syntax="source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
    keys=_MOVED,
)
def blmove(server: Services, session: Session, args: Arguments) -> Outcome:
    """The element, or null when the time is over."""
    return _move_later(session, args, _is_left(args[3]), _is_left(args[4]))


@command(
    "BRPOPLPUSH",
    flags="write denyoom blocking",
    since="2.2.0",
    summary="Moves an element between lists as RPOPLPUSH does, once there is one.",
    syntax="source destination timeout",
    keys=_MOVED,
    deprecated=("6.2.0", "`BLMOVE` with `RIGHT` and `LEFT`"),
    history=[("6.0.0", "A timeout with decimal places.")],
)
def brpoplpush(server: Services, session: Session, args: Arguments) -> Outcome:
    """The element, or null when the time is over."""
    return _move_later(session, args, False, True)


def _move_later(session: Session, args: Arguments, out: bool, into: bool) -> Outcome:
    attempt = partial(_move, session, args[1], args[2], out, into)
    # Within a transaction it answers as the plain command does, and not as one that has waited.
    in_vain = None if session.executing else NULL_ARRAY
    return blocking(session, [args[1]], _end(args, session), attempt, ListValue, in_vain)


def _move(session: Session, source: bytes, destination: bytes, out: bool, into: bool) -> Reply:
    """Moves an element from the left end, or the right one, to the left or right of another list;
    returns it, or null."""
    database = session.db
    value = database.collection(source, ListValue)
    if value is None:
        return None
    if source == destination:
        element = value.turn(left=out, to_left=into)
        ends = (b"LEFT" if out else b"RIGHT", b"LEFT" if into else b"RIGHT")
        words: Words = (b"LMOVE", source, source, *ends)
        database.changed(source, value, words, PUSHED[into] + POPPED[out], wakes=True)
        return bulk(element)
    other = database.collection_to_fill(destination, ListValue)
    element = value.pop(left=out)
    other.push([element], left=into)
    words = (b"LPUSH" if into else b"RPUSH", destination, element)
    database.changed(destination, other, words, PUSHED[into], wakes=True)
    database.changed(source, value, (b"LPOP" if out else b"RPOP", source), POPPED[out])
    return bulk(element)


class _MoveOptions:
    """Which ends LMOVEM has, and how many elements it moves. Raises :class:`CommandError`."""

    __slots__ = ("count", "exactly", "into", "one_by_one", "out")

    def __init__(self, args: Arguments, behind: int) -> None:
        self.out, self.into = _is_left(args[3]), _is_left(args[4])
        self.count, self.exactly, self.one_by_one = 1, False, True
        words = args[behind:]
        if not words:
            return
        mode, order = words[0].upper(), words[2].upper() if len(words) == 3 else b""
        if mode not in (b"COUNT", b"EXACTLY") or order not in (b"OBO", b"BULK"):
            raise CommandError(errors.SYNTAX)
        count = parse_integer(words[1])
        if count is None or count <= 0:
            raise CommandError(key_errors.COUNT_TOO_SMALL)
        self.count, self.exactly, self.one_by_one = count, mode == b"EXACTLY", order == b"OBO"

    def words(self, key: bytes) -> Words:
        """Return the command for a list and itself. To pop and push would lose its expiry."""
        ends = [b"LEFT" if end else b"RIGHT" for end in (self.out, self.into)]
        order = b"OBO" if self.one_by_one else b"BULK"
        return (b"LMOVEM", key, key, *ends, b"COUNT", b"%d" % self.count, order)


@command(
    "LMOVEM",
    flags="write denyoom",
    since="8.10.0",
    summary="Moves elements from an end of a list to an end of another, or of the same.",
    complexity="O(N) in the number of elements that are moved.",
    syntax=f"source destination <LEFT | RIGHT> <LEFT | RIGHT> {_HOW_MANY}",
    keys=_MOVED,
)
def lmovem(server: Services, session: Session, args: Arguments) -> Outcome:
    """The elements in the order in which they are in the destination, or null."""
    found = _move_some(session, args[1], args[2], _MoveOptions(args, 5))
    return NULL_ARRAY if found is None else found


@command(
    "BLMOVEM",
    flags="write denyoom blocking",
    since="8.10.0",
    summary="Moves elements between lists as LMOVEM does, once there are enough.",
    complexity="O(N) in the number of elements that are moved.",
    syntax=f"source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout {_HOW_MANY}",
    keys=_MOVED,
)
def blmovem(server: Services, session: Session, args: Arguments) -> Outcome:
    """The elements in the order in which they are in the destination; null when the time is
    over."""
    options = _MoveOptions(args, 6)
    end = wait_end(args[5], session.db.keyspace.now_ms)
    attempt = partial(_move_some, session, args[1], args[2], options)
    return blocking(session, [args[1]], end, attempt, ListValue)


def _move_some(
    session: Session, source: bytes, destination: bytes, options: _MoveOptions
) -> Reply | Steps:
    """Moves elements from list to list; returns them, or null if there are not enough."""
    database = session.db
    value = database.collection(source, ListValue)
    if value is None or (options.exactly and len(value) < options.count):
        return None
    other = value
    if source != destination:
        other = database.collection_to_fill(destination, ListValue)
    elements = value.pops(options.count, left=options.out)
    # In bulk they stay side by side; one by one the last one comes to stand at the end.
    turned = options.into if options.one_by_one else not options.out
    in_order = elements[::-1] if turned else elements
    pushed = in_order[::-1] if options.into else in_order
    other.push(pushed, left=options.into)
    words: Words = (b"LPUSH" if options.into else b"RPUSH", destination, *pushed)
    popped: Words = (b"LPOP" if options.out else b"RPOP", source, b"%d" % len(elements))
    told, moved = PUSHED[options.into], len(elements)
    if other is value:
        events = told + POPPED[options.out]
        database.changed(source, value, options.words(source), events, wakes=True, weight=moved)
    else:
        database.changed(destination, other, words, told, wakes=True, weight=moved)
        database.changed(source, value, popped, POPPED[options.out], weight=moved)
    return write_texts(b"*%d" % len(in_order), in_order)


# --- out of the first of several -------------------------------------------------------------

_popper = partial(
    command,
    flags="write blocking",
    since="2.0.0",
    complexity="O(N) in the number of keys.",
    syntax="key [key ...] timeout",
    keys=[KeySpec("RW access delete", last=-2)],
    history=[("6.0.0", "A timeout with decimal places.")],
)


@_popper("BLPOP", summary="Removes the element at the left end of a list, once there is one.")
def blpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key and the element; null when the time is over."""
    return _pop_later(session, args, True)


@_popper("BRPOP", summary="Removes the element at the right end of a list, once there is one.")
def brpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key and the element; null when the time is over."""
    return _pop_later(session, args, False)


def _pop_later(session: Session, args: Arguments, left: bool) -> Outcome:
    keys, end = args[1:-1], _end(args, session)
    return blocking(session, keys, end, partial(_pop_first, session, keys, left), ListValue)


def _pop_first(session: Session, keys: list[bytes], left: bool) -> Reply:
    """Removes an element of the first list that there is; returns key and element, or null."""
    for key in keys:
        value = session.db.collection(key, ListValue)
        if value is not None:
            return array([bulk(key), bulk(pop_one(session, key, value, left))])
    return None


def _pop_some(session: Session, options: PopOptions) -> Reply | Steps:
    """Removes elements of the first list that there is; returns key and elements, or null."""
    for key in options.keys:
        value = session.db.collection(key, ListValue)
        if value is not None:
            elements = pop_many(session, key, value, options.count, options.is_first)
            return write_texts(b"*2\r\n%b*%d" % (bulk(key), len(elements)), elements)
    return None


@command(
    "LMPOP",
    flags="write",
    since="7.0.0",
    summary="Removes elements at an end of the first list that there is.",
    complexity="O(N+M) in the number of keys and of elements.",
    syntax="numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
    keys=[KeySpec("RW access delete", counted=True)],
)
def lmpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key and the elements, or null."""
    found = _pop_some(session, PopOptions(args, 1, _ENDS))
    return NULL_ARRAY if found is None else found


@command(
    "BLMPOP",
    flags="write blocking",
    since="7.0.0",
    summary="Removes elements at an end of the first list that there is, once there is one.",
    complexity="O(N+M) in the number of keys and of elements.",
    syntax="timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
    keys=[KeySpec("RW access delete", index=2, counted=True)],
)
def blmpop(server: Services, session: Session, args: Arguments) -> Outcome:
    """The key and the elements; null when the time is over."""
    options = PopOptions(args, 2, _ENDS)
    end = wait_end(args[1], session.db.keyspace.now_ms)
    return blocking(session, options.keys, end, partial(_pop_some, session, options), ListValue)
