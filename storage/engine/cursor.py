# Compiled by mypyc.
"""Where a group reads on: the place behind its last-delivered-id, so as not to search for it."""

from __future__ import annotations

from typing import Final

from storage.engine import ids
from storage.engine.block import Block
from storage.engine.log import EntryLog

_NOWHERE: Final = -1
_NO_BLOCK: Final = Block(ids.MIN, ())


class Cursor:
    """A place in the log behind the entry that a group was given last.

    It holds as long as the same block has the same number in the log, with nothing deleted from it
    since, and the group's last-delivered-id is the one that it was noted for. Entries that are
    added do not move it, and packing does not."""

    __slots__ = ("_at", "_block", "_deleted", "_identity", "_place")

    def __init__(self) -> None:
        self._identity = _NOWHERE
        self._at = 0
        self._block = _NO_BLOCK
        self._deleted = 0
        self._place = 0

    def read(self, log: EntryLog, last_id: int, count: int) -> tuple[list[int], list[bytes]]:
        """The IDs of up to ``count`` entries behind ``last_id``, and their RESP forms in any number
        of pieces; the cursor is moved behind them."""
        blocks = log.blocks
        at, place = self._at, self._place
        if last_id != self._identity or not self._holds(log):
            at, place = log.place_behind(last_id)
        identities: list[int] = []
        found: list[bytes] = []
        while at < len(blocks):
            block = blocks[at]
            high = min(len(block), place + count)
            if place < high:
                identities += block.ids_at(place, high)
                found += block.chunks_at(place, high, log.packer)
                count -= high - place
                self._block, self._at, self._place = block, at, high
            if not count:
                break
            at, place = at + 1, 0
        if identities:
            self._identity = identities[-1]
            self._deleted = self._block.taken - len(self._block)
        return identities, found

    def _holds(self, log: EntryLog) -> bool:
        block, blocks = self._block, log.blocks
        return (
            self._at < len(blocks)
            and blocks[self._at] is block
            and block.taken - len(block) == self._deleted
        )
