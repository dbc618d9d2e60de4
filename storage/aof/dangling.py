"""Pending entries that the stream does not have any more, and how other servers get them.

No command makes an entry pending that is not there. So each of them gets a placeholder in the
stream, which is claimed and then removed in a way that leaves no trace in the counters. Penstock
takes a claim in a file of its own as it is, and passes over the placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from storage import ids
from storage.aof import extension_records as own
from storage.aof.commands import command, id_text, number
from storage.aof.encode_strings import set_position
from storage.pending import PendingList
from storage.stream import Stream

BEYOND: Final = ids.MAX + 1
"""Above every ID."""

_AT_ONCE: Final = 500


class Dangling:
    """The dangling references to entries of the stream at ``key``."""

    __slots__ = ("_identities", "_key", "_stream", "_written")

    def __init__(self, key: bytes, stream: Stream) -> None:
        self._key = key
        self._stream = stream
        missing: set[int] = set()
        for group in stream.groups.values():
            missing.update(_missing(stream, group.pending))
        self._identities = sorted(missing)
        self._written = 0

    @property
    def next(self) -> int:
        """The ID of the next placeholder, :data:`BEYOND` if there is none."""
        if self._written == len(self._identities):
            return BEYOND
        return self._identities[self._written]

    def placeholders(self, below: int) -> Iterator[bytes]:
        """The placeholders below an ID that have not been written yet."""
        adding: list[bytes] = []
        while self.next < below:
            words = (id_text(self.next), b"x", b"y")
            adding.append(command(b"XADD", self._key, *words))
            self._written += 1
        if adding:
            yield own.skip(len(adding))
            yield from adding

    def position(self) -> bytes:
        """The XSETID while the placeholders are there: they count as entries that were added."""
        stream = self._stream
        added = max(stream.entries_added, stream.log.length + self._written)
        return set_position(self._key, stream.last_id, added, stream.max_deleted_id)

    def removal(self) -> Iterator[bytes]:
        """What removes the placeholders.

        A trimming leaves max-deleted-entry-id as it is; a deletion, which it takes between entries
        that are there, does not, but XSETID sets it again."""
        if not self._written:
            return
        stream, log = self._stream, self._stream.log
        between = [identity for identity in self._identities if log.first < identity]
        if log.length and between:
            yield command(b"XDEL", self._key, *map(id_text, between))
        yield command(b"XTRIM", self._key, b"MAXLEN", b"=", number(log.length))
        yield set_position(self._key, stream.last_id, stream.entries_added, stream.max_deleted_id)


def _missing(stream: Stream, pending: PendingList) -> Iterator[int]:
    """The IDs that the stream does not have. One above its last-generated-id, which XSETID may
    have lowered, is left out: other servers cannot hold it."""
    start = ids.MIN
    while True:
        wanted = pending.columns(start, stream.last_id, _AT_ONCE).ids
        if not wanted:
            return
        payloads = stream.log.get_many(wanted)
        for identity, payload in zip(wanted, payloads, strict=True):
            if payload is None:
                yield identity
        start = wanted[-1] + 1
