"""Parts of strings: reading them, writing over them, adding to the end."""

from __future__ import annotations

from typing import Final

from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services

_READ: Final = [KeySpec("RO access")]


def resolve(start: int, end: int, length: int) -> range:
    """The places between two inclusive ends, of which negative ones count from the end.

    An end that is still before the first place stands for the first, unless both are counted from
    the end and are in the wrong order."""
    if start < 0 and end < 0 and start > end:
        return range(0)
    return clamp(start, end, length)


def clamp(start: int, end: int, length: int) -> range:
    """The same for BITPOS, which knows no wrong order before an end has become the first place."""
    first = max(start + length if start < 0 else start, 0)
    last = max(end + length if end < 0 else end, 0)
    return range(first, min(last, length - 1) + 1)


@command(
    "GETRANGE",
    flags="readonly",
    since="2.4.0",
    summary="Gets a part of a string.",
    complexity="O(N) in the length of the part.",
    syntax="key start end",
    keys=_READ,
)
@command(
    "SUBSTR",
    flags="readonly",
    since="1.0.0",
    summary="Gets a part of a string.",
    complexity="O(N) in the length of the part.",
    syntax="key start end",
    keys=_READ,
    deprecated=("2.0.0", "`GETRANGE`"),
)
def getrange(server: Services, session: Session, args: Arguments) -> Reply:
    """The part, empty where there is nothing."""
    start, end = integer(args[2]), integer(args[3])
    buffer = session.db.buffer_to_read(args[1], touch=not session.no_touch) or b""
    part = resolve(start, end, len(buffer))
    return bulk(bytes(buffer[part.start : part.stop]))


@command(
    "SETRANGE",
    flags="write denyoom",
    since="2.2.0",
    summary="Writes over a part of a string, which grows where it is too short.",
    complexity="O(N) in the length of the value, and of the zeros before it.",
    syntax="key offset value",
    keys=[KeySpec("RW update")],
)
def setrange(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the string."""
    database, key, value = session.db, args[1], args[3]
    offset = integer(args[2])
    if offset < 0:
        raise CommandError(string_errors.OFFSET_OUT_OF_RANGE)
    present = database.buffer(key)
    if not value:
        return len(present or b"")
    _check_length(server, offset + len(value))
    return database.overwrite(key, offset, value, "setrange")


@command(
    "APPEND",
    flags="write denyoom fast",
    since="2.0.0",
    summary="Adds bytes to the end of a string; no key counts as an empty string.",
    complexity="O(N) in the length of the value.",
    syntax="key value",
    keys=[KeySpec("RW insert")],
)
def append(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the string."""
    database, key, value = session.db, args[1], args[2]
    present = database.buffer(key)
    if present is None:
        database.set_string(key, value, event="append")
        return len(value)
    _check_length(server, len(present) + len(value))
    return database.overwrite(key, len(present), value, "append")


def _check_length(server: Services, length: int) -> None:
    if length > server.state.config.proto_max_bulk_len:
        raise CommandError(string_errors.STRING_TOO_LONG)
