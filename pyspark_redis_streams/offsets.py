"""The offset of mode ``offsets``, as the checkpoint holds it.

::

    {"v": 1, "servers": {"": {"orders": {"id": "5-0", "n": 12, "from": "3-0", "n0": 10}}}}

``id`` is the last entry of the batch and ``n`` how many entries the stream had had added up to
there; ``from`` and ``n0`` are the same for where the batch begins. A batch is planned from its own
end, since the start that Spark passes along may be another one when a first batch is repeated.
Servers have no name when there is only one, so that a query goes on when its URL changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.settings import ServerSettings
from pyspark_redis_streams.stream_info import Stream, key_of, name_of

VERSION = 1


@dataclass(frozen=True)
class Position:
    """Where a batch ends in a stream (``id``, ``n``), and where it begins (``start``, ``n0``)."""

    id: int
    n: int
    start: int
    n0: int

    @classmethod
    def at(cls, id: int, n: int) -> Position:
        """An empty batch at that place."""
        return cls(id, n, id, n)

    def to(self, id: int, n: int) -> Position:
        """The batch that begins where this one ends."""
        return Position(id, n, self.id, self.n)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.start == self.id


Positions = Mapping[Stream, Position]


def to_json(positions: Positions, settings: ServerSettings) -> dict[str, Any]:
    """The offset that Spark stores."""
    servers: dict[str, dict[str, Any]] = {}
    for stream, position in sorted(positions.items()):
        of_server = servers.setdefault(settings.label(stream.server), {})
        of_server[name_of(stream.key)] = {
            "id": format_id(position.id),
            "n": position.n,
            "from": format_id(position.start),
            "n0": position.n0,
        }
    return {"v": VERSION, "servers": servers}


def from_json(
    offset: Mapping[str, Any], settings: ServerSettings, there: Iterable[Stream]
) -> dict[Stream, Position]:
    """The positions of an offset, of which ``there`` tells where the streams are now.

    Raises RedisStreamsError if the offset is not one of this mode, or if it names servers that
    are no longer in ``url`` and does not say clearly which stream is meant.
    """
    if offset.get("v") != VERSION or "servers" not in offset:
        raise RedisStreamsError(
            "the checkpoint was not written by mode 'offsets' of this source: use the mode it "
            "was written with, or a new checkpoint"
        )
    labels = {settings.label(server): server for server in range(len(settings.urls))}
    known = list(there)
    positions: dict[Stream, Position] = {}
    for label, of_server in offset["servers"].items():
        for name, entry in of_server.items():
            stream = _place(labels.get(label), name, label, known, len(labels))
            if stream in positions:
                raise RedisStreamsError(_unclear(name, "several servers of the checkpoint"))
            positions[stream] = _position(entry)
    return positions


def _place(server: int | None, name: str, label: str, known: list[Stream], servers: int) -> Stream:
    if server is not None:
        return Stream(server, key_of(name))
    if servers == 1:
        return Stream(0, key_of(name))
    homes = [stream for stream in known if stream.key == key_of(name)]
    if len(homes) != 1:
        where = f"{len(homes)} of the servers in 'url', which '{label or 'one server'}' is not"
        raise RedisStreamsError(_unclear(name, where))
    return homes[0]


def _unclear(name: str, where: str) -> str:
    shown = key_of(name).decode("utf-8", "backslashreplace")
    return f"stream '{shown}' of the checkpoint is on {where}: give the URLs it was written with"


def _position(entry: Mapping[str, Any]) -> Position:
    return Position(parse_id(entry["id"]), entry["n"], parse_id(entry["from"]), entry["n0"])
