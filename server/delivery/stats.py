"""What there is to tell of a consumer group at a moment, from what is counted as it changes:
nothing is gone through for it, however much is pending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from server.delivery.group_ref import GroupRef, RuledGroup
from server.state.session import Link
from storage.engine.pending import Consumer


class KeptBackCounts(NamedTuple):
    """How many entries of a group policies keep back: for their ``turn`` (``order-by``,
    ``priority-field``), for their ``time`` (``delay-field``), or, of those that were given back,
    for their ``backoff``. One that waits for its time and its turn counts for its time. Times count
    until their second is over. ``rate`` are all that were not read yet, while ``rate-limit`` lets
    none through."""

    turn: int
    time: int
    backoff: int
    rate: int


def kept_back(ref: GroupRef, ruled: RuledGroup | None, now: int) -> KeptBackCounts:
    """Return how many entries are kept back; ``ruled`` is the group with its policies, if it has
    any that were looked at."""
    pending, due = ref.group.pending, ref.db.keyspace.due_by(now)
    time = pending.extras.delayed.at(due)
    turn = rate = 0
    if ruled is not None and (ruled.agenda.lanes is not None or ruled.agenda.ranking is not None):
        never = pending.unowned - len(pending.extras.released)
        turn = max(0, never - time)
        if ruled.agenda.lanes is not None and ruled.agenda.ranking is None:
            turn = min(ruled.agenda.lanes.waiting, turn)
    if ruled is not None and ruled.agenda.bucket is not None:
        rate = 0 if ruled.agenda.bucket.room(now, due) else ref.stream.undelivered(ref.group)
    return KeptBackCounts(turn, time, pending.extras.backing_off.at(due), rate)


class ConsumerConnection(NamedTuple):
    """Where the last request of a consumer came from, since when that client is there, and when it
    went: in Unix milliseconds, 0 while it is there."""

    address: str
    since: int
    gone: int


def connection_of(consumer: Consumer) -> ConsumerConnection | None:
    """Return the last connection of a consumer; ``None`` without one since the server began."""
    link = consumer.link
    if not isinstance(link, Link):
        return None
    return ConsumerConnection(link.addr, link.created_ms, link.closed_ms)


def is_connected(consumer: Consumer) -> bool | None:
    """Return whether the last client of a consumer is still there; ``None`` without one since the
    server began."""
    link = consumer.link
    return not link.closed_ms if isinstance(link, Link) else None


def is_attended(consumers: Iterable[Consumer]) -> bool:
    """Return whether the client of one of them is connected."""
    return any(map(is_connected, consumers))
