# Compiled by mypyc.
"""Seen-times and active-times of consumers that are not in the append-only file yet.

Every poll of a consumer changes its seen-time. Writing each change would make up most of the file;
the latest time of each consumer is kept here and written periodically.
"""

from __future__ import annotations

from collections.abc import Iterator

Place = tuple[int, bytes, bytes]
"""A database's index, a key, and the name of a group."""


class SeenTimes:
    """The seen-time and active-time of consumers, in Unix milliseconds, by group."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[Place, dict[bytes, tuple[int, int]]] = {}

    def note(self, place: Place, consumer: bytes, seen: int, active: int) -> None:
        """The consumer was last seen and active at these times."""
        consumers = self._groups.get(place)
        if consumers is None:
            consumers = self._groups[place] = {}
        consumers[consumer] = (seen, active)

    def forget(self, place: Place, consumer: bytes) -> None:
        """The file says it by itself."""
        consumers = self._groups.get(place)
        if consumers is not None:
            consumers.pop(consumer, None)

    def take(self) -> Iterator[tuple[Place, list[tuple[bytes, int, int]]]]:
        """What has been noted, by group: name, seen-time and active-time. It is then forgotten."""
        groups, self._groups = self._groups, {}
        for place, consumers in groups.items():
            if consumers:
                yield place, [(name, seen, active) for name, (seen, active) in consumers.items()]
