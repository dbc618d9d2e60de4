"""A key of any type: what it is, and the first of what it holds. Streams have a screen of their
own."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from server.commands.keys.scan import type_name
from server.commands.keys.values import encoding_of
from server.web.page.drawing import Screen
from server.web.page.page_request import PageRequest, Refused, stream_url
from server.web.page.wording import is_text, shown, value_text
from server.web.survey import is_past
from storage.engine.stream import Stream
from storage.types.hash import Hash
from storage.types.kinds import Value
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

ELEMENTS: Final = 100
"""How many elements are shown; of a sorted set those with the lowest scores."""

TEXT: Final = 64 * 1024
"""How much of a string is shown, in bytes."""

_PREVIEW: Final = 400
"""How much of an element is shown, in bytes."""

_READS: Final = {
    "string": (b"GET",),
    "hash": (b"HGETALL",),
    "list": (b"LRANGE", b"0", b"-1"),
    "set": (b"SMEMBERS",),
    "zset": (b"ZRANGE", b"0", b"-1"),
}
"""The command whose right is needed to see what is in a value."""


class Element(NamedTuple):
    """A part of a value, in the columns of its type; ``until`` is when a field expires, in Unix
    milliseconds."""

    cells: tuple[str, ...]
    until: int | None = None


COLUMNS: Final = {
    "hash": ("Field", "Value"),
    "list": ("Index", "Element"),
    "set": ("Member",),
    "zset": ("Score", "Member"),
}


def key_screen(request: PageRequest) -> Screen:
    """The screen; nothing is changed by it, not even when the key was used."""
    database, key = request.database, request.fields.name("key")
    request.require(b"TYPE", key)
    value = database.values.get(key)
    if value is None or is_past(database, key, request.now):
        raise Refused(f"There is no key {shown(key)} in database {database.index}.")
    kind = type_name(value)
    command, *rest = _READS.get(kind, (b"XINFO", b"STREAM"))
    denied = request.viewer.denial(command, key, *rest)
    given = {
        "at": (database.index, key),
        "kind": kind,
        "encoding": encoding_of(database, key),
        "until": database.expires.get(key),
        "count": value.log.length if isinstance(value, Stream) else len(value),
        "columns": COLUMNS.get(kind, ()),
        "denied": denied,
        "elements": [] if denied else elements_of(value),
        "text": None if denied else _string(value),
        "stream": stream_url(database.index, key) if isinstance(value, Stream) else None,
    }
    return Screen("key.html", shown(key), given)


def _string(value: Value) -> str | None:
    """The beginning of a string as text, ``None`` for another value."""
    if not isinstance(value, bytes | bytearray):
        return None
    head = bytes(value[:TEXT])
    if is_text(head, len(value) <= TEXT):
        return head.decode(errors="ignore")
    return value_text(head, len(value))


def elements_of(value: Value) -> list[Element]:
    """Return the first elements of a collection; none of anything else."""
    if isinstance(value, Hash):
        return [
            Element((_told(field), _told(text)), value.times.get(field))
            for field, text in islice(value.fields.items(), ELEMENTS)
        ]
    if isinstance(value, ListValue):
        some = enumerate(islice(value.elements, ELEMENTS))
        return [Element((str(at), _told(element))) for at, element in some]
    if isinstance(value, SetValue):
        return [Element((_told(member),)) for member in islice(value.ordered(), ELEMENTS)]
    if isinstance(value, SortedSet):
        pairs = value.items(0, min(ELEMENTS, len(value))).pairs()
        return [Element((f"{score:.17g}", _told(member))) for score, member in pairs]
    return []


def _told(data: bytes) -> str:
    return value_text(data[:_PREVIEW], len(data))
