"""The overview: all groups of all streams, those in trouble first, as the sampler has seen them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from server.delivery import happenings
from server.delivery.health import GONE, consumer_state
from server.delivery.stats import is_connected
from server.runtime.quantities import duration, number
from server.web.page.charts import points, top_of
from server.web.page.drawing import Screen
from server.web.page.page_request import (
    PageRequest,
    consumer_url,
    group_url,
    letters_url,
    policy_command,
    stream_url,
    url,
)
from server.web.page.preview import id_of
from server.web.page.sampling import Row, in_trouble, ordered
from server.web.page.traces import Window
from server.web.page.wording import counted, deliveries, id_ms, rate, shown
from server.web.survey import stream_at
from storage.engine import ids

PAGE: Final = 50
"""How many rows there are on a page."""

MOST_PAGES: Final = 10**6

MOST_CONSUMERS: Final = 500
"""Among how many consumers of a group in trouble the one is looked for that holds most."""

MOST_LETTERS: Final = 5
"""How many streams of dead letters are listed."""

MOST_NEWS: Final = 8
"""How much is told of what happened lately."""

SMALL: Final = 100
"""No small chart has a scale that ends below so many entries: noise looks flat."""

LATELY_MS: Final = 10 * 60_000

ORDERS: Final = {
    "trouble": "trouble first",
    "age": "oldest pending",
    "lag": "lag",
    "pending": "pending",
    "letters": "dead letters",
    "name": "name",
}
WHICH: Final = {"": "All", "trouble": "In trouble", "paused": "Paused", "fine": "Fine"}


@dataclass
class Line:
    """A group on the overview, or a stream without groups; ``cause`` is a sentence, with an address
    for what it begins with, and ``step`` what to do next, with an address; ``gone`` is a consumer
    that holds entries and asks for nothing, with their number, and ``off`` why the group cannot be
    resumed."""

    row: Row
    state: str
    oldest: int | None
    added: float | None
    acked: float | None
    letters: int | None
    spark: str
    high: int
    cause: tuple[str, str, str] | None = None
    step: tuple[str, str] | None = None
    gone: tuple[bytes, int] | None = None
    off: str | None = None


@dataclass
class LettersLine:
    """A stream of dead letters: how many, how many of them are new, and when the last one came."""

    db: int
    key: bytes
    count: int
    lately: int | None
    newest: int | None


class News(NamedTuple):
    """What happened lately: when, to which group, in words that follow and come before its name."""

    time: int
    before: str
    name: str
    address: str
    after: str
    bad: bool


@dataclass
class Overview:
    """The screen: ``counts`` by state, ``lines`` of the page by state, ``sums`` of those that are
    fine."""

    streams: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[Line]] = field(
        default_factory=lambda: {kind: [] for kind in ("trouble", "paused", "fine", "alone")}
    )
    sums: Counter[str] = field(default_factory=Counter)
    letters: list[LettersLine] = field(default_factory=list)
    news: list[News] = field(default_factory=list)
    whole: Window | None = None
    previous: str | None = None
    following: str | None = None


class Wanted:
    """What is asked for: which rows, in which order, and which page of them."""

    def __init__(self, request: PageRequest) -> None:
        fields = request.fields
        which = "trouble" if fields.text("failing") else fields.text("which")
        self.which = which if which in WHICH else ""
        self.match = fields.text("match")
        order = fields.text("order")
        self.order = order if order in ORDERS else "trouble"
        self.page = fields.whole("page", 1, 1, MOST_PAGES)

    def url(self, page: int = 1, which: str | None = None) -> str:
        """The address of another page of the same rows, or of others."""
        return url(
            "/",
            which=(self.which if which is None else which) or None,
            match=self.match or None,
            order=self.order if self.order != "trouble" else None,
            page=page if page > 1 else None,
        )

    def key(self, request: PageRequest) -> Callable[[Row], Any]:
        """What rows are ordered by."""
        now = request.now
        keys: dict[str, Callable[[Row], Any]] = {
            "trouble": in_trouble(now),
            "age": lambda row: (now if row.oldest is None else row.oldest, *row.name),
            "lag": lambda row: (-row.lag, *row.name),
            "pending": lambda row: (-row.pending, *row.name),
            "letters": lambda row: (-row.died, *row.name),
            "name": lambda row: row.name,
        }
        return keys[self.order]

    def takes(self, row: Row, kind: str) -> bool:
        """Whether a row is asked for."""
        if self.which and kind != self.which:
            return False
        text = self.match
        return not text or text in shown(row.key) or text in shown(row.group or b"")


async def overview(request: PageRequest) -> Screen:
    """The screen. Nothing is looked at here but what the sampler has found, and the consumers of
    groups in trouble."""
    wanted = Wanted(request)
    facts = Overview(whole=request.window(request.sampler.whole) if request.sees_all else None)
    found = await _select(request, wanted, facts)
    for row in found[:PAGE]:
        kind = kind_of(row, request.now)
        facts.lines[kind].append(_line(request, row))
        await request.pace.rest()
    facts.letters = _letters(request)
    facts.news = _news(request)
    facts.previous = wanted.url(wanted.page - 1) if wanted.page > 1 else None
    facts.following = wanted.url(wanted.page + 1) if len(found) > PAGE else None
    trouble = facts.counts["trouble"]
    title = f"{number(trouble)} in trouble" if trouble else "Overview"
    given = {"facts": facts, "wanted": wanted, "orders": ORDERS, "which": WHICH}
    return Screen("overview.html", title, given)


def kind_of(row: Row, now: int) -> str:
    """In which part of the screen a row is."""
    if row.group is None:
        return "alone"
    state = row.state(now)
    return state if state in ("paused", "fine") else "trouble"


async def _select(request: PageRequest, wanted: Wanted, facts: Overview) -> list[Row]:
    """The rows of the page and one more if there is one; counts all."""
    before: tuple[int, bytes] | None = None
    kept = []
    for row in request.sampler.rows:
        await request.pace.rest()
        if not request.viewer.may_see(row.key):
            continue
        if before != (row.db, row.key):  # The rows of a stream follow each other.
            before = (row.db, row.key)
            facts.streams += 1
        kind = kind_of(row, request.now)
        facts.counts[kind] += 1
        for name in ("lag", "pending", "kept"):
            facts.sums[name] += getattr(row, name)
            if kind == "fine":
                facts.sums["fine " + name] += getattr(row, name)
        if wanted.takes(row, kind):
            kept.append(row)
    found: list[Row] = []
    skip = (wanted.page - 1) * PAGE
    if skip < len(kept):
        async for row in ordered(kept, wanted.key(request), request.pace):
            if skip:
                skip -= 1
                continue
            found.append(row)
            if len(found) > PAGE:
                break
    return found


def _line(request: PageRequest, row: Row) -> Line:
    trace, now = request.window(request.sampler.traces.get(row.name)), request.now
    lag = [] if trace is None else trace.column("lag")
    high = max([*lag, row.lag])
    state = "" if row.group is None else row.state(now)
    line = Line(
        row,
        state,
        None if row.oldest is None else now - row.oldest,
        None if trace is None else trace.rate("added"),
        None if trace is None else trace.rate("acked"),
        row.died if row.target else None,
        points(lag or [row.lag], top_of(max(high, SMALL))),
        high,
    )
    if row.group is not None and state != "fine":
        explain(request, line)
    return line


def explain(request: PageRequest, line: Line) -> None:
    """Says why a group is in trouble or paused, and what to do next."""
    row, now = line.row, request.now
    assert row.group is not None
    here = row.db, row.key, row.group
    if line.state == "paused":
        line.cause = "", "", "Nobody gets entries because of the policy paused yes."
        command = policy_command(b"SET", row.key, row.group, b"paused", b"no")
        line.off = request.obstacle(*command)
    elif line.state == "stuck":
        line.cause = _holder(request, line) or ("", "", _oldest(row, now))
        line.step = "See what is pending", group_url(*here) + "#pending"
    elif line.state == "failing":
        many = deliveries(row.most)
        died = counted(row.died_lately, "dead letter")
        said = (
            "An entry was given up." if many == "given up" else f"An entry was tried {many} times."
        )
        if row.died_lately:
            said = f"{died} in the last 10 min."
        line.cause = "", "", said
        if row.died_lately and row.target and request.viewer.may_see(row.target):
            where = letters_url(row.db, row.target, of=shown(row.group))
            line.step = "See dead letters", where
        else:
            line.step = "See the entry", group_url(*here, order="deliveries") + "#pending"
    elif line.state == "unattended":
        line.cause = "", "", _unattended(row, now)
        line.step = "See consumers", group_url(*here) + "#consumers"
    else:
        grows = (
            f"The lag grows by {rate(row.grows)} entries a second"
            if row.grows
            else f"{counted(row.lag, 'entry was', 'entries were')} not delivered yet"
        )
        waits = (
            ""
            if row.behind_since is None
            else f"; the first has waited for {duration(now - row.behind_since)}"
        )
        line.cause = "", "", f"{grows}{waits}."
        line.step = "See consumers", group_url(*here) + "#consumers"


def _unattended(row: Row, now: int) -> str:
    """Who does not read, and what waits."""
    nobody = "The group has no consumers"
    if row.asked is not None:
        nobody = (
            f"No consumer is connected or has asked for entries for {duration(now - row.asked)}"
        )
    undelivered = counted(row.lag, "entry was", "entries were")
    return f"{nobody}; {undelivered} not delivered yet, {number(row.pending)} pending."


def _oldest(row: Row, now: int) -> str:
    return f"The oldest pending entry was delivered {_age(row, now)} ago."


def _holder(request: PageRequest, line: Line) -> tuple[str, str, str] | None:
    """Who holds most, and since when that consumer has asked for nothing."""
    row = line.row
    assert row.group is not None
    database = request.server.state.keyspace.databases[row.db]
    stream = stream_at(database, row.key, request.now)
    group = None if stream is None else stream.groups.get(row.group)
    may = request.viewer.may(b"XINFO", b"CONSUMERS", row.key, row.group)
    if group is None or not may or not group.consumers:
        return None
    some = islice(group.consumers.values(), MOST_CONSUMERS)
    most = max(some, key=lambda each: each.owned)
    if not most.owned:
        return None
    holds = f" holds {counted(most.owned, 'entry', 'entries')}"
    silent = request.now - most.seen
    if consumer_state(most.owned, False, is_connected(most), silent) == GONE:
        line.gone = most.name, most.owned
        said = f"{holds} and has not asked for any for {duration(silent)}."
    else:
        said = f"{holds}; the oldest of the group was delivered {_age(row, request.now)} ago."
    return shown(most.name), consumer_url(row.db, row.key, row.group, most.name), said


def _age(row: Row, now: int) -> str:
    return duration(now - (row.oldest or now))


def _letters(request: PageRequest) -> list[LettersLine]:
    """The streams with most dead letters; how many came lately is told where IDs are times."""
    sampler, found = request.sampler, []
    most = sorted(sampler.letters.items(), key=lambda pair: (-pair[1], pair[0]))
    for (db, key), _ in most:
        stream = stream_at(request.server.state.keyspace.databases[db], key, request.now)
        if stream is None or not stream.log.length or not request.viewer.may_see(key):
            continue
        last = id_of(stream.log.reverse(ids.MIN, ids.MAX, 1)[0])
        newest = id_ms(last)
        since = ids.join(max(0, request.now - LATELY_MS), 0)
        lately = None if newest is None else stream.log.count_above(since)
        found.append(LettersLine(db, key, stream.log.length, lately, newest))
        if len(found) == MOST_LETTERS:
            break
    return found


_TOLD: Final = {
    happenings.PAUSED: ("", " was paused"),
    happenings.RESUMED: ("", " was resumed"),
    happenings.MOVED: ("The position of ", " was moved"),
    happenings.LEFT: ("{consumers} of ", " left"),
    happenings.BURIED: ("{letters} of ", ""),
    happenings.REDRIVEN: ("{letters} went back to ", ""),
}


def _news(request: PageRequest) -> list[News]:
    """What happened lately to groups that the user may see, the newest first."""
    found: list[News] = []
    if not request.viewer.may(b"PENSTOCK", b"STATS"):
        return found
    for each in reversed(list(request.server.policies.happenings)):
        if not request.viewer.may_see(each.key) or len(found) == MOST_NEWS:
            continue
        before, after = _TOLD[each.kind]
        counts = {
            "consumers": counted(each.number, "consumer"),
            "letters": counted(each.number, "dead letter"),
        }
        name, address = shown(each.key), stream_url(each.db, each.key)
        if each.group:
            name = f"{name} / {shown(each.group)}"
            address = group_url(each.db, each.key, each.group)
        by = f"{after} by user {shown(each.user)}" if each.user else after
        bad = each.kind in (happenings.BURIED, happenings.LEFT)
        found.append(News(each.time, before.format(**counts), name, address, by, bad))
    return found
