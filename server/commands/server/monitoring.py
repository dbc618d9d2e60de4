"""SLOWLOG and MONITOR: the commands that took long, and every command as it runs."""

from __future__ import annotations

from itertools import islice
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import NO_REPLY, OK, Bulk, Reply
from server.commands.declare import command, container, help_command
from server.commands.server import errors as server_errors
from server.monitoring.timings import SlowCommand
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import integer
from server.services import Services

_FLAGS: Final = "admin loading stale"
_USUAL_COUNT: Final = 10

container(
    "SLOWLOG",
    since="2.2.12",
    summary="Commands about the log of slow commands.",
)


@command(
    "SLOWLOG GET",
    flags=_FLAGS,
    since="2.2.12",
    summary="Tells which commands took long, the last ones first.",
    complexity="O(N) in the number of entries that are told of.",
    syntax="[count]",
    tips=("request_policy:all_nodes", "nondeterministic_output"),
    history=[
        ("4.0.0", "The client's address and name."),
        ("8.10.0", "The number of arguments."),
    ],
)
def slowlog_get(server: Services, session: Session, args: Arguments) -> Reply:
    """The last entries of the log: ten, or as many as are asked for; all for -1."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("slowlog", args[1]))
    count = integer(args[2], server_errors.SLOWLOG_COUNT) if len(args) == 3 else _USUAL_COUNT
    if count < -1:
        raise CommandError(server_errors.SLOWLOG_COUNT)
    entries = server.state.timings.slow_log.entries
    chosen = islice(entries, len(entries) if count == -1 else min(count, len(entries)))
    return [_entry(one) for one in chosen]


def _entry(one: SlowCommand) -> Reply:
    return [
        one.identity,
        one.seconds,
        one.microseconds,
        [Bulk(argument) for argument in one.arguments],
        Bulk(one.address),
        Bulk(one.name),
        one.given,
    ]


@command(
    "SLOWLOG LEN",
    flags=_FLAGS,
    since="2.2.12",
    summary="Tells how many commands are in the log.",
    tips=("request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"),
)
def slowlog_len(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of entries."""
    return len(server.state.timings.slow_log.entries)


@command(
    "SLOWLOG RESET",
    flags=_FLAGS,
    since="2.2.12",
    summary="Empties the log.",
    complexity="O(N) in the number of entries.",
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def slowlog_reset(server: Services, session: Session, args: Arguments) -> Reply:
    """Forgets every entry; the numbers of later ones go on from where they were."""
    server.state.timings.slow_log.entries.clear()
    return OK


help_command("SLOWLOG", since="6.2.0")


@command(
    "MONITOR",
    flags="admin noscript loading stale",
    since="1.0.0",
    summary="Shows every command that the server runs, as it runs.",
)
def monitor(server: Services, session: Session, args: Arguments) -> Reply:
    """Shows the client every command, until RESET or the end of the connection; a client that
    monitors already gets no reply."""
    if session.executing:
        raise CommandError(server_errors.MONITOR_NOT_HERE)
    if session.monitoring:
        return NO_REPLY
    server.state.timings.monitor(session)
    return OK
