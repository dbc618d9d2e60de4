"""What a server holds of the streams that a pipeline reads: lengths, ages and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.client.errors import CommandRefused
from penstock.client.retrying import RetryingClient
from pyspark_redis_streams.errors import ServerError
from pyspark_redis_streams.streams import NOTHING, Stream, StreamInfo, info_of, key_of, pairs


@dataclass(frozen=True)
class Group:
    """A consumer group of a stream; ``lag`` is None where the server does not know it."""

    name: str
    lag: int | None
    pending: int

    def __str__(self) -> str:
        lag = "unknown" if self.lag is None else f"{self.lag:,}"
        return f"{self.name} (lag {lag}, {self.pending:,} pending)"


@dataclass(frozen=True)
class Looked:
    """A stream as it is on the server; ``problem`` says why it can't be read."""

    name: str
    exists: bool
    info: StreamInfo = NOTHING
    groups: tuple[Group, ...] = ()
    problem: str | None = None


def look(client: RetryingClient, name: str) -> Looked:
    """What there is of one stream; raises ClientError if the server goes away."""
    key = key_of(name)
    info, groups, sample = client.try_all(
        [("XINFO STREAM", key), ("XINFO GROUPS", key), ("XRANGE", key, "-", "+", "COUNT", "1")]
    )
    for reply in (info, sample):
        if isinstance(reply, CommandRefused) and "no such key" not in str(reply):
            return Looked(name, False, problem=str(reply))
    if isinstance(info, CommandRefused):
        return Looked(name, False)
    try:
        counters = info_of(Stream(0, key), info)
    except ServerError as error:
        return Looked(name, False, problem=str(error))
    known = () if isinstance(groups, CommandRefused) else tuple(map(_group, groups))
    return Looked(name, True, counters, known)


def _group(reply: list[Any]) -> Group:
    found = pairs(reply)
    lag = found.get(b"lag")
    name = found[b"name"].decode("utf-8", "backslashreplace")
    return Group(name, None if lag is None else int(lag), int(found[b"pending"]))


def matching(client: RetryingClient, pattern: str) -> list[str]:
    """The names of the streams that match a pattern; raises ClientError."""
    return [key.decode("utf-8", "surrogateescape") for key in client.scan(pattern)]
