"""Tell how consumer groups and consumers are: one set of rules for the page, metrics and tools.

The rules judge facts, from wherever they come: the page and the metrics see the whole pending
entries list, ``penstock groups`` and ``top`` ask for them with commands that every server has.
"""

from __future__ import annotations

from typing import Final, NamedTuple

LONG_MS: Final = 5 * 60_000
"""How long an entry may be pending, or wait to be delivered, until its group is in trouble."""

MANY: Final = 5
"""How often an entry may be delivered until its group is in trouble."""

ALONE_MS: Final = 60_000
"""How long nobody may be there to read until a group with entries is in trouble, and a consumer
with entries may ask for nothing until it counts as gone, if its client is not known."""

EARLIEST_MS: Final = 10**12
"""The first ID that is taken for a time (in 2001); those below are numbers of another kind."""

STUCK: Final = "stuck"
FAILING: Final = "failing"
UNATTENDED: Final = "unattended"
BEHIND: Final = "behind"
PAUSED: Final = "paused"
FINE: Final = "fine"

TROUBLES: Final = (STUCK, FAILING, UNATTENDED, BEHIND)
"""What may be wrong with a group, the worst first."""

WAITS: Final = "waits"
WORKS: Final = "works"
GONE: Final = "gone"
AWAY: Final = "away"


class HealthFacts(NamedTuple):
    """What a group is judged by; ages are in milliseconds.

    ``oldest`` is how long an entry has been with its consumer, ``deliveries`` how often one was
    delivered, each the most of the pending entries, and ``died`` how many became dead letters in
    the last ten minutes. ``pending`` is how many entries consumers have, ``lag`` how many were not
    delivered, the first of which has waited for ``waits``: ``None`` if its ID is no time.
    ``silent`` is how long no consumer has asked, ``None`` while the client of one is connected, or
    where there are none. ``grows`` is by how many entries a second the lag grows, 0 where that is
    not known.
    """

    oldest: int | None = None
    deliveries: int = 0
    died: int = 0
    pending: int = 0
    lag: int = 0
    waits: int | None = None
    consumers: int = 0
    silent: int | None = None
    grows: float = 0.0
    paused: bool = False

    def troubles(self) -> list[str]:
        """Return those of :data:`TROUBLES` that the group is in, the worst first."""
        found = []
        if self.oldest is not None and self.oldest >= LONG_MS:
            found.append(STUCK)
        if self.deliveries >= MANY or self.died:
            found.append(FAILING)
        if not self.paused and (self.pending or self.lag):
            alone = self.silent if self.consumers else self.waits
            if alone is not None and alone >= ALONE_MS:
                found.append(UNATTENDED)
        if not self.paused and (self.grows or (self.waits or 0) >= LONG_MS):
            found.append(BEHIND)
        return found

    def state(self) -> str:
        """Return how the group is, in a word: its worst trouble, ``paused`` or ``fine``."""
        troubles = self.troubles()
        return troubles[0] if troubles else PAUSED if self.paused else FINE

    def order(self) -> tuple[bool, int, int, int]:
        """Return what groups are sorted by: those in trouble first, then by the age of the oldest
        pending entry, by lag and by deliveries."""
        return not self.troubles(), -(self.oldest or 0), -self.lag, -self.deliveries


def age_of(id_ms: int, now: int) -> int | None:
    """Return how long ago an entry was added, by the time in its ID, if that may be one."""
    return now - id_ms if EARLIEST_MS <= id_ms <= now else None


def consumer_state(owned: int, waiting: bool, connected: bool | None, silent: int) -> str:
    """Return how a consumer is, in a word.

    ``owned`` entries are with it, ``waiting`` says that a read of it is blocked, ``connected``
    whether its last client still is (``None``: not known, as after a start of the server), and
    ``silent`` is how long it has asked for nothing, in milliseconds. A consumer that works on one
    entry for long is not gone while its client is connected.
    """
    if waiting:
        return WAITS
    if not owned:
        return AWAY
    is_gone = silent >= ALONE_MS if connected is None else not connected
    return GONE if is_gone else WORKS
