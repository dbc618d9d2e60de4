"""LATENCY: what has held the server up, and how long each command takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocol.errors import CommandError
from protocol.replies import Bulk, Map, Reply, Verbatim
from server.commands.declare import command, container, help_command
from server.commands.server import errors as server_errors
from server.monitoring.latency import Series, diagnosis, graph
from server.road.session import Session
from server.road.table import Arguments, Command, every, find_by_name, subcommands
from server.services import Services

_FLAGS: Final = "admin noscript loading stale"
_TIPS: Final = ("nondeterministic_output", "request_policy:all_nodes", "response_policy:special")

container(
    "LATENCY",
    since="2.8.13",
    summary="Commands about what takes long.",
)


def _events(server: Services) -> dict[bytes, Series]:
    return server.state.timings.latency.events


@command(
    "LATENCY LATEST",
    flags=_FLAGS,
    since="2.8.13",
    summary="Tells when each event that takes long was noted last.",
    tips=_TIPS,
)
def latest(server: Services, session: Session, args: Arguments) -> Reply:
    """For each event its name, the Unix time of its last sample, that sample, and the longest one,
    in milliseconds."""
    return [
        [Bulk(event), *series.samples[-1], series.highest]
        for event, series in _events(server).items()
    ]


@command(
    "LATENCY HISTORY",
    flags=_FLAGS,
    since="2.8.13",
    summary="Tells what was noted of an event.",
    syntax="event",
    tips=_TIPS,
)
def history(server: Services, session: Session, args: Arguments) -> Reply:
    """The samples of an event, pairs of Unix time and milliseconds."""
    series = _events(server).get(args[2])
    return [] if series is None else [list(sample) for sample in series.samples]


@command(
    "LATENCY RESET",
    flags=_FLAGS,
    since="2.8.13",
    summary="Forgets what was noted of events, or of all.",
    syntax="[event [event ...]]",
    tips=("request_policy:all_nodes", "response_policy:agg_sum"),
)
def reset(server: Services, session: Session, args: Arguments) -> Reply:
    """How many events were forgotten."""
    return server.state.timings.latency.forget(args[2:])


@command(
    "LATENCY GRAPH",
    flags=_FLAGS,
    since="2.8.13",
    summary="Draws what was noted of an event.",
    syntax="event",
    tips=_TIPS,
)
def graph_(server: Services, session: Session, args: Arguments) -> Reply:
    """A drawing in letters."""
    series = _events(server).get(args[2])
    if series is None:
        raise CommandError(server_errors.no_samples(args[2]))
    return Verbatim(graph(args[2], series, server.state.clock() // 1000).encode())


@command(
    "LATENCY DOCTOR",
    flags=_FLAGS,
    since="2.8.13",
    summary="Says in words what has taken long, and what may be done about it.",
    tips=_TIPS,
)
def doctor(server: Services, session: Session, args: Arguments) -> Reply:
    """Some sentences."""
    timings, config = server.state.timings, server.state.config
    text = diagnosis(timings.latency, config.latency_monitor_threshold, timings.slow_log.limit_ns)
    return Verbatim(text.encode())


@command(
    "LATENCY HISTOGRAM",
    flags=_FLAGS,
    since="7.0.0",
    summary="Tells how many calls of commands took how long.",
    complexity="O(N) in the number of commands that are told of.",
    syntax="[command [command ...]]",
    tips=_TIPS,
)
def histogram(server: Services, session: Session, args: Arguments) -> Reply:
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


help_command("LATENCY", since="2.8.13")
