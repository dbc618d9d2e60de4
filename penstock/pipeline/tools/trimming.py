"""Removes from a stream what is archived and what no consumer group needs any more."""

from __future__ import annotations

from typing import Any

from penstock.pipeline.tools.archive_store import Shelf
from penstock.pipeline.tools.stream_client import End
from pyspark_redis_streams.ids import format_id, parse_id


def trim(end: End, key: bytes, shelf: Shelf) -> int:
    """Removes what it may; returns how many entries that were."""
    keep = safe_from(end, key, shelf)
    if keep is None:
        return 0
    removed: int = end.call("XTRIM", key, "MINID", "=", format_id(keep))
    return removed


def safe_from(end: End, key: bytes, shelf: Shelf) -> int | None:
    """The lowest ID that has to stay; None if nothing is archived or there is no stream.

    That is the first ID that is not archived, that a group has not been delivered, or that is
    pending in a group, whichever is lowest.
    """
    position = shelf.position()
    if position is None or not end.info(key).length:
        return None
    return min([position[0] + 1, *(_needed_from(end, key, group) for group in end.groups(key))])


def _needed_from(end: End, key: bytes, group: dict[bytes, Any]) -> int:
    undelivered = parse_id(group[b"last-delivered-id"]) + 1
    if not group[b"pending"]:
        return undelivered
    lowest = end.call("XPENDING", key, group[b"name"])[1]
    return undelivered if lowest is None else min(undelivered, parse_id(lowest))
