"""Whole databases: their size, emptying, exchanging and saving them.

What Redis calls a snapshot is the base of the append-only file here, which holds more than an RDB
file; with ``dbfilename`` such a file is written beside it.
"""

from __future__ import annotations

from functools import partial

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Reply, Simple
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.commands.server import errors as server_errors
from server.core.outcomes import Wait
from server.core.table import Arguments
from server.persistence.manager import PersistenceError
from server.runtime.arguments import INT32_MAX, INT32_MIN, parse_integer
from server.services import Services
from server.state.session import Session


@command(
    "DBSIZE",
    flags="readonly fast",
    since="1.0.0",
    summary="Counts the keys of the database.",
    categories="keyspace",
    tips=("request_policy:all_shards", "response_policy:agg_sum"),
)
def dbsize(server: Services, session: Session, args: Arguments) -> Reply:
    """How many keys there are, with those that nobody has found expired yet."""
    return len(session.db)


_flush = partial(
    command,
    flags="write",
    since="1.0.0",
    complexity="O(1); the memory of N keys is freed later.",
    syntax="[ASYNC | SYNC]",
    categories="keyspace dangerous",
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
    history=[("4.0.0", "The `ASYNC` modifier."), ("6.2.0", "The `SYNC` modifier.")],
)


@_flush("FLUSHDB", summary="Empties the database.")
def flushdb(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """OK; every key of the database is gone."""
    later = _is_async(args)
    session.db.flush()
    return _flushed(server, session, later)


@_flush("FLUSHALL", summary="Empties every database.")
def flushall(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """OK; no database has a key any more."""
    later = _is_async(args)
    for database in server.state.keyspace.databases:
        database.flush()
    return _flushed(server, session, later)


def _is_async(args: Arguments) -> bool:
    """Whether ASYNC is asked for, and not SYNC. The keys are gone at once either way, and memory is
    freed little by little."""
    if len(args) > 2 or (len(args) == 2 and args[1].upper() not in (b"ASYNC", b"SYNC")):
        raise CommandError(errors.SYNTAX)
    return len(args) == 2 and args[1].upper() == b"ASYNC"


def _flushed(server: Services, session: Session, later: bool) -> Reply | Wait:
    """Tells those who keep copies of keys, and answers.

    Redis parks the client of a flush that is not ASYNC until the work is done, so that its own
    notice comes before its reply and not behind it. Nobody else can tell the difference."""
    server.tracking.flush()
    if later or session.tracking is None:
        return OK
    return Wait([], 0, lambda: OK, kind=None, on_timeout=OK)


@command(
    "SWAPDB",
    flags="write fast",
    since="4.0.0",
    summary="Exchanges the contents of two databases.",
    complexity="O(N) in the number of clients that watch or wait for keys of the two.",
    syntax="index1 index2",
    categories="keyspace dangerous",
)
def swapdb(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; clients of one database see the other's keys from now on."""
    first = _index(args[1], key_errors.INVALID_FIRST_DB)
    second = _index(args[2], key_errors.INVALID_SECOND_DB)
    keyspace = server.state.keyspace
    if not (0 <= first < len(keyspace.databases) and 0 <= second < len(keyspace.databases)):
        raise CommandError(errors.DB_OUT_OF_RANGE)
    keyspace.swap(first, second)
    if first == second:  # There is no effect, but it counts as a change all the same.
        server.state.changes += 1
    return OK


def _index(arg: bytes, error: str) -> int:
    index = parse_integer(arg)
    if index is None or not INT32_MIN <= index <= INT32_MAX:
        raise CommandError(error)
    return index


# --- SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE ------------------------------------------------------


@command(
    "SAVE",
    flags="admin noscript no_async_loading no_multi",
    since="1.0.0",
    summary="Writes all data to a new base of the append-only file, while everything waits.",
    complexity="O(N) in the number of entries in all databases.",
)
def save(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, once everything is saved."""
    persistence = server.persistence
    if persistence.rewriting.in_progress:
        raise CommandError(server_errors.SAVE_IN_PROGRESS)
    try:
        persistence.save()
    except PersistenceError as error:
        raise CommandError(errors.save_failed(str(error))) from None
    return OK


@command(
    "BGSAVE",
    flags="admin noscript no_async_loading",
    since="1.0.0",
    summary="Writes all data to a new base of the append-only file, in the background.",
    syntax="[SCHEDULE]",
    history=[("3.2.2", "The option `SCHEDULE`.")],
)
def bgsave(server: Services, session: Session, args: Arguments) -> Reply:
    """A line that saving has begun; or an error that says why it cannot."""
    if [arg.upper() for arg in args[1:]] not in ([], [b"SCHEDULE"]):
        raise CommandError(errors.SYNTAX)
    rewriting = server.persistence.rewriting
    if rewriting.in_progress and rewriting.is_save:
        raise CommandError(server_errors.SAVE_IN_PROGRESS)
    if rewriting.in_progress and len(args) == 1 and not session.executing:
        raise CommandError(server_errors.OTHER_CHILD)
    done = _begin(server, session, is_save=True)
    return Simple(f"Background saving {done}")


@command(
    "BGREWRITEAOF",
    flags="admin noscript no_async_loading",
    since="1.0.0",
    summary="Rewrites the append-only file to what it comes to, in the background.",
)
def bgrewriteaof(server: Services, session: Session, args: Arguments) -> Reply:
    """A line that a rewrite has begun, or will after the save that is going on."""
    rewriting = server.persistence.rewriting
    if rewriting.in_progress and not rewriting.is_save:
        raise CommandError(server_errors.REWRITE_IN_PROGRESS)
    done = _begin(server, session, is_save=False)
    return Simple(f"Background append only file rewriting {done}")


def _begin(server: Services, session: Session, *, is_save: bool) -> str:
    """Begins, or leaves it for later: while something else is going on, and within a transaction,
    whose effects must not be part of the base before they are in the file as a whole."""
    persistence = server.persistence
    if persistence.rewriting.in_progress or session.executing:
        persistence.schedule(is_save=is_save)
        return "scheduled"
    try:
        persistence.rewrite(is_save=is_save)
    except PersistenceError as error:
        raise CommandError(errors.save_failed(str(error))) from None
    return "started"


@command(
    "LASTSAVE",
    flags="loading stale fast",
    since="1.0.0",
    categories="admin dangerous",
    summary="Tells when a base of the append-only file was last made.",
    tips=["nondeterministic_output"],
)
def lastsave(server: Services, session: Session, args: Arguments) -> Reply:
    """Unix time in seconds; that of the start, if there was none."""
    return server.persistence.rewriting.saved_ms // 1000
