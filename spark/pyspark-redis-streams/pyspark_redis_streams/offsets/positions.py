"""The offset of mode ``offsets``, as the checkpoint holds it, and what makes it repeatable.

::

    {"v": 2, "servers": {"": {"orders": {"id": "5-0", "n": 12, "from": "3-0", "n0": 10}}}}

``id`` is the last entry of the batch and ``n`` how many entries the stream had had added up to
there; ``from`` and ``n0`` are the same for where the batch begins. Servers have no name when there
is only one, so that a query goes on when its URL changes.

Spark writes an offset before the batch runs and a commit after it. After a crash between the two it
asks for the batch again, maybe from another process and hours later, and its sinks count on the
same rows. So a batch is planned from its own offset and from nothing else:

- Both ends are in it. The start that Spark passes along is not used: it may be another one when a
  first batch is repeated. Limits and lags do not count any more either.
- IDs within a stream only rise, so nothing can come between two IDs that were passed once. What is
  added after ``id`` was the last ID lies above it, in a later batch.
- What can change is that entries go. No server tells which have gone, only how many were added and
  how many are there. ``n0`` is how many had been added up to ``from``: when more than these are
  gone, and the first entry that is left lies above ``from``, some of the batch are among them.

Example: the batch above is the entries 4-0 and 5-0. It is repeated when XINFO STREAM says
``entries-added 15, length 5, first-entry 4-0``: 10 are gone, the 10 that were read before, and the
rows are the same. Where it says ``length 4, first-entry 5-0``, 11 are gone: 4-0 is lost, and the
query fails, or warns and goes on with ``onDataLoss=continue``.

What tells loss from deletion by name is added where it is known: ``head``, the first entry of the
stream if it lay above ``from`` when the batch was planned, and ``deleted``, the highest ID that had
been deleted by name then. ``end`` is there while the stream ends below ``id``, and is where: it has
lost its tail, and is read on above ``id``. ``group`` beside ``servers`` is the group that was moved
along when the offset was written. Version 1, which is still read, had none of the three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.streams import Stream, StreamInfo, key_of, name_of, shown

VERSION = 2


@dataclass(frozen=True)
class Position:
    """Where a batch ends in a stream (``id``, ``n``), and where it begins (``start``, ``n0``).

    What else was known about the stream then: ``head``, ``deleted`` (None if it was not asked)
    and ``end`` (None if it does not end below ``id``); see the module.
    """

    id: int
    n: int
    start: int
    n0: int
    head: int = 0
    deleted: int | None = None
    end: int | None = None

    @classmethod
    def at(cls, id: int, n: int, info: StreamInfo, end: int | None = None) -> Position:
        """Return an empty batch at that place of a stream."""
        return cls(id, n, id, n, info.head_after(id), info.deleted, end)

    def to(self, id: int, n: int, info: StreamInfo) -> Position:
        """Return the batch of a stream that begins where this one ends."""
        end = self.end if id == self.id else None
        return Position(id, n, self.id, self.n, info.head_after(self.id), info.deleted, end)

    def counted_in(self, info: StreamInfo) -> Position:
        """Return this with what was deleted by name above ``id`` counted as if it had been read.

        That is known when nothing at or below ``id`` is left.
        """
        if info.has_up_to(self.id):
            return self
        return replace(self, n=max(self.n, info.removed))

    def lost(self, info: StreamInfo) -> int:
        """How many entries above ``id`` were trimmed."""
        return info.lost(self.id, self.n, self.head if self.is_empty else 0, self.deleted)

    def is_of(self, info: StreamInfo) -> bool:
        """Whether this can be a position in that stream: all of what was read was in it."""
        return not info.is_older_than(self.id if self.end is None else self.end, self.n)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.start == self.id


Positions = Mapping[Stream, Position]


def to_json(positions: Positions, settings: ServerSettings) -> dict[str, Any]:
    """Return the offset that Spark stores."""
    entries = {stream: _entry(position) for stream, position in positions.items()}
    return {"v": VERSION, "servers": by_server(entries, settings)}


def _entry(position: Position) -> dict[str, Any]:
    known = {"head": position.head or None, "deleted": position.deleted or None}
    return {
        "id": format_id(position.id),
        "n": position.n,
        "from": format_id(position.start),
        "n0": position.n0,
        **ids_to_json(**known, end=position.end),
    }


def by_server(entries: Mapping[Stream, Any], settings: ServerSettings) -> dict[str, Any]:
    """Return what there is of each stream by the label of its server and its name, in order."""
    servers: dict[str, dict[str, Any]] = {}
    for stream, entry in sorted(entries.items()):
        servers.setdefault(settings.label(stream.server), {})[name_of(stream.key)] = entry
    return servers


def ids_to_json(**ids: int | None) -> dict[str, str]:
    """Return the texts of IDs by their names, without those that are None."""
    return {name: format_id(id) for name, id in ids.items() if id is not None}


def from_json(
    offset: Mapping[str, Any], settings: ServerSettings, there: Iterable[Stream]
) -> dict[Stream, Position]:
    """Return the positions of an offset, of which ``there`` tells where the streams are now.

    Raises RedisStreamsError if the offset is not one of this mode, or if it names servers that
    are no longer in ``url`` and does not say clearly which stream is meant.
    """
    if offset.get("v") not in (1, VERSION) or "servers" not in offset or "q" in offset:
        raise RedisStreamsError(
            "the checkpoint was not written by mode 'offsets' of this source: use the mode it "
            "was written with, or a new checkpoint"
        )
    return {
        stream: _position(entry, offset["v"])
        for stream, entry in placed(offset["servers"], settings, there).items()
    }


def placed(
    servers: Mapping[str, Any], settings: ServerSettings, there: Iterable[Stream]
) -> dict[Stream, Any]:
    """Return what an offset says about each stream, of which ``there`` tells where they are now.

    Raises RedisStreamsError if it can't be said which stream is meant.
    """
    labels = {settings.label(server): server for server in range(len(settings.urls))}
    known = list(there)
    found: dict[Stream, Any] = {}
    for label, of_server in servers.items():
        for name, entry in of_server.items():
            stream = _place(labels.get(label), name, label, known, len(labels))
            if stream in found:
                raise RedisStreamsError(_unclear(name, "several servers of the checkpoint"))
            found[stream] = entry
    return found


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
    stream = shown(key_of(name))
    return f"stream '{stream}' of the checkpoint is on {where}: give the URLs it was written with"


def _position(entry: Mapping[str, Any], version: int) -> Position:
    return Position(
        parse_id(entry["id"]),
        entry["n"],
        parse_id(entry["from"]),
        entry["n0"],
        head=_id(entry, "head") or 0,
        deleted=None if version == 1 else _id(entry, "deleted") or 0,
        end=_id(entry, "end"),
    )


def _id(entry: Mapping[str, Any], name: str) -> int | None:
    return parse_id(entry[name]) if name in entry else None
