"""Idempotent producing: maps a producer's (pid) idempotent IDs (iid) to entries.

Records expire after the stream's duration, and earlier if a producer has more of them than the
stream's maxsize (https://redis.io/docs/latest/commands/xadd/, since Redis 8.6).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from storage.errors import IdempotentIDTaken


class Record(NamedTuple):
    """The entry that an idempotent ID stands for, and when that was recorded (Unix ms)."""

    id: int
    time: int


def content_iid(items: Sequence[bytes]) -> bytes:
    """An idempotent ID made of fields and values, whatever the order of the pairs (IDMPAUTO)."""
    pairs = sorted(zip(items[::2], items[1::2], strict=True))
    digest = blake2b(digest_size=16)
    for name, value in pairs:
        digest.update(b"%d %d " % (len(name), len(value)))
        digest.update(name)
        digest.update(value)
    return digest.digest()


class IdempotencyTable:
    """The records of one stream; ``duration`` in seconds, ``maxsize`` in records a producer."""

    __slots__ = ("_order", "_producers", "added", "duplicates", "duration", "maxsize", "tracked")

    def __init__(self, duration: int, maxsize: int) -> None:
        self.duration = duration
        self.maxsize = maxsize
        self.added = 0
        self.duplicates = 0
        self.tracked = 0
        """How many records there are."""
        self._producers: dict[bytes, dict[bytes, Record]] = {}
        self._order: deque[tuple[int, bytes, bytes]] = deque()

    def forget_old(self, due_ms: int) -> None:
        """Removes records that have expired where things are due up to this time."""
        oldest = due_ms - 1000 * self.duration
        while self._order and self._order[0][0] <= oldest:
            time, producer, iid = self._order.popleft()
            record = self._producers.get(producer, {}).get(iid)
            if record is not None and record.time == time:
                self._drop(producer, iid)

    def _drop(self, producer: bytes, iid: bytes) -> None:
        records = self._producers[producer]
        del records[iid]
        self.tracked -= 1
        if not records:
            del self._producers[producer]

    def find(self, producer: bytes, iid: bytes, due_ms: int) -> int | None:
        """The ID of the entry recorded for an idempotent ID, or ``None``, once what has expired is
        forgotten."""
        self.forget_old(due_ms)
        record = self._producers.get(producer, {}).get(iid)
        return None if record is None else record.id

    def record(
        self, producer: bytes, iid: bytes, entry_id: int, now: int, due_ms: int | None = None
    ) -> bool:
        """Records the entry of an idempotent ID; false if that is recorded already. What has
        expired is forgotten first: up to ``now``, unless things are due up to another time.

        Raises :class:`IdempotentIDTaken` if it is recorded for another entry.
        """
        known = self.find(producer, iid, now if due_ms is None else due_ms)
        if known is not None:
            if known != entry_id:
                raise IdempotentIDTaken
            return False
        records = self._producers.setdefault(producer, {})
        if len(records) >= self.maxsize:
            del records[next(iter(records))]
            self.tracked -= 1
        records[iid] = Record(entry_id, now)
        self.tracked += 1
        self._order.append((now, producer, iid))
        self.added += 1
        self._compact()
        return True

    def _compact(self) -> None:
        """Removes outdated items from the queue, since maxsize drops records before they expire."""
        if len(self._order) > 2 * self.tracked + 64:
            live = self._producers
            self._order = deque(
                item
                for item in self._order
                if (known := live.get(item[1], {}).get(item[2])) and known.time == item[0]
            )

    def configure(self, duration: int, maxsize: int) -> bool:
        """Sets the retention; true if it changed, which removes every record."""
        if (duration, maxsize) == (self.duration, self.maxsize):
            return False
        self.duration = duration
        self.maxsize = maxsize
        self.tracked = 0
        self._producers.clear()
        self._order.clear()
        return True

    @property
    def producers(self) -> int:
        """How many producers have records."""
        return len(self._producers)

    def records(self) -> dict[bytes, dict[bytes, Record]]:
        """The records by producer and idempotent ID; not to be changed."""
        return self._producers

    def copy(self) -> IdempotencyTable:
        """An equal, independent table."""
        twin = IdempotencyTable(self.duration, self.maxsize)
        twin.added, twin.duplicates = self.added, self.duplicates
        twin.tracked = self.tracked
        twin._producers = {name: dict(records) for name, records in self._producers.items()}
        twin._order = deque(self._order)
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        assert self.tracked == sum(map(len, self._producers.values()))
        queued = {(producer, iid): time for time, producer, iid in self._order}
        for producer, records in self._producers.items():
            assert 0 < len(records) <= self.maxsize
            for iid, record in records.items():
                assert queued[producer, iid] == record.time
