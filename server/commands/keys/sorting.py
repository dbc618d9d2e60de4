"""SORT: the elements of a list, a set or a sorted set in the order of numbers or texts, which may
be those of other keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from math import isnan, nan
from typing import Any, Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.core.outcomes import Outcome, write_each
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import LIST, Events
from storage.errors import WrongType
from storage.types.hash import Hash
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

_NUMBER: Final = re.compile(rb"[^_\s]*")
"""What a number is made of; Python takes more."""

_STORED: Final[Events] = ((LIST, "sortstore"),)

ELEMENTS: Final[dict[type, Callable[[Any], Iterable[bytes]]]] = {
    ListValue: lambda value: value.elements,
    SetValue: SetValue.ordered,
    SortedSet: lambda value: value.members.names,
}
"""The elements of the values that can be sorted, in their own order."""


class SortOptions:
    """The options of SORT. Raises :class:`CommandError`."""

    __slots__ = (
        "alpha", "by", "count", "destination", "gets", "keeps_order", "offset", "reverse"
    )  # fmt: skip

    def __init__(self, args: Arguments, storing: bool = True) -> None:
        self.by: bytes | None = None
        self.keeps_order = False
        """Whether nothing is compared: a pattern was the same key for all elements."""
        self.offset, self.count = 0, -1
        self.gets: list[bytes] = []
        self.reverse = self.alpha = False
        self.destination: bytes | None = None
        words = iter(args[2:])
        for word in words:
            self._take(word.upper(), words, storing)

    def _take(self, word: bytes, following: Iterator[bytes], storing: bool) -> None:
        if word in (b"ASC", b"DESC"):
            self.reverse = word == b"DESC"
        elif word == b"ALPHA":
            self.alpha = True
        elif word == b"LIMIT":
            first, second = next(following, None), next(following, None)
            if first is None or second is None:
                raise CommandError(errors.SYNTAX)
            self.offset, self.count = integer(first), integer(second)
        else:
            self._take_name(word, next(following, None), storing)

    def _take_name(self, word: bytes, name: bytes | None, storing: bool) -> None:
        if name is not None and word == b"BY":
            self.by = name
            self.keeps_order |= b"*" not in name
        elif name is not None and word == b"GET":
            self.gets.append(name)
        elif name is not None and word == b"STORE" and storing:
            self.destination = name
        else:
            raise CommandError(errors.SYNTAX)

    def limit(self, elements: list[bytes]) -> list[bytes]:
        """The elements within the limit."""
        start = max(self.offset, 0)
        return elements[start:] if self.count < 0 else elements[start : start + self.count]


_BEHIND: Final = {b"BY": 1, b"GET": 1, b"LIMIT": 2, b"STORE": 1}
"""How many words belong to an option, which may look like options themselves."""


def _destinations(args: Arguments) -> list[bytes]:
    """Where the result is put: the last one that is named."""
    found: list[bytes] = []
    words = iter(args[2:])
    for word in words:
        option = word.upper()
        behind = list(islice(words, _BEHIND.get(option, 0)))
        if option == b"STORE" and behind:
            found = behind
    return found


_OTHERS: Final = KeySpec(
    "RO access",
    notes="those that BY and GET name, which follow from the elements",
    find=lambda args: [],
    anywhere=True,
)
_SORTING: Final = (
    "[BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]"
)
_sorter = partial(
    command,
    categories="-keyspace set sortedset list dangerous",
    complexity="O(N+M*log(M)) in the number of elements and of those in the reply.",
)


@_sorter(
    "SORT",
    flags="write denyoom",
    since="1.0.0",
    summary="Sorts the elements of a list, a set or a sorted set; may store the result.",
    syntax=f"key {_SORTING} [STORE destination]",
    keys=[
        KeySpec("RO access"),
        _OTHERS,
        KeySpec(
            "OW update",
            notes="that of STORE, which may stand anywhere",
            find=_destinations,
            anywhere=True,
        ),
    ],
)
def sort(server: Services, session: Session, args: Arguments) -> Outcome:
    """The elements, or what GET names; with STORE how many there are."""
    options = SortOptions(args)
    found = _sorted(session, args[1], options)
    if options.destination is None:
        return _reply(session, found)
    return _store(session, options.destination, found, args)


@_sorter(
    "SORT_RO",
    flags="readonly",
    since="7.0.0",
    summary="Sorts the elements of a list, a set or a sorted set.",
    syntax=f"key {_SORTING}",
    keys=[KeySpec("RO access"), _OTHERS],
)
def sort_ro(server: Services, session: Session, args: Arguments) -> Outcome:
    """The elements, or what GET names."""
    return _reply(session, _sorted(session, args[1], SortOptions(args, storing=False)))


def _reply(session: Session, found: list[bytes | None]) -> Outcome:
    null = b"_\r\n" if session.resp3 else b"$-1\r\n"

    def element(text: bytes | None) -> bytes:
        return null if text is None else bulk(text)

    return write_each(b"*%d\r\n" % len(found), map(element, found), len(found))


def _store(
    session: Session, destination: bytes, found: list[bytes | None], args: Arguments
) -> Reply:
    database = session.db
    if not found:
        database.delete(destination)
        return 0
    value = ListValue(database.keyspace.limits.collections)
    value.push([text or b"" for text in found], left=False)
    words = (b"SORT", *args[1:])
    database.put(destination, value, [words], _STORED, weight=len(found))
    return len(found)


def _sorted(session: Session, key: bytes, options: SortOptions) -> list[bytes | None]:
    """What is answered with, or stored. Raises :class:`CommandError` and :class:`WrongType`."""
    _require_rights(session, options)
    value = session.db.read(key, touch=not session.no_touch)
    if value is not None and type(value) not in ELEMENTS:
        raise WrongType
    elements = [] if value is None else list(ELEMENTS[type(value)](value))
    unordered = type(value) is SetValue and (options.destination or session.executing)
    if not options.keeps_order:
        elements = _compared(session, elements, options, options.by, options.alpha)
    elif unordered:
        elements = _compared(session, elements, options, None, True)
    elif options.reverse and type(value) is not SetValue:
        elements.reverse()
    chosen = options.limit(elements)
    if not options.gets:
        return [*chosen]
    return [_looked_up(session, pattern, each) for each in chosen for pattern in options.gets]


def _require_rights(session: Session, options: SortOptions) -> None:
    """Patterns name keys that nobody can tell before: whoever uses them may read all keys."""
    if session.account.may_read_all():
        return
    if options.by is not None and not options.keeps_order:
        raise CommandError(key_errors.sort_denied("BY"))
    if any(pattern != b"#" for pattern in options.gets):
        raise CommandError(key_errors.sort_denied("GET"))


def _compared(
    session: Session, elements: list[bytes], options: SortOptions, by: bytes | None, alpha: bool
) -> list[bytes]:
    """The elements in the order of what they are compared by."""
    found = {each: each if by is None else _looked_up(session, by, each) for each in elements}
    if alpha:
        # What is not there comes first.
        texts = {each: (text is not None, text or b"") for each, text in found.items()}
        return sorted(elements, key=texts.__getitem__, reverse=options.reverse)
    numbers = {each: _number(text) for each, text in found.items()}
    if len(set(numbers.values())) < len(numbers):
        # Of equal numbers the texts are compared.
        elements = sorted(elements, reverse=options.reverse)
    return sorted(elements, key=numbers.__getitem__, reverse=options.reverse)


def _number(text: bytes | None) -> float:
    """The number that an element counts as; 0 for none."""
    if not text:
        return 0.0
    try:
        number = float(text)
    except ValueError:
        number = nan
    if isnan(number) or not (text.isdigit() or _NUMBER.fullmatch(text)):
        raise CommandError(key_errors.NOT_A_NUMBER_TO_SORT)
    return number


def _looked_up(session: Session, pattern: bytes, element: bytes) -> bytes | None:
    """The string, or the field of a hash, that a pattern stands for with an element in place of
    its star; ``#`` stands for the element."""
    if pattern == b"#":
        return element
    before, star, behind = pattern.partition(b"*")
    if not star:
        return None
    name, arrow, field = behind.partition(b"->")
    if not field:
        name += arrow
    value = session.db.read(before + element + name, touch=not session.no_touch)
    if field:
        return value.fields.get(field) if isinstance(value, Hash) else None
    return bytes(value) if isinstance(value, bytes | bytearray) else None
