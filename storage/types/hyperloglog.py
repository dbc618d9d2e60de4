"""HyperLogLogs: strings that tell about how many different elements were added to them.

Of the hash of an element 14 bits choose one of 16,384 registers, which keeps the largest rank that
was met: the place of the lowest bit that is set among the others. A header of 16 bytes stands
before the registers: ``HYLL``, the encoding, three zeros, and the count that was told last, of
which the highest bit says that it is outdated. A dense one has 6 bits for each register, the first
ones in the lowest bits. A sparse one has runs of registers (:mod:`storage.types.sparse_registers`).
The bytes are those of Redis.
"""

from __future__ import annotations

import math
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Final

from storage.types.sparse_registers import (
    HIGHEST,
    NO_REGISTERS,
    REGISTERS,
    SparseRegisters,
    expanded,
)
from storage.types.strings import Buffer

MAGIC: Final = b"HYLL"
HEADER: Final = 16
DENSE: Final = 0
SPARSE: Final = 1

_BITS: Final = 14
_RANKS: Final = 64 - _BITS
_DENSE_SIZE: Final = HEADER + REGISTERS * 6 // 8
_COUNT: Final = slice(8, HEADER)
_ENCODING: Final = 4
_OUTDATED: Final = 1 << 63

_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FROM_DIGITS: Final = bytes.maketrans(_DIGITS, bytes(range(64)))
_TO_DIGITS: Final = _DIGITS + bytes(256 - len(_DIGITS))
"""Base64 has six bits for each digit as well, from the other end."""


# --- elements ----------------------------------------------------------------------------------

_MASK: Final = 2**64 - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_SHIFT: Final = 47
_SEED: Final = 0xADC83B19


def hash_of(element: bytes) -> int:
    """Return its MurmurHash64A, with the seed of Redis."""
    size = len(element)
    value = _SEED ^ size * _FACTOR & _MASK
    whole = size & ~7
    for at in range(0, whole, 8):
        word = int.from_bytes(element[at : at + 8], "little") * _FACTOR & _MASK
        value = (value ^ (word ^ word >> _SHIFT) * _FACTOR & _MASK) * _FACTOR & _MASK
    if whole < size:
        value = (value ^ int.from_bytes(element[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> _SHIFT) * _FACTOR & _MASK
    return value ^ value >> _SHIFT


def place_of(element: bytes) -> tuple[int, int]:
    """Return the register of an element, and its rank: from 1 on, up to 51."""
    value = hash_of(element)
    rest = value >> _BITS | 1 << _RANKS
    return value & REGISTERS - 1, (rest & -rest).bit_length()


# --- counting ----------------------------------------------------------------------------------


_TOO_MANY: Final = -(2**63)
"""What is told of registers that no elements can have."""


def estimated(registers: bytes) -> int:
    """Return about how many different elements were added, as Otmar Ertl's "New cardinality
    estimation algorithms for HyperLogLog sketches" (2017) estimates it."""
    total = float(REGISTERS)
    sum_ = total * _tau((total - registers.count(_RANKS + 1)) / total)
    for rank in range(_RANKS, 0, -1):
        sum_ = (sum_ + registers.count(rank)) * 0.5
    sum_ += total * _sigma(registers.count(0) / total)
    scaled = 0.5 / math.log(2) * total * total
    if scaled >= sum_ * 2.0**63:
        return _TOO_MANY
    count = scaled / sum_
    whole = int(count)
    return whole + (count - whole >= 0.5)


def _sigma(share: float) -> float:
    """How much registers count that are 0."""
    if share == 1.0:
        return math.inf
    factor, found, former = 1.0, share, -1.0
    while found != former:
        share *= share
        former = found
        found += share * factor
        factor += factor
    return found


def _tau(share: float) -> float:
    """How much registers count that are full."""
    if share in (0.0, 1.0):
        return 0.0
    factor, found, former = 1.0, 1.0 - share, -1.0
    while found != former:
        share = math.sqrt(share)
        former = found
        factor *= 0.5
        found -= (1.0 - share) ** 2 * factor
    return found / 3.0


# --- as a string -------------------------------------------------------------------------------


def is_hyperloglog(value: Buffer) -> bool:
    """Whether a string may be one, judging by its header and its length."""
    if len(value) < HEADER or value[:_ENCODING] != MAGIC or value[_ENCODING] > SPARSE:
        return False
    return value[_ENCODING] == SPARSE or len(value) == _DENSE_SIZE


def is_dense(value: Buffer) -> bool:
    """Whether each register has its bits."""
    return value[_ENCODING] == DENSE


def registers_of(value: Buffer) -> bytes:
    """Return a byte for each register. Raises :class:`DamagedRuns`."""
    data = bytes(value[HEADER:])
    if is_dense(value):
        return b2a_base64(data[::-1], newline=False).translate(_FROM_DIGITS)[::-1]
    return expanded(data)


_TOPS: Final = int.from_bytes(b"\x80" * REGISTERS)
"""The highest bit of each byte, which no register has."""


def merged(parts: Iterable[bytes]) -> bytes:
    """Return the largest one of each register; all of them at once, as long integers."""
    found = 0
    for part in parts:
        other = int.from_bytes(part)
        not_below = (found | _TOPS) - other & _TOPS
        kept = not_below - (not_below >> 7)
        found = found & kept | other ^ other & kept
    return found.to_bytes(REGISTERS)


def kept_count(value: Buffer) -> int | None:
    """Return the count that was told last, if nothing was added since."""
    count = int.from_bytes(value[_COUNT], "little")
    return None if count & _OUTDATED else count


def keep_count(buffer: bytearray, count: int) -> None:
    """Notes the count that is told."""
    buffer[_COUNT] = (count & _MASK).to_bytes(8, "little")


class HyperLogLog:
    """One that is changed, in the buffer with its string; one without registers in an empty one.
    It becomes dense for good when it would have more than ``most`` bytes."""

    __slots__ = ("_most", "_sparse", "buffer")

    def __init__(self, buffer: bytearray, most: int) -> None:
        self.buffer = buffer
        self._most = most
        if not buffer:
            buffer += MAGIC + bytes((SPARSE,)) + bytes(HEADER - 5) + NO_REGISTERS
        self._sparse: SparseRegisters | None = None
        if buffer[_ENCODING] == SPARSE:
            self._sparse = SparseRegisters(buffer, HEADER, most)

    def add(self, element: bytes) -> bool:
        """Adds an element; returns whether that changed a register. Raises
        :class:`DamagedRuns`."""
        register, rank = place_of(element)
        return self.raise_to(register, rank)

    def raise_to(self, register: int, rank: int) -> bool:
        """Raises a register to a rank; returns whether it was lower. Raises
        :class:`DamagedRuns`."""
        if self._sparse is not None:
            change = self._sparse.raise_to(register, rank)
            if change is not None:
                return change
            self.make_dense()
        buffer = self.buffer
        at, shift = HEADER + register * 6 // 8, register * 6 % 8
        pair = int.from_bytes(buffer[at : at + 2], "little")
        present = pair >> shift & HIGHEST
        if rank <= present:
            return False
        pair += rank - present << shift
        size = min(2, len(buffer) - at)
        buffer[at : at + size] = pair.to_bytes(size, "little")
        return True

    def make_dense(self) -> None:
        """Gives each register its bits. Raises :class:`DamagedRuns`."""
        if self._sparse is not None:
            self.put(registers_of(self.buffer))

    def put(self, registers: bytes) -> None:
        """Replaces all registers, densely."""
        self._sparse = None
        self.buffer[_ENCODING] = DENSE
        self.buffer[HEADER:] = a2b_base64(registers[::-1].translate(_TO_DIGITS))[::-1]

    def note_change(self) -> None:
        """Notes that the count is outdated."""
        self.buffer[HEADER - 1] |= 1 << 7
