"""Dead letters: entries that could not be processed, with where they came from."""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.html.document import table
from penstock.html.markup import Child, Html, joined, tag
from server.delivery import dead_letters
from server.web.page.document import csrf_field, hidden, pages
from server.web.page.page_request import (
    Fields,
    PageRequest,
    Refused,
    group_url,
    packed,
    stream_url,
    url,
)
from server.web.page.preview import WIDTH, id_of, preview
from server.web.page.stream_screen import fields_of
from server.web.page.wording import id_moment, id_text, moment, number, shown, size
from storage.engine import ids
from storage.engine.entries import decode_entry
from storage.engine.stream import Stream
from storage.errors import InvalidID

PAGE: Final = 25
"""How many letters there are on a page."""

MOST_STREAMS: Final = 200

LARGEST: Final = 256 * 1024
"""Letters of more bytes are shown in part, and are not sent from the page."""

MOST_DIGITS: Final = 16
"""Of a time in milliseconds."""

PREFIX: Final = b"dead-letter-"
LAST: Final = b"dead-letter-reason"


class Letter(NamedTuple):
    """A dead letter: what was added to the entry, by name, the fields that it had, in turn, and
    the consumer group whose policy has written it, if one has."""

    added: dict[bytes, bytes]
    fields: list[bytes]
    group: bytes | None

    @property
    def origin(self) -> bytes:
        """The stream that the entry was in."""
        return self.added[PREFIX + b"stream"]


def read_letter(payload: bytes) -> Letter | None:
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
            return Letter(added, fields, None if by_policy is None else by_policy.group)
    return None


async def letters_screen(request: PageRequest) -> Html:
    """The streams of dead letters, or one of them."""
    if request.fields.text("key"):
        return await _one(request)
    found: dict[tuple[int, bytes], int] = {}
    for row in request.sampler.rows:
        if row.letters and len(found) < MOST_STREAMS and request.viewer.may_see(row.key):
            found[row.db, row.key] = row.length
        await request.pace.rest()
    rows: list[list[Child]] = [
        [tag("a", shown(key), href=_url(db, key)), f"db{db}", number(count)]
        for (db, key), count in sorted(found.items())
    ]
    about = (
        "Streams whose last entry is a dead letter as policies, pipelines and the Spark data source"
        " write them: with the fields dead-letter-stream, -id and -reason before the entry's own."
    )
    return joined(
        [
            tag("h1", "Dead letters"),
            tag("p", about),
            tag(
                "section",
                table(("Stream", "Database", "Entries"), rows, "There are no dead letters."),
            ),
        ]
    )


def _url(db: int, key: bytes, **fields: object) -> str:
    return url("/letters", db=db, key=packed(key), **fields)


async def _one(request: PageRequest) -> Html:
    database, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    db = database.index
    start = _start(request)
    payloads = stream.log.range(start, ids.MAX, PAGE + 1)
    entries = [(id_of(payload), payload) for payload in payloads]
    following = (
        _url(db, key, **{"from": id_text(entries[PAGE][0])}) if len(entries) > PAGE else None
    )
    page = entries[:PAGE]
    rows: list[list[Child]] = []
    everything: list[int] = []
    for entry_id, payload in page:
        letter = read_letter(payload)
        rows.append(_row(request, db, key, letter, payload))
        everything += [entry_id] if letter is not None else []
        await request.pace.rest()
    heads = ("Letter", "Origin", "Reason", "Fields", *(("",) if request.viewer.may_act else ()))
    return joined(
        [
            tag(
                "h1",
                tag("a", "Dead letters", href="/letters"),
                " / ",
                tag("a", shown(key), href=stream_url(db, key)),
            ),
            tag("p", f"{number(stream.log.length)} entries, the oldest first."),
            tag("section", table(heads, rows, "There are no entries.")),
            _redrive(request, db, key, everything, f"Redrive the {len(everything)} shown …"),
            pages(("First", _url(db, key) if start else None), ("Next →", following)),
        ]
    )


def _start(request: PageRequest) -> int:
    try:
        return ids.parse(request.fields.text("from").encode())
    except InvalidID:
        return ids.MIN


def _row(
    request: PageRequest, db: int, key: bytes, letter: Letter | None, payload: bytes
) -> list[Child]:
    entry_id = id_of(payload)
    name = joined([tag("code", id_text(entry_id)), tag("small", id_moment(entry_id))])
    if letter is None:
        about = "too large to be shown" if len(payload) > LARGEST else "no dead letter"
        row: list[Child] = [
            name,
            tag("small", about),
            size(len(payload)),
            fields_of(preview(payload)),
        ]
        return [*row, None] if request.viewer.may_act else row
    row = [
        name,
        _origin(request, db, letter),
        shown(letter.added[LAST], 2 * WIDTH),
        _fields(letter),
    ]
    if request.viewer.may_act:
        row.append(_redrive(request, db, key, [entry_id], "Redrive …"))
    return row


def _origin(request: PageRequest, db: int, letter: Letter) -> Html:
    """The stream, as a link to where the entry was, and who tried to process it."""
    entry_id = letter.added.get(PREFIX + b"id", b"")
    at = {"at": shown(entry_id)} if _is_id(entry_id) else {}
    name: Html | str = shown(letter.origin)
    if request.viewer.may_see(letter.origin):
        name = tag("a", name, href=stream_url(db, letter.origin, **at))
    others = [
        tag("div", tag("b", shown(field.removeprefix(PREFIX))), _told(request, db, letter, field))
        for field in letter.added
        if field not in (LAST, PREFIX + b"stream")
    ]
    return tag("div", tag("div", name), *others[:6], class_="fields")


def _told(request: PageRequest, db: int, letter: Letter, field: bytes) -> Html:
    """What a field says that was added: of a policy's letter the group as a link, and the time."""
    value = letter.added[field]
    if letter.group is not None and field == dead_letters.TIME and value.isdigit():
        return tag("span", moment(int(value[:MOST_DIGITS])))
    text = shown(value, WIDTH)
    if letter.group is not None and field == dead_letters.GROUP:
        words = b"XINFO", b"GROUPS", letter.origin
        if request.viewer.may_see(letter.origin) and request.viewer.may(*words):
            return tag("span", tag("a", text, href=group_url(db, letter.origin, letter.group)))
    return tag("span", text)


def _is_id(text: bytes) -> bool:
    try:
        ids.parse(text)
    except InvalidID:
        return False
    return True


def _fields(letter: Letter) -> Html:
    pairs = list(zip(letter.fields[::2], letter.fields[1::2], strict=True))
    lines: list[Child] = [
        tag("div", tag("b", shown(name, WIDTH)), tag("span", shown(value, WIDTH)))
        for name, value in pairs[:8]
    ]
    if len(pairs) > 8:
        lines.append(tag("div", f"{number(len(pairs) - 8)} more fields", class_="more"))
    return tag("div", *lines, class_="fields")


def _redrive(
    request: PageRequest, db: int, key: bytes, entry_ids: list[int], button: str
) -> Html | None:
    """A form that names the letters that are seen, and no others."""
    if not request.viewer.may_act or not entry_ids:
        return None
    return tag(
        "form",
        csrf_field(request),
        hidden("kind", "redrive"),
        hidden("db", db),
        hidden("key", packed(key)),
        *(hidden("id", id_text(entry_id)) for entry_id in entry_ids),
        tag("button", button),
        method="post",
        action="/act",
    )


def seen_ids(fields: Fields) -> list[int]:
    """The IDs that a form names; raises :class:`Refused` if there are none, or too many."""
    texts = fields.every("id")
    if not 1 <= len(texts) <= PAGE:
        raise Refused(f"From 1 to {PAGE} entries can be named.", 400)
    try:
        return [ids.parse(text.encode()) for text in dict.fromkeys(texts)]
    except InvalidID:
        raise Refused("What was named is no ID.", 400) from None


def letters_of(stream: Stream, entry_ids: list[int]) -> list[tuple[int, Letter]]:
    """The letters with these IDs; raises :class:`Refused` if one is gone."""
    found = []
    for entry_id in entry_ids:
        payload = stream.log.get(entry_id)
        letter = None if payload is None else read_letter(payload)
        if letter is None:
            raise Refused(f"{id_text(entry_id)} is not there any more.", 409)
        found.append((entry_id, letter))
    return found
