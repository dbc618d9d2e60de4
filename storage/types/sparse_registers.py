"""Registers of a HyperLogLog as runs of equal ones, in one or two bytes each.

========================  ================================================
``00xxxxxx``              up to 64 registers that are 0
``01xxxxxx yyyyyyyy``     up to 16,384 registers that are 0
``1vvvvvxx``              up to 4 registers of one value from 1 to 32
========================  ================================================

The numbers in them count from 1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from storage.errors import BadBytes

REGISTERS: Final = 16384

HIGHEST: Final = 63
"""The highest value that a register may have; only a lower one can stand in a run."""

_HIGHEST_HERE: Final = 32
_LONGEST_SHORT: Final = 64
_LONGEST_VALUES: Final = 4
_VALUES: Final = 0x80
_LONG: Final = 0x40
_JOINED: Final = 5
"""How many runs are looked at, from the one before a change on, for some to be joined."""

NO_REGISTERS: Final = b"\x7f\xff"
"""All registers, as long as none has a value."""


class DamagedRuns(BadBytes):
    """The runs are not those of all registers."""


def _zeros(count: int) -> bytes:
    """The run of so many registers that are 0; empty for none."""
    if not count:
        return b""
    if count <= _LONGEST_SHORT:
        return bytes((count - 1,))
    return bytes((_LONG | count - 1 >> 8, count - 1 & 0xFF))


def _values(value: int, count: int) -> bytes:
    """The run of so many registers of a value; empty for none."""
    return bytes((_VALUES | value - 1 << 2 | count - 1,)) if count else b""


def expanded(runs: bytes) -> bytes:
    """Return a byte for each register. Raises :class:`DamagedRuns` where there are fewer or more
    than there should be."""
    parts: list[bytes] = []
    at = total = 0
    while at < len(runs) and total <= REGISTERS:
        head = runs[at]
        at += 1
        if head >= _VALUES:
            part = bytes(((head >> 2 & 31) + 1,)) * ((head & 3) + 1)
        elif head < _LONG:
            part = bytes(head + 1)
        elif at < len(runs):
            part = bytes(((head & 63) << 8 | runs[at]) + 1)
            at += 1
        else:
            raise DamagedRuns(at, "a run of registers that ends early")
        parts.append(part)
        total += len(part)
    if total != REGISTERS or at < len(runs):
        raise DamagedRuns(at, f"runs of {total} registers")
    return b"".join(parts)


class RegisterRun(NamedTuple):
    """A run of registers: its place, its first register, how many it has; and the place and the
    first register of the run before it, or its own where there is none."""

    at: int
    first: int
    length: int
    before: int
    first_before: int


class SparseRegisters:
    """The runs in a buffer from ``start`` on, to be changed as Redis changes them; the buffer is
    not to grow beyond ``most`` bytes."""

    __slots__ = ("_at", "_buffer", "_first", "_most", "_start")

    def __init__(self, buffer: bytearray, start: int, most: int) -> None:
        self._buffer = buffer
        self._start = start
        self._most = most
        self._at = start
        self._first = 0
        """Where the last search ended, from which the next one may go on."""

    def raise_to(self, register: int, value: int) -> bool | None:
        """Raises a register to a value; returns whether it was lower, and ``None``, with nothing
        done, if there is no room for that. Raises :class:`DamagedRuns`."""
        if value > _HIGHEST_HERE:
            return None
        buffer = self._buffer
        run = self._run_of(register)
        at = run.at
        head = buffer[at]
        size = 1
        left, right = register - run.first, run.first + run.length - 1 - register
        if head >= _VALUES:
            present = (head >> 2 & 31) + 1
            if present >= value:
                return False
            new = _values(present, left) + _values(value, 1) + _values(present, right)
        else:
            size += head >= _LONG
            new = _zeros(left) + _values(value, 1) + _zeros(right)
        if len(new) > size and len(buffer) + len(new) - size > self._most:
            return None
        buffer[at : at + size] = new
        self._join(run.before)
        return True

    def _run_of(self, register: int) -> RegisterRun:
        """The run that has a register. Raises :class:`DamagedRuns`."""
        run = self._search(register, self._at, self._first)
        if run is None or run.at == self._at:
            run = self._search(register, self._start, 0)
            if run is None:
                raise DamagedRuns(self._start, f"no register {register}")
        self._at, self._first = run.before, run.first_before
        return run

    def _search(self, register: int, at: int, first: int) -> RegisterRun | None:
        """The run that has a register, looked for from the run at a place on."""
        buffer = self._buffer
        before, first_before = at, first
        while first <= register and at < len(buffer):
            head = buffer[at]
            size = 1
            if head >= _VALUES:
                count = (head & 3) + 1
            elif head < _LONG:
                count = head + 1
            elif at + 1 < len(buffer):
                size = 2
                count = ((head & 63) << 8 | buffer[at + 1]) + 1
            else:
                return None
            if first + count > register:
                return RegisterRun(at, first, count, before, first_before)
            before, first_before = at, first
            first += count
            at += size
        return None

    def _join(self, at: int) -> None:
        """Joins runs of the same value from a place on, where that makes no run too long."""
        buffer = self._buffer
        for _ in range(_JOINED):
            if at + 1 >= len(buffer):
                return
            head, following = buffer[at], buffer[at + 1]
            count = (head & 3) + (following & 3) + 2
            if head >= _VALUES and head | 3 == following | 3 and count <= _LONGEST_VALUES:
                buffer[at : at + 2] = bytes((head & ~3 | count - 1,))
            else:
                at += 2 if _LONG <= head < _VALUES else 1
