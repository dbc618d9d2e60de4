"""The server: its files, its clients, how long commands take, what was slow, what was denied, and
the page's user."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from server.acl.log import LogEntry
from server.clients.client_line import client_flags, client_memory
from server.commands.server.info import SECTIONS
from server.core.table import every
from server.runtime.quantities import number
from server.services import Services
from server.state.session import Session
from server.state.timings import SlowCommand
from server.web.page.drawing import Screen
from server.web.page.group_screen import consumer_of
from server.web.page.page_request import PageRequest, url
from server.web.page.wording import NONE, shown

PAGE: Final = 50
"""How many clients there are on a page."""

ROWS_SHOWN: Final = 50
"""How many entries of a log, or commands, are shown."""

TABS: Final = {
    "clients": "Clients",
    "files": "Files",
    "slow": "Slow log",
    "latency": "Latency",
    "denied": "Denied",
    "you": "You",
}
"""The parts of the screen, one of which is shown."""

NEEDS: Final = {
    "clients": (b"CLIENT", b"LIST"),
    "files": (b"INFO",),
    "slow": (b"SLOWLOG", b"GET"),
    "latency": (b"LATENCY", b"HISTOGRAM"),
    "denied": (b"ACL", b"LOG"),
}
"""The command whose reply each stands for."""


@dataclass
class ClientLine:
    """A client: who it is and what it does."""

    id: int
    name: str
    address: str
    does: str
    user: str
    flags: str
    idle: int
    age: int
    memory: int


@dataclass
class SlowLine:
    """A command of the slow log: when it ended (Unix milliseconds), how long it took (ms)."""

    at: int
    took: float
    command: str
    client: str


@dataclass
class LatencyLine:
    """A command: how often it ran, how long in all, and for how long half of the calls, and 99 % of
    them, took at most; in nanoseconds."""

    name: str
    calls: int
    sum: int
    median: int
    most: int


@dataclass
class DeniedLine:
    """What was denied, how often, when last (ms ago), to whom."""

    ago: int
    count: int
    reason: str
    what: str
    user: str
    address: str


@dataclass
class Vitals:
    """Memory and files; ``error`` is why the append-only file cannot be written, ``unsynced`` for
    how many milliseconds the last changes have not been on the disk."""

    memory: int
    peak: int
    limit: int
    started: int
    commands: float
    errors: int
    clients: int
    waiting: int
    on: bool
    saves: bool
    error: str | None
    policy: str
    size: int
    rewriting: bool
    unsynced: int
    replicas: int


async def server_screen(request: PageRequest) -> Screen:
    """The screen."""
    wanted = request.fields.text("tab")
    tab = wanted if wanted in TABS else "clients"
    needs = NEEDS.get(tab)
    denied = None if needs is None else request.viewer.denial(*needs)
    may = request.viewer.may(b"INFO")
    given: dict[str, Any] = {
        "tab": tab,
        "tabs": TABS,
        "denied": denied,
        "vitals": vitals(request.server) if may else None,
        "trace": request.window(request.sampler.vitals),
        "lines": [],
        "first": None,
        "following": None,
        "rules": [],
        "why": _why(request),
    }
    if denied is None:
        gather = {"clients": _clients, "slow": _slow_log, "denied": _acl_log, "you": _rules}
        if tab == "latency":
            given["lines"] = await _latencies(request)
            timings = request.server.state.timings
            given["tracking"], given["held_up"] = timings.tracking, timings.latency.events
        elif tab in gather:
            given.update(gather[tab](request))
    return Screen("server.html", "Server", given)


def vitals(server: Services) -> Vitals:
    """How the server is."""
    config, state, persistence = server.state.config, server.state, server.persistence
    memory, files = SECTIONS["memory"](server), SECTIONS["persistence"](server)
    on = persistence.on
    return Vitals(
        int(str(memory["used_memory"])),
        int(str(memory["used_memory_peak"])),
        config.maxmemory,
        state.instance.started_ms,
        state.stats.rates()[0],
        sum(state.stats.errors.values()),
        len(state.sessions),
        len(server.blocking.waiters),
        on,
        persistence.saves_by_itself,
        state.disk_error,
        str(config.appendfsync),
        int(str(files["aof_current_size"])) if on else 0,
        int(str(files["aof_rewrite_in_progress"])) > 0 if on else False,
        persistence.appender.unsynced_ms(state.timekeeper.source()) if on else 0,
        int(str(SECTIONS["replication"](server)["connected_slaves"])),
    )


def _clients(request: PageRequest) -> dict[str, Any]:
    after = request.fields.whole("after", 0, 0, 2**63)
    sessions = request.server.state.sessions
    # Numbers ascend in there.
    some = list(islice((each for number, each in sessions.items() if number > after), PAGE + 1))
    return {
        "lines": [_client(request, each) for each in some[:PAGE]],
        "first": url("/server") if after else None,
        "following": url("/server", after=some[PAGE - 1].id) if len(some) > PAGE else None,
    }


def _client(request: PageRequest, session: Session) -> ClientLine:
    command, waiter = session.command, session.waiter
    does = NONE if command is None else command.fullname
    if waiter is not None:
        consumer = consumer_of(waiter)
        does = f"waits in {does}" + (f" as {shown(consumer)}" if consumer is not None else "")
    return ClientLine(
        session.id,
        shown(session.name) if session.name else "",
        session.link.addr or NONE,
        does,
        shown(session.user),
        client_flags(session),
        request.now - session.seen_ms,
        request.now - session.link.created_ms,
        client_memory(session),
    )


def _slow_log(request: PageRequest) -> dict[str, Any]:
    log = request.server.state.timings.slow_log
    return {"lines": [_slow(each) for each in islice(log.entries, ROWS_SHOWN)]}


def _slow(entry: SlowCommand) -> SlowLine:
    words = " ".join(shown(word, 80) for word in entry.arguments[:12])
    more = f" … ({number(entry.given - 12)} more)" if len(entry.arguments) > 12 else ""
    client = entry.name or entry.address
    took = entry.microseconds / 1000
    return SlowLine(
        entry.seconds * 1000, took, words + more, shown(client) if client else "a script"
    )


async def _latencies(request: PageRequest) -> list[LatencyLine]:
    """The commands that have taken most time together, as LATENCY HISTOGRAM and INFO latencystats
    tell; one at a time, as a histogram has thousands of slots."""
    used = [each for each in every(request.server.state.table) if each.durations.counts]
    lines = []
    for each in heapq.nlargest(ROWS_SHOWN, used, key=lambda command: command.nanoseconds):
        median, most = each.durations.percentile(50), each.durations.percentile(99)
        lines.append(LatencyLine(each.fullname, each.calls, each.nanoseconds, median, most))
        await request.pace.rest()
    return lines


def _acl_log(request: PageRequest) -> dict[str, Any]:
    return {
        "lines": [_denied(request, each) for each in request.server.access.log.entries[:ROWS_SHOWN]]
    }


def _denied(request: PageRequest, entry: LogEntry) -> DeniedLine:
    fields = dict(
        word.partition(b"=")[::2] for word in entry.client.split(b" ") if word.startswith(b"addr=")
    )
    return DeniedLine(
        request.now - entry.updated_ms,
        entry.count,
        entry.reason,
        shown(entry.subject),
        shown(entry.user),
        shown(fields.get(b"addr", b"")),
    )


def _rules(request: PageRequest) -> dict[str, Any]:
    user = request.viewer.user
    return {"rules": [shown(each.show(), 2000) for each in (user.root, *user.selectors)]}


def _why(request: PageRequest) -> str:
    """Why nothing can be changed, if that is so."""
    if not request.server.state.config.web_actions:
        return "This page is read-only: web-actions is no."
    return "" if request.viewer.login is not None else "Log in to change anything."
