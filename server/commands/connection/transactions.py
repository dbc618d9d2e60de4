"""Transactions: commands that are queued, then run in a row; keys whose change prevents it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.encoder import error_line
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, OK, Reply
from server.commands.connection import errors as connection_errors
from server.commands.declare import command
from server.commands.streams.adding import Queue, add_queued
from server.core.table import Arguments, KeySpec
from server.services import Services
from server.state.session import CLIENT, EXEC, Session

if TYPE_CHECKING:
    from server.core.outcomes import Wait

_FLAGS = "noscript loading stale fast allow_busy"


@command(
    "MULTI",
    flags=_FLAGS,
    since="1.2.0",
    summary="Begins a transaction: the commands that follow are queued.",
)
def multi(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; each command that follows is answered with QUEUED."""
    if session.transaction is not None:
        raise CommandError(connection_errors.NESTED_MULTI)
    session.begin_transaction()
    return OK


@command(
    "DISCARD",
    flags=_FLAGS,
    since="2.0.0",
    summary="Drops the queued commands and leaves the transaction.",
    complexity="O(N) in the number of queued commands.",
)
def discard(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, and nothing is run."""
    if session.transaction is None:
        raise CommandError(connection_errors.DISCARD_WITHOUT_MULTI)
    server.watching.end_transaction(session)
    return OK


@command(
    "WATCH",
    flags=_FLAGS,
    since="2.2.0",
    summary="Lets the next transaction run only if none of the keys has changed by then.",
    complexity="O(1) for each key.",
    syntax="key [key ...]",
    keys=[KeySpec("RO", last=-1)],
)
def watch(server: Services, session: Session, args: Arguments) -> Reply:
    """OK. A key that has expired by now counts as missing."""
    if session.transaction is not None:
        raise CommandError(connection_errors.WATCH_INSIDE_MULTI)
    for key in args[1:]:
        server.watching.watch(session, key)
    return OK


@command("UNWATCH", flags=_FLAGS, since="2.2.0", summary="Forgets every watched key.")
def unwatch(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    server.watching.forget(session)
    return OK


@command(
    "EXEC",
    flags="noscript loading stale skip_slowlog",
    since="1.2.0",
    summary="Runs the queued commands in a row.",
    complexity="The sum of that of the queued commands.",
)
def execute(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """The replies of the commands in turn; null if a watched key has changed; the error EXECABORT
    if a command was refused when it was to be queued."""
    if session.transaction is None:
        raise CommandError(connection_errors.EXEC_WITHOUT_MULTI)
    transaction, changed = session.transaction, server.watching.has_changed(session.watching)
    server.watching.end_transaction(session)
    if transaction.broken:
        raise CommandError(connection_errors.EXEC_ABORTED)
    if changed:
        return NULL_ARRAY
    scripting, queue = server.scripting, transaction.queue
    return scripting.transaction(session, queue, lambda: _run_all(server, session, queue))


def _run_all(server: Services, session: Session, queue: Queue) -> list[bytes]:
    """The reply of each command; one that would wait finds that its time is up."""
    session.caller = EXEC
    server.reactions.begin_unit()
    try:
        return _replies(server, session, queue)
    finally:
        session.caller = CLIENT
        server.reactions.end_unit()
        server.tracking.end_transaction(session)


def _replies(server: Services, session: Session, queue: Queue) -> list[bytes]:
    run = server.dispatcher.run
    replies: list[bytes] = []
    refused = 0
    while len(replies) < len(queue):
        entry, args = queue[len(replies)]
        session.command = entry
        if entry.name == "xadd":
            added = add_queued(server, session, queue, len(replies))
            if added is not None:
                replies += added
                continue
        limited = session.account.limited  # The rules of the user may have changed.
        text = server.dispatcher.refusals.find(session, entry, args) if limited else None
        if text is not None:
            server.state.stats.count_error(text)
            replies.append(error_line(text))
            refused = 1
            continue
        reply = run(session, entry, args)
        assert reply is not None, "a transaction never waits"
        replies.append(reply)
    server.state.table[b"exec"].failed += refused
    return replies
