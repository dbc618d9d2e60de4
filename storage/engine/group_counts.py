"""What is counted of a group for those who look after it; it is not kept, and begins with the
server."""

from __future__ import annotations

from collections import deque
from typing import Final

_MINUTE_MS: Final = 60_000
LATELY_MINUTES: Final = 10
"""For how many minutes it is known what was counted in each of them."""


class Lately:
    """A count of the last ten minutes: of the present one, and of the nine before it."""

    __slots__ = ("_counts", "_minutes")

    def __init__(self) -> None:
        self._minutes: deque[int] = deque(maxlen=LATELY_MINUTES)
        self._counts: deque[int] = deque(maxlen=LATELY_MINUTES)

    def add(self, count: int, now: int) -> None:
        """Counts what happens at ``now``, in Unix milliseconds."""
        minute = now // _MINUTE_MS
        if not self._minutes or self._minutes[-1] < minute:
            self._minutes.append(minute)
            self._counts.append(0)
        self._counts[-1] += count

    def total(self, now: int) -> int:
        """Return how many that were in the ten minutes up to ``now``."""
        after = now // _MINUTE_MS - LATELY_MINUTES
        pairs = zip(self._minutes, self._counts, strict=True)
        return sum([count for minute, count in pairs if minute > after])


class GroupCounts:
    """What policies of a group have done since it is in memory: ``bad_delays`` counts entries whose
    field for a delay held no time, ``bad_delay`` is the ID of the last of them with what it held,
    and ``letters`` are the dead letters by their reasons."""

    __slots__ = ("bad_delay", "bad_delays", "letters", "letters_lately")

    def __init__(self) -> None:
        self.bad_delays = 0
        self.bad_delay: tuple[int, bytes] | None = None
        self.letters: dict[bytes, int] = {}
        self.letters_lately = Lately()

    def bury(self, reason: bytes, count: int, now: int) -> None:
        """Count dead letters."""
        self.letters[reason] = self.letters.get(reason, 0) + count
        self.letters_lately.add(count, now)


NOTHING_COUNTED: Final = GroupCounts()
"""What groups share of which policies have done nothing; nothing is ever added to it."""
