# Compiled by mypyc.
"""Penstock's own records, applied to a keyspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from hiredis import ProtocolError

from storage.aof import extension_records as own
from storage.aof.errors import LoadError
from storage.aof.lookup import group_at, integer, shown, stream_at
from storage.engine import ids
from storage.engine.idempotency import IdempotencyTable
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace

Arguments = list[bytes]


class RecordRestorer:
    """Applies records. ``is_own`` is whether the file is one of Penstock's, ``skipping`` how many
    of the next commands are only for other servers."""

    __slots__ = ("_configured", "_limits", "_records", "is_own", "skipping")

    def __init__(self, keyspace: Keyspace) -> None:
        limits = self._limits = keyspace.limits
        self._configured = (
            limits.max_entries,
            limits.max_bytes,
            limits.idmp_duration,
            limits.idmp_maxsize,
        )
        self.is_own = False
        self.skipping = 0
        self._records: Final[dict[bytes, Callable[[Database, Arguments], None]]] = {
            own.SETTINGS: self._settings,
            own.SKIP: self._skip,
            own.SEEN: _seen,
            own.RELEASED: _released,
            own.RELEASED_UNTIL: _released_until,
            own.POLICY: _policy,
            own.GROUP_POLICY: _group_policy,
            own.TRIMMED: _trimmed,
            own.BLOCKS: _blocks,
            own.RETENTION: _retention,
            own.IIDS: _iids,
            own.DUPLICATE: _duplicate,
            own.LIFETIME: _lifetime,
        }

    def begin_file(self) -> None:
        """Nothing is known of the next file, and the server's own settings count again."""
        self._set_limits(*self._configured)
        self.is_own = False
        self.skipping = 0

    def apply(self, db: Database, words: Arguments) -> None:
        """Applies the record with this name and these arguments to the selected database.

        Raises :class:`LoadError`, or :class:`ValueError` for arguments that cannot be right.
        """
        name = words[0]
        restore = self._records.get(name)
        if restore is None:
            raise LoadError(f"a record of the unknown kind {shown(name)}")
        restore(db, words[1:])

    def _settings(self, db: Database, args: Arguments) -> None:
        max_entries, max_bytes, duration, maxsize = map(integer, args)
        self._set_limits(max_entries, max_bytes, duration, maxsize)
        self.is_own = True

    def _set_limits(self, max_entries: int, max_bytes: int, duration: int, maxsize: int) -> None:
        limits = self._limits
        limits.max_entries = max_entries
        limits.max_bytes = max_bytes
        limits.idmp_duration = duration
        limits.idmp_maxsize = maxsize

    def _skip(self, db: Database, args: Arguments) -> None:
        (count,) = args
        self.skipping = integer(count)


def _seen(db: Database, args: Arguments) -> None:
    """A consumer, a group or a stream that has gone since has no times any more."""
    key, name, *times = args
    value = db.values.get(key)
    if not isinstance(value, Stream) or name not in value.groups:
        return
    consumers = value.groups[name].consumers
    for consumer_name, seen, active in _in_threes(times):
        consumer = consumers.get(consumer_name)
        if consumer is not None:
            consumer.seen = integer(seen)
            consumer.active = integer(active)


def _in_threes(words: Arguments) -> Iterator[tuple[bytes, bytes, bytes]]:
    return zip(words[::3], words[1::3], words[2::3], strict=True)


def _released(db: Database, args: Arguments) -> None:
    key, name, *entries = args
    _, group = group_at(db, key, name)
    for identity, count in zip(entries[::2], entries[1::2], strict=True):
        group.pending.set(ids.parse(identity), None, 0, integer(count))


def _released_until(db: Database, args: Arguments) -> None:
    key, name, *entries = args
    _, group = group_at(db, key, name)
    for identity, count, time in _in_threes(entries):
        group.pending.set(ids.parse(identity), None, integer(time), integer(count))


def _policy(db: Database, args: Arguments) -> None:
    key, *words = args
    stream_at(db, key)
    db.set_policy(key, None, _pairs(words))


def _group_policy(db: Database, args: Arguments) -> None:
    key, name, *words = args
    _, group = group_at(db, key, name)
    db.set_policy(key, group, _pairs(words))


def _pairs(words: Arguments) -> dict[bytes, bytes]:
    return dict(zip(words[::2], words[1::2], strict=True))


def _trimmed(db: Database, args: Arguments) -> None:
    stream = stream_at(db, args[0])
    for identity in args[1:]:
        stream.log.delete(ids.parse(identity))


def _blocks(db: Database, args: Arguments) -> None:
    stream = stream_at(db, args[0])
    try:
        stream.log.arrange(args[1:])
    except (ValueError, TypeError, IndexError, ProtocolError):
        raise LoadError(
            f"the blocks of the stream {shown(args[0])} do not fit its entries"
        ) from None


def _table(db: Database, key: bytes) -> IdempotencyTable:
    return stream_at(db, key).idempotency


def _retention(db: Database, args: Arguments) -> None:
    key, duration, maxsize = args
    _table(db, key).configure(integer(duration), integer(maxsize))


def _iids(db: Database, args: Arguments) -> None:
    table = _table(db, args[0])
    words = args[1:]
    for producer, iid, identity, time in zip(
        words[::4], words[1::4], words[2::4], words[3::4], strict=True
    ):
        table.record(producer, iid, ids.parse(identity), integer(time))


def _duplicate(db: Database, args: Arguments) -> None:
    (key,) = args
    _table(db, key).duplicates += 1


def _lifetime(db: Database, args: Arguments) -> None:
    key, added, duplicates = args
    table = _table(db, key)
    table.added, table.duplicates = integer(added), integer(duplicates)
