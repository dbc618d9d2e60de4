"""Finding keys: all that match a pattern, page by page, or any one."""

from __future__ import annotations

import re
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Bulk, Reply
from server.arguments import integer, parse_integer
from server.commands.spec import Arguments, command
from server.glob import matches
from server.session import Session
from storage.keyspace import Database, Value

_CURSORS: Final = 2**64
_LENIENT_CURSOR: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)0*([0-9]+)")
_CURSOR_DIGITS: Final = 20
_PAGE: Final = 10
"""How many keys SCAN looks at when it is not told."""


def type_name(value: Value | None) -> str:
    """What TYPE says of a value."""
    if value is None:
        return "none"
    return "string" if type(value) is bytes else "stream"


@command(
    "KEYS",
    2,
    flags="readonly",
    group="generic",
    since="1.0.0",
    summary="Lists the keys whose names match a pattern.",
    complexity="O(N) in the number of keys of the database.",
    syntax="pattern",
    categories="dangerous",
    tips=("request_policy:all_shards", "nondeterministic_output_order"),
)
def keys(session: Session, args: Arguments) -> Reply:
    """Every key that fits the pattern."""
    pattern = args[1]
    found = session.db.keys()
    if pattern == b"*":
        return [Bulk(key) for key in found]
    return [Bulk(key) for key in found if matches(pattern, key)]


@command(
    "RANDOMKEY",
    1,
    flags="readonly",
    group="generic",
    since="1.0.0",
    summary="Picks a key of the database at random.",
    tips=("request_policy:all_shards", "response_policy:special", "nondeterministic_output"),
)
def randomkey(session: Session, args: Arguments) -> Reply:
    """A key, or null in an empty database."""
    database = session.db
    while (key := database.scan.random()) is not None:
        if database.get(key) is not None:
            return Bulk(key)
    return None


@command(
    "SCAN",
    -2,
    flags="readonly",
    group="generic",
    since="2.8.0",
    summary="Walks through the keys of the database a page at a time.",
    complexity="O(N) in the number of keys a call looks at.",
    syntax="cursor [MATCH pattern] [COUNT count] [TYPE type]",
    tips=("nondeterministic_output", "request_policy:special", "response_policy:special"),
    history=[("6.0.0", "The `TYPE` option.")],
)
def scan(session: Session, args: Arguments) -> Reply:
    """The cursor to go on with (0: there is nothing more), and the keys of this page."""
    cursor = _cursor(args[1])
    options = _ScanOptions(args)
    following, page = session.db.scan.page(cursor, options.count)
    return [str(following), [Bulk(key) for key in page if options.accept(session.db, key)]]


class _ScanOptions:
    """What SCAN returns of the keys that it comes past."""

    __slots__ = ("count", "pattern", "type")

    def __init__(self, args: Arguments) -> None:
        self.count = _PAGE
        self.pattern = b"*"
        self.type: bytes | None = None
        for at in range(2, len(args), 2):
            self._take(args[at].upper(), args[at + 1 : at + 2])

    def _take(self, name: bytes, value: list[bytes]) -> None:
        if name == b"NOVALUES":
            raise CommandError(errors.NOVALUES_OUTSIDE_HSCAN)
        if not value:
            raise CommandError(errors.SYNTAX)
        if name == b"COUNT":
            self.count = integer(value[0])
            if self.count < 1:
                raise CommandError(errors.SYNTAX)
        elif name == b"MATCH":
            self.pattern = value[0]
        elif name == b"TYPE":
            self.type = value[0].lower()
        else:
            raise CommandError(errors.SYNTAX)

    def accept(self, database: Database, key: bytes) -> bool:
        """Whether the key is there, and is what the options ask for."""
        if self.pattern != b"*" and not matches(self.pattern, key):
            return False
        if self.type is None:
            return database.get(key) is not None
        value = database.inspect(key)
        return value is not None and self.type == type_name(value).encode()


def _cursor(arg: bytes) -> int:
    value = parse_integer(arg)
    if value is None:
        value = _lenient_cursor(arg.split(b"\0", 1)[0])
    if not 0 <= value < _CURSORS:
        raise CommandError(errors.INVALID_CURSOR)
    return value


def _lenient_cursor(text: bytes) -> int:
    """What is no integer in the strict form is read as C's strtoul reads it; -1 if that fails."""
    match = _LENIENT_CURSOR.fullmatch(text)
    if match is None or len(match[2]) > _CURSOR_DIGITS:
        return -1
    value = int(match[2])
    return -value % _CURSORS if match[1] == b"-" and value < _CURSORS else value
