"""What is changed in the bytecode of every script before it runs.

**Tail calls.** ``return redis.call(...)`` is a tail call: the script's own frame is gone when the
call fails, and with it the line that the error should name. In the bytecode of Lua 5.1 a tail call
is followed by the return of its results; as an ordinary call it does the same and keeps the frame.
All that is lost is recursion without a bound.

**Parameters before dots.** See :mod:`server.scripting.varargs`.

The format is that of ``luac`` 5.1, in the sizes and the byte order of the machine.
"""

from __future__ import annotations

import struct
from typing import Final

from server.scripting import varargs
from server.scripting.varargs import CALL, OPCODE, Rewritten

HEADER: Final = 12
TAIL_CALL: Final = 29
LARGEST_FRAME: Final = 250
"""How many places a frame may have at most."""
IS_VARARG: Final = 2
NEEDS_TABLE: Final = 4
"""A function that uses ``arg`` and not ``...``: for these Lua makes sure of its stack once more."""

_SIZES: Final = {0: 0, 1: 1, 3: struct.calcsize("d")}
"""Bytes of a constant by its type: nil, a boolean, a number. Strings tell their own."""
_NUMBER: Final = 3
_STRING: Final = 4


class TooComplex(Exception):
    """A function has more parameters and values at work than fit. ``line`` is where it begins."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def hardened(code: bytes) -> bytes:
    """The same program, changed as told above; ``code`` is what string.dump gives.

    Raises :class:`TooComplex`.
    """
    reader = _Reader(code)
    out = bytearray(code[:HEADER])
    _function(reader, out)
    return bytes(out)


class _Reader:
    """Takes a program apart."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.at = HEADER

    def take(self, size: int) -> bytes:
        """So many bytes."""
        self.at += size
        return self.code[self.at - size : self.at]

    def count(self) -> int:
        """How many of something follow."""
        (count,) = struct.unpack_from("=i", self.code, self.at)
        self.at += 4
        return int(count)

    def words(self) -> list[int]:
        """A list of words of four bytes."""
        count = self.count()
        return list(struct.unpack(f"={count}I", self.take(4 * count)))

    def string(self) -> bytes:
        """A text, with its length before it."""
        (length,) = struct.unpack_from("@N", self.code, self.at)
        return self.take(struct.calcsize("@N") + length)

    def constant(self) -> bytes:
        """A constant, with its type before it."""
        kind = self.take(1)
        return kind + (self.string() if kind[0] == _STRING else self.take(_SIZES[kind[0]]))


def _words(words: list[int]) -> bytes:
    return struct.pack(f"=i{len(words)}I", len(words), *words)


def _function(reader: _Reader, out: bytearray) -> int:
    """Puts one function and those within into ``out``; how many upvalues it has."""
    out += reader.string()
    line, last_line = reader.count(), reader.count()
    upvalues, parameters, dots, frame = reader.take(4)
    instructions = [_without_tail_call(word) for word in reader.words()]
    constants = [reader.constant() for _ in range(reader.count())]
    within = bytearray()
    upvalues_of = [_function(reader, within) for _ in range(reader.count())]
    rewritten = None
    if dots & IS_VARARG and not dots & NEEDS_TABLE and parameters:
        data = varargs.places_of_data(instructions, upvalues_of)
        rewritten = varargs.taken_from_dots(instructions, data, parameters, len(constants), frame)
        if rewritten.frame > LARGEST_FRAME:
            raise TooComplex(line)
        constants += _constants_for(parameters)
        instructions, parameters, frame = rewritten.instructions, 0, rewritten.frame
    out += struct.pack("=iiBBBB", line, last_line, upvalues, parameters, dots, frame)
    out += _words(instructions)
    out += struct.pack("=i", len(constants)) + b"".join(constants)
    out += struct.pack("=i", len(upvalues_of)) + within
    _debug_information(reader, out, rewritten)
    return upvalues


def _without_tail_call(word: int) -> int:
    return word & ~OPCODE | CALL if word & OPCODE == TAIL_CALL else word


def _constants_for(parameters: int) -> list[bytes]:
    name = b"select\0"
    text = bytes([_STRING]) + struct.pack("@N", len(name)) + name
    return [text, bytes([_NUMBER]) + struct.pack("=d", parameters + 1)]


def _debug_information(reader: _Reader, out: bytearray, rewritten: Rewritten | None) -> None:
    """The line of each instruction, then the names of local variables and of upvalues."""
    lines = reader.words()
    if rewritten is not None:
        lines = [lines[at] for at in rewritten.origins]
    out += _words(lines)
    count = reader.count()
    out += struct.pack("=i", count)
    for _ in range(count):
        out += reader.string()
        begin, end = reader.count(), reader.count()
        if rewritten is not None:
            # A parameter begins with the function.
            begin = rewritten.places[begin] if begin else 0
            end = rewritten.places[end]
        out += struct.pack("=ii", begin, end)
    count = reader.count()
    out += struct.pack("=i", count)
    for _ in range(count):
        out += reader.string()
