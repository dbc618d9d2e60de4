"""What a mutation did, as values with everything resolved.

Effects carry final IDs, absolute times and delivery counts, so applying them in order to an empty
keyspace gives an equal state whatever the commands looked like. Waking parked readers, WATCH,
keyspace events and durability all work from effects, never from commands.

``db`` is the index of the database, times are Unix milliseconds, IDs are integers as in
:mod:`storage.ids`.
"""

from __future__ import annotations

from typing import NamedTuple


class StringSet(NamedTuple):
    """The key now holds this string; ``expires_at`` is its expiry, if it has one.

    ``event`` names what happened, for keyspace events: ``set``, ``incrby``, ``append``, ..., or
    ``set expire`` where the expiry is part of the news."""

    db: int
    key: bytes
    value: bytes
    expires_at: int | None
    event: str
    created: bool


class KeyDeleted(NamedTuple):
    """The key is gone: ``event`` is ``del`` or ``expired``."""

    db: int
    key: bytes
    event: str


class ExpirySet(NamedTuple):
    """The key will expire at ``at``."""

    db: int
    key: bytes
    at: int


class ExpiryCleared(NamedTuple):
    """The key no longer expires."""

    db: int
    key: bytes


class KeyRenamed(NamedTuple):
    """The value and its expiry moved to ``target``, replacing what was there."""

    db: int
    key: bytes
    target: bytes


class KeyCopied(NamedTuple):
    """A copy of the value and its expiry is at ``target`` of database ``target_db``."""

    db: int
    key: bytes
    target_db: int
    target: bytes


class KeyMoved(NamedTuple):
    """The value and its expiry moved to the same key of ``target_db``."""

    db: int
    key: bytes
    target_db: int


class Flushed(NamedTuple):
    """The database is empty; ``keys`` are those that were in it."""

    db: int
    keys: frozenset[bytes]


class Swapped(NamedTuple):
    """Two databases changed places; ``keys`` are those that were in either."""

    db: int
    other: int
    keys: frozenset[bytes]


class StreamCreated(NamedTuple):
    """An empty stream was made at the key."""

    db: int
    key: bytes


class EntryAdded(NamedTuple):
    """An entry was appended; ``payload`` is its RESP form (see :mod:`storage.log`)."""

    db: int
    key: bytes
    id: int
    payload: bytes
    created: bool


class StreamTrimmed(NamedTuple):
    """The oldest entries were removed so that ``first`` is the first ID left (or none is)."""

    db: int
    key: bytes
    removed: int
    length: int
    first: int


class EntriesDeleted(NamedTuple):
    """Single entries were removed; ``trimmed`` if by a trimming command, which keeps
    max-deleted-entry-id as it was."""

    db: int
    key: bytes
    ids: tuple[int, ...]
    trimmed: bool


class StreamPositionSet(NamedTuple):
    """XSETID: last-generated-id, entries-added and max-deleted-entry-id have these values."""

    db: int
    key: bytes
    last_id: int
    entries_added: int
    max_deleted_id: int


class GroupCreated(NamedTuple):
    """A consumer group was made; ``entries_read`` is ``None`` where it is unknown."""

    db: int
    key: bytes
    group: bytes
    last_id: int
    entries_read: int | None


class GroupPositionSet(NamedTuple):
    """A group's last-delivered-id and entries-read have these values.

    ``explicit`` if a client asked for it, rather than a delivery."""

    db: int
    key: bytes
    group: bytes
    last_id: int
    entries_read: int | None
    explicit: bool


class GroupDestroyed(NamedTuple):
    """A group is gone with its consumers and pending entries."""

    db: int
    key: bytes
    group: bytes


class ConsumerCreated(NamedTuple):
    """A consumer was made, seen at ``seen`` and never active."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    seen: int


class ConsumerDeleted(NamedTuple):
    """A consumer is gone with the pending entries it owned."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes


class ConsumerSeen(NamedTuple):
    """A consumer's seen-time, and its active-time unless that is -1 (never)."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    seen: int
    active: int


class Delivered(NamedTuple):
    """The entries are pending for the consumer, with this delivery time and these delivery counts.

    ``seen`` is when the consumer asked for them, which is its seen-time and active-time."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    ids: tuple[int, ...]
    time: int
    counts: tuple[int, ...]
    seen: int


class Redelivered(NamedTuple):
    """The consumer read its own pending entries again: each was delivered once more at ``time``."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    ids: tuple[int, ...]
    time: int


class Released(NamedTuple):
    """XNACK: the entries are pending without an owner, at the end of the group's queue."""

    db: int
    key: bytes
    group: bytes
    ids: tuple[int, ...]
    counts: tuple[int, ...]


class Acknowledged(NamedTuple):
    """The entries are no longer pending in the group."""

    db: int
    key: bytes
    group: bytes
    ids: tuple[int, ...]


class IdempotencyConfigured(NamedTuple):
    """XCFGSET changed the stream's retention of idempotent IDs, and its records went."""

    db: int
    key: bytes
    duration: int
    maxsize: int


class IdempotentIDRecorded(NamedTuple):
    """The producer's idempotent ID stands for the entry ``id``, recorded at ``time``."""

    db: int
    key: bytes
    producer: bytes
    iid: bytes
    id: int
    time: int


class DuplicateSuppressed(NamedTuple):
    """An XADD was answered with the entry its idempotent ID stands for."""

    db: int
    key: bytes


Effect = (
    StringSet
    | KeyDeleted
    | ExpirySet
    | ExpiryCleared
    | KeyRenamed
    | KeyCopied
    | KeyMoved
    | Flushed
    | Swapped
    | StreamCreated
    | EntryAdded
    | StreamTrimmed
    | EntriesDeleted
    | StreamPositionSet
    | GroupCreated
    | GroupPositionSet
    | GroupDestroyed
    | ConsumerCreated
    | ConsumerDeleted
    | ConsumerSeen
    | Delivered
    | Redelivered
    | Released
    | Acknowledged
    | IdempotencyConfigured
    | IdempotentIDRecorded
    | DuplicateSuppressed
)
