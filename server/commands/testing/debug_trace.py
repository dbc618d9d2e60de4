"""DEBUG TRACE: which commands the clients of a test have sent."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Map, Reply
from server.commands.testing.debug_table import Subcommand, unknown
from server.monitoring.monitors import Traced
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import INT64_MAX, integer_between
from server.services import Services


def trace(server: Services, session: Session, args: Arguments) -> Reply:
    """Starts or stops the trace, takes what is in it, or tells about it."""
    way, options = args[2].upper(), args[3:]
    if way == b"START" and len(options) in (0, 2):
        return _start(server, session, options)
    if way == b"GET" and len(options) in (0, 2):
        return _take(server, options)
    if way == b"STOP" and not options:
        server.interception.stop_trace()
        return OK
    if way == b"STATUS" and not options:
        return _status(server)
    raise unknown(args)


def _start(server: Services, session: Session, options: Arguments) -> Reply:
    pattern = None
    if options:
        if options[0].upper() != b"CLIENT":
            raise CommandError(errors.SYNTAX)
        pattern = options[1]
    server.interception.start_trace(session.id, pattern)
    return OK


def _take(server: Services, options: Arguments) -> Reply:
    count = None
    if options:
        if options[0].upper() != b"COUNT":
            raise CommandError(errors.SYNTAX)
        count = integer_between(options[1], 1, INT64_MAX)
    return [_reply(traced) for traced in server.interception.trace.take(count)]


def _reply(traced: Traced) -> Reply:
    words: list[Reply] = [Bulk(word) for word in traced.words]
    return [traced.at, traced.client, Bulk(traced.name), traced.db, words]


def _status(server: Services) -> Reply:
    noted = server.interception.trace
    return Map(
        [
            ("running", int(noted.running)),
            ("client", None if noted.pattern is None else Bulk(noted.pattern)),
            ("kept", noted.kept),
            ("lost", noted.lost),
        ]
    )


SUBCOMMANDS: Final[dict[bytes, Subcommand]] = {
    b"TRACE": Subcommand(
        trace,
        range(1, 4),
        (
            (
                "TRACE START [CLIENT <name-pattern>]",
                "Notes from now on which commands other clients send.",
            ),
            (
                "TRACE GET [COUNT <count>]",
                "Takes them: time, client, its name, database and words of each.",
            ),
            ("TRACE STATUS", "Tells how many are kept, and how many were too many to be kept."),
            ("TRACE STOP", "Notes nothing more."),
        ),
        "TRACE <START [CLIENT name-pattern] | GET [COUNT count] | STATUS | STOP>",
    ),
}
