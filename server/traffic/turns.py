"""Turns: no client's requests keep the event loop for long.

What a read brought is answered at once, for up to a share of time. A client with more than that is
not read from for the time being, and goes on in later turns of the loop: one after the other, so
that the clients with much to do share what others leave of the time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from server.runtime.clockwork import EndOfRound, Slice

SHARE_NS: Final = 2_000_000
"""How long a client's requests run at most before others have their turn."""
SMALL_SHARE_NS: Final = 200_000
"""The same for what has just been read, while there are clients that wait for their turn."""
TURN_NS: Final = 4_000_000
"""How long the clients that wait for it go on within one turn of the loop."""

FULL_READ: Final = 256_000
"""The most that uvloop reads at once. Where there is as much, it reads again and again, up to 32
times, before anything else has its turn. A client that has sent so much waits for its own turn if
its requests took longer than :data:`SMALL_SHARE_NS`, although nothing is left to be done."""

now_ns = time.perf_counter_ns
"""The clock of turns."""


class Turns:
    """The clients whose requests go on in the next turn of the event loop, first come first served.

    ``share_ns`` is how long the requests of a client may run that has just been read from.
    ``cycles`` counts how often the event loop has called for a client's requests or for periodic
    work, and ``nanoseconds`` how long that took, up to the end of the last command.
    """

    def __init__(self, share_ns: int = SHARE_NS) -> None:
        self._waiting: deque[Callable[[int], None]] = deque()
        self._next_turn = EndOfRound(self._run)
        self._full_share_ns = share_ns
        self.share_ns = share_ns
        self.cycles = 0
        self.nanoseconds = 0

    def add(self, go_on: Callable[[int], None]) -> None:
        """Lets a client go on later; ``go_on`` takes for how many nanoseconds it may."""
        self._waiting.append(go_on)
        self.share_ns = min(SMALL_SHARE_NS, self._full_share_ns)
        self._next_turn.schedule()

    def _run(self) -> None:
        """Runs one turn: each client goes on once at most."""
        turn = Slice(TURN_NS)
        try:
            for _ in range(len(self._waiting)):
                self._waiting.popleft()(self._full_share_ns)
                if turn.is_over:
                    break
        finally:
            if self._waiting:
                self._next_turn.schedule()
            else:
                self.share_ns = self._full_share_ns

    def count(self, started: int) -> None:
        """Counts one call of the loop, which began at ``started`` and ends now."""
        self.cycles += 1
        self.nanoseconds += now_ns() - started

    def forget_counts(self) -> None:
        """Sets the counters to zero."""
        self.cycles = self.nanoseconds = 0
