"""Finding keys: all that match a pattern, page by page, or any one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from protocol import errors
from protocol.encoder import array, bulk
from protocol.errors import CommandError
from protocol.replies import Bulk, Reply
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.core.outcomes import Steps, Work
from server.core.table import Arguments
from server.runtime.arguments import integer, parse_integer
from server.services import Services
from server.state.session import Session
from storage.keyspace.databases import Database
from storage.keyspace.glob import Matcher, matcher
from storage.keyspace.indexes import Bucket
from storage.types.kinds import Value, kind_of

_CURSORS: Final = 2**64
_LENIENT_CURSOR: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)0*([0-9]+)")
_CURSOR_DIGITS: Final = 20
_PAGE: Final = 10
"""How many keys SCAN looks at when it is not told."""
_STEP: Final = 1000
"""How many keys it looks at in one step, at most about."""
_BUCKETS: Final = 128
"""Of how many buckets KEYS takes the keys in one step."""


def type_name(value: Value | None) -> str:
    """Return what TYPE says of a value."""
    return "none" if value is None else kind_of(value).name


@command(
    "KEYS",
    flags="readonly",
    since="1.0.0",
    summary="Lists the keys whose names match a pattern.",
    complexity="O(N) in the number of keys of the database.",
    syntax="pattern",
    categories="dangerous",
    tips=("request_policy:all_shards", "nondeterministic_output_order"),
)
def keys(server: Services, session: Session, args: Arguments) -> Steps:
    """Every key there is now that fits the pattern."""
    database, pattern = session.db, args[1]
    fits = None if pattern == b"*" else matcher(pattern)
    return Steps(_fitting(database.scan.buckets(), database.overdue(), fits))


def _fitting(buckets: Sequence[Bucket], overdue: set[bytes], fits: Matcher | None) -> Work:
    """The reply of KEYS, from what was taken when it began."""
    count = 0
    pieces = [b""]
    for at in range(0, len(buckets), _BUCKETS):
        if at:
            yield
        found = [key for bucket in buckets[at : at + _BUCKETS] for key in bucket]
        if fits is not None:
            found = list(filter(fits, found))
        if overdue:
            found = [key for key in found if key not in overdue]
        count += len(found)
        pieces.append(b"".join([b"$%d\r\n%b\r\n" % (len(key), key) for key in found]))
    pieces[0] = b"*%d\r\n" % count
    return pieces


@command(
    "RANDOMKEY",
    flags="readonly",
    since="1.0.0",
    summary="Picks a key of the database at random.",
    tips=("request_policy:all_shards", "response_policy:special", "nondeterministic_output"),
)
def randomkey(server: Services, session: Session, args: Arguments) -> Reply:
    """A key, or null in an empty database."""
    database = session.db
    while (key := database.scan.random()) is not None:
        if database.get(key) is not None:
            return Bulk(key)
    return None


@command(
    "SCAN",
    flags="readonly",
    since="2.8.0",
    summary="Walks through the keys of the database a page at a time.",
    complexity="O(N) in the number of keys a call looks at.",
    syntax="cursor [MATCH pattern] [COUNT count] [TYPE type]",
    tips=("nondeterministic_output", "request_policy:special", "response_policy:special"),
    history=[("6.0.0", "The `TYPE` option.")],
)
def scan(server: Services, session: Session, args: Arguments) -> Steps:
    """The cursor to go on with (0: there is nothing more), and the keys of this page."""
    cursor = _cursor(args[1])
    return Steps(_page(session.db, cursor, _ScanOptions(args)))


def _page(database: Database, cursor: int, options: _ScanOptions) -> Work:
    """The reply of SCAN. Keys may come and go between its steps as between its calls."""
    left = options.count
    found: list[bytes] = []
    while True:
        cursor, page = database.scan.page(cursor, min(left, _STEP))
        found += [bulk(key) for key in page if options.accept(database, key)]
        left -= len(page)
        if not cursor or left <= 0:
            break
        yield
    return [b"*2\r\n", bulk(b"%d" % cursor), array(found)]


class _ScanOptions:
    """The options of SCAN: which of the keys that it comes past it returns."""

    __slots__ = ("count", "fits", "type")

    def __init__(self, args: Arguments) -> None:
        self.count = _PAGE
        self.fits: Matcher | None = None
        self.type: bytes | None = None
        for at in range(2, len(args), 2):
            self._take(args[at].upper(), args[at + 1 : at + 2])

    def _take(self, name: bytes, value: list[bytes]) -> None:
        if name == b"NOVALUES":
            raise CommandError(key_errors.NOVALUES_OUTSIDE_HSCAN)
        if not value:
            raise CommandError(errors.SYNTAX)
        if name == b"COUNT":
            self.count = integer(value[0])
            if self.count < 1:
                raise CommandError(errors.SYNTAX)
        elif name == b"MATCH":
            self.fits = None if value[0] == b"*" else matcher(value[0])
        elif name == b"TYPE":
            self.type = value[0].lower()
        else:
            raise CommandError(errors.SYNTAX)

    def accept(self, database: Database, key: bytes) -> bool:
        """Whether the key is there, and is what the options ask for."""
        if self.fits is not None and not self.fits(key):
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
        raise CommandError(key_errors.INVALID_CURSOR)
    return value


def _lenient_cursor(text: bytes) -> int:
    """Read what is no integer in the strict form as C's strtoul does; -1 if that fails."""
    match = _LENIENT_CURSOR.fullmatch(text)
    if match is None or len(match[2]) > _CURSOR_DIGITS:
        return -1
    value = int(match[2])
    return -value % _CURSORS if match[1] == b"-" and value < _CURSORS else value
