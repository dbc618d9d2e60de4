"""How far a query lags behind, from what Spark reports about its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def lag(source: Mapping[str, Any]) -> dict[str, int]:
    """The entries of each stream that have not been read, from one of ``lastProgress["sources"]``.

    Both modes are understood. The keys are names of streams, with ``server/`` before them if the
    source has several servers. Empty if the source has not reported where the streams end.
    """
    latest, end = _offset(source.get("latestOffset")), _offset(source.get("endOffset"))
    found: dict[str, int] = {}
    for server, streams in latest.get("servers", {}).items():
        read = end.get("servers", {}).get(server, {})
        for name, entry in streams.items():
            known = entry["lag"] if "lag" in entry else entry["n"] - read.get(name, {}).get("n", 0)
            found[f"{server}/{name}" if server else name] = max(known, 0)
    return found


def lag_ms(source: Mapping[str, Any]) -> dict[str, int]:
    """How much older the last entry that was read is than the last of its stream, in milliseconds.

    From one of ``lastProgress["sources"]``, with the same keys as :func:`lag`; a stream of which
    nothing has been read is left out. The times are those in the IDs.
    """
    latest, end = _offset(source.get("latestOffset")), _offset(source.get("endOffset"))
    found: dict[str, int] = {}
    for server, streams in end.get("servers", {}).items():
        for name, read in streams.items():
            last = latest.get("servers", {}).get(server, {}).get(name)
            if last is not None and read["id"] != "0-0":
                behind = _milliseconds(last["id"]) - _milliseconds(read["id"])
                found[f"{server}/{name}" if server else name] = max(behind, 0)
    return found


def _milliseconds(id: str) -> int:
    return int(id.partition("-")[0])


def _offset(value: Any) -> dict[str, Any]:
    """An offset as it comes: JSON text, a mapping, or nothing."""
    parsed = json.loads(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}
