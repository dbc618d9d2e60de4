# Compiled by mypyc.
"""What ``order-by`` means: of the pending entries with the same value one at a time is delivered.

The pending entries with the same value form a lane, in ID order. Only the first of a lane may be
delivered, while none of the lane is in flight, that is, has an owner. Nearly always a lane is one
entry that is in flight, and is then no more than its ID.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from server.delivery.rules import Field


class Lane:
    """Pending entries with the same value: all of them, ascending, and those that are in flight."""

    __slots__ = ("flying", "ids")

    def __init__(self, ids: list[int], flying: set[int]) -> None:
        self.ids = ids
        self.flying = flying


class Lanes:
    """The lanes of a group, by the value of ``field``. Entries without it are in none of them."""

    __slots__ = ("_field", "_lanes", "_value_of")

    def __init__(self, field: Field) -> None:
        self._field = field
        self._lanes: dict[bytes, int | Lane] = {}
        self._value_of: dict[int, bytes] = {}

    def __contains__(self, identity: int) -> bool:
        return identity in self._value_of

    def enter(self, identity: int, payload: bytes, flies: bool) -> bool:
        """Puts a pending entry into its lane; whether it is alone there. One that is alone and
        ``flies`` is in flight."""
        value = self._field.value_in(payload)
        if value is None:
            return True
        lane = self._lanes.get(value)
        if lane is None:
            self._lanes[value] = identity if flies else Lane([identity], set())
            self._value_of[identity] = value
            return True
        if identity in self._value_of:
            return isinstance(lane, int) or len(lane.ids) == 1
        if isinstance(lane, int):
            lane = self._lanes[value] = Lane([lane], {lane})
        insort(lane.ids, identity)
        self._value_of[identity] = value
        return False

    def is_next(self, identity: int) -> bool:
        """Whether an entry that nobody has is the first of its lane, and nobody has another one."""
        lane = self._lane_of(identity)
        if lane is None:
            return True
        return not isinstance(lane, int) and lane.ids[0] == identity and not lane.flying

    def next_instead(self, identity: int) -> int | None:
        """The entry of the same lane that may be delivered, if it is another one."""
        lane = self._lane_of(identity)
        if lane is None or isinstance(lane, int) or lane.flying or lane.ids[0] == identity:
            return None
        return lane.ids[0]

    def take_off(self, identities: Sequence[int]) -> None:
        """Entries are in flight: consumers have them."""
        for identity in identities:
            lane = self._lane_of(identity)
            if lane is not None and not isinstance(lane, int):
                lane.flying.add(identity)

    def land(self, identity: int) -> None:
        """An entry is in flight no more, and pending still."""
        lane = self._lane_of(identity)
        if isinstance(lane, int):
            self._lanes[self._value_of[identity]] = Lane([lane], set())
        elif lane is not None:
            lane.flying.discard(identity)

    def leave(self, identities: Sequence[int]) -> list[int]:
        """Entries are pending no more; returns those that may be delivered because of that."""
        lanes, value_of = self._lanes, self._value_of
        freed: list[int] = []
        for identity in identities:
            value = value_of.pop(identity, None)
            if value is None:
                continue
            lane = lanes[value]
            if isinstance(lane, int) or len(lane.ids) == 1:
                del lanes[value]
                continue
            del lane.ids[bisect_left(lane.ids, identity)]
            lane.flying.discard(identity)
            freed.append(lane.ids[0])
        return freed

    def _lane_of(self, identity: int) -> int | Lane | None:
        value = self._value_of.get(identity)
        return None if value is None else self._lanes[value]
