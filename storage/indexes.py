"""Indexes of the keys of a database: by the time at which they expire, and for SCAN.

SCAN's is a linear hash table whose cursors stay valid while keys come and go.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

_SPARE: Final = 64
"""How many outdated items a queue may always hold, even if few keys expire."""

LOAD: Final = 8
"""How many keys a bucket holds on average, at most."""

_BITS: Final = 52
_POSITIONS: Final = 2**_BITS
"""Positions fit in a double, as some clients keep their cursors in one."""

_REVERSED: Final = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]

Bucket = tuple[bytes, ...]


class ExpiryQueue:
    """The keys of ``times`` in the order in which they expire.

    ``times`` holds the time at which each key expires. The caller owns it, pushes every time that
    is set there, and need not report removals: an item that differs from ``times`` is outdated
    and skipped. Outdated items are removed before they outnumber the others.
    """

    __slots__ = ("_heap", "_times")

    def __init__(self, times: dict[bytes, int]) -> None:
        self._times = times
        self._heap: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, at: int, key: bytes) -> None:
        """Adds a key that expires at ``at``, as ``times`` says."""
        heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._times) + _SPARE:
            self._heap = [(at, key) for key, at in self._times.items()]
            heapify(self._heap)

    def due(self, due_ms: int, most: int) -> Iterator[bytes]:
        """Removes up to ``most`` due items from the queue; yields the keys that have expired, which
        is up to ``due_ms``, each once."""
        heap = self._heap
        for _ in range(most):
            if not heap or heap[0][0] > due_ms:
                return
            at, key = heappop(heap)
            # A time that was set twice is there twice, one behind the other.
            if self._times.get(key) == at and not (heap and heap[0] == (at, key)):
                yield key

    def overdue(self, due_ms: int) -> Iterator[bytes]:
        """The keys that have expired, which stay in the queue; visits only due items."""
        heap = self._heap
        places = [0]
        while places:
            place = places.pop()
            if place < len(heap) and heap[place][0] <= due_ms:
                at, key = heap[place]
                if self._times.get(key) == at:
                    yield key
                places += (2 * place + 1, 2 * place + 2)

    @property
    def first(self) -> int:
        """A time before which nothing expires; -1 if nothing ever does."""
        return self._heap[0][0] if self._heap else -1

    @property
    def parts(self) -> list[list[tuple[int, bytes]]]:
        """The queue's containers, to be freed when it is no longer used."""
        return [self._heap]

    def check(self) -> None:
        """Verifies that every key that expires is in the queue, and that the queue is bounded."""
        heap = self._heap
        assert {(at, key) for key, at in self._times.items()} <= set(heap)
        assert all(heap[(i - 1) // 2] <= heap[i] for i in range(1, len(heap)))


def _turned(bits: int) -> int:
    """The lowest 52 bits in reverse order."""
    turned = 0
    for _ in range(7):
        turned = turned << 8 | _REVERSED[bits & 255]
        bits >>= 8
    return turned >> 4 & _POSITIONS - 1


def position(key: bytes) -> int:
    """The key's position in a scan, which does not depend on other keys: the reversed bits of its
    hash, so that the keys of a bucket are neighbours."""
    return _turned(hash(key) & _POSITIONS - 1)


class ScanIndex:
    """Keys in buckets by the lowest bits of their hashes (linear hashing).

    When the load is high one bucket is split in two, when it is low two are merged, so every
    insertion and removal costs about the same. A bucket is a range of positions, and splitting it
    divides the range. A cursor is a position, so a scan needs no state here: it returns each key
    that exists throughout the scan exactly once, and a key added or removed meanwhile at most
    once.

    Buckets are tuples: they take less memory than lists, and a copy of the list of buckets is a
    snapshot of all keys. There are at first as many as ``room`` keys need.
    """

    __slots__ = ("_buckets", "_half", "_length", "_split")

    def __init__(self, keys: Iterable[bytes] = (), room: int = 0) -> None:
        held = list(keys)
        count = max(1, -(-max(len(held), room) // LOAD))
        self._half = 1 << count.bit_length() - 1
        """The highest power of two that is not above the number of buckets."""
        self._split = count - self._half
        """How many buckets, from the first on, have been split since there were ``_half``."""
        self._length = len(held)
        self._buckets: list[Bucket] = self._distributed(held, count) if held else [()] * count

    def _distributed(self, keys: list[bytes], count: int) -> list[Bucket]:
        buckets: list[list[bytes]] = [[] for _ in range(count)]
        for key in keys:
            buckets[self._bucket_of(hash(key))].append(key)
        return list(map(tuple, buckets))

    def __contains__(self, key: bytes) -> bool:
        return key in self._buckets[self._bucket_of(hash(key))]

    def __len__(self) -> int:
        return self._length

    def _bucket_of(self, hashed: int) -> int:
        """The bucket of the keys that have this hash."""
        at = hashed & self._half - 1
        return hashed & 2 * self._half - 1 if at < self._split else at

    def add(self, key: bytes) -> None:
        """Adds a key that is not in the index."""
        hashed = hash(key)
        half = self._half
        at = hashed & half - 1
        if at < self._split:
            at = hashed & 2 * half - 1
        self._buckets[at] += (key,)
        self._length += 1
        if self._length > LOAD * len(self._buckets):
            self._grow()

    def discard(self, key: bytes) -> None:
        """Removes the key, if it is in the index."""
        at = self._bucket_of(hash(key))
        bucket = self._buckets[at]
        try:
            place = bucket.index(key)
        except ValueError:
            return
        self._buckets[at] = bucket[:place] + bucket[place + 1 :]
        self._length -= 1
        if self._is_sparse:
            self._shrink()

    def fit(self) -> None:
        """Merges buckets while there are too many for the keys."""
        while self._is_sparse:
            self._shrink()

    @property
    def _is_sparse(self) -> bool:
        return self._length < LOAD // 4 * len(self._buckets) and len(self._buckets) > 1

    def _grow(self) -> None:
        """Splits the next bucket in two."""
        half, at = self._half, self._split
        bucket = self._buckets[at]
        self._buckets[at] = tuple([key for key in bucket if not hash(key) & half])
        self._buckets.append(tuple([key for key in bucket if hash(key) & half]))
        self._split += 1
        if self._split == half:
            self._half, self._split = 2 * half, 0

    def _shrink(self) -> None:
        """Merges the two buckets that were split last."""
        if self._split == 0:
            self._half //= 2
            self._split = self._half
        self._split -= 1
        self._buckets[self._split] += self._buckets.pop()

    # --- walking --------------------------------------------------------------------------

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About ``count`` keys from ``cursor`` on, and the cursor of what follows (0: nothing)."""
        page: list[bytes] = []
        while cursor < _POSITIONS and len(page) < count:
            start, following, bucket = self._range_at(cursor)
            page += bucket if start == cursor else [k for k in bucket if position(k) >= cursor]
            cursor = following
        return (cursor if cursor < _POSITIONS else 0), page

    def _range_at(self, cursor: int) -> tuple[int, int, Bucket]:
        """The bucket whose range contains a position, and the start and end of the range."""
        at = self._bucket_of(_turned(cursor))
        whole = at >= self._split and at < self._half
        width = _POSITIONS // (self._half if whole else 2 * self._half)
        start = cursor // width * width
        return start, start + width, self._buckets[at]

    def buckets(self) -> Sequence[Bucket]:
        """A snapshot of all keys, in pieces, unaffected by later changes."""
        return self._buckets[:]

    @property
    def parts(self) -> list[list[Bucket]]:
        """The index's containers, to be freed when it is no longer used."""
        return [self._buckets]

    def __iter__(self) -> Iterator[bytes]:
        for bucket in self._buckets:
            yield from bucket

    def random(self) -> bytes | None:
        """A random key, uniformly as long as no bucket is four times as full as the average;
        ``None`` if there is none."""
        while self._length:
            bucket = random.choice(self._buckets)
            if random.randrange(4 * LOAD) < len(bucket):
                return random.choice(bucket)
        return None

    def check(self, keys: Collection[bytes]) -> None:
        """Verifies the invariants of the index, and that it holds exactly ``keys``."""
        held = list(self)
        assert len(held) == self._length == len(keys)
        assert set(held) == set(keys)
        assert len(self._buckets) == self._half + self._split
        assert 0 <= self._split < self._half
        for at, bucket in enumerate(self._buckets):
            assert all(self._bucket_of(hash(key)) == at for key in bucket)
        assert self._length <= LOAD * len(self._buckets)
        assert len(self._buckets) == 1 or self._length >= LOAD // 4 * len(self._buckets)
