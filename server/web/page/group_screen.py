"""A consumer group, its consumers, and what is pending."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from server.config.policies import ALL, DEAD_LETTER, GROUP, TIMES, Settings
from server.delivery.group_ref import GroupRef
from server.delivery.health import consumer_state
from server.delivery.stats import is_connected, kept_back
from server.runtime.quantities import duration
from server.state.session import Link, Waiter
from server.web.page.charts import delivery_names
from server.web.page.drawing import Screen
from server.web.page.overview import Line, explain
from server.web.page.page_request import (
    PageRequest,
    Refused,
    consumer_url,
    group_url,
    letters_url,
    packed,
    policy_command,
)
from server.web.page.preview import Preview, preview
from server.web.page.sampling import Name, Row, behind_since, lag_of, rules_of
from server.web.page.traces import Window
from server.web.page.wording import counted, id_ms, id_text, shown
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import HIGHEST, NEVER, Consumer, PendingEntry
from storage.engine.pending_segment import Segment
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many consumers and pending entries there are on a page."""

MOST_SEGMENTS: Final = 4000
"""How many segments of pending entries are looked at for those that come first."""

REASONS: Final = {
    "turn": "For their turn",
    "time": "Until a time",
    "backoff": "After a failure",
    "rate": "By the rate limit",
    "given": "Given back",
}
"""Why entries are with nobody, by the names of PENSTOCK STATS."""

ORDERS: Final = {"age": "Oldest first", "deliveries": "Most delivered", "id": "By ID"}

_CHUNK: Final = 500

_LENGTHS: Final = re.compile(rb"[1-9][0-9]*(?![0-9%])")
"""The times in a value, without a percentage."""

_SENTENCE: Final = re.compile(r".*?(?<!\.)\.(?= |$)|.*")
"""The first sentence of a text; three dots do not end one."""


class PolicyInForce(NamedTuple):
    """A policy that is in force: its value, what that means, and where it leads."""

    name: str
    value: str
    says: str
    target: str | None


@dataclass
class ConsumerLine:
    """A consumer: how it is, how long ago it asked and got something (milliseconds), from where its
    last request came, empty if unknown, when that client went (Unix milliseconds, ``None`` if it is
    there), what it has acknowledged, what it was given again, and its past."""

    name: bytes
    state: str
    holds: int
    asked: int
    got: int | None
    address: str
    closed: int | None
    acked: int
    again: int
    trace: Window | None


@dataclass
class Held:
    """A pending entry: with whom (``None``: nobody), in which state, for how long or how long
    until it is due, and its fields if they may be seen and are there."""

    id: str
    added: int | None
    owner: bytes | None
    state: str
    ms: int
    due: bool
    deliveries: int
    entry: Preview | None
    missing: str


@dataclass
class GroupFacts:
    """What the screen of a group shows; a list is ``None`` if the user may not see it, and then
    ``denied`` says why by its name. ``reasons`` says how many entries are kept back for which
    reason, and ``bad_delay`` the last whose field for a delay held no time, with that."""

    row: Row
    line: Line
    lag: int
    waits: int | None
    consumers: list[ConsumerLine] | None
    parked: int
    held: list[Held] | None
    whole: bool
    settings: list[PolicyInForce]
    reasons: dict[str, int]
    bad_delay: tuple[str, str] | None
    obstacles: dict[str, str | None]
    denied: dict[str, str | None]
    links: dict[str, str | None]


async def group_screen(request: PageRequest) -> Screen:
    """The screen."""
    database, key, stream, group = request.group()
    facts = await group_facts(request, GroupRef(database, key, stream, group))
    given: dict[str, Any] = {
        "facts": facts,
        "group": group,
        "stream": stream,
        "at": (database.index, key, group.name),
        "order": _order(request),
        "orders": ORDERS,
        "trace": request.window(
            request.sampler.traces.get((database.index, key, group.name)),
            *(database.index, key, group.name),
        ),
        "most": facts.row.tries,
        "histogram": list(zip(delivery_names(), facts.row.deliveries, strict=False)),
        "fields": {"db": database.index, "key": packed(key), "group": packed(group.name)},
    }
    return Screen("group.html", shown(group.name), given)


def _order(request: PageRequest) -> str:
    wanted = request.fields.text("order")
    return wanted if wanted in ORDERS else "age"


async def group_facts(request: PageRequest, ref: GroupRef) -> GroupFacts:
    """Gathers them: figures as they are at this moment, the past from the sampler."""
    db, key, stream, group = ref.db.index, ref.key, ref.stream, ref.group
    viewer, names = request.viewer, (key, group.name)
    lag = await lag_of(stream, group, request.pace)
    since = behind_since(stream, group, request.now)
    kept = group.pending.unowned
    rules = rules_of(request.server, ref)
    sampled = request.sampler.index.get((db, key, group.name)) or _unseen(db, key, group)
    row = sampled._replace(
        lag=lag,
        behind_since=since,
        pending=len(group.pending) - kept,
        kept=kept,
        acked=group.acked,
        paused=rules is not None and rules.paused,
        target=b"" if rules is None else rules.dead_letter,
        tries=0 if rules is None else rules.max_deliveries,
        died=sum(group.counts.letters.values()),
        died_lately=group.counts.letters_lately.total(request.now),
    )
    line = Line(row, row.state(request.now), None, None, None, None, "", 0)
    if line.state != "fine":
        explain(request, line)
    waiting = parked(request, db, key, group)
    denied = {
        "consumers": viewer.denial(b"XINFO", b"CONSUMERS", *names),
        "pending": viewer.denial(b"XPENDING", *names),
    }
    consumers, held = None, None
    whole, links = True, dict.fromkeys(("newer consumers", "more consumers", "more"))
    if denied["consumers"] is None:
        consumers, links = await _consumers(request, ref, waiting)
    if denied["pending"] is None:
        entries, whole, following = await _first_pending(request, group, _order(request))
        held = [await _held(request, ref, each) for each in entries]
        if following:
            address = group_url(db, *names, order="id", start=id_text(following))
            links["more"] = f"{address}#pending"
    waits = None if since is None else request.now - since
    return GroupFacts(
        *(row, line, lag, waits, consumers, len(waiting), held, whole),
        *(settings_of(request, ref), *_kept(request, ref), obstacles(request, ref), denied, links),
    )


def _kept(request: PageRequest, ref: GroupRef) -> tuple[dict[str, int], tuple[str, str] | None]:
    """How many entries are kept back, by reason, and the last with a delay that is no time: what
    PENSTOCK STATS tells, nothing to a user who may not run it."""
    group = ref.group
    if not request.viewer.may(b"PENSTOCK", b"STATS", ref.key, group.name):
        return {}, None
    counts = kept_back(ref, request.server.policies.known_as_ruled(ref), request.now)
    given = max(0, len(group.pending.extras.released) - counts.backoff)
    said = {**counts._asdict(), "given": given}
    reasons = {REASONS[name]: count for name, count in said.items() if count}
    last = group.counts.bad_delay
    return reasons, None if last is None else (id_text(last[0]), shown(last[1]))


def _unseen(db: int, key: bytes, group: Group) -> Row:
    return Row(db, key, group.name, 0, 0, 0, None, 0, None, 0, (), False)


def obstacles(request: PageRequest, ref: GroupRef) -> dict[str, str | None]:
    """Why each of the acts cannot be, ``None`` for one that can."""
    key, name = ref.key, ref.group.name
    commands = {
        "ack": [b"XACK", key, name, b"0-1"],
        "claim": [b"XCLAIM", key, name, b"c", b"0", b"0-1"],
        "back": [b"XNACK", key, name, b"SILENT", b"IDS", b"1", b"0-1"],
        "bury": [b"XNACK", key, name, b"FATAL", b"IDS", b"1", b"0-1"],
        "position": [b"XGROUP", b"SETID", key, name, b"0"],
        "policy": policy_command(b"SET", key, name, b"paused", b"no"),
        "remove": [b"XGROUP", b"DELCONSUMER", key, name, b"c"],
    }
    return {kind: request.obstacle(*command) for kind, command in commands.items()}


def settings_of(request: PageRequest, ref: GroupRef) -> list[PolicyInForce]:
    """The policies that are in force for a group."""
    return told(request, ref.db.index, request.server.policies.settings_of_group(ref))


def settings_of_stream(
    request: PageRequest, db: int, key: bytes, stream: Stream
) -> list[PolicyInForce]:
    """The policies of a stream: its own, and those it gives all its groups."""
    shared = {name: value for name, value in stream.policy.items() if name in GROUP}
    own = request.server.policies.settings_of_stream(key, stream)
    return told(request, db, {**own, **shared})


def told(request: PageRequest, db: int, settings: Settings) -> list[PolicyInForce]:
    """Policies as they are shown, by name."""
    return [_setting(request, db, name, settings[name]) for name in sorted(settings)]


def _setting(request: PageRequest, db: int, name: bytes, value: bytes) -> PolicyInForce:
    says = _SENTENCE.match(ALL[name].help.replace("`", ""))[0]  # type: ignore[index]
    text, target = shown(value), None
    if name == DEAD_LETTER.name and value:
        if request.viewer.may_see(value):
            target = letters_url(db, value)
        else:
            text = "a stream that is not for your user"
    elif name in TIMES:
        lengths = [duration(int(each)) for each in _LENGTHS.findall(value)]
        if value.isdigit():
            text = lengths[0] if lengths else text
        elif lengths:
            text = f"{text} ({', '.join(lengths)})"
    return PolicyInForce(shown(name), text, says, target)


# --- consumers -------------------------------------------------------------------------------


async def _consumers(
    request: PageRequest, ref: GroupRef, waiting: set[bytes]
) -> tuple[list[ConsumerLine], dict[str, str | None]]:
    """Those of a page, and the addresses of the pages around it."""
    page = request.fields.whole("cpage", 1, 1, 10**6)
    first = (page - 1) * PAGE
    some = await _first_consumers(request, ref.group, first + PAGE + 1)
    where = ref.db.index, ref.key, ref.group.name
    lines = [consumer_line(request, where, each, waiting) for each in some[first : first + PAGE]]

    def address(number: int) -> str:
        order = request.fields.text("order") or None
        return group_url(*where, order=order, cpage=number) + "#consumers"

    return lines, {
        "newer consumers": address(page - 1) if page > 1 else None,
        "more consumers": address(page + 1) if len(some) > first + PAGE else None,
        "more": None,
    }


async def _first_consumers(request: PageRequest, group: Group, most: int) -> list[Consumer]:
    """Those with most pending entries first."""
    every = list(group.consumers.values())
    found: list[Consumer] = []
    for at in range(0, len(every), _CHUNK):
        some = found + every[at : at + _CHUNK]
        found = heapq.nsmallest(most, some, key=lambda each: (-each.owned, each.name))
        await request.pace.rest()
    return found


def consumer_line(
    request: PageRequest, group: Name, consumer: Consumer, waiting: set[bytes]
) -> ConsumerLine:
    """How a consumer of a group is."""
    asked = max(0, request.now - consumer.seen)
    waits, connected = consumer.name in waiting, is_connected(consumer)
    state = consumer_state(consumer.owned, waits, connected, asked)
    got = None if consumer.active == NEVER else max(0, request.now - consumer.active)
    link = consumer.link if isinstance(consumer.link, Link) else None
    known = link is not None and request.viewer.may(b"CLIENT", b"LIST")
    address = link.addr if link is not None and known else ""
    closed = None if link is None or not link.closed_ms else link.closed_ms
    trace = request.window(request.sampler.consumers.get((group, consumer.name)), *group)
    told = state, consumer.owned, asked, got, address, closed
    return ConsumerLine(consumer.name, *told, consumer.acked, consumer.redelivered, trace)


def parked(request: PageRequest, db: int, key: bytes, group: Group) -> set[bytes]:
    """The names of the consumers that wait for entries."""
    return {
        name
        for waiter in request.server.blocking.queue((db, key))
        if waiter.wait.reader_of == group.name and (name := consumer_of(waiter)) is not None
    }


def consumer_of(waiter: Waiter) -> bytes | None:
    """As which consumer a reader of a group waits."""
    args, group = waiter.args, waiter.wait.reader_of
    for at, word in enumerate(args[:-2]):
        if at and word.upper() == b"GROUP" and args[at + 1] == group:
            return args[at + 2]
    return None


async def consumer_screen(request: PageRequest) -> Screen:
    """A consumer, and what it holds in the order of its IDs."""
    database, key, stream, group = request.group()
    request.require(b"XINFO", b"CONSUMERS", key, group.name)
    name = request.fields.name("name")
    consumer = group.consumers.get(name)
    if consumer is None:
        raise Refused(f"The group {shown(group.name)} has no consumer {shown(name)}.")
    ref = GroupRef(database, key, stream, group)
    denied = request.viewer.denial(b"XPENDING", key, group.name)
    held, following = [], None
    where = database.index, key, group.name
    if denied is None:
        some = group.pending.owned_ids(consumer, _start(request), PAGE + 1)
        for each in some[:PAGE]:
            entry = group.pending.get(each)
            if entry is not None:
                held.append(await _held(request, ref, entry))
        if len(some) > PAGE:
            following = consumer_url(*where, name, start=id_text(some[PAGE]))
    rules = rules_of(request.server, ref)
    given: dict[str, Any] = {
        "consumer": consumer_line(request, where, consumer, parked(request, *where[:2], group)),
        "group": group,
        "at": where,
        "held": held,
        "denied": denied,
        "following": following,
        "most": 0 if rules is None else rules.max_deliveries,
        "wait": 0 if rules is None else rules.delay(1, 0),
        "obstacles": obstacles(request, ref),
        "fields": {
            "db": database.index,
            "key": packed(key),
            "group": packed(group.name),
            "consumer": packed(name),
        },
        "holds": counted(consumer.owned, "entry", "entries"),
    }
    return Screen("consumer.html", shown(name), given)


# --- pending entries -------------------------------------------------------------------------


async def _first_pending(
    request: PageRequest, group: Group, order: str
) -> tuple[list[PendingEntry], bool, int]:
    """The entries that come first in an order, whether all were looked at for that, and where the
    next page by ID begins (0: there is none)."""
    if order == "id":
        some = group.pending.ids_from(_start(request), PAGE + 1)
        entries = [entry for each in some[:PAGE] if (entry := group.pending.get(each)) is not None]
        return entries, True, some[PAGE] if len(some) > PAGE else 0
    found: list[PendingEntry] = []
    pending, covered = group.pending, -1
    for _ in range(MOST_SEGMENTS):
        at = bisect_right(pending.bases, covered)
        if at == len(pending.segments):
            return found, True, 0
        segment = pending.segments[at]
        covered = segment.ids.at(-1)
        if segment.live:
            found = _merged(found, segment, order)
        await request.pace.rest()
    return found, False, 0


def _start(request: PageRequest) -> int:
    try:
        return ids.parse(request.fields.text("start").encode())
    except InvalidID:
        return ids.MIN


def _merged(found: list[PendingEntry], segment: Segment, order: str) -> list[PendingEntry]:
    """The first of what was found and of the entries of a segment."""
    full = len(found) == PAGE
    if order == "deliveries":
        if full and max(segment.delivery_counts()) <= found[-1].deliveries:
            return found
        key = _by_deliveries
    else:
        if full and segment.earliest_owned() >= found[-1].time:
            return found
        key = _by_age
    places = segment.pending_places(0, len(segment), len(segment))
    return heapq.nsmallest(PAGE, found + [segment.entry(place) for place in places], key=key)


def _by_age(entry: PendingEntry) -> tuple[int, int]:
    return (HIGHEST if entry.owner is None else entry.time), entry.id


def _by_deliveries(entry: PendingEntry) -> tuple[int, int]:
    return -entry.deliveries, entry.id


async def _held(request: PageRequest, ref: GroupRef, entry: PendingEntry) -> Held:
    """A pending entry as it is shown."""
    await request.pace.rest()
    readable = request.viewer.may(b"XRANGE", ref.key, b"-", b"+")
    payload = ref.stream.log.get(entry.id) if readable else None
    missing = "deleted from the stream" if readable else "not for your user"
    owner = None if entry.owner is None else entry.owner.name
    return Held(
        id_text(entry.id),
        id_ms(entry.id),
        owner,
        state_of_pending(entry, request.now),
        abs(request.now - entry.time) if owner is not None or entry.time > request.now else 0,
        owner is None and entry.time > request.now,
        entry.deliveries,
        None if payload is None else preview(payload),
        missing,
    )


def state_of_pending(entry: PendingEntry, now: int) -> str:
    """With a consumer, kept back by a policy, or given back (XNACK)."""
    if entry.owner is not None:
        return "held"
    return "back" if entry.deliveries and entry.time <= now else "kept"
