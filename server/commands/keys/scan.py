"""Finding keys: all that match a pattern, page by page, or any one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from protocol.encoder import array, bulk
from protocol.replies import Bulk, Reply
from server.commands.declare import command
from server.commands.keys.scan_options import STEP, ScanOptions, scan_cursor
from server.core.outcomes import Steps, Work
from server.core.table import Arguments
from server.services import Services
from server.state.session import Session
from storage.indexes import Bucket
from storage.keyspace.databases import Database
from storage.keyspace.glob import Matcher, matcher
from storage.types.kinds import Value, kind_of

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
    cursor = scan_cursor(args[1])
    return Steps(_page(session.db, cursor, ScanOptions(args, 2, typed=True)))


def _page(database: Database, cursor: int, options: ScanOptions) -> Work:
    """The reply of SCAN. Keys may come and go between its steps as between its calls."""
    left = options.count
    found: list[bytes] = []
    while True:
        cursor, page = database.scan.page(cursor, min(left, STEP))
        found += [bulk(key) for key in page if _is_wanted(database, key, options)]
        left -= len(page)
        if not cursor or left <= 0:
            break
        yield
    return [b"*2\r\n", bulk(b"%d" % cursor), array(found)]


def _is_wanted(database: Database, key: bytes, options: ScanOptions) -> bool:
    """Whether the key is there, and is what the options ask for."""
    if options.fits is not None and not options.fits(key):
        return False
    if options.type is None:
        return database.get(key) is not None
    value = database.inspect(key)
    return value is not None and options.type == type_name(value).encode()
