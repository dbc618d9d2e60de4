"""The overview: all groups of all streams, those in trouble first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.html.document import facts, notice, table
from penstock.html.markup import Child, Html, joined, tag
from server.web.page.charts import sparkline
from server.web.page.document import live, pages, several
from server.web.page.page_request import PageRequest, group_url, stream_url, url
from server.web.page.sampling import Row, in_trouble, ordered
from server.web.page.wording import NONE, deliveries, duration, number, shown

PAGE: Final = 50
"""How many rows there are on a page."""

MOST_PAGES: Final = 10**6

_ORDERS: Final[dict[str, str]] = {
    "trouble": "in trouble first",
    "age": "oldest pending entry",
    "lag": "lag",
    "pending": "pending entries",
    "name": "name",
}

_TROUBLES: Final = {
    "stuck": "an entry has been pending for five minutes or longer",
    "redelivered": "an entry was delivered five times or more often",
    "behind": "an entry has waited for five minutes or longer to be delivered",
}

_HEADS: Final = (
    "Stream",
    "Group",
    "State",
    "Oldest pending",
    "Lag",
    "Pending",
    "Deliveries",
    "Lag, pending lately",
)


class _Wanted:
    """What is asked for: which rows, in which order, and which page of them."""

    def __init__(self, request: PageRequest) -> None:
        fields = request.fields
        self.failing = bool(fields.text("failing"))
        self.match = fields.text("match")
        order = fields.text("order")
        self.order = order if order in _ORDERS else "trouble"
        self.page = fields.whole("page", 1, 1, MOST_PAGES)

    def url(self, page: int) -> str:
        """The address of another page of the same rows."""
        return url(
            "/",
            failing="1" if self.failing else None,
            match=self.match or None,
            order=self.order if self.order != "trouble" else None,
            page=page if page > 1 else None,
        )

    def key(self, now: int) -> Callable[[Row], Any]:
        """What rows are ordered by."""
        return {
            "trouble": in_trouble(now),
            "age": lambda row: (now if row.oldest is None else row.oldest, *row.name),
            "lag": lambda row: (-row.lag, *row.name),
            "pending": lambda row: (-row.pending, *row.name),
            "name": lambda row: row.name,
        }[self.order]


async def overview(request: PageRequest) -> Html:
    """The screen. Nothing is looked at here but what the sampler has found."""
    wanted = _Wanted(request)
    sampler = request.sampler
    found, totals = await _select(request, wanted)
    rows = []
    for row in found[:PAGE]:
        rows.append(_row(request, row))
        await request.pace.rest()
    left_out = (
        notice(
            f"{number(sampler.left_out)} more streams and groups are not shown: there are too many."
        )
        if sampler.left_out
        else None
    )
    empty = (
        "No group is in trouble." if wanted.failing else "There are no streams that you may see."
    )
    content = live(
        "live",
        request,
        totals,
        left_out,
        table(_HEADS, rows, empty),
        pages(
            ("← Previous", wanted.url(wanted.page - 1) if wanted.page > 1 else None),
            ("Next →", wanted.url(wanted.page + 1) if len(found) > PAGE else None),
        ),
    )
    return joined([tag("h1", "Streams by groups"), _form(wanted), content])


async def _select(request: PageRequest, wanted: _Wanted) -> tuple[list[Row], Html]:
    """The rows of the page and one more if there is one, and the numbers above them."""
    streams = groups = failing = pending = 0
    before: tuple[int, bytes] | None = None
    kept = []
    for row in request.sampler.rows:
        await request.pace.rest()
        if not request.viewer.may_see(row.key):
            continue
        if before != (row.db, row.key):  # The rows of a stream follow each other.
            before = (row.db, row.key)
            streams += 1
        groups += row.group is not None
        pending += row.pending
        in_need = bool(row.troubles(request.now))
        failing += in_need
        if (in_need or not wanted.failing) and _fits(row, wanted.match):
            kept.append(row)
    found: list[Row] = []
    skip = (wanted.page - 1) * PAGE
    if skip < len(kept):
        async for row in ordered(kept, wanted.key(request.now), request.pace):
            if skip:
                skip -= 1
                continue
            found.append(row)
            if len(found) > PAGE:
                break
    numbers = facts(
        ("Streams", number(streams), ""),
        ("Groups", number(groups), ""),
        ("In trouble", tag("b", number(failing), class_="bad" if failing else "good"), ""),
        ("Pending entries", number(pending), ""),
        ("Looked at", _age(request), ""),
    )
    return found, numbers


def _fits(row: Row, match: str) -> bool:
    return not match or match in shown(row.key) or match in shown(row.group or b"")


def _age(request: PageRequest) -> str:
    if not request.sampler.number:
        return "not yet"
    return f"{duration(request.now - request.sampler.taken_ms)} ago"


def _form(wanted: _Wanted) -> Html:
    options = [
        tag("option", text, value=name, selected=name == wanted.order)
        for name, text in _ORDERS.items()
    ]
    return tag(
        "form",
        tag("label", "Name has ", tag("input", name="match", value=wanted.match, type="search")),
        tag("label", "Order ", tag("select", *options, name="order")),
        tag(
            "label",
            tag("input", type="checkbox", name="failing", value="1", checked=wanted.failing),
            " only failing",
        ),
        tag("button", "Show"),
        class_="filter",
        action="/",
    )


def _row(request: PageRequest, row: Row) -> list[Child]:
    trace = request.sampler.traces.get(row.name)
    lines = (
        []
        if trace is None or row.group is None
        else [sparkline(trace.lag, "lag"), sparkline(trace.pending, "pending")]
    )
    return [
        stream_link(row.db, row.key),
        NONE
        if row.group is None
        else tag("a", shown(row.group), href=group_url(row.db, row.key, row.group)),
        state(row, request.now),
        NONE if row.oldest is None else duration(request.now - row.oldest),
        NONE if row.group is None else number(row.lag),
        NONE if row.group is None else number(row.pending),
        f"up to {deliveries(row.most)}" if row.most else NONE,
        several([line for line in lines if line is not None]) if any(lines) else NONE,
    ]


def stream_link(db: int, key: bytes) -> Html:
    """A link to a stream; the database is told where it is not the first one."""
    where = tag("small", f" db{db}") if db else None
    return joined([tag("a", shown(key), href=stream_url(db, key)), where])


def state(row: Row, now: int) -> Html:
    """What is wrong with a group, or that nothing is."""
    troubles = row.troubles(now)
    if row.group is None:
        return tag("span", "no groups", class_="badge")
    if not troubles:
        return tag("span", "fine", class_="badge good")
    return several(
        [tag("span", name, class_="badge bad", title=_TROUBLES[name]) for name in troubles]
    )
