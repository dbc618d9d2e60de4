"""What the commands of the SCAN family have in common: cursors, options, pages of elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Encoded
from server.commands.keys import errors as key_errors
from server.core.outcomes import Steps, Work
from server.core.table import Arguments
from server.runtime.arguments import integer, parse_integer
from storage.keyspace.glob import Matcher, matcher
from storage.types.hash import Hash
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

STEP: Final = 1000
"""How many keys or elements are looked at in one step, at most about."""

_CURSORS: Final = 2**64
_LENIENT_CURSOR: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)0*([0-9]+)")
_CURSOR_DIGITS: Final = 20
_PAGE: Final = 10
"""How many are looked at when nothing is said."""


class ScanOptions:
    """The options of one request, which begin at the argument ``first``. SCAN alone has ``typed``
    ones, HSCAN alone NOVALUES."""

    __slots__ = ("count", "fits", "has_values", "type")

    def __init__(
        self, args: Arguments, first: int, *, typed: bool = False, valued: bool = False
    ) -> None:
        self.count = _PAGE
        self.fits: Matcher | None = None
        self.type: bytes | None = None
        self.has_values = valued
        words = iter(args[first:])
        for option in words:
            name = option.upper()
            if name == b"NOVALUES":
                if not valued:
                    raise CommandError(key_errors.NOVALUES_OUTSIDE_HSCAN)
                self.has_values = False
            else:
                self._take(name, next(words, None), typed)

    def _take(self, name: bytes, value: bytes | None, typed: bool) -> None:
        if value is None:
            raise CommandError(errors.SYNTAX)
        if name == b"COUNT":
            self.count = integer(value)
            if self.count < 1:
                raise CommandError(errors.SYNTAX)
        elif name == b"MATCH":
            self.fits = None if value == b"*" else matcher(value)
        elif name == b"TYPE" and typed:
            self.type = value.lower()
        else:
            raise CommandError(errors.SYNTAX)


def scan_cursor(arg: bytes) -> int:
    """The cursor in an argument; raises :class:`CommandError`."""
    value = parse_integer(arg)
    if value is None:
        value = _lenient_cursor(arg.split(b"\0", 1)[0])
    if not 0 <= value < _CURSORS:
        raise CommandError(key_errors.INVALID_CURSOR)
    return value


def _lenient_cursor(text: bytes) -> int:
    """Read what is no integer in the strict form as C's strtoul does; -1 if that fails."""
    match = _LENIENT_CURSOR.fullmatch(text)
    if match is None or len(match[2]) > _CURSOR_DIGITS:
        return -1
    value = int(match[2])
    return -value % _CURSORS if match[1] == b"-" and value < _CURSORS else value


# --- the elements of a value -------------------------------------------------------------------

Scanned = Hash | SetValue | SortedSet
"""What has members to walk through."""

Texts = Callable[[bytes], list[bytes]]
"""Returns what a page has of an element, encoded: nothing if it is gone."""

NOTHING_LEFT: Final = Encoded(b"*2\r\n$1\r\n0\r\n*0\r\n")
"""The reply for a key that is not there."""


def page_of_elements(
    cursor: int, options: ScanOptions, value: Scanned, texts: Texts, *, at_once: bool
) -> Steps:
    """The reply of HSCAN, SSCAN and ZSCAN: the cursor to go on with and the elements of a page, or
    all of them ``at_once``. Elements may come and go between its steps as between its calls."""
    return Steps(_page(-1 if at_once else cursor, options, value, texts))


def _page(cursor: int, options: ScanOptions, value: Scanned, texts: Texts) -> Work:
    members = value.members  # The value is held as well, or its tables would be freed with its key.
    left, count = options.count, 0
    pieces: list[bytes] = []
    if cursor >= 0:
        yield from members.indexing()
    while True:
        if cursor < 0:
            cursor, page = 0, list(members.names)
        else:
            cursor, page = members.page(cursor, min(left, STEP))
        if options.fits is not None:
            page = list(filter(options.fits, page))
        found: list[bytes] = []
        for name in page:
            found += texts(name)
        count += len(found)
        pieces.append(b"".join(found))
        left -= len(page)
        if not cursor or left <= 0:
            break
        yield
    return [b"*2\r\n", bulk(b"%d" % cursor), b"*%d\r\n" % count, *pieces]
