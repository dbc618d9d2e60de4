# Compiled by mypyc.
"""An index of keys by expiry time."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

_SPARE: Final = 64
"""How many outdated items a queue may always hold, even if few keys expire."""


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

    def due(self, now_ms: int, most: int) -> Iterator[bytes]:
        """Removes up to ``most`` due items from the queue; yields the keys that have expired."""
        heap = self._heap
        for _ in range(most):
            if not heap or heap[0][0] > now_ms:
                return
            at, key = heappop(heap)
            if self._times.get(key) == at:
                yield key

    def overdue(self, now_ms: int) -> Iterator[bytes]:
        """The keys that have expired, which stay in the queue; visits only due items."""
        heap = self._heap
        places = [0]
        while places:
            place = places.pop()
            if place < len(heap) and heap[place][0] <= now_ms:
                at, key = heap[place]
                if self._times.get(key) == at:
                    yield key
                places += (2 * place + 1, 2 * place + 2)

    @property
    def parts(self) -> list[list[tuple[int, bytes]]]:
        """The queue's containers, to be freed when it is no longer used."""
        return [self._heap]

    def check(self) -> None:
        """Verifies that every key that expires is in the queue, and that the queue is bounded."""
        heap = self._heap
        assert {(at, key) for key, at in self._times.items()} <= set(heap)
        assert all(heap[(i - 1) // 2] <= heap[i] for i in range(1, len(heap)))
