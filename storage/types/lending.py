"""Copy-on-write for strings that are read in steps.

A string that can be edited in place is lent to a command that reads it in steps. While the loan
lasts, an edit works on a copy, so the reader sees a snapshot. Most strings are not edited while
they are read, and then nothing is copied.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

Buffer = bytes | bytearray


class Loan:
    """A string that stays as it is as long as this object is kept."""

    __slots__ = ("__weakref__", "buffer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer


class Lending:
    """What is lent at present."""

    def __init__(self) -> None:
        self._loans: WeakValueDictionary[int, Loan] = WeakValueDictionary()

    def lend(self, buffer: Buffer) -> Loan:
        """A loan of the string; all who have one of the same string share it."""
        loan = self._loans.get(id(buffer))
        if loan is None:
            loan = self._loans[id(buffer)] = Loan(buffer)
        return loan

    def is_lent(self, buffer: Buffer) -> bool:
        """Whether somebody reads the string who relies on its staying as it is."""
        return id(buffer) in self._loans
