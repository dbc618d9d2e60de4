"""Strings as rows of bits: single bits, counting them, finding them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings import bitmaps
from server.commands.strings import errors as string_errors
from server.commands.strings.ranges import clamp, resolve
from server.road.outcomes import LONG, Steps, reply_of
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, integer, parse_integer
from server.services import Services
from storage.types.strings import Buffer

_READ: Final = [KeySpec("RO access")]
_BITS: Final = {b"0": 0, b"1": 1}
_UNITS: Final = {b"BYTE": 8, b"BIT": 1}


def bit_offset(server: Services, arg: bytes, width: int = 0) -> int:
    """The place of a bit; ``#`` before it counts integers of a ``width``, if one is given.

    The bit must be in the longest string that there may be."""
    counted = width > 0 and arg.startswith(b"#")
    offset = parse_integer(arg[1:] if counted else arg)
    if offset is not None and counted:
        offset *= width
    if offset is None or not 0 <= offset >> 3 < server.state.config.proto_max_bulk_len:
        raise CommandError(string_errors.BIT_OFFSET)
    return offset


@command(
    "SETBIT",
    flags="write denyoom",
    since="2.2.0",
    summary="Sets or clears a bit of a string, which grows where it is too short.",
    syntax="key offset value",
    keys=[KeySpec("RW access update")],
)
def setbit(server: Services, session: Session, args: Arguments) -> Reply:
    """The bit that was there."""
    offset = bit_offset(server, args[2])
    bit = _BITS.get(args[3])
    if bit is None:
        raise CommandError(string_errors.BIT_VALUE)
    database, key, at = session.db, args[1], offset >> 3
    buffer = database.edit(key)
    previous = bitmaps.bit_at(buffer, offset)
    if bit != previous or at >= len(buffer):
        byte = buffer[at] if at < len(buffer) else 0
        byte ^= (bit ^ previous) << (7 - (offset & 7))
        database.overwrite(key, at, bytes([byte]), "setbit")
    else:
        database.left(key)
    return previous


@command(
    "GETBIT",
    flags="readonly fast",
    since="2.2.0",
    summary="Gets a bit of a string.",
    syntax="key offset",
    keys=_READ,
)
def getbit(server: Services, session: Session, args: Arguments) -> Reply:
    """The bit; 0 beyond the end."""
    offset = bit_offset(server, args[2])
    return bitmaps.bit_at(_buffer(session, args[1]), offset)


@command(
    "BITCOUNT",
    flags="readonly",
    since="2.6.0",
    summary="Counts the bits of a string that are set.",
    complexity="O(N) in the length of the part.",
    syntax="key [start end [BYTE | BIT]]",
    keys=_READ,
    history=[("7.0.0", "The options `BYTE` and `BIT`.")],
)
def bitcount(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many are set, in the string or in a part of it."""
    start, end, unit = 0, INT64_MAX, 8
    if len(args) > 2:
        if len(args) not in (4, 5):
            raise CommandError(errors.SYNTAX)
        start, end = integer(args[2]), integer(args[3])
        unit = _unit(args[4:])
    buffer = _buffer(session, args[1])
    return _go_through(
        server, session, buffer, _places(buffer, resolve, start, end, unit), bitmaps.count
    )


@command(
    "BITPOS",
    flags="readonly",
    since="2.8.7",
    summary="Finds the first bit of a string that is set, or that is not.",
    complexity="O(N) in the length of the part.",
    syntax="key bit [start [end [BYTE | BIT]]]",
    keys=_READ,
    history=[("7.0.0", "The options `BYTE` and `BIT`.")],
)
def bitpos(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """Its place, -1 if there is none. Without an end, zeros follow the string."""
    bit = integer(args[2])
    if bit not in (0, 1):
        raise CommandError(string_errors.BITPOS_VALUE)
    if len(args) > 6:
        raise CommandError(errors.SYNTAX)
    start = integer(args[3]) if len(args) > 3 else 0
    unit = _unit(args[5:])
    end = integer(args[4]) if len(args) > 4 else INT64_MAX
    buffer = session.db.buffer_to_read(args[1], touch=not session.no_touch)
    if buffer is None:
        return -1 if bit else 0
    places = _places(buffer, clamp, start, end, unit)
    otherwise = len(buffer) * 8 if places and not bit and len(args) <= 4 else -1

    def find(buffer: Buffer, places: range) -> Generator[None, None, int]:
        found = yield from bitmaps.find(buffer, bit, places)
        return otherwise if found < 0 else found

    return _go_through(server, session, buffer, places, find)


def _go_through(
    server: Services,
    session: Session,
    buffer: Buffer,
    places: range,
    search: Callable[[Buffer, range], Generator[None, None, int]],
) -> Reply | Steps:
    """What the search finds at the places of a string, which is lent to it meanwhile."""
    loan = server.state.keyspace.lending.lend(buffer)

    def work(kept: memoryview) -> Generator[None, None, Reply]:
        return (yield from search(buffer, places))

    return reply_of(work(loan), session.resp3, long=len(places) > LONG * 8)


def _buffer(session: Session, key: bytes) -> Buffer:
    return session.db.buffer_to_read(key, touch=not session.no_touch) or b""


def _unit(args: Arguments) -> int:
    """How many bits the ends of a part count: by bytes, unless there is an argument for it."""
    unit = _UNITS.get(args[0].upper()) if args else 8
    if unit is None:
        raise CommandError(errors.SYNTAX)
    return unit


def _places(
    buffer: Buffer, between: Callable[[int, int, int], range], start: int, end: int, unit: int
) -> range:
    """The bits between two ends that count bytes, or bits."""
    places = between(start, end, len(buffer) * 8 // unit)
    return range(places.start * unit, places.stop * unit)
