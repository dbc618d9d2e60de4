"""A stream: what it is, its groups, and its entries in pages."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Final

from penstock.html.document import facts, notice, section, table
from penstock.html.markup import Child, Html, joined, tag
from server.web.page.document import hidden, live, pages, several
from server.web.page.page_request import PageRequest, Refused, group_url, packed, stream_url, url
from server.web.page.policies import policies_of_stream
from server.web.page.preview import Preview, has, id_of, preview
from server.web.page.sampling import behind_since, lag_of
from server.web.page.wording import (
    NONE,
    duration,
    id_moment,
    id_text,
    number,
    shown,
    size,
)
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.log import EntryLog
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many entries there are on a page."""

MOST_GROUPS: Final = 50
"""How many groups are shown beside the entries."""

SEARCHED: Final = 5000
"""How many entries a filter looks at for one page."""

_BATCH: Final = 50
_TIMES: Final = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")


async def stream_screen(request: PageRequest) -> Html:
    """The screen."""
    database, key, stream = request.stream()
    return joined(
        [
            tag("h1", tag("small", f"db{database.index} "), shown(key)),
            live(
                "live",
                request,
                _numbers(request, database.index, key, stream),
                await _groups(request, database.index, key, stream),
            ),
            policies_of_stream(request, database.index, key, stream),
            await _entries(request, database.index, key, stream),
        ]
    )


# --- the stream as a whole -------------------------------------------------------------------


def _numbers(request: PageRequest, db: int, key: bytes, stream: Stream) -> Html:
    log = stream.log
    some = log.length > 0
    return facts(
        ("Entries", number(log.length), f"{number(stream.entries_added)} were ever added"),
        ("Rate", _rate(request, db, key, stream), "entries added a second, last minute"),
        ("Memory", f"about {size(log.memory_usage())}", "of the entries"),
        (
            "First",
            tag("code", id_text(log.first)) if some else NONE,
            id_moment(log.first) if some else "",
        ),
        (
            "Last",
            tag("code", id_text(log.last)) if some else NONE,
            id_moment(log.last) if some else "",
        ),
        ("Groups", number(len(stream.groups)), ""),
    )


def _rate(request: PageRequest, db: int, key: bytes, stream: Stream) -> str:
    """Of any group of which the past is known, or of the stream if it has none."""
    names = list(islice(stream.groups, MOST_GROUPS)) or [b""]
    traces = request.sampler.traces
    trace = next((found for name in names if (found := traces.get((db, key, name)))), None)
    rate = None if trace is None else trace.rate()
    return NONE if rate is None else f"{rate:,.1f}"


async def _groups(request: PageRequest, db: int, key: bytes, stream: Stream) -> Html:
    denial = request.viewer.denial(b"XINFO", b"GROUPS", key)
    if denial is not None:
        return section("Groups", notice(denial))
    rows = []
    for group in list(islice(stream.groups.values(), MOST_GROUPS)):
        rows.append(await _group(request, db, key, stream, group))
        await request.pace.rest()
    more = len(stream.groups) - len(rows)
    heads = ("Group", "Lag", "Waits since", "Pending", "Consumers", "Last delivered")
    return section(
        "Groups",
        table(heads, rows, "This stream has no groups."),
        tag("p", tag("a", f"{number(more)} more groups", href=url("/", match=shown(key))))
        if more > 0
        else None,
    )


async def _group(
    request: PageRequest, db: int, key: bytes, stream: Stream, group: Group
) -> list[Child]:
    since = behind_since(stream, group, request.now)
    return [
        tag("a", shown(group.name), href=group_url(db, key, group.name)),
        number(await lag_of(stream, group, request.pace)),
        NONE if since is None else duration(request.now - since),
        number(len(group.pending)),
        number(len(group.consumers)),
        id_text(group.last_id),
    ]


# --- entries ---------------------------------------------------------------------------------


class _Search:
    """Which entries are wanted: from where on, in which direction, and with which field."""

    def __init__(self, request: PageRequest) -> None:
        fields = request.fields
        self.name = fields.text("field")
        self.value = fields.text("value")
        self.at = fields.text("at")
        self.upwards = bool(fields.text("from") or self.at)
        text = fields.text("from") or fields.text("below")
        self.bound = identity_of(self.at or text) if self.at or text else None

    def fits(self, payload: bytes) -> bool:
        """Whether an entry has the field that is asked for."""
        return not self.name or has(payload, self.name.encode(), self.value.encode())

    def fields(self) -> dict[str, str | None]:
        """What stays the same on other pages."""
        return {"field": self.name or None, "value": self.value or None}


def identity_of(text: str) -> int:
    """An ID, or the first ID of a time; raises :class:`Refused` for what is neither."""
    try:
        return ids.parse(text.encode())
    except InvalidID:
        pass
    for form in _TIMES:
        try:
            then = datetime.strptime(text.replace(" ", "T"), form).replace(tzinfo=UTC)
            return ids.join(max(0, int(then.timestamp() * 1000)), 0)
        except (ValueError, OverflowError):
            continue
    raise Refused(f"{text[:100]!r} is neither an ID nor a time such as 2026-01-31 12:00.", 400)


class _Found:
    """Entries of a page, the newest first; ``stopped`` is where a filter has given up."""

    def __init__(self) -> None:
        self.entries: list[Preview] = []
        self.stopped: int | None = None
        self.more = False


async def _entries(request: PageRequest, db: int, key: bytes, stream: Stream) -> Html:
    denial = request.viewer.denial(b"XRANGE", key, b"-", b"+")
    if denial is not None:
        return section("Entries", notice(denial))
    search = _Search(request)
    found = await _find(request, stream.log, search)
    rows: list[list[Child]] = [
        [
            joined([tag("code", id_text(entry.entry_id)), tag("small", id_moment(entry.entry_id))]),
            fields_of(entry),
            size(entry.size),
        ]
        for entry in found.entries
    ]
    return section(
        "Entries",
        _form(db, key, search),
        _stopped(db, key, search, found),
        table(("ID", "Fields", "Size"), rows, "There are no such entries here."),
        _links(db, key, stream.log, search, found),
    )


async def _find(request: PageRequest, log: EntryLog, search: _Search) -> _Found:
    """The entries of a page; looks at no more than :data:`SEARCHED`, a few at a time."""
    found = _Found()
    looked = 0
    low = search.bound if search.upwards and search.bound is not None else ids.MIN
    high = ids.MAX if search.upwards or search.bound is None else search.bound - 1
    while low <= high:
        if search.upwards:
            payloads = log.range(low, high, _BATCH)
        else:
            payloads = log.reverse(low, high, _BATCH)
        for payload in payloads:
            if search.fits(payload):
                if len(found.entries) == PAGE:
                    found.more = True
                    break
                found.entries.append(preview(payload))
        looked += len(payloads)
        if found.more or len(payloads) < _BATCH:
            break
        reached = id_of(payloads[-1])
        low, high = (reached + 1, high) if search.upwards else (low, reached - 1)
        if looked >= SEARCHED:
            found.stopped = reached
            break
        await request.pace.rest()
    if search.upwards:
        found.entries.reverse()
    return found


def fields_of(entry: Preview) -> Html:
    """The fields of an entry, a line each."""
    lines: list[Child] = [
        tag("div", tag("b", name), tag("span", value)) for name, value in entry.fields
    ]
    if entry.more:
        lines.append(tag("div", f"{number(entry.more)} more fields", class_="more"))
    return tag("div", *lines, class_="fields")


def _form(db: int, key: bytes, search: _Search) -> Html:
    return tag(
        "form",
        hidden("db", db),
        hidden("key", packed(key)),
        tag(
            "label",
            "From ID or time (UTC) ",
            tag("input", name="at", value=search.at, placeholder="2026-01-31 12:00"),
        ),
        tag("label", "Field ", tag("input", name="field", value=search.name)),
        tag("label", "has ", tag("input", name="value", value=search.value)),
        tag("button", "Show"),
        tag("a", "Newest", href=stream_url(db, key), class_="button plain"),
        class_="filter",
        action="/stream",
    )


def _stopped(db: int, key: bytes, search: _Search, found: _Found) -> Html | None:
    if found.stopped is None:
        return None
    direction = (
        {"from": id_text(found.stopped + 1)}
        if search.upwards
        else {"below": id_text(found.stopped)}
    )
    go_on = tag("a", "Go on from there", href=stream_url(db, key, **search.fields(), **direction))
    text = f"{number(SEARCHED)} entries were looked at, as far as {id_text(found.stopped)}. "
    return notice(several([tag("span", text), go_on]))


def _links(db: int, key: bytes, log: EntryLog, search: _Search, found: _Found) -> Html:
    """Pages of newer and of older entries, where there are any."""
    newer = older = None
    if found.entries:
        top, bottom = found.entries[0].entry_id, found.entries[-1].entry_id
        if top < log.last:
            newer = stream_url(db, key, **search.fields(), **{"from": id_text(top + 1)})
        if bottom > log.first:
            older = stream_url(db, key, **search.fields(), below=id_text(bottom))
    return pages(("← Newer", newer), ("Older →", older))
