"""SLOWLOG, LATENCY and MONITOR: what takes long, and every command as it runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import NO_REPLY, OK, Bulk, Map, Reply
from server.commands.declare import command, container, help_command
from server.commands.server import errors as server_errors
from server.core.table import Arguments, Command, every, find_by_name, subcommands
from server.runtime.arguments import integer
from server.services import Services
from server.state.latency import Series
from server.state.session import Session
from server.state.timings import SlowCommand

_FLAGS: Final = "admin loading stale"
_USUAL_COUNT: Final = 10

container(
    "SLOWLOG", summary="Commands about the log of slow commands.", since="2.2.12", flags=_FLAGS
)


@command(
    "SLOWLOG GET",
    summary="Tells which commands took long, the last ones first.",
    complexity="O(N) in the number of entries that are told of.",
    syntax="[count]",
    tips=("request_policy:all_nodes", "nondeterministic_output"),
    history=[("4.0.0", "The client's address and name."), ("8.10.0", "The number of arguments.")],
)
def slowlog_get(server: Services, session: Session, args: Arguments) -> Reply:
    """The last ten entries of the log, or as many as are asked for; all for -1. Of each its number,
    Unix time, microseconds, arguments, the client's address and name, and how many arguments it
    had."""
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
    summary="Tells how many commands are in the log.",
    tips=("request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"),
)
def slowlog_len(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of entries."""
    return len(server.state.timings.slow_log.entries)


@command(
    "SLOWLOG RESET",
    summary="Empties the log.",
    complexity="O(N) in the number of entries.",
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def slowlog_reset(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the numbers of later ones go on from where they were."""
    server.state.timings.slow_log.entries.clear()
    return OK


_SLOWLOG_HELP: Final = """\
GET [<count>]
    Return top <count> entries from the slowlog (default: 10, -1 mean all).
    Entries are made of:
    id, timestamp, time in microseconds, arguments array, client IP and port,
    client name
LEN
    Return the length of the slowlog.
RESET
    Reset the slowlog.
"""

help_command("SLOWLOG", since="6.2.0", text=_SLOWLOG_HELP)


@command(
    "MONITOR",
    flags="admin noscript loading stale",
    since="1.0.0",
    summary="Shows every command that the server runs, as it runs.",
)
def monitor(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, then a line for each command, until RESET or the end of the connection; a client that
    monitors already gets no reply."""
    if session.executing:
        raise CommandError(server_errors.MONITOR_NOT_HERE)
    if session.monitoring:
        return NO_REPLY
    server.state.timings.monitor(session)
    return OK


# --- LATENCY -----------------------------------------------------------------------------------


_LATENCY_FLAGS: Final = "admin noscript loading stale"
_LATENCY_TIPS: Final = (
    "nondeterministic_output",
    "request_policy:all_nodes",
    "response_policy:special",
)

container(
    "LATENCY",
    summary="Commands about what takes long.",
    since="2.8.13",
    flags=_LATENCY_FLAGS,
    tips=_LATENCY_TIPS,
)


def _events(server: Services) -> dict[bytes, Series]:
    return server.state.timings.latency.events


@command("LATENCY LATEST", summary="Tells when each event that takes long was noted last.")
def latency_latest(server: Services, session: Session, args: Arguments) -> Reply:
    """For each event its name, the Unix time of its last sample, that sample, and the longest one,
    in milliseconds."""
    return [
        [Bulk(event), *series.samples[-1], series.highest]
        for event, series in _events(server).items()
    ]


@command("LATENCY HISTORY", summary="Tells what was noted of an event.", syntax="event")
def latency_history(server: Services, session: Session, args: Arguments) -> Reply:
    """The samples of an event, pairs of Unix time and milliseconds."""
    series = _events(server).get(args[2])
    return [] if series is None else [list(sample) for sample in series.samples]


@command(
    "LATENCY RESET",
    summary="Forgets what was noted of events, or of all.",
    syntax="[event [event ...]]",
    tips=("request_policy:all_nodes", "response_policy:agg_sum"),
)
def latency_reset(server: Services, session: Session, args: Arguments) -> Reply:
    """How many events were forgotten."""
    return server.state.timings.latency.forget(args[2:])


@command(
    "LATENCY HISTOGRAM",
    since="7.0.0",
    summary="Tells how many calls of commands took how long.",
    complexity="O(N) in the number of commands that are told of.",
    syntax="[command [command ...]]",
)
def latency_histogram(server: Services, session: Session, args: Arguments) -> Reply:
    """For each command that has been called its calls, and how many of them took at most so many
    microseconds."""
    table = server.state.table
    chosen: Iterable[Command] = every(table)
    if len(args) > 2:
        named = [find_by_name(table, name) for name in args[2:]]
        chosen = [one for entry in named if entry is not None for one in _with_parts(entry)]
    return Map(
        (
            entry.fullname,
            Map([("calls", entry.durations.total), ("histogram_usec", _distribution(entry))]),
        )
        for entry in chosen
        if entry.durations.counts
    )


def _with_parts(entry: Command) -> list[Command]:
    return [entry, *subcommands(entry)]


def _distribution(entry: Command) -> Reply:
    return Map(list(entry.durations.cumulative()))


_LATENCY_HELP: Final = """\
HISTORY <event>
    Return time-latency samples for the <event> class.
LATEST
    Return the latest latency samples for all events.
RESET [<event> ...]
    Reset latency data of one or more <event> classes.
    (default: reset all data for all event classes)
HISTOGRAM [COMMAND ...]
    Return a cumulative distribution of latencies in the format of a histogram for the specified \
command names.
    If no commands are specified then all histograms are replied.
"""

help_command("LATENCY", since="2.8.13", text=_LATENCY_HELP)
