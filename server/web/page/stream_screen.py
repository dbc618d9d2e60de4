"""A stream: what it is, its groups, and its entries: the newest, from a time on, or by a search."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from server.runtime.clockwork import Slice
from server.web.page.drawing import Screen
from server.web.page.group_screen import settings_of_stream
from server.web.page.page_request import PageRequest, Refused, packed, stream_url
from server.web.page.preview import Preview, id_of, preview
from server.web.page.sampling import behind_since, lag_of
from server.web.page.traces import StreamTrace
from server.web.page.walking import entries, has
from server.web.page.wording import id_ms, id_text, shown
from storage.engine import ids
from storage.engine.log import EntryLog
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many entries there are on a page."""

MOST_GROUPS: Final = 50
"""How many groups are shown beside the entries."""

SEARCHED: Final = 5000
"""How many entries a search looks at for one page."""

_TIMES: Final = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")


@dataclass
class GroupLine:
    """A group of the stream; ``waits`` is how long its first entry has waited to be delivered, and
    ``acked`` what it acknowledges a second."""

    name: bytes
    lag: int
    waits: int | None
    pending: int
    kept: int
    state: str
    acked: float | None


@dataclass
class EntryLine:
    """An entry in a list."""

    id: str
    added: int | None
    entry: Preview


class EntrySearch:
    """Which entries are wanted: from where on, in which direction, and with which text."""

    def __init__(self, request: PageRequest) -> None:
        fields = request.fields
        self.name = fields.text("field")
        self.value = fields.text("value")
        self.at = fields.text("at")
        self.upwards = bool(fields.text("from") or self.at)
        text = fields.text("from") or fields.text("below")
        self.bound = identity_of(self.at or text) if self.at or text else None
        self.before = fields.whole("looked", 0, 0, 10**15)

    @property
    def is_on(self) -> bool:
        """Whether not all are."""
        return bool(self.name or self.value)

    async def fits(self, payload: bytes, pace: Slice) -> bool:
        """Whether an entry has the text that is asked for, in the field that is, or in any."""
        return not self.is_on or await has(payload, self.name.encode(), self.value.encode(), pace)

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
            then = datetime.strptime(text.removesuffix("Z").replace(" ", "T"), form)
            return ids.join(max(0, int(then.replace(tzinfo=UTC).timestamp() * 1000)), 0)
        except (ValueError, OverflowError):
            continue
    raise Refused(f"{text[:100]!r} is neither an ID nor a time such as 2026-01-31 12:00.", 400)


class Found:
    """Entries of a page, the newest first, and how many were looked at; ``stopped`` is where a
    search has given up for now, and ``more`` whether another entry fits."""

    def __init__(self) -> None:
        self.entries: list[Preview] = []
        self.looked = 0
        self.stopped: int | None = None
        self.more = False


async def stream_screen(request: PageRequest) -> Screen:
    """The screen."""
    database, key, stream = request.stream()
    db, log = database.index, stream.log
    viewer = request.viewer
    denied = {
        "groups": viewer.denial(b"XINFO", b"GROUPS", key),
        "entries": viewer.denial(b"XRANGE", key, b"-", b"+"),
    }
    search, found = EntrySearch(request), Found()
    if denied["entries"] is None:
        found = await find(request, log, search)
    readable_fields = denied["entries"] is None and not search.is_on
    given: dict[str, Any] = {
        "at": (db, key),
        "stream": stream,
        "memory": log.memory_usage(),
        "first": id_ms(log.first) if log.length else None,
        "last": id_ms(log.last) if log.length else None,
        "trace": _trace(request, db, key, stream),
        "denied": denied,
        "groups": [] if denied["groups"] else await _groups(request, db, key, stream),
        "more_groups": max(0, len(stream.groups) - MOST_GROUPS),
        "settings": settings_of_stream(request, db, key, stream),
        "search": search,
        "found": found,
        "lines": [
            EntryLine(id_text(each.entry_id), id_ms(each.entry_id), each) for each in found.entries
        ],
        "names": _names(found) if readable_fields else [],
        "goes_on": _goes_on(db, key, search, found),
        "links": _links(db, key, log, search, found),
        "fields": {"db": db, "key": packed(key)},
        "off": {
            "add": request.obstacle(b"XADD", key, b"*", b"f", b"v"),
            "trim": request.obstacle(b"XTRIM", key, b"MAXLEN", b"1"),
        },
    }
    return Screen("stream.html", shown(key), given)


def _trace(request: PageRequest, db: int, key: bytes, stream: Stream) -> StreamTrace | None:
    """Of the groups of which the past is known, or of the stream if it has none."""
    names = list(islice(stream.groups, MOST_GROUPS)) or [b""]
    found = [request.sampler.traces.get((db, key, name)) for name in names]
    traces = [window for each in found if (window := request.window(each, db, key)) is not None]
    return StreamTrace(traces) if traces else None


async def _groups(request: PageRequest, db: int, key: bytes, stream: Stream) -> list[GroupLine]:
    found = []
    for group in list(islice(stream.groups.values(), MOST_GROUPS)):
        since = behind_since(stream, group, request.now)
        kept = group.pending.unowned
        row = request.sampler.index.get((db, key, group.name))
        trace = request.sampler.traces.get((db, key, group.name))
        found.append(
            GroupLine(
                group.name,
                await lag_of(stream, group, request.pace),
                None if since is None else request.now - since,
                len(group.pending) - kept,
                kept,
                "" if row is None else row.state(request.now),
                None if trace is None else trace.rate("acked"),
            )
        )
        await request.pace.rest()
    return found


def _names(found: Found) -> list[str]:
    """The names of fields that the entries on the page have."""
    return sorted({name for entry in found.entries for name, _ in entry.fields})


async def find(request: PageRequest, log: EntryLog, search: EntrySearch) -> Found:
    """The entries of a page; looks at no more than :data:`SEARCHED`."""
    found = Found()
    low = search.bound if search.upwards and search.bound is not None else ids.MIN
    high = ids.MAX if search.upwards or search.bound is None else search.bound - 1
    reached = ids.MIN
    async for payload in entries(log, low, high, request.pace, newest=not search.upwards):
        if found.looked >= SEARCHED:
            found.stopped = reached
            break
        if await search.fits(payload, request.pace):
            if len(found.entries) == PAGE:
                found.more = True
                break
            found.entries.append(preview(payload))
        found.looked += 1
        reached = id_of(payload)
    if search.upwards:
        found.entries.reverse()
    return found


def _goes_on(db: int, key: bytes, search: EntrySearch, found: Found) -> str | None:
    """The address of the next step of a search that has stopped."""
    if found.stopped is None:
        return None
    bound = (
        {"from": id_text(found.stopped + 1)}
        if search.upwards
        else {"below": id_text(found.stopped)}
    )
    return stream_url(db, key, **search.fields(), **bound, looked=search.before + found.looked)


def _links(
    db: int, key: bytes, log: EntryLog, search: EntrySearch, found: Found
) -> tuple[str | None, str | None]:
    """Pages of newer and of older entries, where there are any."""
    newer = older = None
    if found.entries:
        top, bottom = found.entries[0].entry_id, found.entries[-1].entry_id
        if top < log.last:
            newer = stream_url(db, key, **search.fields(), **{"from": id_text(top + 1)})
        if bottom > log.first and (found.more or not search.is_on or search.upwards):
            older = stream_url(db, key, **search.fields(), below=id_text(bottom))
    return newer, older
