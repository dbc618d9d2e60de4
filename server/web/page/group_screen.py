"""A consumer group: how it gets on, its consumers, and what is pending."""

from __future__ import annotations

import heapq
import json
from bisect import bisect_right
from typing import Final

from penstock.html.document import facts, notice, section, table
from penstock.html.markup import Child, Html, joined, tag
from server.road.session import Waiter
from server.web.page.charts import histogram
from server.web.page.document import csrf_field, hidden, live, pages
from server.web.page.page_request import PageRequest, group_url, packed, stream_url
from server.web.page.policies import policies_of_group
from server.web.page.preview import preview
from server.web.page.sampling import Trace, behind_since, lag_of
from server.web.page.stream_screen import fields_of
from server.web.page.wording import (
    NONE,
    deliveries,
    duration,
    id_moment,
    id_text,
    moment,
    number,
    shown,
)
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import MOST, NEVER, Consumer, PendingEntry
from storage.engine.pending_segment import Segment
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many consumers and pending entries there are on a page."""

MOST_SEGMENTS: Final = 4000
"""How many segments of pending entries are looked at for those that come first."""

_ORDERS: Final = {"age": "oldest first", "deliveries": "most delivered first", "id": "by ID"}

_CHUNK: Final = 500


async def group_screen(request: PageRequest) -> Html:
    """The screen."""
    database, key, stream, group = request.group()
    db = database.index
    return joined(
        [
            tag(
                "h1",
                tag("small", f"db{db} "),
                tag("a", shown(key), href=stream_url(db, key)),
                " / ",
                shown(group.name),
            ),
            live(
                "live",
                request,
                await _numbers(request, db, key, stream, group),
                also=("consumers", "pending", "deliveries"),
            ),
            _over_time(request, (db, key, group.name)),
            _position(request, db, key, group),
            tag(
                "div",
                tag(
                    "div",
                    tag("div", await _consumers(request, db, key, group), id="consumers"),
                    policies_of_group(request, db, key, stream, group),
                ),
                tag("div", _deliveries(request, (db, key, group.name)), id="deliveries"),
                class_="pair",
            ),
            tag("div", await _pending(request, db, key, stream, group), id="pending"),
        ]
    )


# --- the group as a whole --------------------------------------------------------------------


async def _numbers(request: PageRequest, db: int, key: bytes, stream: Stream, group: Group) -> Html:
    since = behind_since(stream, group, request.now)
    row = request.sampler.index.get((db, key, group.name))
    oldest = None if row is None else row.oldest
    parked = sum(
        waiter.wait.reader_of == group.name
        for waiter in list(request.server.blocking.waiting.get((db, key), ()))
    )
    return facts(
        (
            "Lag",
            number(await lag_of(stream, group, request.pace)),
            "entries not delivered yet"
            if since is None
            else f"the first has waited for {duration(request.now - since)}",
        ),
        (
            "Pending",
            number(len(group.pending)),
            "delivered, not acknowledged"
            if oldest is None
            else f"the oldest for {duration(request.now - oldest)}",
        ),
        ("Consumers", number(len(group.consumers)), f"{number(parked)} readers wait"),
        ("Acknowledged", number(group.acked), "since the server's start"),
        ("Delivered again", number(group.redelivered), "since the server's start"),
    )


def _over_time(request: PageRequest, name: tuple[int, bytes, bytes]) -> Html:
    trace = request.sampler.traces.get(name)
    points = chart_points(trace)
    chart = tag(
        "div",
        id="chart",
        data_points=points,
        hx_get=group_url(*name).replace("/group", "/trace", 1),
        hx_trigger="sse:sample",
        hx_swap="none",
        role="img",
        aria_label="Lag and pending entries over time",
    )
    return section("Lag and pending entries", chart)


def chart_points(trace: Trace | None) -> str:
    """What the chart is drawn from, as JSON: times in seconds, lag, pending entries."""
    if trace is None:
        return json.dumps([[], [], []])
    return json.dumps([[then / 1000 for then in trace.times], list(trace.lag), list(trace.pending)])


def _deliveries(request: PageRequest, name: tuple[int, bytes, bytes]) -> Html:
    row = request.sampler.index.get(name)
    title = "Deliveries of pending entries"
    if row is None or not row.pending:
        return section(title, tag("p", "Nothing is pending.", class_="empty"))
    return section(title, histogram(row.deliveries))


# --- the position ----------------------------------------------------------------------------


def _position(request: PageRequest, db: int, key: bytes, group: Group) -> Html:
    what = facts(
        ("Last delivered", tag("code", id_text(group.last_id)), id_moment(group.last_id)),
        (
            "Entries read",
            NONE if group.entries_read is None else number(group.entries_read),
            "by its counter",
        ),
    )
    if not request.viewer.may_act:
        return section("Position", what)
    denial = request.viewer.denial(b"XGROUP", b"SETID", key, group.name, b"0")
    if denial is not None:
        return section("Position", what, notice(denial))
    to_time = _form(
        request,
        db,
        key,
        group,
        "setid-time",
        tag(
            "label",
            "Time (UTC) or ID ",
            tag("input", name="to", required=True, placeholder="2026-01-31 12:00"),
        ),
        "Set to a time …",
    )
    back = _form(
        request,
        db,
        key,
        group,
        "setid-back",
        tag(
            "label",
            "Entries ",
            tag("input", name="by", type="number", min="1", max="10000", value="1", required=True),
        ),
        "Go back …",
    )
    return section("Position", what, tag("div", to_time, back, class_="actions"))


def _form(
    request: PageRequest, db: int, key: bytes, group: Group, kind: str, field: Html, button: str
) -> Html:
    return tag(
        "form",
        csrf_field(request),
        hidden("kind", kind),
        hidden("db", db),
        hidden("key", packed(key)),
        hidden("group", packed(group.name)),
        hidden("seen", id_text(group.last_id)),
        field,
        tag("button", button),
        method="post",
        action="/act",
        class_="filter",
    )


# --- consumers -------------------------------------------------------------------------------


async def _consumers(request: PageRequest, db: int, key: bytes, group: Group) -> Html:
    denial = request.viewer.denial(b"XINFO", b"CONSUMERS", key, group.name)
    if denial is not None:
        return section("Consumers", notice(denial))
    page = request.fields.whole("cpage", 1, 1, 10**6)
    first = (page - 1) * PAGE
    some = await _first_consumers(request, group, first + PAGE + 1)
    parked = _parked(request, db, key, group)
    rows = [_consumer(request, each, parked) for each in some[first : first + PAGE]]
    heads = ("Consumer", "State", "Pending", "Last asked", "Last got something")
    return section(
        "Consumers",
        table(heads, rows, "The group has no consumers."),
        pages(
            ("← Previous", _page(request, db, key, group, page - 1) if page > 1 else None),
            (
                "Next →",
                _page(request, db, key, group, page + 1) if len(some) > first + PAGE else None,
            ),
        )
        if len(group.consumers) > PAGE
        else None,
    )


async def _first_consumers(request: PageRequest, group: Group, most: int) -> list[Consumer]:
    """Those with most pending entries first."""
    every = list(group.consumers.values())
    found: list[Consumer] = []
    for at in range(0, len(every), _CHUNK):
        some = found + every[at : at + _CHUNK]
        found = heapq.nsmallest(most, some, key=lambda each: (-each.owned, each.name))
        await request.pace.rest()
    return found


def _page(request: PageRequest, db: int, key: bytes, group: Group, page: int) -> str:
    order = request.fields.text("order") or None
    return group_url(db, key, group.name, order=order, cpage=page) + "#consumers"


def _parked(request: PageRequest, db: int, key: bytes, group: Group) -> set[bytes]:
    """The names of the consumers that wait for entries."""
    waiting = request.server.blocking.waiting.get((db, key), ())
    return {
        name
        for waiter in list(waiting)
        if waiter.wait.reader_of == group.name and (name := consumer_of(waiter)) is not None
    }


def consumer_of(waiter: Waiter) -> bytes | None:
    """As which consumer a reader of a group waits."""
    args, group = waiter.args, waiter.wait.reader_of
    for at, word in enumerate(args[:-2]):
        if at and word.upper() == b"GROUP" and args[at + 1] == group:
            return args[at + 2]
    return None


def _consumer(request: PageRequest, consumer: Consumer, parked: set[bytes]) -> list[Child]:
    waits = consumer.name in parked
    return [
        shown(consumer.name),
        tag(
            "span",
            "waiting" if waits else "not waiting",
            class_="badge good" if waits else "badge",
        ),
        number(consumer.owned),
        f"{duration(request.now - consumer.seen)} ago",
        NONE if consumer.active == NEVER else f"{duration(request.now - consumer.active)} ago",
    ]


# --- pending entries -------------------------------------------------------------------------


async def _pending(request: PageRequest, db: int, key: bytes, stream: Stream, group: Group) -> Html:
    denial = request.viewer.denial(b"XPENDING", key, group.name)
    if denial is not None:
        return section("Pending entries", notice(denial))
    wanted = request.fields.text("order")
    order = wanted if wanted in _ORDERS else "age"
    links = [
        tag(
            "a",
            text,
            href=group_url(db, key, group.name, order=name) + "#pending",
            class_="button plain",
            aria_current="true" if name == order else None,
        )
        for name, text in _ORDERS.items()
    ]
    entries, whole, following = await _first_pending(request, group, order)
    readable = request.viewer.may(b"XRANGE", key, b"-", b"+")
    rows = []
    for entry in entries:
        rows.append(_entry(request, stream, entry, readable))
        await request.pace.rest()
    heads = ("ID", "Consumer", "Delivered", "Deliveries", "Fields")
    more = group_url(db, key, group.name, order="id", **{"from": id_text(following)}) + "#pending"
    return section(
        "Pending entries",
        tag("p", *links, class_="pages"),
        None if whole else notice("There are very many: not all of them were looked at."),
        table(heads, rows, "Nothing is pending."),
        pages(("Next →", more)) if following else None,
    )


async def _first_pending(
    request: PageRequest, group: Group, order: str
) -> tuple[list[PendingEntry], bool, int]:
    """The entries that come first in an order, whether all were looked at for that, and where the
    next page by ID begins (0: there is none)."""
    if order == "id":
        start = _start(request)
        some = group.pending.ids_from(start, PAGE + 1)
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
    text = request.fields.text("from")
    try:
        return ids.parse(text.encode())
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
    return (MOST if entry.owner is None else entry.time), entry.id


def _by_deliveries(entry: PendingEntry) -> tuple[int, int]:
    return -entry.deliveries, entry.id


def _entry(
    request: PageRequest, stream: Stream, entry: PendingEntry, readable: bool
) -> list[Child]:
    payload = stream.log.get(entry.id) if readable else None
    if payload is not None:
        content: Child = fields_of(preview(payload))
    else:
        content = tag("small", "deleted from the stream" if readable else "not for your user")
    owner = entry.owner
    return [
        tag("code", id_text(entry.id)),
        _unowned(request, entry) if owner is None else shown(owner.name),
        NONE
        if owner is None
        else tag("span", f"{duration(request.now - entry.time)} ago", title=moment(entry.time)),
        deliveries(entry.deliveries),
        content,
    ]


def _unowned(request: PageRequest, entry: PendingEntry) -> Html:
    """Why an entry is with nobody: a policy keeps it back, or it was given back (XNACK)."""
    if entry.time > request.now:
        text = f"kept back for {duration(entry.time - request.now)}"
    else:
        text = "given back" if entry.deliveries else "not delivered yet"
    return tag("small", text)
