"""The offset of mode ``group``, as the checkpoint holds it.

::

    {"v": 2, "q": "name", "n": 7, "servers": {"": {"orders":
        {"id": "5-0", "n": 12, "from": "3-0", "n0": 10, "count": 2}}}}

Batch 7 is what is pending for the consumer ``name-7``: ``count`` entries of each stream. ``id`` and
``n`` say where the group stood when the batch had been delivered, ``from`` and ``n0`` where it
stood before; ``n`` is null where nobody knows how many entries it had passed. Where the group
stands elsewhere, or is not there any more, these places count.

A batch is repeatable because its entries stay pending for a consumer of its own until Spark asks
for the batch after it: they are read from the pending entries list, and nobody is given them again.

``head``, ``deleted`` and ``end`` are as in :mod:`pyspark_redis_streams.offsets.positions`. Where
``n`` is null, ``head`` is the first entry above ``id``, whatever lies below, and ``removed`` how
many entries the stream had lost by then: as long as that entry is there, none above ``id`` was
trimmed.
``counted`` is false where the server had no number of its own. ``shared`` says that the group has
had other consumers, which may have moved it. Version 1, which is still read, held ``q`` and ``n``
only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.offsets.positions import Position, by_server, ids_to_json, placed
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.streams import Group, Stream, StreamInfo, place_of

VERSION = 2


@dataclass(frozen=True)
class GroupPosition:
    """Where the group stood in a stream after a batch and before it, and the batch's entries."""

    id: int
    n: int | None
    start: int
    n0: int | None
    count: int = 0
    head: int = 0
    deleted: int = 0
    removed: int | None = None
    end: int | None = None
    counted: bool = True
    shared: bool = False

    @classmethod
    def of(
        cls,
        info: StreamInfo,
        group: Group,
        known: GroupPosition | None = None,
        unread: int | None = None,
        delivered: int = 0,
    ) -> GroupPosition:
        """Return where a group stands now, with an empty batch; ``known`` is what was known before.

        ``unread`` is the first entry above that, 0 if there is none, and None if it was not asked,
        as it is known how many entries the group has passed. So many were ``delivered`` since
        then, at least. A place that others have set beyond the end counts as the end: what comes up
        to there is given to nobody.
        """
        id, read = place_of(group)
        known = known or cls(id, read, id, read)
        if id != known.id:
            id = min(id, max(info.last, known.id))
        n = known.number_at(id, read, delivered) if id != info.last else info.added
        head, removed = info.head_after(id), None
        if n is None and unread is not None:
            n, head, removed = (None, unread, info.removed) if unread else (info.added, 0, None)
        return cls(
            *(id, n, id, n, 0, head, info.deleted, removed),
            end=known.end if id == known.id else None,
            counted=read is not None,
            shared=known.shared,
        )

    def is_at(self, id: int) -> bool:
        """Whether an ID is the same place: there was no entry between."""
        return self.id == id or self.id < id < self.head

    def number_at(self, id: int, read: int | None, delivered: int) -> int | None:
        """How many entries lie up to an ID, of which the server says that it is number ``read``.

        A server believes what it has been told (ENTRIESREAD), and Redis 7.0 does not count what was
        trimmed before it was delivered.
        """
        if self.is_at(id) and self.n is not None:
            return self.n
        return None if read is None else max(read, (self.n or 0) + delivered)

    @property
    def place(self) -> Position:
        """The position in the stream where the group stood, with the least number it can have."""
        n = self.n or 0
        return Position(self.id, n, self.id, n, self.head, self.deleted, self.end)

    def moved(self, place: Position) -> GroupPosition:
        """Return an empty batch at ``place``, of a stream of which other things are known now."""
        return GroupPosition(
            *(place.id, place.n, place.id, place.n, 0, place.head, place.deleted or 0),
            end=place.end,
            counted=self.counted,
            shared=self.shared,
        )

    def lost(self, info: StreamInfo, known: GroupPosition | None) -> int:
        """How many entries above ``id`` were trimmed, as far as that can be told.

        ``known`` is what was known before. Where nobody has counted, what was trimmed up to ``id``
        since then counts, too; a group that others have moved on has lost nothing that can be told.
        """
        if self.end is not None:
            return 0
        if known is None or not known.is_at(self.id):
            return 0 if self.n is None else info.lost(self.id, self.n)
        read = known.removed if self.n is None else self.n
        return 0 if read is None else info.lost(self.id, read, known.head, known.deleted)

    def after(self, before: GroupPosition, count: int) -> GroupPosition:
        """Return the end of a batch of ``count`` entries that began at ``before``."""
        return replace(self, start=before.id, n0=before.n, count=count)


@dataclass(frozen=True)
class GroupOffset:
    """A batch by its number; ``positions`` is None if the checkpoint is too old to tell."""

    batch: int
    positions: Mapping[Stream, GroupPosition] | None

    def to_json(self, settings: ReadSettings) -> dict[str, Any]:
        """Return the offset that Spark stores."""
        entries = {stream: _entry(each) for stream, each in (self.positions or {}).items()}
        servers = by_server(entries, settings.servers)
        return {"v": VERSION, "q": settings.consumer, "n": self.batch, "servers": servers}

    @classmethod
    def from_json(
        cls, offset: Mapping[str, Any], settings: ReadSettings, there: Iterable[Stream]
    ) -> GroupOffset:
        """Return the offset of a checkpoint, of which ``there`` tells where the streams are now.

        Raises RedisStreamsError if it is of the other mode or another consumer.
        """
        if "q" not in offset or offset.get("v", 1) not in (1, VERSION):
            raise RedisStreamsError(
                "the checkpoint was not written by mode 'group' of this source: use the mode it "
                "was written with, or a new checkpoint"
            )
        if offset["q"] != settings.consumer:
            raise RedisStreamsError(
                f"the checkpoint belongs to consumerName '{offset['q']}', not to "
                f"'{settings.consumer}': entries may be pending for it"
            )
        if "servers" not in offset:
            return cls(int(offset["n"]), None)
        found = placed(offset["servers"], settings.servers, there)
        return cls(int(offset["n"]), {s: _position(entry) for s, entry in found.items()})


def _entry(position: GroupPosition) -> dict[str, Any]:
    known = {"head": position.head or None, "deleted": position.deleted or None}
    return {
        "id": format_id(position.id),
        "n": position.n,
        "from": format_id(position.start),
        "n0": position.n0,
        "count": position.count,
        **ids_to_json(**known, end=position.end),
        **({} if position.removed is None else {"removed": position.removed}),
        **({} if position.counted else {"counted": False}),
        **({"shared": True} if position.shared else {}),
    }


def _position(entry: Mapping[str, Any]) -> GroupPosition:
    return GroupPosition(
        *(parse_id(entry["id"]), entry["n"], parse_id(entry["from"]), entry["n0"]),
        count=entry["count"],
        head=parse_id(entry.get("head", "0-0")),
        deleted=parse_id(entry.get("deleted", "0-0")),
        removed=entry.get("removed"),
        end=parse_id(entry["end"]) if "end" in entry else None,
        counted=entry.get("counted", entry["n"] is not None),
        shared=entry.get("shared", False),
    )
