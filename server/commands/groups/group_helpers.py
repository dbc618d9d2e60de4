# Compiled by mypyc.
"""What commands on consumer groups share: finding a group, and telling what happened."""

from __future__ import annotations

from protocol import errors
from protocol.errors import CommandError
from storage.engine.effects import Acknowledged, ConsumerCreated, ConsumerSeen, Delivered
from storage.engine.groups import Claim, Claims, Group
from storage.engine.pending import Consumer
from storage.engine.stream import Stream
from storage.keyspace.databases import Database


def existing_group(db: Database, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """The stream and the group; raises :class:`CommandError` (NOGROUP) if either is missing."""
    stream = db.stream(key)
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        raise CommandError(errors.no_group(key, name))
    return stream, group


def consumer_of(db: Database, key: bytes, group: Group, name: bytes) -> Consumer:
    """The consumer of that name, seen now; it is made if there is none."""
    now = db.keyspace.now_ms
    consumer = group.consumers.get(name)
    if consumer is None:
        consumer = group.add_consumer(name, now)
        db.emit(ConsumerCreated(db.index, key, group.name, name, now))
    consumer.seen = now
    return consumer


def emit_seen(db: Database, key: bytes, group: Group, consumer: Consumer) -> None:
    """Tells when the consumer was last seen and active."""
    db.emit(ConsumerSeen(db.index, key, group.name, consumer.name, consumer.seen, consumer.active))


def emit_claims(db: Database, key: bytes, group: Group, claim: Claim, claims: Claims) -> None:
    """Tells which entries changed hands, and which were dropped because the stream lacks them."""
    if claims.dropped:
        db.emit(Acknowledged(db.index, key, group.name, tuple(claims.dropped)))
    if claims.ids:
        group.claimed += len(claims.ids)
        if claim.counting:
            group.redelivered += len(claims.ids)
        identities, counts = tuple(claims.ids), tuple(claims.counts)
        name = claim.consumer.name
        db.emit(
            Delivered(db.index, key, group.name, name, identities, claim.time, counts, claim.now)
        )
