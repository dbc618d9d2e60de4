"""What is no longer needed, freed little by little.

To free a million entries takes 80 ms, a million pending entries 20 ms. Who asked for their removal
has an answer at once, and nobody waits for the memory to be given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.block import Block

FEW: Final = 200
"""So many blocks, or fewer, are freed where they are dropped: that takes less than 2 ms."""


class Disposal:
    """Blocks of entries, and columns of pending entries, that nothing else refers to any more."""

    __slots__ = ("_blocks", "_columns")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._columns: list[object] = []

    def __len__(self) -> int:
        return len(self._blocks) + len(self._columns)

    def take(self, blocks: Sequence[Block]) -> None:
        """Keeps the blocks until their turn comes, if they are many."""
        if len(blocks) > FEW:
            self._blocks.extend(blocks)
        else:
            _discard(blocks)

    def keep(self, columns: Sequence[object]) -> None:
        """Keeps columns until their turn comes, if they are many."""
        if len(columns) > FEW:
            self._columns.extend(columns)

    def free(self, most: int) -> None:
        """Frees up to ``most`` blocks, and as many columns."""
        _discard(self._blocks[-most:])
        del self._blocks[-most:]
        del self._columns[-most:]


def _discard(blocks: Sequence[Block]) -> None:
    """Empties the blocks: the packer may not have got to them yet."""
    for block in blocks:
        block.discard()
