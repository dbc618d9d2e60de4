"""The consumers of a group: those of the query, one a batch, and whether there are others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.stream_info import Stream, ask_each, pairs


@dataclass(frozen=True)
class Consumers:
    """How much is pending for each batch that has a consumer; whether there are other consumers."""

    batches: Mapping[int, int]
    others: bool


def consumers_of(
    servers: Servers, settings: ReadSettings, streams: Iterable[Stream]
) -> dict[Stream, Consumers]:
    """The consumers of the query's group in each of the streams that has it."""
    replies = ask_each(
        servers, streams, lambda stream: ("XINFO CONSUMERS", stream.key, settings.group)
    )
    return {
        stream: _sorted(f"{settings.consumer}-".encode(), [pairs(each) for each in reply])
        for stream, reply in replies.items()
        if not isinstance(reply, ResponseError)
    }


def _sorted(prefix: bytes, consumers: list[dict[bytes, Any]]) -> Consumers:
    names = {each[b"name"]: each[b"pending"] for each in consumers}
    batches = {
        int(name.removeprefix(prefix)): pending
        for name, pending in names.items()
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit()
    }
    return Consumers(batches, others=len(batches) < len(names))
