"""SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE: what asks for the data to be written as a whole.

What Redis calls a snapshot is the base of the append-only file here, which holds more than an RDB
file; with ``dbfilename`` such a file is written beside it.
"""

from __future__ import annotations

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Reply, Simple
from server.commands.declare import command
from server.commands.server import errors as server_errors
from server.persistence.manager import PersistenceError
from server.road.session import Session
from server.road.table import Arguments
from server.services import Services


@command(
    "SAVE",
    flags="admin noscript no_async_loading no_multi",
    since="1.0.0",
    summary="Writes all data to a new base of the append-only file, while everything waits.",
    complexity="O(N) in the number of entries in all databases.",
)
def save(server: Services, session: Session, args: Arguments) -> Reply:
    """Saves before it answers."""
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
    """BGSAVE [SCHEDULE]: begins to save, or says why it cannot."""
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
    """Begins a rewrite, or lets it begin after the save that is going on."""
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
    """LASTSAVE: Unix time in seconds; that of the start, if there was none."""
    return server.persistence.rewriting.saved_ms // 1000
