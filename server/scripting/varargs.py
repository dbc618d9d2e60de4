"""Functions with parameters before ``...``, changed so that their call stays within the stack.

When such a function gets less arguments than it has parameters, Lua 5.1 moves its frame up by what
is missing, beyond what it has made sure of (CVE-2014-5461). A function that has nothing before the
``...`` is never moved: so the parameters are taken from the dots by an instruction of its own, and
each ``...`` in the function becomes ``select(parameters + 1, ...)``.
"""

from __future__ import annotations

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
