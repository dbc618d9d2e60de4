"""Dead letters: entries that could not be processed, with where they came from, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from server.delivery import dead_letters
from server.runtime.clockwork import Slice
from server.runtime.quantities import number
from server.web.page.drawing import Screen
from server.web.page.page_request import (
    REDRIVE,
    Fields,
    PageRequest,
    Refused,
    entry_url,
    group_url,
    letters_url,
    packed,
    stream_url,
)
from server.web.page.preview import WIDTH, Preview, id_of, preview
from server.web.page.stream_screen import identity_of
from server.web.page.walking import entries, has
from server.web.page.wording import id_ms, id_text, shown, value_text
from storage.engine import ids
from storage.engine.entries import decode_entry
from storage.engine.log import EntryLog
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many letters there are on a page."""

LOOKED_AT: Final = 5000
"""How many entries a filter looks at for one page."""

MOST_STREAMS: Final = 200

MOST_IDS: Final = 1000
"""How many letters can be named in a form; a filter may choose :data:`MOST_CHOSEN`."""

MOST_CHOSEN: Final = 10_000

LARGEST: Final = 256 * 1024
"""Letters of more bytes are shown in part, and are not sent from the page."""

MOST_DIGITS: Final = 16
"""Of a time in milliseconds."""

PREFIX: Final = b"dead-letter-"
LAST: Final = b"dead-letter-reason"
ERROR: Final = b"dead-letter-error"

T = TypeVar("T")


class ShownLetter(NamedTuple):
    """A dead letter: what was added to the entry, by name, the fields that it had, in turn, and
    the consumer group whose policy has written it, if one has."""

    added: dict[bytes, bytes]
    fields: list[bytes]
    group: bytes | None

    @property
    def origin(self) -> bytes:
        """The stream that the entry was in."""
        return self.added[PREFIX + b"stream"]

    def told(self, name: str) -> bytes:
        """What was added under a name, empty if nothing was."""
        return self.added.get(PREFIX + name.encode(), b"")


@dataclass
class LetterView:
    """A letter as it is shown: texts, an address for the origin, for the entry that it was and for
    the group, and when it died (Unix milliseconds)."""

    reason: str
    error: str
    origin: str
    origin_url: str | None
    origin_id: str
    entry_url: str | None
    group: str
    group_url: str | None
    consumer: str
    deliveries: str
    died: int | None
    more: list[tuple[str, str]]


@dataclass
class LetterLine:
    """An entry of a stream of dead letters; ``view`` is ``None`` for what is no letter."""

    id: str
    added: int | None
    view: LetterView | None
    entry: Preview


def read_letter(payload: bytes) -> ShownLetter | None:
    """The letter that an entry is, ``None`` if it is none, or a very large one."""
    if len(payload) > LARGEST:
        return None
    items = decode_entry(payload)[1]
    added: dict[bytes, bytes] = {}
    for at in range(0, len(items), 2):
        if not items[at].startswith(PREFIX):
            return None
        added[items[at]] = items[at + 1]
        if items[at] == LAST:
            fields = items[at + 2 :]
            if not fields or PREFIX + b"stream" not in added:
                return None
            by_policy = dead_letters.read_letter(payload)
            if by_policy is None:
                return ShownLetter(added, fields, None)
            head = items[: len(items) - len(by_policy.items)]
            added = dict(zip(head[::2], head[1::2], strict=True))
            return ShownLetter(added, by_policy.items, by_policy.group)
    return None


def letter_view(request: PageRequest, db: int, letter: ShownLetter) -> LetterView:
    """What is shown of a letter; addresses are of what the user may see."""
    viewer, origin = request.viewer, letter.origin
    seen = viewer.may_see(origin)
    origin_id = letter.told("id")
    group, died = letter.told("group"), letter.told("time")
    grouped = seen and group and viewer.may(b"XINFO", b"GROUPS", origin)
    known = ("stream", "id", "group", "consumer", "deliveries", "time", "reason", "error")
    return LetterView(
        shown(letter.added[LAST], 2 * WIDTH),
        shown(letter.added[ERROR], 2 * WIDTH) if ERROR in letter.added else "",
        shown(origin),
        stream_url(db, origin) if seen else None,
        shown(origin_id) if origin_id else "",
        entry_url(db, origin, shown(origin_id)) if seen and _is_id(origin_id) else None,
        shown(group) if group else "",
        group_url(db, origin, group) if grouped else None,
        shown(letter.told("consumer")) if letter.told("consumer") else "",
        shown(letter.told("deliveries")) if letter.told("deliveries") else "",
        int(died[:MOST_DIGITS]) if died.isdigit() else None,
        [
            (shown(name.removeprefix(PREFIX)), value_text(value[:WIDTH], len(value)))
            for name, value in letter.added.items()
            if name.removeprefix(PREFIX).decode(errors="replace") not in known
        ],
    )


def _is_id(text: bytes) -> bool:
    try:
        ids.parse(text)
    except InvalidID:
        return False
    return True


# --- which of them ---------------------------------------------------------------------------


class Filter:
    """Which letters are asked for: with a text in a field, with a reason, of a group, from a time
    or an ID on. Raises :class:`Refused` for what is neither."""

    def __init__(self, fields: Fields) -> None:
        self.text = fields.text("text")
        self.reason = fields.text("reason")
        self.group = fields.text("of")
        self.since = fields.text("since")
        self.low = identity_of(self.since) if self.since else ids.MIN

    @property
    def is_on(self) -> bool:
        """Whether not all are."""
        return bool(self.fields())

    def fields(self) -> dict[str, str]:
        """What addresses and forms have of it."""
        every = {"text": self.text, "reason": self.reason, "of": self.group, "since": self.since}
        return {name: value for name, value in every.items() if value}

    async def fits(self, payload: bytes, pace: Slice) -> bool:
        """Whether an entry is asked for."""
        if self.text and not await has(payload, b"", self.text.encode(), pace):
            return False
        if not (self.reason or self.group):
            return True
        letter = read_letter(payload)
        if letter is None or (self.reason and shown(letter.added[LAST], 2 * WIDTH) != self.reason):
            return False
        return not self.group or shown(letter.told("group")) == self.group


class Matches(NamedTuple, Generic[T]):
    """What was made of the entries that fit, the newest first, how many were looked at for them,
    and the ID at which to go on, ``None`` if there are no more."""

    made: list[T]
    looked: int
    below: int | None


async def find(
    request: PageRequest,
    log: EntryLog,
    wanted: Filter,
    high: int,
    most: int,
    make: Callable[[bytes], T],
) -> Matches[T]:
    """The entries that fit up to an ID; gives up after :data:`LOOKED_AT`."""
    found: list[T] = []
    looked = 0
    async for payload in entries(log, wanted.low, high, request.pace, newest=True):
        if looked == LOOKED_AT:
            return Matches(found, looked, id_of(payload))
        if await wanted.fits(payload, request.pace):
            if len(found) == most:
                return Matches(found, looked, id_of(payload))
            found.append(make(payload))
        looked += 1
    return Matches(found, looked, None)


def seen_ids(fields: Fields) -> list[int]:
    """The IDs that a form names; raises :class:`Refused` if there are none, or too many."""
    texts = fields.every("id")
    if not 1 <= len(texts) <= MOST_IDS:
        raise Refused(f"From 1 to {number(MOST_IDS)} entries can be named.", 400)
    try:
        return [ids.parse(text.encode()) for text in dict.fromkeys(texts)]
    except InvalidID:
        raise Refused("What was named is no ID.", 400) from None


async def filtered_ids(request: PageRequest, log: EntryLog) -> list[int]:
    """The IDs of all letters that a filter fits, the oldest first; raises :class:`Refused` if there
    are none, or very many."""
    wanted = Filter(request.fields)
    found: list[int] = []
    high: int | None = ids.MAX
    while high is not None:
        some = await find(request, log, wanted, high, LOOKED_AT, _letter_id)
        found += [each for each in some.made if each is not None]
        high = some.below
        if len(found) > MOST_CHOSEN:
            raise Refused(f"No more than {number(MOST_CHOSEN)} can be chosen at once.", 400)
    if not found:
        raise Refused("No dead letter fits the filter any more.", 409)
    return found[::-1]


def _letter_id(payload: bytes) -> int | None:
    return None if read_letter(payload) is None else id_of(payload)


def letters_of(stream: Stream, entry_ids: list[int]) -> Iterator[tuple[int, ShownLetter]]:
    """Yield the letters with these IDs; raises :class:`Refused` if one is gone."""
    for entry_id in entry_ids:
        payload = stream.log.get(entry_id)
        letter = None if payload is None else read_letter(payload)
        if letter is None:
            raise Refused(f"{id_text(entry_id)} is not there any more.", 409)
        yield entry_id, letter


# --- the screens -----------------------------------------------------------------------------


async def letters_screen(request: PageRequest) -> Screen:
    """A stream of dead letters with links to the others; without a key the one with most."""
    streams = [
        (db, key, count)
        for (db, key), count in sorted(request.sampler.letters.items(), key=lambda pair: -pair[1])
        if request.viewer.may_see(key)
    ][:MOST_STREAMS]
    if request.fields.text("key"):
        return await _one(request, streams)
    return Screen("letters.html", "Dead letters", {"streams": streams, "lines": None})


async def _one(request: PageRequest, streams: list[tuple[int, bytes, int]]) -> Screen:
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    db, wanted = database.index, Filter(request.fields)
    start = _start(request)
    found = await find(request, stream.log, wanted, start, PAGE, partial(_line, request, db))
    lines = found.made
    views = [line.view for line in lines if line.view is not None]
    below = None if found.below is None else id_text(found.below)
    given: dict[str, Any] = {
        "streams": streams,
        "at": (db, key),
        "length": stream.log.length,
        "lines": lines,
        "wanted": wanted,
        "looked": found.looked,
        "reasons": sorted({each.reason for each in views} | set(filter(None, [wanted.reason]))),
        "groups": sorted(
            {each.group for each in views if each.group} | set(filter(None, [wanted.group]))
        ),
        "first": letters_url(db, key, **wanted.fields()) if start != ids.MAX else None,
        "following": None
        if below is None
        else letters_url(db, key, **wanted.fields(), below=below),
        "fields": {"db": db, "key": packed(key)},
        "off": {
            "redrive": request.obstacle(*REDRIVE, key),
            "drop": request.obstacle(b"XDEL", key, b"0-1"),
        },
    }
    return Screen("letters.html", shown(key), given)


def _start(request: PageRequest) -> int:
    try:
        return ids.parse(request.fields.text("below").encode())
    except InvalidID:
        return ids.MAX


def _line(request: PageRequest, db: int, payload: bytes) -> LetterLine:
    letter, entry_id = read_letter(payload), id_of(payload)
    entry = preview(payload)
    if letter is None:
        return LetterLine(id_text(entry_id), id_ms(entry_id), None, entry)
    pairs = [
        (shown(name[:WIDTH]), value_text(value[:WIDTH], len(value)))
        for name, value in zip(letter.fields[:16:2], letter.fields[1:16:2], strict=True)
    ]
    entry = entry._replace(fields=pairs, more=len(letter.fields) // 2 - len(pairs))
    view = letter_view(request, db, letter)
    if view.died is None:
        view.died = id_ms(entry_id)
    return LetterLine(id_text(entry_id), id_ms(entry_id), view, entry)
