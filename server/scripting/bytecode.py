"""Change the bytecode of every script before it runs.

**Tail calls.** ``return redis.call(...)`` is a tail call: the script's own frame is gone when the
call fails, and with it the line that the error should name. In the bytecode of Lua 5.1 a tail call
is followed by the return of its results; as an ordinary call it does the same and keeps the frame.
All that is lost is recursion without a bound.

**Parameters before dots.** When a function with parameters before ``...`` gets less arguments than
it has parameters, Lua 5.1 moves its frame up by what is missing, beyond what it has made sure of
(CVE-2014-5461). A function that has nothing before the ``...`` is never moved: so the parameters
are taken from the dots by an instruction of its own, and each ``...`` in the function becomes
``select(parameters + 1, ...)``.

The format is that of ``luac`` 5.1, in the sizes and the byte order of the machine.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

OPCODE: Final = 0x3F
LOADK: Final = 1
GETGLOBAL: Final = 5
JMP: Final = 22
CALL: Final = 28
FORLOOP: Final = 31
FORPREP: Final = 32
SETLIST: Final = 34
CLOSURE: Final = 36
VARARG: Final = 37

_WITH_JUMP: Final = frozenset({JMP, FORLOOP, FORPREP})
_BIAS: Final = 131071
"""What is added to the distance of a jump, which then has no sign."""


class Rewritten(NamedTuple):
    """Instructions, the old place of what is at each new place, and the size of the frame.

    ``places`` has the new place of each old one, and that of the end.
    """

    instructions: list[int]
    origins: list[int]
    places: list[int]
    frame: int


def _abc(opcode: int, a: int, b: int, c: int) -> int:
    return opcode | a << 6 | c << 14 | b << 23


def _abx(opcode: int, a: int, bx: int) -> int:
    return opcode | a << 6 | bx << 14


def taken_from_dots(
    instructions: list[int], data: set[int], parameters: int, constants: int, frame: int
) -> Rewritten:
    """The instructions of a function that has ``parameters`` before its dots, for one with none.

    ``data`` are the places of words that are no instructions. Behind the ``constants`` that there
    are the text ``select`` has to follow, and the number of parameters and one.
    """
    out = [_abc(VARARG, 0, parameters + 1, 0)]
    origins = [0]
    places = []
    for at, word in enumerate(instructions):
        places.append(len(out))
        if word & OPCODE == VARARG and at not in data:
            a, wanted = word >> 6 & 0xFF, word >> 23
            out += [
                _abx(GETGLOBAL, a, constants),
                _abx(LOADK, a + 1, constants + 1),
                _abc(VARARG, a + 2, 0, 0),
                _abc(CALL, a, 0, wanted),
            ]
            frame = max(frame, a + 3)
        else:
            out.append(word)
        origins += [at] * (len(out) - len(origins))
    places.append(len(out))
    _aim(out, origins, places, instructions, data)
    return Rewritten(out, origins, places, frame)


def _aim(
    out: list[int], origins: list[int], places: list[int], before: list[int], data: set[int]
) -> None:
    """Lets every jump end where it did."""
    for at, word in enumerate(before):
        if word & OPCODE in _WITH_JUMP and at not in data:
            target = at + 1 + (word >> 14) - _BIAS
            here = places[at]
            out[here] = word & 0x3FFF | places[target] - here - 1 + _BIAS << 14


def places_of_data(instructions: list[int], upvalues_of: list[int]) -> set[int]:
    """Where words are no instructions of their own: behind SETLIST, and behind CLOSURE.

    ``upvalues_of`` says how many upvalues each function within has.
    """
    data: set[int] = set()
    for at, word in enumerate(instructions):
        if at in data:
            continue
        opcode = word & OPCODE
        if opcode == SETLIST and not word >> 14 & 0x1FF:
            data.add(at + 1)
        elif opcode == CLOSURE:
            data.update(range(at + 1, at + 1 + upvalues_of[word >> 14]))
    return data


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
    """Return the program changed as told above; ``code`` is what string.dump gives. Raises
    :class:`TooComplex`."""
    reader = _ProgramReader(code)
    out = bytearray(code[:HEADER])
    _function(reader, out)
    return bytes(out)


class _ProgramReader:
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


def _function(reader: _ProgramReader, out: bytearray) -> int:
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
        data = places_of_data(instructions, upvalues_of)
        rewritten = taken_from_dots(instructions, data, parameters, len(constants), frame)
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


def _debug_information(reader: _ProgramReader, out: bytearray, rewritten: Rewritten | None) -> None:
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
