# Compiled by mypyc.
"""Consumers that have not been seen for long (``consumer-ttl``)."""

from __future__ import annotations

from server.delivery.place import GroupPlace
from server.delivery.rules import NEVER
from storage.engine import ids
from storage.engine.effects import ConsumerDeleted, Released
from storage.engine.pending import Consumer


def remove_absent(place: GroupPlace, parked: set[bytes]) -> None:
    """Takes their entries from consumers that were not seen for as long as the policy says, and
    removes them; those who wait for entries count as seen now. Notes when to look next."""
    now, group = place.now, place.group
    ttl = place.agenda.rules.consumer_ttl
    earliest = NEVER
    for consumer in list(group.consumers.values()):
        if consumer.name in parked:
            earliest = min(earliest, now + ttl)
        elif consumer.seen + ttl <= now:
            _remove(place, consumer)
        else:
            earliest = min(earliest, consumer.seen + ttl)
    place.agenda.seen_due = earliest


def _remove(place: GroupPlace, consumer: Consumer) -> None:
    """XNACK SILENT for all of its entries, then XGROUP DELCONSUMER."""
    db, key, group = place.db, place.key, place.group
    owned = group.pending.owned_ids(consumer, ids.MIN, consumer.owned)
    counts: list[int] = []
    for identity in owned:
        entry = group.pending.get(identity)
        assert entry is not None
        counts.append(max(0, entry.deliveries - 1))
        group.pending.set(identity, None, 0, counts[-1])
    if owned:
        group.released += len(owned)
        db.emit(Released(db.index, key, group.name, tuple(owned), tuple(counts)))
    group.remove_consumer(consumer.name)
    db.emit(ConsumerDeleted(db.index, key, group.name, consumer.name))
    place.tally.consumers_removed += 1
