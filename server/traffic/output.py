"""Output of connections: kept until the round of the event loop ends, and limited.

**The idea.** A client that is idle has to be woken when its reply is sent, which costs the server
more than all else in sending it. Replies that leave one right behind the other find a client that
serves many connections awake already. So where several connections are served in a round, what
they are to get is kept until all of them have been, as Redis does before it waits for events.

**When.** Keeping costs a call of the loop for each round, which is lost on a client that is alone.
Therefore output is sent directly, but for one in :data:`DIRECT`: that one is kept, and what else
comes in its round. If at least :data:`FEW` connections had something, so does every round from then
on, until one has less.

**Messages.** What a client gets without having asked waits for the end of the round however many
have such output: each further event of the round goes to all of them, in the same write.

**Limits.** :class:`OutputLimits` says when more has piled up for a client that does not read than
``client-output-buffer-limit`` allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from server.config.types import Limits
from server.runtime.clockwork import EndOfRound
from server.traffic.turns import Turns

DIRECT: Final = 64
"""How many pieces of output are sent directly before a round is looked at again."""
FEW: Final = 3
"""Fewer connections than this in a round do not pay for the call at its end."""
MAX_KEEPERS: Final = 64
"""How many connections keep their output until the end of the round: where there are so many, it is
sent at once."""
PATIENCE_NS: Final = 1_000_000
"""Neither is output that has waited while requests of others took as long as this."""
LARGEST: Final = 4096
"""Only up to so many bytes are kept for a connection; sending more takes longer than waking."""


class Keeper(Protocol):
    """What keeps output: a connection."""

    def send_kept(self) -> None:
        """Sends it, if the connection is still there."""


class RoundOutput:
    """Who has kept output in the present round of the loop.

    ``direct`` counts down: while it is above zero, connections send at once, and take one off."""

    def __init__(self, turns: Turns) -> None:
        self.direct = DIRECT
        self._turns = turns
        self._keepers: list[Keeper] = []
        self._listeners: list[Keeper] = []
        """Those whose output began with a message."""
        self._sent = 0
        self._round = EndOfRound(self._end_round)
        self._until_ns = 0

    def add(self, keeper: Keeper, is_message: bool = False) -> None:
        """Lets a connection send what it keeps at the end of the round, or before that if many
        have something, unless it is a message."""
        self._round.schedule()
        if is_message:
            self._listeners.append(keeper)
            return
        keepers = self._keepers
        if not keepers:
            self._until_ns = self._turns.nanoseconds + PATIENCE_NS
        keepers.append(keeper)
        if len(keepers) >= MAX_KEEPERS or self._turns.nanoseconds > self._until_ns:
            self._send()

    def _send(self) -> None:
        keepers, self._keepers = self._keepers, []
        self._sent += len(keepers)
        for keeper in keepers:
            keeper.send_kept()

    def _end_round(self) -> None:
        """Sends what is left, and judges whether to go on like this."""
        self._keepers += self._listeners
        self._listeners = []
        self._send()
        if self._sent < FEW:
            self.direct = DIRECT
        self._sent = 0


class Limited(Protocol):
    """What output may pile up for: a connection, or a replica."""

    def check_output(self, more: int = 0) -> bool:
        """Cuts the client off if too much waits for it; whether it was."""


class OutputLimits:
    """The limits of each class of clients. ``clock`` gives milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._limits: dict[str, Limits] = {}
        self._above: dict[Limited, int] = {}
        self.normal = False
        """Whether there is a limit to the replies of a client without subscriptions."""

    def configure(self, limits: dict[str, Limits]) -> None:
        """Takes the value of the setting."""
        self._limits = limits
        self.normal = limits["normal"][:2] != (0, 0)

    def exceeded(self, outlet: Limited, kind: str, pending: int) -> bool:
        """Whether a client of the class ``kind`` with ``pending`` bytes unsent must be cut off."""
        hard, soft, seconds = self._limits[kind]
        if hard and pending > hard:
            return True
        if not soft or pending <= soft:
            self._above.pop(outlet, None)
            return False
        now = self._clock()
        since = self._above.setdefault(outlet, now)
        return now - since > seconds * 1000

    def watched(self) -> list[Limited]:
        """Return those above their soft limit, whose time may run out."""
        return list(self._above)

    def forget(self, outlet: Limited) -> None:
        """The client is gone."""
        self._above.pop(outlet, None)
