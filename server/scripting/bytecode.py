"""Scripts without tail calls, so that every error has a place.

``return redis.call(...)`` is a tail call: the script's own frame is gone when the call fails, and
with it the line that the error should name. In the bytecode of Lua 5.1 a tail call is followed by
the return of its results; as an ordinary call it does the same and keeps the frame. All that is
lost is recursion without a bound.

The format is that of ``luac`` 5.1, in the sizes and the byte order of the machine.
"""

from __future__ import annotations

import struct
from typing import Final

HEADER: Final = 12
CALL: Final = 28
TAIL_CALL: Final = 29
OPCODE: Final = 0x3F

_SIZES: Final = {0: 0, 1: 1, 3: struct.calcsize("d")}
"""Bytes of a constant by its type: nil, a boolean, a number. Strings (4) tell their own."""
_STRING: Final = 4


def without_tail_calls(code: bytes) -> bytes:
    """The same program in which every tail call is a call; ``code`` is what string.dump gives."""
    walk = _Walk(bytearray(code))
    walk.function()
    return bytes(walk.code)


class _Walk:
    """Goes through the functions of a program from its header on."""

    def __init__(self, code: bytearray) -> None:
        self.code = code
        self.at = HEADER

    def function(self) -> None:
        """One function: its name, its shape, its instructions, constants, and functions within."""
        self._string()
        self.at += 2 * 4 + 4
        self._instructions()
        for _ in range(self._count()):
            self._constant()
        for _ in range(self._count()):
            self.function()
        self._debug_information()

    def _count(self) -> int:
        (count,) = struct.unpack_from("=i", self.code, self.at)
        self.at += 4
        return int(count)

    def _string(self) -> None:
        (length,) = struct.unpack_from("@N", self.code, self.at)
        self.at += struct.calcsize("@N") + length

    def _instructions(self) -> None:
        count = self._count()
        # The opcode is in the lowest bits of the instruction, whose bytes are in native order.
        for at in range(self.at, self.at + 4 * count, 4):
            (instruction,) = struct.unpack_from("=I", self.code, at)
            if instruction & OPCODE == TAIL_CALL:
                struct.pack_into("=I", self.code, at, instruction & ~OPCODE | CALL)
        self.at += 4 * count

    def _constant(self) -> None:
        kind = self.code[self.at]
        self.at += 1
        if kind == _STRING:
            self._string()
        else:
            self.at += _SIZES[kind]

    def _debug_information(self) -> None:
        """The line of each instruction, then the names of local variables and of upvalues."""
        lines = self._count()
        self.at += 4 * lines
        for _ in range(self._count()):
            self._string()
            self.at += 2 * 4
        for _ in range(self._count()):
            self._string()
