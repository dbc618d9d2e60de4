"""Strings as rows of bits: single bits, counting and finding them, combining strings.

Bit 0 is the highest of the first byte. Numbers of any size are what Python has for working on many
bits at once. They are made of pieces of a string: making one takes longer the larger it is, once it
leaves the cache of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import reduce
from operator import and_, or_, xor
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.strings import clamp, resolve
from server.core.outcomes import LONG, Steps, reply_of
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, integer, parse_integer
from server.services import Services
from server.state.session import Session
from storage.types.strings import Buffer

# --- many bits at once -------------------------------------------------------------------------


PIECE: Final = 4096
"""How many bytes become one number."""

_STEP: Final = 65536
"""How many bytes are gone through in one step."""


def bit_at(buffer: Buffer, place: int) -> int:
    """The bit at a place; beyond the end all are zero."""
    at = place >> 3
    return buffer[at] >> (7 - (place & 7)) & 1 if at < len(buffer) else 0


def count_bits(buffer: Buffer, places: range) -> Generator[None, None, int]:
    """How many bits are set among those at the places, all of which exist; in steps."""
    if not places:
        return 0
    first, last = places[0] >> 3, places[-1] >> 3
    before = buffer[first] >> (8 - (places[0] & 7))
    behind = buffer[last] & (0x7F >> (places[-1] & 7))
    total = -before.bit_count() - behind.bit_count()
    for start in range(first, last + 1, _STEP):
        total += _count_bytes(buffer, start, min(start + _STEP, last + 1))
        yield
    return total


def _count_bytes(buffer: Buffer, start: int, end: int) -> int:
    return sum(
        int.from_bytes(buffer[at : min(at + PIECE, end)], "little").bit_count()
        for at in range(start, end, PIECE)
    )


def find_bit(buffer: Buffer, bit: int, places: range) -> Generator[None, None, int]:
    """The first of the places, all of which exist, at which the bit is; -1 if it is at none; in
    steps."""
    if not places:
        return -1
    first, last = places[0] >> 3, places[-1] >> 3
    missing = b"\0" if bit else b"\xff"
    inside = buffer[first] & (0xFF >> (places[0] & 7))
    if not bit:
        inside = buffer[first] | (0xFF00 >> (places[0] & 7) & 0xFF)
    at = first
    if inside == missing[0]:
        at = yield from _first_other(buffer, missing, first + 1, last + 1)
    if at < 0:
        return -1
    byte = inside if at == first else buffer[at]
    place = at * 8 + 8 - (byte if bit else byte ^ 0xFF).bit_length()
    return place if place < places.stop else -1


def _first_other(buffer: Buffer, byte: bytes, start: int, end: int) -> Generator[None, None, int]:
    """Where a byte other than ``byte`` is first; -1 if there is none."""
    same = byte * min(_STEP, end - start)
    for at in range(start, end, _STEP):
        piece = buffer[at : min(at + _STEP, end)]
        if not same.startswith(piece):
            return at + len(piece) - len(piece.lstrip(byte))
        yield
    return -1


# --- combining -------------------------------------------------------------------------------

Operation = Callable[[list[int]], int]


def combine(operation: Operation, sources: list[Buffer]) -> bytes:
    """Combine strings by the operation; those that are shorter than others end in zeros."""
    length = max(map(len, sources))
    pieces = []
    for start in range(0, length, PIECE):
        size = min(PIECE, length - start)
        numbers = [int.from_bytes(source[start : start + size], "little") for source in sources]
        result = operation(numbers) & ((1 << 8 * size) - 1)
        pieces.append(result.to_bytes(size, "little"))
    return b"".join(pieces)


# --- SETBIT, GETBIT, BITCOUNT, BITPOS ----------------------------------------------------------


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
    previous = bit_at(buffer, offset)
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
    return bit_at(_buffer(session, args[1]), offset)


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
    """How many bits are set, in the string or in a part of it."""
    start, end, unit = 0, INT64_MAX, 8
    if len(args) > 2:
        if len(args) not in (4, 5):
            raise CommandError(errors.SYNTAX)
        start, end = integer(args[2]), integer(args[3])
        unit = _unit(args[4:])
    buffer = _buffer(session, args[1])
    return _go_through(
        server, session, buffer, _places(buffer, resolve, start, end, unit), count_bits
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
    """The place of the bit, -1 if there is none. Without an end, zeros follow the string."""
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
        found = yield from find_bit(buffer, bit, places)
        return otherwise if found < 0 else found

    return _go_through(server, session, buffer, places, find)


def _go_through(
    server: Services,
    session: Session,
    buffer: Buffer,
    places: range,
    search: Callable[[Buffer, range], Generator[None, None, int]],
) -> Reply | Steps:
    """Search the places of a string, which is lent to the search meanwhile."""
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


# --- BITOP -------------------------------------------------------------------------------------


def _one(numbers: list[int]) -> int:
    """The bits that are set in exactly one."""
    once = more = 0
    for number in numbers:
        more |= once & number
        once |= number
    return once & ~more


def _any(numbers: list[int]) -> int:
    return reduce(or_, numbers, 0)


_OPERATIONS: Final[dict[bytes, Operation]] = {
    b"AND": lambda numbers: reduce(and_, numbers),
    b"OR": _any,
    b"XOR": lambda numbers: reduce(xor, numbers),
    b"NOT": lambda numbers: ~numbers[0],
    b"DIFF": lambda numbers: numbers[0] & ~_any(numbers[1:]),
    b"DIFF1": lambda numbers: _any(numbers[1:]) & ~numbers[0],
    b"ANDOR": lambda numbers: numbers[0] & _any(numbers[1:]),
    b"ONE": _one,
}


@command(
    "BITOP",
    flags="write denyoom",
    since="2.6.0",
    summary="Combines the bits of strings and puts what comes of it at a key.",
    complexity="O(N) in the length of the strings.",
    syntax="<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
    keys=[KeySpec("OW update", index=2), KeySpec("RO access", index=3, last=-1)],
    history=[("8.2.0", "The operations `DIFF`, `DIFF1`, `ANDOR` and `ONE`.")],
)
def bitop(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the result; if that is empty there is no key any more."""
    name, target, keys = args[1].upper(), args[2], args[3:]
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise CommandError(errors.SYNTAX)
    if name == b"NOT" and len(keys) > 1:
        raise CommandError(string_errors.BITOP_NOT_SOURCES)
    database = session.db
    sources = [database.buffer_to_read(key, touch=not session.no_touch) or b"" for key in keys]
    result = combine(operation, sources)
    if result:
        database.set_string(target, result, encoding="raw")
    else:
        database.delete(target)
    return len(result)
