"""How far a query lags behind, from what Spark reports about its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def lag(source: Mapping[str, Any]) -> dict[str, int]:
    """Return how many entries of each stream are unread, from one of ``lastProgress["sources"]``.

    Both modes are understood. The keys are names of streams, with ``server/`` before them if the
    source has several servers. Empty if the source has not reported where the streams end.
    """
    latest, end = _entries(source.get("latestOffset")), _entries(source.get("endOffset"))
    found: dict[str, int] = {}
    for stream, entry in latest.items():
        read = end.get(stream, {}).get("n", 0)
        found[stream] = max(entry["lag"] if "lag" in entry else entry["n"] - read, 0)
    return found


def lag_ms(source: Mapping[str, Any]) -> dict[str, int]:
    """Return how many milliseconds older the last entry read is than the last of its stream.

    From one of ``lastProgress["sources"]``, with the same keys as :func:`lag`; a stream of which
    nothing has been read is left out. The times are those in the IDs.
    """
    latest, end = _entries(source.get("latestOffset")), _entries(source.get("endOffset"))
    return {
        stream: max(_milliseconds(latest[stream]["id"]) - _milliseconds(read["id"]), 0)
        for stream, read in end.items()
        if stream in latest and read["id"] != "0-0"
    }


def _milliseconds(id: str) -> int:
    return int(id.partition("-")[0])


def _entries(offset: Any) -> dict[str, dict[str, Any]]:
    """Return what an offset says of each stream; it is JSON text, a mapping, or nothing."""
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    servers = parsed.get("servers", {}) if isinstance(parsed, dict) else {}
    return {
        f"{server}/{name}" if server else name: entry
        for server, streams in servers.items()
        for name, entry in streams.items()
    }
