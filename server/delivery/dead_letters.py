# Compiled by mypyc.
"""Entries that are not delivered any more go to another stream, with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from server.delivery.place import GroupPlace
from server.delivery.retention import add_entry, drop_acknowledged
from storage.engine import ids
from storage.engine.effects import Acknowledged
from storage.engine.entries import decode_entry
from storage.engine.pending import PendingEntry
from storage.engine.stream import Stream
from storage.errors import StorageFailure

PREFIX: Final = b"dead-letter-"
STREAM: Final = b"dead-letter-stream"
ID: Final = b"dead-letter-id"
GROUP: Final = b"dead-letter-group"
CONSUMER: Final = b"dead-letter-consumer"
DELIVERIES: Final = b"dead-letter-deliveries"
TIME: Final = b"dead-letter-time"
REASON: Final = b"dead-letter-reason"
"""What stands before the fields of the entry, in this order."""

_FIELDS: Final = (STREAM, ID, GROUP, CONSUMER, DELIVERIES, TIME, REASON)

_FIRST: Final = (
    b"dead-letter-first-stream",
    b"dead-letter-first-id",
    b"dead-letter-first-group",
)
"""What stands behind them where the entry was a dead letter already: where it was at first."""

TOO_OFTEN: Final = b"max-deliveries"
FATAL: Final = b"fatal"
"""The reasons: it was delivered as often as may be, or XNACK FATAL."""

AGAIN_AFTER_MS: Final = 1000
"""When a letter is tried again that could not be written."""


class Letter(NamedTuple):
    """A dead letter as REDRIVE reads it: where the entry was, for which group, and its fields."""

    stream: bytes
    id: int
    group: bytes
    items: list[bytes]


def bury(place: GroupPlace, entries: Sequence[PendingEntry], reason: bytes) -> list[PendingEntry]:
    """Moves pending entries into the group's stream of dead letters and acknowledges them; those
    that the stream does not have any more are only acknowledged.

    Returns those that had to stay: no stream can be made at that key, it is full, or letters would
    come back from there."""
    goes_round = len(place.circle()) > 0
    done: list[int] = []
    kept: list[PendingEntry] = []
    # Claims may name an entry twice.
    for entry in {entry.id: entry for entry in entries}.values():
        payload = place.stream.log.get(entry.id)
        if payload is None or (not goes_round and _write(place, entry, payload, reason)):
            place.group.acknowledge([entry.id])
            done.append(entry.id)
        else:
            kept.append(entry)
    if done:
        settle(place, done)
    return kept


def settle(place: GroupPlace, identities: list[int]) -> None:
    """Tells that the entries are pending no more, and lets what follows from that happen."""
    db, key = place.db, place.key
    place.agenda.leave(identities)
    db.emit(Acknowledged(db.index, key, place.group.name, tuple(identities)))
    of_stream = place.of_stream
    if of_stream is not None and of_stream.rules.delete_acked:
        place.tally.deleted += drop_acknowledged(db, key, place.stream, of_stream, identities)


def _write(place: GroupPlace, entry: PendingEntry, payload: bytes, reason: bytes) -> bool:
    """Adds the letter; false if that cannot be."""
    db, rules = place.db, place.agenda.rules
    values = (
        place.key,
        ids.text(entry.id),
        place.group.name,
        b"" if entry.owner is None else entry.owner.name,
        b"%d" % entry.deliveries,
        b"%d" % place.now,
        reason,
    )
    items = [word for pair in zip(_FIELDS, values, strict=True) for word in pair]
    items += _kept_fields(payload)
    try:
        stream = db.stream(rules.dead_letter) or Stream(db.keyspace.limits)
        add_entry(db, rules.dead_letter, stream, items, rules.dead_letter_maxlen)
    except StorageFailure:
        return False
    place.tally.dead_letters += 1
    return True


def _kept_fields(payload: bytes) -> list[bytes]:
    """The fields that the letter of an entry has behind what is added. If that is a letter itself,
    its own: they would be more each time."""
    letter = read_letter(payload)
    if letter is None:
        return decode_entry(payload)[1]
    items = letter.items
    if tuple(items[: 2 * len(_FIRST) : 2]) == _FIRST:
        return items
    origin = (letter.stream, ids.text(letter.id), letter.group)
    return [word for pair in zip(_FIRST, origin, strict=True) for word in pair] + items


def read_letter(payload: bytes) -> Letter | None:
    """The dead letter that an entry is, ``None`` if no policy has written it."""
    _, items = decode_entry(payload)
    head = len(_FIELDS) * 2
    if tuple(items[:head:2]) != _FIELDS or len(items) <= head:
        return None
    stream, identity, group = items[1:6:2]
    try:
        return Letter(stream, ids.parse(identity), group, items[head:])
    except StorageFailure:
        return None
