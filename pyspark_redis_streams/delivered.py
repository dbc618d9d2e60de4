"""The IDs of a batch of mode ``group`` that the driver has just had delivered."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_redis_streams.stream_info import Stream


class Delivered:
    """What the replies have said, so that it need not be asked for again.

    Only the batch that was made last is remembered, and nothing of it after a restart.
    """

    def __init__(self) -> None:
        self._batch = 0
        self._ids: dict[Stream, list[bytes]] = {}
        self._mixed: set[Stream] = set()

    def begin(self, batch: int) -> None:
        """Forgets the batch of before."""
        self._batch = batch
        self._ids = {}
        self._mixed = set()

    def mix(self, stream: Stream) -> None:
        """Tells that the batch holds others of a stream, too, whose IDs are not known."""
        self._mixed.add(stream)

    def add(self, stream: Stream, ids: Sequence[bytes]) -> None:
        """Remembers entries of the batch."""
        self._ids.setdefault(stream, []).extend(ids)

    def all_of(self, stream: Stream, batch: int, pending: int) -> Sequence[bytes] | None:
        """The IDs of what a batch has pending, if these are all that there are.

        ``pending`` is how many the server says that there are: fewer when others have claimed some.
        """
        ids = self._ids.get(stream, [])
        known = batch == self._batch and stream not in self._mixed
        return ids if known and ids and len(ids) == pending else None
