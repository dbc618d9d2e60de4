"""Which pending entries were given back, in the order in which that happened."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

PIECE: Final = 10_000
"""How many IDs a piece has at most."""


class ReleasedIds:
    """IDs in the order in which they were added.

    They are in pieces: a dictionary is put together again as it grows, which takes 50 ms where it
    has a million. An ID is sought in each piece, from the oldest on, as claims take these first."""

    __slots__ = ("_length", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[OrderedDict[int, None]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._pieces)

    def __contains__(self, entry_id: int) -> bool:
        return any(entry_id in piece for piece in self._pieces)

    def add(self, entry_ids: Sequence[int]) -> None:
        """Puts IDs at the end, none of which is in it."""
        done = 0
        while done < len(entry_ids):
            if not self._pieces or len(self._pieces[-1]) >= PIECE:
                self._pieces.append(OrderedDict())
            piece = self._pieces[-1]
            some = entry_ids[done : done + PIECE - len(piece)]
            piece.update(dict.fromkeys(some))
            done += len(some)
        self._length += len(entry_ids)

    def remove(self, entry_id: int) -> None:
        """Takes an ID out, if it is in it."""
        for at, piece in enumerate(self._pieces):
            if entry_id in piece:
                del piece[entry_id]
                self._length -= 1
                if not piece:
                    del self._pieces[at]
                return

    def copy(self) -> ReleasedIds:
        """Return an independent one with the same IDs."""
        twin = ReleasedIds()
        twin._pieces = [piece.copy() for piece in self._pieces]
        twin._length = self._length
        return twin
