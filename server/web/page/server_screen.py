"""The server: its files, its clients, what was slow, what was denied, and the page's user."""

from __future__ import annotations

from itertools import islice
from typing import Final

from penstock.html.document import facts, notice, section, table
from penstock.html.markup import Child, Html, joined, tag
from server.acl.log import LogEntry
from server.clients.client_line import client_flags, client_memory
from server.commands.server.info import SECTIONS
from server.monitoring.timings import SlowCommand
from server.road.session import Session
from server.web.page.document import live, pages
from server.web.page.page_request import PageRequest, url
from server.web.page.wording import NONE, duration, moment, number, shown, size

PAGE: Final = 50
"""How many clients there are on a page."""

MOST: Final = 50
"""How many entries of a log are shown."""


def server_screen(request: PageRequest) -> Html:
    """The screen."""
    return joined(
        [
            tag("h1", "Server"),
            live("live", request, _durability(request), also=("clients",)),
            tag("div", _clients(request), id="clients"),
            _slow_log(request),
            _acl_log(request),
            _user(request),
        ]
    )


def _durability(request: PageRequest) -> Html:
    title = "Memory and durability"
    denial = request.viewer.denial(b"INFO")
    if denial is not None:
        return section(title, notice(denial))
    server = request.server
    config, state = server.state.config, server.state
    memory = int(str(SECTIONS["memory"](server)["used_memory"]))
    limit = f"of {size(config.maxmemory)}" if config.maxmemory else "no limit"
    uptime = (
        "Up for",
        duration(request.now - state.instance.started_ms),
        f"since {moment(state.instance.started_ms)}",
    )
    return section(title, facts(uptime, ("Memory", size(memory), limit), *_file(request)))


def _file(request: PageRequest) -> list[tuple[str, Child, str]]:
    """What there is to say about the append-only file."""
    server = request.server
    if not server.persistence.on:
        off = tag("b", "off", class_="bad")
        saves = server.persistence.saves_by_itself
        how = "with what was saved last" if saves else "without data"
        return [("Append-only file", off, f"a restart begins {how}")]
    fields = SECTIONS["persistence"](server)
    error = server.state.disk_error
    rewrite = "being rewritten" if int(str(fields["aof_rewrite_in_progress"])) else "as a whole"
    unsynced = server.persistence.appender.unsynced_ms(server.state.timekeeper.source())
    policy = f"appendfsync {server.state.config.appendfsync}"
    return [
        (
            "Append-only file",
            tag("b", "cannot be written", class_="bad")
            if error is not None
            else tag("b", "on", class_="good"),
            policy if error is None else error,
        ),
        ("File size", size(int(str(fields["aof_current_size"]))), rewrite),
        ("Not on the disk for", duration(unsynced), "what a loss of power would cost now"),
    ]


# --- clients ---------------------------------------------------------------------------------


def _clients(request: PageRequest) -> Html:
    denial = request.viewer.denial(b"CLIENT", b"LIST")
    if denial is not None:
        return section("Clients", notice(denial))
    after = request.fields.whole("after", 0, 0, 2**63)
    sessions = request.server.state.sessions
    # Numbers ascend in there.
    some = list(islice((each for number, each in sessions.items() if number > after), PAGE + 1))
    heads = ("No.", "Address", "Name", "User", "Flags", "Last command", "Idle", "Age", "Memory")
    following = url("/server", after=some[PAGE - 1].id) + "#clients" if len(some) > PAGE else None
    return section(
        f"Clients ({number(len(sessions))})",
        table(heads, [_client(request, each) for each in some[:PAGE]], "No client is connected."),
        pages(("First", url("/server") + "#clients" if after else None), ("Next →", following))
        if after or following
        else None,
    )


def _client(request: PageRequest, session: Session) -> list[Child]:
    command = session.command
    return [
        number(session.id),
        session.link.addr or NONE,
        shown(session.name) if session.name else NONE,
        shown(session.user),
        client_flags(session),
        NONE if command is None else command.fullname,
        duration(request.now - session.seen_ms),
        duration(request.now - session.link.created_ms),
        size(client_memory(session)),
    ]


# --- logs ------------------------------------------------------------------------------------


def _slow_log(request: PageRequest) -> Html:
    denial = request.viewer.denial(b"SLOWLOG", b"GET")
    if denial is not None:
        return section("Slow log", notice(denial))
    log = request.server.state.timings.slow_log
    rows = [_slow(each) for each in islice(log.entries, MOST)]
    return section(
        f"Slow log ({number(len(log.entries))})",
        table(("When", "Took", "Command", "Client"), rows, "No command was slow."),
        id="slow",
    )


def _slow(entry: SlowCommand) -> list[Child]:
    words = " ".join(shown(word, 80) for word in entry.arguments[:12])
    more = f" … ({number(entry.given - 12)} more)" if len(entry.arguments) > 12 else ""
    return [
        moment(entry.seconds * 1000),
        f"{entry.microseconds / 1000:,.1f} ms",
        tag("code", words + more),
        shown(entry.name or entry.address) if entry.name or entry.address else "a script",
    ]


def _acl_log(request: PageRequest) -> Html:
    denial = request.viewer.denial(b"ACL", b"LOG")
    if denial is not None:
        return section("Denied", notice(denial))
    log = request.server.access.log
    rows = [_denied(request, each) for each in log.entries[:MOST]]
    return section(
        f"Denied ({number(len(log.entries))})",
        table(("Last", "Times", "Why", "What", "User", "Client"), rows, "Nothing was denied."),
        id="denied",
    )


def _denied(request: PageRequest, entry: LogEntry) -> list[Child]:
    fields = dict(
        word.partition(b"=")[::2] for word in entry.client.split(b" ") if word.startswith(b"addr=")
    )
    return [
        f"{duration(request.now - entry.updated_ms)} ago",
        number(entry.count),
        entry.reason,
        shown(entry.subject),
        shown(entry.user),
        shown(fields.get(b"addr", b"")),
    ]


# --- who looks -------------------------------------------------------------------------------


def _user(request: PageRequest) -> Html:
    user, login = request.viewer.user, request.viewer.login
    selectors = [selector.show() for selector in (user.root, *user.selectors)]
    rules = [tag("code", shown(rule, 2000)) for rule in selectors]
    how = "logged in" if login is not None else "the default user, who needs no password"
    actions = "may change what its rights allow" if request.viewer.may_act else "read-only"
    return section(
        "You",
        facts(("User", shown(user.name), how), ("This page", actions, _why(request))),
        tag("p", *rules),
        id="you",
    )


def _why(request: PageRequest) -> str:
    if not request.server.state.config.web_actions:
        return "web-actions is no"
    return "" if request.viewer.login is not None else "log in to change anything"
