"""Effects: values that describe what a mutation changed, with everything resolved.

Effects carry final IDs, absolute times and delivery counts, so applying them in order to an empty
keyspace gives an equal state, independent of the form of the commands. Waking blocked clients,
WATCH, keyspace events and durability all work from effects, never from commands.

There are two sorts. A :class:`Changed` says itself what follows from it, and names the command that
stands for it. Every other class has rows in the tables of those who let something follow
(``tests/server/together/test_effect_tables.py`` lists them), and the encoder for the append-only
file knows how to say it (:mod:`storage.aof.encode_effects`).

One command emits its effects in the order in which they happened. Some stand side by side, and the
encoder relies on that, so that a file says what Redis would have said:

* an :class:`EntryAdded` has the :class:`StreamTrimmed` of the same XADD behind it;
* a :class:`StreamCreated` has the :class:`GroupCreated` of the same XGROUP CREATE behind it;
* a :class:`Delivered` of new entries has the :class:`GroupPositionSet` of the read behind it, while
  XCLAIM LASTID sets the position first;
* a :class:`ConsumerCreated` stands before what the consumer gets, with an :class:`Acknowledged` in
  between for what a claim has dropped;
* an :class:`EntriesAdded` stands alone.

``db`` is the index of the database, times are Unix milliseconds, IDs are integers as in
:mod:`storage.engine.ids`. The most frequent effects are classes with slots, which compiled code
creates in a fifth of the time that a named tuple takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from storage.engine.runs import Run

make: Final = tuple.__new__
"""Makes a named tuple from its class and a tuple of all its values.

Calling the class does the same in up to three times as long: what is made for every command or
every entry is made like this."""


Events = tuple[tuple[str, str], ...]
"""Keyspace events: the letter of the class and the name of each, in the order of publishing."""

GENERIC: Final = "g"
STRING: Final = "$"
EXPIRED: Final = "x"
HASH: Final = "h"
LIST: Final = "l"
SET: Final = "s"
ZSET: Final = "z"
STREAM: Final = "t"
NEW: Final = "n"
OVERWRITTEN: Final = "o"
TYPE_CHANGED: Final = "c"
MISS: Final = "m"
"""The letters that notify-keyspace-events has for classes of events."""

DELETED: Final[Events] = ((GENERIC, "del"),)
HAS_EXPIRED: Final[Events] = ((EXPIRED, "expired"),)
FIELDS_HAVE_EXPIRED: Final[Events] = ((HASH, "hexpired"),)


class Changed:
    """A command changed what is at ``keys``; the instance says what follows from that.

    ``words`` are the command that Redis would propagate for it, with everything resolved: it
    gives the same values elsewhere. ``events`` are published of each key. ``wakes`` tells that
    clients that wait for one of the keys have to look again. ``weight`` is what it counts in
    ``rdb_changes_since_last_save``. Of an effect without keys nothing follows but its words: the
    libraries of functions belong to no key, and an encoding is no change.
    """

    __slots__ = ("db", "events", "keys", "wakes", "weight", "words")

    def __init__(
        self,
        db: int,
        keys: tuple[bytes, ...],
        words: tuple[bytes, ...],
        events: Events = (),
        wakes: bool = False,
        weight: int = 1,
    ) -> None:
        self.db = db
        self.keys = keys
        self.words = words
        self.events = events
        self.wakes = wakes
        self.weight = weight

    @property
    def expired(self) -> bool:
        """Whether nobody did it: the time of the key had come."""
        return self.events == HAS_EXPIRED


class KeyRenamed(NamedTuple):
    """The value and its expiry moved to ``target``, replacing what was there.

    ``replaced`` tells that something was, and ``retyped`` that it was of another type."""

    db: int
    key: bytes
    target: bytes
    replaced: bool = False
    retyped: bool = False


class KeyCopied(NamedTuple):
    """A copy of the value and its expiry is at ``target`` of database ``target_db``.

    ``replaced`` tells that something was there, and ``retyped`` that it was of another type."""

    db: int
    key: bytes
    target_db: int
    target: bytes
    replaced: bool = False
    retyped: bool = False


class KeyMoved(NamedTuple):
    """The value and its expiry moved to the same key of ``target_db``."""

    db: int
    key: bytes
    target_db: int


class Flushed(NamedTuple):
    """The database is empty; ``held`` are the keys that were in it, known until the effect is
    settled."""

    db: int
    held: Collection[bytes]


class Swapped(NamedTuple):
    """Two databases changed places; ``held`` and ``other_held`` are the keys that were in the first
    and in the other, known until the effect is settled."""

    db: int
    other: int
    held: Collection[bytes]
    other_held: Collection[bytes]


Times = tuple[bytes, tuple[tuple[bytes, int, int], ...]]
"""The name of a group; name, seen-time and active-time of its consumers."""


class StreamRestored(NamedTuple):
    """A stream was made at the key from a payload, in place of what was there.

    ``payload`` makes it anew on any server since Redis 7.0. ``layout`` is that of its blocks, empty
    if they are as the payload makes them, and ``times`` those of consumers that the payload lacks.
    ``replaced`` tells that something was there, and ``retyped`` that it was of another type."""

    db: int
    key: bytes
    payload: bytes
    expires_at: int | None
    layout: tuple[bytes, ...]
    times: tuple[Times, ...]
    replaced: bool
    retyped: bool


class StreamPutBack(NamedTuple):
    """A stream that had been kept apart was put at a key where nothing was.

    ``stream`` is the :class:`~storage.engine.stream.Stream` that was kept, of which the key holds a
    copy: it does not change."""

    db: int
    key: bytes
    stream: Any
    expires_at: int | None


class StreamCreated(NamedTuple):
    """An empty stream was made at the key."""

    db: int
    key: bytes


class EntryAdded:
    """An entry was appended; ``payload`` is its RESP form (see :mod:`storage.engine.log`)."""

    __slots__ = ("created", "db", "id", "key", "payload")

    def __init__(self, db: int, key: bytes, id: int, payload: bytes, created: bool) -> None:
        self.db = db
        self.key = key
        self.id = id
        self.payload = payload
        self.created = created


class EntriesAdded:
    """The entries of a run were appended to a stream that there was, each by a command of its own,
    in a transaction if it is ``atomic``.

    No other effect comes of these commands, and it comes only while no keyspace events are
    published."""

    __slots__ = ("atomic", "db", "key", "run")

    def __init__(self, db: int, key: bytes, run: Run, atomic: bool) -> None:
        self.atomic = atomic
        self.db = db
        self.key = key
        self.run = run


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


class GroupPositionSet:
    """A group's last-delivered-id and entries-read have these values.

    ``explicit`` if a client asked for it, rather than a delivery."""

    __slots__ = ("db", "entries_read", "explicit", "group", "key", "last_id")

    def __init__(
        self,
        db: int,
        key: bytes,
        group: bytes,
        last_id: int,
        entries_read: int | None,
        explicit: bool,
    ) -> None:
        self.db = db
        self.key = key
        self.group = group
        self.last_id = last_id
        self.entries_read = entries_read
        self.explicit = explicit


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
    """A consumer is gone with the pending entries that it ``owned``."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    owned: tuple[int, ...] = ()


class ConsumerSeen:
    """A consumer's seen-time, and its active-time unless that is -1 (never)."""

    __slots__ = ("active", "consumer", "db", "group", "key", "seen")

    def __init__(
        self, db: int, key: bytes, group: bytes, consumer: bytes, seen: int, active: int
    ) -> None:
        self.db = db
        self.key = key
        self.group = group
        self.consumer = consumer
        self.seen = seen
        self.active = active


class Delivered:
    """The entries are pending for the consumer, with this delivery time and these delivery counts.

    ``seen`` is when the consumer asked for them, which is its seen-time and active-time. ``new``
    tells that they are new to the group, in ascending order and each delivered once, and that it
    has moved on to the last of them, which the :class:`GroupPositionSet` behind this says."""

    __slots__ = ("consumer", "counts", "db", "group", "ids", "key", "new", "seen", "time")

    def __init__(
        self,
        db: int,
        key: bytes,
        group: bytes,
        consumer: bytes,
        ids: tuple[int, ...],
        time: int,
        counts: tuple[int, ...],
        seen: int,
        new: bool = False,
    ) -> None:
        self.db = db
        self.key = key
        self.group = group
        self.consumer = consumer
        self.ids = ids
        self.time = time
        self.counts = counts
        self.seen = seen
        self.new = new


class Redelivered(NamedTuple):
    """The consumer read its own pending entries again: each was delivered once more at ``time``."""

    db: int
    key: bytes
    group: bytes
    consumer: bytes
    ids: tuple[int, ...]
    time: int


class Released(NamedTuple):
    """XNACK: the entries are pending without an owner, at the end of the group's queue.

    ``times`` are those before which a policy of the group keeps them back; empty if none does."""

    db: int
    key: bytes
    group: bytes
    ids: tuple[int, ...]
    counts: tuple[int, ...]
    times: tuple[int, ...] = ()


class KeptBack(NamedTuple):
    """A policy of the group keeps ascending entries back that were never delivered: they are
    pending without an owner, each until the time in ``until``, which may be past."""

    db: int
    key: bytes
    group: bytes
    ids: tuple[int, ...]
    until: tuple[int, ...]


class DeliveriesEnded(NamedTuple):
    """The deliveries of pending entries to these consumers ended at ``time``, in this way; whoever
    gave them back gave this reason, which may be empty. Told of groups that keep it."""

    db: int
    key: bytes
    group: bytes
    ids: tuple[int, ...]
    consumers: tuple[bytes, ...]
    time: int
    how: bytes
    reason: bytes


class Acknowledged:
    """The entries are no longer pending in the group.

    ``words`` are the IDs as a client has named them, if one has, with any that were not pending."""

    __slots__ = ("db", "group", "ids", "key", "words")

    def __init__(
        self,
        db: int,
        key: bytes,
        group: bytes,
        ids: tuple[int, ...],
        words: Sequence[bytes] = (),
    ) -> None:
        self.db = db
        self.key = key
        self.group = group
        self.ids = ids
        self.words = words


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


class PolicySet(NamedTuple):
    """The stream, or its group if one is named, has these policies of its own, and no others."""

    db: int
    key: bytes
    group: bytes | None
    settings: tuple[tuple[bytes, bytes], ...]


class DuplicateSuppressed(NamedTuple):
    """An XADD was answered with the entry its idempotent ID stands for."""

    db: int
    key: bytes


Effect = (
    Changed
    | KeyRenamed
    | KeyCopied
    | KeyMoved
    | Flushed
    | Swapped
    | StreamRestored
    | StreamPutBack
    | StreamCreated
    | EntryAdded
    | EntriesAdded
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
    | KeptBack
    | DeliveriesEnded
    | Acknowledged
    | PolicySet
    | IdempotencyConfigured
    | IdempotentIDRecorded
    | DuplicateSuppressed
)
