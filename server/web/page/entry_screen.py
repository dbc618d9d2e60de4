"""An entry in full: its fields as JSON, text and bytes, who has it, what is known of a letter."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final, NamedTuple

from starlette.responses import Response, StreamingResponse

from server.delivery.group_ref import GroupRef
from server.runtime.quantities import size
from server.state.monitors import quoted
from server.web.html.document import secured
from server.web.page.drawing import Screen
from server.web.page.group_screen import obstacles, state_of_pending
from server.web.page.letters import letter_view, read_letter
from server.web.page.page_request import PageRequest, Refused, entry_url, packed
from server.web.page.preview import id_of, places_of
from server.web.page.sampling import rules_of
from server.web.page.wording import id_ms, id_text, is_text, kind_of, shown
from storage.engine import ids
from storage.engine.entries import decode_entry
from storage.engine.groups import Group
from storage.engine.log import EntryLog

MOST_FIELDS: Final = 100
"""How many fields are shown in full; the rest is counted."""

TEXT: Final = 16 * 1024
JSON: Final = 64 * 1024
HEX: Final = 1024
"""How many bytes of a value are shown as text and in hex, and up to how many as JSON. All of it can
be downloaded."""

COPIED: Final = 16 * 1024
"""Up to how many bytes an entry can be copied as a command."""

SHORT: Final = 64
"""A text of so many bytes is a line among others."""

MOST_GROUPS: Final = 50

_PIECE: Final = 64 * 1024
_LINE: Final = 8
_TOKENS: Final = re.compile(
    r'(?P<k>"(?:[^"\\]|\\.)*")(?=:)|(?P<s>"(?:[^"\\]|\\.)*")|(?P<d>-?[0-9][0-9.eE+-]*|true|false|null)'
)

_HOW: Final = {
    b"fail": "gave it back",
    b"silent": "gave it back, not counted",
    b"fatal": "gave it up",
    b"timeout": "ran out of time",
    b"claimed": "lost it to a claim",
    b"read-again": "read it again",
    b"consumer-ttl": "was removed",
}

Tokens = list[tuple[str, str]]
"""Pieces of a text, each behind the class of its kind, which may be empty."""


class FieldView(NamedTuple):
    """A field in the ways in which it can be shown; ``rest`` is how many bytes text leaves out."""

    number: int
    name: str
    size: int
    kind: str
    json: Tokens | None
    text: str | None
    hex: list[tuple[str, str, str]]
    rest: int

    @property
    def is_short(self) -> bool:
        """Whether a line is enough."""
        return self.json is None and self.text is not None and self.size <= SHORT


class Try(NamedTuple):
    """A delivery that ended: when (Unix milliseconds), whose it was, how it ended, and why."""

    time: int
    consumer: bytes
    how: str
    reason: str


class Whereabouts(NamedTuple):
    """What an entry is to a group, with whom since when, and how often it was delivered."""

    group: bytes
    state: str
    owner: bytes | None
    time: int | None
    deliveries: int
    most: int
    obstacles: dict[str, str | None]
    history: list[Try]


async def entry_screen(request: PageRequest) -> Screen:
    """The screen."""
    database, key, stream, entry_id, payload = request.entry()
    count, places = places_of(payload, MOST_FIELDS)
    views = []
    for at, (own, other) in enumerate(zip(places[::2], places[1::2], strict=True)):
        views.append(field_view(at, payload, own, other))
        await request.pace.rest()
    letter = read_letter(payload)
    added = 0 if letter is None else len(letter.added)
    around = {
        "older": _older(stream.log, entry_id),
        "newer": _neighbour(stream.log.ids_of(entry_id + 1, ids.MAX, 1)),
    }
    known = request.viewer.may(b"XINFO", b"GROUPS", key) and request.viewer.may(
        b"XPENDING", key, b"g"
    )
    groups = list(islice(stream.groups.values(), MOST_GROUPS)) if known else []
    given: dict[str, Any] = {
        "at": (database.index, key),
        "id": id_text(entry_id),
        "added": id_ms(entry_id),
        "size": size(len(payload)),
        "command": as_command(key, payload),
        "count": count,
        "views": [each for each in views[added:] if not each.is_short],
        "short": [each for each in views[added:] if each.is_short],
        "of_letter": views[:added],
        "grouped": bool(stream.groups),
        "letter": None if letter is None else letter_view(request, database.index, letter),
        "around": {
            name: None if each is None else entry_url(database.index, key, each)
            for name, each in around.items()
        },
        "groups": [
            whereabouts(request, GroupRef(database, key, stream, each), entry_id) for each in groups
        ],
        "fields": {"db": database.index, "key": packed(key), "id": id_text(entry_id)},
        "off": request.obstacle(b"XDEL", key, b"0-1"),
    }
    return Screen("entry.html", id_text(entry_id), given)


def as_command(key: bytes, payload: bytes) -> str | None:
    """The XADD that adds the entry once more, as redis-cli takes it; ``None`` for a long one."""
    if len(payload) > COPIED:
        return None
    return b" ".join([b"XADD", *map(quoted, [key, b"*", *decode_entry(payload)[1]])]).decode()


def _neighbour(found: list[int]) -> str | None:
    return id_text(found[0]) if found else None


def _older(log: EntryLog, entry_id: int) -> str | None:
    found = log.reverse(ids.MIN, entry_id - 1, 1) if entry_id > ids.MIN else []
    return id_text(id_of(found[0])) if found else None


def field_view(
    number: int, payload: bytes, name: tuple[int, int], value: tuple[int, int]
) -> FieldView:
    """A field whose name and value are at these places of an entry, with these lengths."""
    start, length = value
    head = payload[start : start + min(length, TEXT)]
    text = None
    if is_text(head[:TEXT], length <= TEXT):
        text = head.decode(errors="ignore")
    tokens = None if text is None else json_tokens(payload[start : start + length], length)
    kind = "JSON" if tokens else "text" if text is not None else f"binary {kind_of(head)}".strip()
    return FieldView(
        number,
        shown(payload[name[0] : name[0] + min(name[1], 200)]),
        length,
        kind,
        tokens,
        text,
        hex_lines(head[:HEX]),
        length - len(head),
    )


def json_tokens(value: bytes, length: int) -> Tokens | None:
    """An object or an array with its parts on lines of their own, ``None`` for what is neither, or
    too long."""
    if length > JSON or value[:1] not in (b"{", b"["):
        return None
    try:
        text = json.dumps(json.loads(value), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    tokens: Tokens = []
    done = 0
    for found in _TOKENS.finditer(text):
        tokens += [("", text[done : found.start()]), (found.lastgroup or "", found[0])]
        done = found.end()
    return [*tokens, ("", text[done:])]


def hex_lines(head: bytes) -> list[tuple[str, str, str]]:
    """Lines of a dump: where it is, the bytes, and those of them that are ASCII."""
    lines = []
    for at in range(0, len(head), _LINE):
        some = head[at : at + _LINE]
        text = "".join(chr(each) if 32 <= each < 127 else "·" for each in some)
        lines.append((f"{at:06x}", f"{some.hex(' '):<23}", text))
    return lines


def whereabouts(request: PageRequest, ref: GroupRef, entry_id: int) -> Whereabouts:
    """What an entry is to a group."""
    group: Group = ref.group
    entry = group.pending.get(entry_id)
    rules = rules_of(request.server, ref)
    most = 0 if rules is None else rules.max_deliveries
    off = obstacles(request, ref)
    if entry is None:
        has_read = group.consumers or group.acked or group.entries_read
        state = "unread" if entry_id > group.last_id else "acked" if has_read else "skipped"
        return Whereabouts(group.name, state, None, None, 0, most, off, [])
    owner = None if entry.owner is None else entry.owner.name
    time = entry.time if owner is not None or entry.time > request.now else None
    state = state_of_pending(entry, request.now)
    words = ref.key, group.name, ids.text(entry_id)
    may = request.viewer.may(b"PENSTOCK", b"HISTORY", *words)
    lines = group.pending.extras.histories.lines(entry_id) if may else ()
    history = [
        Try(line.time, line.consumer, _HOW[line.how], shown(line.reason) if line.reason else "")
        for line in reversed(list(lines))
    ]
    return Whereabouts(group.name, state, owner, time, entry.deliveries, most, off, history)


def value_response(request: PageRequest) -> Response:
    """The value of a field as it is, to be kept as a file."""
    _, _, _, entry_id, payload = request.entry()
    number = request.fields.whole("n", 0, 0, 10**9)
    count, places = places_of(payload, number + 1)
    if number >= count:
        raise Refused("The entry has no such field.")
    start, length = places[-1]

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(start, start + length, _PIECE):
            yield payload[at : min(at + _PIECE, start + length)]

    headers = {
        "Content-Disposition": f'attachment; filename="{id_text(entry_id)}-{number}.bin"',
        "Content-Length": str(length),
    }
    kind = "application/octet-stream"
    return secured(StreamingResponse(pieces(), media_type=kind, headers=headers))
