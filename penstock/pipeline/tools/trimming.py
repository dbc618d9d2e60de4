"""Removes entries from a stream that are archived and that no consumer group still needs."""

from __future__ import annotations

from typing import Any

from penstock.pipeline.tools.archive_store import StreamArchive
from penstock.pipeline.tools.stream_client import StreamClient
from pyspark_redis_streams.ids import format_id, parse_id


def trim(client: StreamClient, key: bytes, archive: StreamArchive) -> int:
    """Removes entries that are archived and not needed; returns how many."""
    keep = safe_from(client, key, archive)
    if keep is None:
        return 0
    removed: int = client.call("XTRIM", key, "MINID", "=", format_id(keep))
    return removed


def safe_from(client: StreamClient, key: bytes, archive: StreamArchive) -> int | None:
    """The lowest ID that has to stay; None if nothing is archived or there is no stream.

    That is the first ID that is not archived, that a group has not been delivered, or that is
    pending in a group, whichever is lowest.
    """
    position = archive.position()
    if position is None or not client.info(key).length:
        return None
    return min(
        [position[0] + 1, *(_needed_from(client, key, group) for group in client.groups(key))]
    )


def _needed_from(client: StreamClient, key: bytes, group: dict[bytes, Any]) -> int:
    undelivered = parse_id(group[b"last-delivered-id"]) + 1
    if not group[b"pending"]:
        return undelivered
    lowest = client.call("XPENDING", key, group[b"name"])[1]
    return undelivered if lowest is None else min(undelivered, parse_id(lowest))
