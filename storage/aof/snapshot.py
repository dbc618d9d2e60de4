"""A keyspace as the commands that rebuild it, for a rewrite of the append-only file.

The commands are those of Redis's own rewrite, with records where it has none. The keyspace must not
change during the iteration, and is not changed by it: keys past their expiry that have not been
removed yet are written like all others, and expire where the file is loaded.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

from storage.aof import extension_records as own
from storage.aof.commands import add_entries, command, hold, number
from storage.aof.effect_commands import counter, keep_back, release, set_position
from storage.chunks import in_chunks
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.idempotency import IdempotencyTable
from storage.engine.limits import StreamLimits
from storage.engine.pending import Consumer, PendingList
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace, library_words
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.kinds import Value
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet
from storage.types.strings import words_for_encoding

_AT_ONCE: Final = 500
"""How many entries make a piece."""


BEYOND: Final = ids.MAX + 1
"""Above every ID."""


def snapshot(keyspace: Keyspace) -> Iterator[bytes]:
    """Return the contents of a file that rebuilds the keyspace, in chunks."""
    return in_chunks(_pieces(keyspace))


def _pieces(keyspace: Keyspace) -> Iterator[bytes]:
    yield own.settings(keyspace.limits)
    for code in keyspace.libraries.values():
        yield command(*library_words(code))
    for database in keyspace.databases:
        if database.values:
            yield command(b"SELECT", number(database.index))
            yield from _database(database)


def _database(database: Database) -> Iterator[bytes]:
    for key, value in database.values.items():
        yield from _value(database, key, value)
        at = database.expires.get(key)
        if at is not None:
            yield command(b"PEXPIREAT", key, number(at))


def _value(database: Database, key: bytes, value: Value) -> Iterator[bytes]:
    return _COMMANDS[type(value)](database, key, value)


def _string(database: Database, key: bytes, value: bytes | bytearray) -> Iterator[bytes]:
    string = bytes(value)
    yield command(b"SET", key, string)
    again = words_for_encoding(key, string, database.encodings.get(key))
    if again:
        yield command(*again)


def _stream(database: Database, key: bytes, stream: Stream) -> Iterator[bytes]:
    return stream_commands(key, stream, database.keyspace.limits)


def _collection(database: Database, key: bytes, value: Collection) -> Iterator[bytes]:
    for words in value.words(key):
        yield command(*words)


_COMMANDS: Final[dict[type, Callable[[Database, bytes, Any], Iterator[bytes]]]] = {
    bytes: _string,
    bytearray: _string,
    Hash: _collection,
    ListValue: _collection,
    SetValue: _collection,
    SortedSet: _collection,
    Stream: _stream,
}
"""What makes a value anew at a free key, by its class (see :mod:`storage.types.kinds`)."""


def serialized_length(database: Database, key: bytes) -> int:
    """How many bytes of commands make the value at a key anew."""
    return sum(map(len, _value(database, key, database.values[key])))


# --- streams ---------------------------------------------------------------------------------


def stream_commands(key: bytes, stream: Stream, limits: StreamLimits) -> Iterator[bytes]:
    """Yield what makes the stream anew at a free key."""
    dangling = Dangling(key, stream)
    layout = stream.log.layout()
    if layout:
        # To find out where a block ends takes as long as adding the entries.
        yield own.settings(limits, measuring=False)
    yield from _entries(key, stream, dangling)
    if layout:
        yield own.record(own.BLOCKS, key, *layout)
        yield own.settings(limits)
    yield dangling.position()
    if stream.policy:
        yield own.policy(key, None, sorted(stream.policy.items()))
    for group in stream.groups_in_order():
        yield from _group(key, group)
    yield from dangling.removal()
    yield from _idempotency(key, stream.idempotency, limits)


def _entries(key: bytes, stream: Stream, dangling: Dangling) -> Iterator[bytes]:
    """XADDs, with the placeholders of entries that are only referred to in between."""
    log = stream.log
    if log.length == 0:
        yield command(b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y")
        if dangling.next < BEYOND:
            yield command(b"XSETID", key, b"0-0")
    start = ids.MIN
    while True:
        entry_ids, payloads = log.range_with_ids(start, ids.MAX, _AT_ONCE)
        if not entry_ids:
            break
        start = entry_ids[-1] + 1
        yield from _mixed(key, entry_ids, payloads, dangling)
    yield from dangling.placeholders(BEYOND)


def _mixed(
    key: bytes, entry_ids: list[int], payloads: list[bytes], dangling: Dangling
) -> Iterator[bytes]:
    """These entries, each behind the placeholders that are below it."""
    at = 0
    while at < len(entry_ids):
        yield from dangling.placeholders(entry_ids[at])
        end = bisect_left(entry_ids, dangling.next, at)
        yield add_entries(key, payloads[at:end])
        at = end


def _group(key: bytes, group: Group) -> Iterator[bytes]:
    position = (ids.text(group.last_id), b"ENTRIESREAD", counter(group.entries_read))
    yield command(b"XGROUP", b"CREATE", key, group.name, *position)
    times: list[tuple[bytes, int, int]] = []
    for name in sorted(group.consumers):
        consumer = group.consumers[name]
        times.append((name, consumer.seen, consumer.active))
        if consumer.owned:
            yield from _held(key, group, consumer)
        else:
            yield command(b"XGROUP", b"CREATECONSUMER", key, group.name, name)
    yield from _released(key, group)
    yield from _kept_back(key, group)
    yield from _histories(key, group)
    yield from own.seen(key, group.name, times)
    if group.policy:
        yield own.policy(key, group.name, sorted(group.policy.items()))


def _held(key: bytes, group: Group, consumer: Consumer) -> Iterator[bytes]:
    """The pending entries of a consumer."""
    start = ids.MIN
    while wanted := group.pending.owned_ids(consumer, start, _AT_ONCE):
        entries: list[tuple[int, int, int]] = []
        for entry_id in wanted:
            entry = group.pending.get(entry_id)
            assert entry is not None
            entries.append((entry_id, entry.time, entry.deliveries))
        yield hold(key, group.name, consumer.name, entries)
        start = wanted[-1] + 1


def _released(key: bytes, group: Group) -> Iterator[bytes]:
    """The pending entries without an owner, in the order in which they will be claimed."""
    entries: list[tuple[int, int, int]] = []
    for entry_id in group.pending.extras.released:
        entry = group.pending.get(entry_id)
        assert entry is not None
        entries.append((entry_id, entry.deliveries, entry.time))
    for at in range(0, len(entries), _AT_ONCE):
        yield from release(key, group.name, entries[at : at + _AT_ONCE])


def _kept_back(key: bytes, group: Group) -> Iterator[bytes]:
    """The pending entries without an owner that wait in no such order: those that policies keep
    back."""
    released = group.pending.extras.released
    start = ids.MIN
    while (rows := group.pending.columns_unowned(start, _AT_ONCE)).ids:
        start = rows.ids[-1] + 1
        kept = [at for at, entry_id in enumerate(rows.ids) if entry_id not in released]
        if kept:
            until = [rows.times[at] for at in kept]
            yield from keep_back(key, group.name, [rows.ids[at] for at in kept], until)


def _histories(key: bytes, group: Group) -> Iterator[bytes]:
    """How deliveries of pending entries ended."""
    histories = group.pending.extras.histories
    found = histories.ids()
    for at in range(0, len(found), _AT_ONCE):
        wanted = found[at : at + _AT_ONCE]
        lines = [(each, line) for each in wanted for line in histories.lines(each)]
        yield from own.ended(key, group.name, lines)


def _idempotency(key: bytes, table: IdempotencyTable, limits: StreamLimits) -> Iterator[bytes]:
    if (table.duration, table.maxsize) != (limits.idmp_duration, limits.idmp_maxsize):
        yield own.retention(key, table.duration, table.maxsize)
    yield from own.iids(key, list(_noted(table)))
    if table.added or table.duplicates:
        yield own.lifetime(key, table)


def _noted(table: IdempotencyTable) -> Iterator[tuple[bytes, bytes, int, int]]:
    """The idempotent IDs of all producers as they were noted one after the other."""
    producers = [
        [(producer, iid, record.id, record.time) for iid, record in records.items()]
        for producer, records in table.records().items()
    ]
    return heapq.merge(*producers, key=_time)


def _time(noted: tuple[bytes, bytes, int, int]) -> int:
    return noted[3]


# --- entries that are pending but not in the stream --------------------------------------------


class Dangling:
    """Pending entries that the stream at ``key`` does not have any more, and how others get them.

    No command makes an entry pending that is not there. So each of them gets a placeholder in the
    stream, which is claimed and then removed in a way that leaves no trace in the counters.
    Penstock takes a claim in a file of its own as it is, and passes over the placeholders.
    """

    __slots__ = ("_entry_ids", "_key", "_stream", "_written")

    def __init__(self, key: bytes, stream: Stream) -> None:
        self._key = key
        self._stream = stream
        missing: set[int] = set()
        for group in stream.groups.values():
            missing.update(_missing(stream, group.pending))
        self._entry_ids = sorted(missing)
        self._written = 0

    @property
    def next(self) -> int:
        """The ID of the next placeholder, :data:`BEYOND` if there is none."""
        if self._written == len(self._entry_ids):
            return BEYOND
        return self._entry_ids[self._written]

    def placeholders(self, below: int) -> Iterator[bytes]:
        """The placeholders below an ID that have not been written yet."""
        adding: list[bytes] = []
        while self.next < below:
            words = (ids.text(self.next), b"x", b"y")
            adding.append(command(b"XADD", self._key, *words))
            self._written += 1
        if adding:
            yield own.skip(len(adding))
            yield from adding

    def position(self) -> bytes:
        """The XSETID while the placeholders are there: they count as entries that were added."""
        stream = self._stream
        added = stream.entries_added
        if self._written:
            added = max(added, stream.log.length + self._written)
        return set_position(self._key, stream.last_id, added, stream.max_deleted_id)

    def removal(self) -> Iterator[bytes]:
        """Yield what removes the placeholders.

        A trimming leaves max-deleted-entry-id as it is; a deletion, which it takes between entries
        that are there, does not, but XSETID sets it again."""
        if not self._written:
            return
        stream, log = self._stream, self._stream.log
        between = [entry_id for entry_id in self._entry_ids if log.first < entry_id]
        if log.length and between:
            yield command(b"XDEL", self._key, *map(ids.text, between))
        yield command(b"XTRIM", self._key, b"MAXLEN", b"=", number(log.length))
        yield set_position(self._key, stream.last_id, stream.entries_added, stream.max_deleted_id)


def _missing(stream: Stream, pending: PendingList) -> Iterator[int]:
    """The IDs that the stream does not have. One above its last-generated-id, which XSETID may
    have lowered, is left out: other servers cannot hold it."""
    start = ids.MIN
    while True:
        wanted = pending.columns(start, stream.last_id, _AT_ONCE).ids
        if not wanted:
            return
        payloads = stream.log.get_many(wanted)
        for entry_id, payload in zip(wanted, payloads, strict=True):
            if payload is None:
                yield entry_id
        start = wanted[-1] + 1
