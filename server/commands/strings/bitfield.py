"""BITFIELD: integers of any width in a string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.bitmaps import bit_offset
from server.commands.strings.set_options import option_value
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.types.strings import Buffer, Piece, lengthen, overwrite

_TYPE: Final = re.compile(rb"(?:i([1-9]|[1-5][0-9]|6[0-4])|u([1-9]|[1-5][0-9]|6[0-3]))")
_POLICIES: Final = frozenset({b"WRAP", b"SAT", b"FAIL"})


class _Field(NamedTuple):
    """Where an integer is, and how it is kept."""

    offset: int
    width: int
    signed: bool

    @property
    def last_byte(self) -> int:
        """The index of the last byte that has a bit of it."""
        return (self.offset + self.width - 1) >> 3

    def _surroundings(self, buffer: Buffer) -> tuple[int, int]:
        """The bytes in which it is as a number, and how many bits follow it there."""
        size = self.last_byte + 1 - (self.offset >> 3)
        found = buffer[self.offset >> 3 : self.last_byte + 1].ljust(size, b"\0")
        return int.from_bytes(found, "big"), -(self.offset + self.width) % 8

    def read(self, buffer: Buffer) -> int:
        """Its value; what is beyond the end of the string is zero."""
        number, behind = self._surroundings(buffer)
        return self.wrap(number >> behind)

    def replaced(self, buffer: Buffer, value: int) -> Piece:
        """The bytes in which it is, with another value."""
        number, behind = self._surroundings(buffer)
        mask = (1 << self.width) - 1
        number = number & ~(mask << behind) | (value & mask) << behind
        size = self.last_byte + 1 - (self.offset >> 3)
        return self.offset >> 3, number.to_bytes(size, "big")

    def wrap(self, value: int) -> int:
        """The value that the lowest bits of ``value`` stand for."""
        value &= (1 << self.width) - 1
        return value - (1 << self.width) if self.signed and value >> (self.width - 1) else value

    def fit(self, value: int, policy: bytes) -> int | None:
        """The value to keep for ``value``; ``None`` if it is too large or too small to be kept."""
        low = -(1 << (self.width - 1)) if self.signed else 0
        high = low + (1 << self.width) - 1
        if low <= value <= high:
            return value
        if policy == b"FAIL":
            return None
        return min(max(value, low), high) if policy == b"SAT" else self.wrap(value)


class _Operation(NamedTuple):
    """A subcommand: GET, SET or INCRBY."""

    name: bytes
    field: _Field
    operand: int
    policy: bytes

    @property
    def writes(self) -> bool:
        """Whether it may change the string."""
        return self.name != b"GET"

    def value(self, present: int) -> int | None:
        """The value that it puts in the place of the present one; ``None`` to leave that."""
        if self.name == b"GET":
            return present
        if self.name == b"INCRBY":
            return self.field.fit(present + self.operand, self.policy)
        # A negative operand for a field without a sign is a very large one.
        unsigned = self.operand if self.field.signed else self.operand & 0xFFFFFFFFFFFFFFFF
        return self.field.fit(unsigned, self.policy)


def _operations(server: Services, args: Arguments) -> list[_Operation]:
    found: list[_Operation] = []
    policy = b"WRAP"
    words = iter(args[2:])
    for arg in words:
        name = arg.upper()
        if name == b"OVERFLOW":
            policy = option_value(words).upper()
            if policy not in _POLICIES:
                raise CommandError(string_errors.BITFIELD_OVERFLOW)
        elif name in (b"GET", b"SET", b"INCRBY"):
            found.append(_operation(server, name, words, policy))
        else:
            raise CommandError(errors.SYNTAX)
    return found


def _operation(server: Services, name: bytes, words: Iterator[bytes], policy: bytes) -> _Operation:
    kind, place = option_value(words), option_value(words)
    operand = option_value(words) if name != b"GET" else b"0"
    found = _TYPE.fullmatch(kind)
    if found is None:
        raise CommandError(string_errors.BITFIELD_TYPE)
    width = int(found[1] or found[2])
    field = _Field(bit_offset(server, place, width), width, found[1] is not None)
    return _Operation(name, field, integer(operand), policy)


_GET_WORDS: Final = {b"GET": 3, b"OVERFLOW": 2}
"""The subcommands that change nothing, and how many words each takes."""


def _key_flags(args: Arguments) -> str:
    """Return what a BITFIELD does to its key: it only reads if it is told nothing but to GET."""
    at = 2
    while at < len(args) and (name := args[at].upper()) in _GET_WORDS:
        at += _GET_WORDS[name]
    return "RO access" if at >= len(args) else "RW access update"


@command(
    "BITFIELD",
    flags="write denyoom",
    since="3.2.0",
    summary="Reads and changes integers of any width in a string.",
    complexity="O(1) for each subcommand.",
    syntax="key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>]"
    " <SET encoding offset value | INCRBY encoding offset increment> [GET encoding offset |"
    " [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset value |"
    " INCRBY encoding offset increment> ...]]",
    keys=[
        KeySpec(
            "RW access update variable_flags",
            notes="without SET and INCRBY it only reads",
            vary=_key_flags,
        )
    ],
)
def bitfield(server: Services, session: Session, args: Arguments) -> Reply:
    """For each subcommand the value that was read or made, or null if it was not to be kept."""
    operations = _operations(server, args)
    if any(operation.writes for operation in operations):
        return _change(session, args[1], operations)
    return _read(session, args[1], operations)


@command(
    "BITFIELD_RO",
    flags="readonly fast",
    since="6.0.0",
    summary="Reads integers of any width in a string.",
    complexity="O(1) for each subcommand.",
    syntax="key [GET encoding offset [GET encoding offset ...]]",
    keys=[KeySpec("RO access")],
)
def bitfield_ro(server: Services, session: Session, args: Arguments) -> Reply:
    """The values."""
    operations = _operations(server, args)
    if any(operation.writes for operation in operations):
        raise CommandError(string_errors.BITFIELD_RO_GET)
    return _read(session, args[1], operations)


def _read(session: Session, key: bytes, operations: list[_Operation]) -> Reply:
    buffer = session.db.buffer_to_read(key, touch=not session.no_touch) or b""
    if not operations:
        return EMPTY_ARRAY
    return [operation.field.read(buffer) for operation in operations]


def _change(session: Session, key: bytes, operations: list[_Operation]) -> Reply:
    """All subcommands in turn. The string has first grown for all of them."""
    database = session.db
    length = max(operation.field.last_byte + 1 for operation in operations if operation.writes)
    buffer = database.edit(key)
    grows = length > len(buffer)
    lengthen(buffer, length)
    pieces: list[Piece] = [(length - 1, b"\0")] if grows else []
    replies: list[Reply] = []
    event = ""
    for operation in operations:
        present = operation.field.read(buffer)
        value = operation.value(present)
        replies.append(value if value is None or operation.name == b"INCRBY" else present)
        if value is not None and operation.writes and (grows or value != present):
            piece = operation.field.replaced(buffer, value)
            overwrite(buffer, *piece)
            pieces.append(piece)
            event = "setbit"
    if pieces:
        database.edited(key, buffer, tuple(pieces), event)
    else:
        database.left(key)
    return replies
