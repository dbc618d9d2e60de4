"""What happened lately to consumer groups, for those who look after them: a few lines, newest last.

A group is paused or resumed, its position is moved, consumers leave it, entries become dead letters
or come back. What happens again within a minute to the same group, by the same user, is one line
with a count. Nothing of it is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

PAUSED: Final = "paused"
RESUMED: Final = "resumed"
MOVED: Final = "moved"
LEFT: Final = "left"
BURIED: Final = "buried"
REDRIVEN: Final = "redriven"

HAPPENINGS_KEPT: Final = 100
"""How many of them are remembered."""

TOGETHER_MS: Final = 60_000
"""What happens again within this time is counted."""


class Happening(NamedTuple):
    """``number`` times or things since ``time``, in Unix milliseconds. ``group`` is empty where it
    is all groups of the stream, and ``user`` where it was a policy that acted."""

    time: int
    kind: str
    db: int
    key: bytes
    group: bytes
    user: bytes = b""
    number: int = 1


class Happenings:
    """The last :data:`HAPPENINGS_KEPT` of them."""

    def __init__(self) -> None:
        self._ring: deque[Happening] = deque(maxlen=HAPPENINGS_KEPT)

    def __iter__(self) -> Iterator[Happening]:
        """The oldest comes first."""
        return iter(self._ring)

    def forget(self) -> None:
        """Forgets them all."""
        self._ring.clear()

    def note(self, new: Happening) -> None:
        """Adds one, or counts it with one like it that is not old."""
        ring = self._ring
        for at in range(len(ring) - 1, -1, -1):
            old = ring[at]
            if new.time - old.time >= TOGETHER_MS:
                break
            if old[1:-1] == new[1:-1]:
                ring[at] = old._replace(number=old.number + new.number)
                return
        ring.append(new)
