"""Trimming: removing the oldest entries of a stream, by length or by ID."""

from __future__ import annotations

from typing import Final, NamedTuple

from storage.engine import ids
from storage.engine.block import Block
from storage.engine.log import EntryLog
from storage.engine.stream import Stream

KEEPREF: Final = "keepref"
DELREF: Final = "delref"
ACKED: Final = "acked"
"""What happens to references in pending entries lists: they stay (KEEPREF), they are removed with
the entry, as are those to what was deleted before (DELREF), or the entry stays until every group
has acknowledged it (ACKED)."""


class Trim:
    """A trimming to perform. ``threshold`` is a number of entries (``by_length``) or the lowest ID
    to keep. ``approximate`` removes whole blocks only, at most ``limit`` entries (0: no limit)."""

    __slots__ = ("approximate", "by_length", "limit", "policy", "threshold")

    def __init__(
        self, by_length: bool, threshold: int, approximate: bool, limit: int, policy: str
    ) -> None:
        self.by_length = by_length
        self.threshold = threshold
        self.approximate = approximate
        self.limit = limit
        self.policy = policy


class Trimmed(NamedTuple):
    """The result: the number of removed entries; their IDs if others than the oldest were removed;
    and the IDs removed from pending entries lists, by group."""

    removed: int
    holes: list[int]
    references: dict[bytes, list[int]]


def trim(stream: Stream, order: Trim) -> Trimmed:
    """Trims the stream."""
    if order.policy == ACKED and stream.groups:
        acknowledged = _acknowledged(stream, order)
        for entry_id in acknowledged:
            stream.log.delete(entry_id)
        return Trimmed(len(acknowledged), acknowledged, {})
    removed = _count_oldest(stream, order)
    if removed:
        stream.trim(removed)
    if order.policy != DELREF:
        return Trimmed(removed, [], {})
    return Trimmed(removed, [], stream.drop_references_below(_kept_from(stream.log, order)))


def _kept_from(log: EntryLog, order: Trim) -> int:
    """The ID below which there is nothing left that a trimming is to leave: what a group refers to
    there has been trimmed, now or before, or was deleted."""
    first = log.first if log.length else ids.MAX + 1
    return first if order.by_length else min(first, order.threshold)


def needed_by_none(stream: Stream, start: int, end: int, most: int) -> tuple[list[int], int]:
    """Look at up to ``most`` entries from ``start`` to below ``end``; returns those that every
    group was given and has acknowledged, and the ID at which to go on, 0 at the end."""
    highest = min([group.last_id for group in stream.groups.values()], default=ids.MAX)
    entry_ids = stream.log.ids_of(start, min(highest, end - 1), most)
    if not entry_ids:
        return [], 0
    pending = stream.pending_between(entry_ids[0], entry_ids[-1])
    following = entry_ids[-1] + 1 if len(entry_ids) == most else 0
    return [entry_id for entry_id in entry_ids if entry_id not in pending], following


def quiet_room(stream: Stream, order: Trim) -> int:
    """How many entries may surely be added, each followed by this trimming, until it removes one,
    or a reference to one.

    Their IDs are made by the server."""
    log, blocks = stream.log, stream.log.blocks
    if order.policy == DELREF and stream.refers_below(_kept_from(log, order)):
        return 0
    if order.by_length:
        room = order.threshold - log.length
        if order.approximate and order.policy != ACKED and blocks:
            # A block goes as soon as so many entries are left without it. Where there is only one
            # the entries may go into another, which has no more than those then.
            oldest = 0 if len(blocks) == 1 else log.length - len(blocks[0])
            room = max(room, order.threshold - oldest - 1)
        return max(room, 0)
    kept = len(blocks) > 0 and blocks[0].lowest >= order.threshold
    return _UNLIMITED if kept else 0


_UNLIMITED: Final = 2**62


def _count_oldest(stream: Stream, order: Trim) -> int:
    """How many of the oldest entries are removed."""
    log = stream.log
    if order.approximate and order.by_length:
        return log.count_blocks_over(order.threshold, order.limit)
    if order.approximate:
        return log.count_blocks_below(order.threshold, order.limit)
    if order.by_length:
        return max(0, log.length - order.threshold)
    return log.count_below(order.threshold)


def _acknowledged(stream: Stream, order: Trim) -> list[int]:
    """The entries that an ACKED trimming removes; entries still referenced are skipped."""
    return _from_blocks(stream, order) if order.approximate else _one_by_one(stream, order)


def _one_by_one(stream: Stream, order: Trim) -> list[int]:
    end, most = _read_by_all(stream) + 1, stream.log.length
    if order.by_length:
        most = max(0, most - order.threshold)
    else:
        end = min(end, order.threshold)
    found: list[int] = []
    for block in stream.log.blocks:
        if len(found) == most or block.lowest >= end:
            break
        found += _free(stream, block, end)[: most - len(found)]
    return found


def _from_blocks(stream: Stream, order: Trim) -> list[int]:
    """Return the IDs that an approximate trimming removes: those of whole blocks."""
    end = _read_by_all(stream) + 1
    found: list[int] = []
    for block in stream.log.blocks:
        if order.by_length:
            stays = stream.log.length - len(found) - len(block) < order.threshold
        else:
            stays = block.last >= order.threshold
        if stays or block.lowest >= end:
            break
        free = _free(stream, block, end)
        if order.limit and len(found) + len(free) > order.limit:
            break
        found += free
    return found


def _read_by_all(stream: Stream) -> int:
    """The highest ID up to which entries were delivered to every group."""
    return min(group.last_id for group in stream.groups.values())


def _free(stream: Stream, block: Block, end: int) -> list[int]:
    """The entries of the block below ``end`` that are not pending in any group."""
    pending = stream.pending_between(block.lowest, block.highest)
    entry_ids = block.ids_at(0, len(block))
    return [entry_id for entry_id in entry_ids if entry_id < end and entry_id not in pending]
