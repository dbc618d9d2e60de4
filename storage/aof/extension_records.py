"""Records for what no command of Redis can express.

A record is the command ``ECHO <payload>``, whose payload is a RESP array of bulk strings: the mark
:data:`MARK`, the record's name, its arguments. Other servers run ECHO when they load the file,
which has no effect. A record refers to the database that is selected at its position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from hiredis import ProtocolError, Reader

from storage.aof.arguments import group_at, integer, stream_at
from storage.aof.commands import command, number
from storage.aof.framing import LoadError, shown
from storage.engine import ids
from storage.engine.histories import EndedDelivery
from storage.engine.idempotency import IdempotencyTable
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace

Arguments = list[bytes]

MARK: Final = b"penstock:1"
"""The first word of a record: whose it is, and the number of the format."""

SETTINGS: Final = b"settings"
"""What follows in this file was written by Penstock, under these settings: the four of
:class:`StreamLimits`."""
SKIP: Final = b"skip"
"""The next commands, so many of them, are only for servers that do not know these records."""
SEEN: Final = b"seen"
"""Key, group, and for each consumer its name, its seen-time and its active-time."""
RELEASED: Final = b"released"
"""Key, group, and for each entry without an owner its ID and its delivery count."""
RELEASED_UNTIL: Final = b"released-until"
"""The same, with the time before which the group's policies keep each entry back."""
KEPT_BACK: Final = b"kept-back"
"""The entries of the next XCLAIM have no owner and were never delivered. The time before which the
group's policies keep them back follows, or one for each of them."""
ENDED: Final = b"ended"
"""Key, group, and for each delivery that ended the ID of its entry, when that was, whose it was,
how it ended, and the reason that was given."""
ENDED_TOGETHER: Final = b"ended-together"
"""Key, group, and of deliveries that ended alike when that was, whose they were, how they ended and
the reason that was given; then the IDs of their entries."""
POLICY: Final = b"policy"
"""Key, and names and values of the policies that the stream has from now on."""
GROUP_POLICY: Final = b"group-policy"
"""Key, group, and names and values of the policies that the group has from now on."""
TRIMMED: Final = b"trimmed"
"""Key, and the IDs of single entries that a trimming removed."""
BLOCKS: Final = b"blocks"
"""Key, and the layout of its blocks."""
RETENTION: Final = b"idmp-retention"
"""Key, duration in seconds, and maxsize; as XCFGSET this forgets every idempotent ID."""
IIDS: Final = b"idmp-iids"
"""Key, and for each idempotent ID its producer, itself, the entry's ID, and when it was noted."""
DUPLICATE: Final = b"idmp-duplicate"
"""Key: another XADD was recognized as a duplicate."""
LIFETIME: Final = b"idmp-lifetime"
"""Key, how many idempotent IDs were ever noted, and how many duplicates recognized."""

Limits = tuple[int, int, int, int]
"""Limits of streams as a file tells them: entries and bytes of a block, and how long and how many
idempotent IDs are remembered."""

_HEAD: Final = re.compile(rb"\*\d+\r\n\$\d+\r\n(penstock:[^\r\n]*)\r\n")
_FEWEST: Final = 2
_RECORDS_AT_ONCE: Final = 1000


# --- writing ---------------------------------------------------------------------------------


def record(name: bytes, *arguments: bytes) -> bytes:
    """A record as a command."""
    return command(b"ECHO", command(MARK, name, *arguments))


def told_of(limits: StreamLimits) -> Limits:
    """Return those of the limits that a file tells of."""
    return limits.max_entries, limits.max_bytes, limits.idmp_duration, limits.idmp_maxsize


def settings(limits: StreamLimits, measuring: bool = True) -> bytes:
    """Return the record that a file of Penstock begins with.

    Without ``measuring`` blocks may be of any number of bytes, as before a layout of them comes."""
    entries, size, *retention = told_of(limits)
    return record(SETTINGS, *map(number, (entries, size if measuring else 0, *retention)))


def skip(commands: int) -> bytes:
    """The record before commands that are only for other servers."""
    return record(SKIP, number(commands))


def seen(key: bytes, group: bytes, consumers: Sequence[tuple[bytes, int, int]]) -> list[bytes]:
    """Return records of when these consumers were last seen and active."""
    words = [(name, number(seen_ms), number(active_ms)) for name, seen_ms, active_ms in consumers]
    return _records((SEEN, key, group), words)


def _records(head: Sequence[bytes], words: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Return records that begin alike, with the words for many things in each."""
    return [
        record(*head, *chain.from_iterable(words[at : at + _RECORDS_AT_ONCE]))
        for at in range(0, len(words), _RECORDS_AT_ONCE)
    ]


def ended(key: bytes, group: bytes, lines: Sequence[tuple[int, EndedDelivery]]) -> list[bytes]:
    """Return records of deliveries that ended, each with the ID of its entry."""
    words = [
        (ids.text(entry_id), number(line.time), line.consumer, line.how, line.reason)
        for entry_id, line in lines
    ]
    return _records((ENDED, key, group), words)


def ended_together(
    key: bytes, group: bytes, line: EndedDelivery, entry_ids: Sequence[int]
) -> list[bytes]:
    """Return records of deliveries of these entries that ended alike."""
    alike = number(line.time), line.consumer, line.how, line.reason
    words = [(ids.text(entry_id),) for entry_id in entry_ids]
    return _records((ENDED_TOGETHER, key, group, *alike), words)


def policy(key: bytes, group: bytes | None, settings: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The record of the policies that a stream, or a group of it, has of its own."""
    words = [word for pair in settings for word in pair]
    if group is None:
        return record(POLICY, key, *words)
    return record(GROUP_POLICY, key, group, *words)


def kept_back(until: Sequence[int]) -> bytes:
    """Return the record before an XCLAIM of entries that are kept back until these times."""
    alike = until.count(until[0]) == len(until)
    return record(KEPT_BACK, *map(number, until[:1] if alike else until))


def retention(key: bytes, duration: int, maxsize: int) -> bytes:
    """The record of how long, in seconds, and how many idempotent IDs a stream remembers."""
    return record(RETENTION, key, number(duration), number(maxsize))


def iids(key: bytes, noted: Sequence[tuple[bytes, bytes, int, int]]) -> list[bytes]:
    """Return records of idempotent IDs: producer, idempotent ID, the entry's ID, and when it was
    noted."""
    words = [
        (producer, iid, ids.text(entry_id), number(time)) for producer, iid, entry_id, time in noted
    ]
    return _records((IIDS, key), words)


def lifetime(key: bytes, table: IdempotencyTable) -> bytes:
    """The record of a stream's counters of idempotent producing."""
    return record(LIFETIME, key, number(table.added), number(table.duplicates))


# --- reading ---------------------------------------------------------------------------------


def parse(payload: bytes) -> list[bytes] | None:
    """The name and the arguments of a record from what ECHO is given; ``None`` if it is not one.

    Raises :class:`LoadError` if it is one of a format that is not known, or damaged.
    """
    head = _HEAD.match(payload)
    if head is None:
        return None
    if head[1] != MARK:
        known, other = MARK.decode(), head[1].decode("ascii", "backslashreplace")
        raise LoadError(f"a record of the format {other}, where only {known} is known")
    words = _words(payload)
    if len(words) < _FEWEST or command(*words) != payload:
        raise LoadError("a damaged record")
    return words[1:]


def _words(payload: bytes) -> list[bytes]:
    """The words of a record, none if it is damaged."""
    reader = Reader()
    reader.feed(payload)
    try:
        words: Any = reader.gets()
    except ProtocolError:
        return []
    if type(words) is not list or any(type(word) is not bytes for word in words):
        return []
    return words


# --- applying --------------------------------------------------------------------------------


class RecordRestorer:
    """Applies records. ``is_own`` is whether the file is one of Penstock's, ``skipping`` how many
    of the next commands are only for other servers."""

    __slots__ = ("_configured", "_limits", "_records", "is_own", "skipping", "until")

    def __init__(self, keyspace: Keyspace) -> None:
        self._limits = keyspace.limits
        self._configured = told_of(keyspace.limits)
        self.is_own = False
        self.skipping = 0
        self.until: list[int] = []
        """The times of the entries that the next XCLAIM keeps back; none if it is a usual one."""
        self._records: Final[dict[bytes, Callable[[Database, Arguments], None]]] = {
            SETTINGS: self._settings,
            SKIP: self._skip,
            SEEN: _seen,
            RELEASED: _released,
            RELEASED_UNTIL: _released_until,
            KEPT_BACK: self._kept_back,
            ENDED: _ended,
            ENDED_TOGETHER: _ended_together,
            POLICY: _policy,
            GROUP_POLICY: _group_policy,
            TRIMMED: _trimmed,
            BLOCKS: _blocks,
            RETENTION: _retention,
            IIDS: _iids,
            DUPLICATE: _duplicate,
            LIFETIME: _lifetime,
        }

    def begin_file(self) -> None:
        """Forget the file before; the server's own settings count again."""
        self._set_limits(self._configured)
        self.is_own = False
        self.skipping = 0
        self.until = []

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
        entries, size, duration, maxsize = map(integer, args)
        self._set_limits((entries, size, duration, maxsize))
        self.is_own = True

    def _set_limits(self, told: Limits) -> None:
        limits = self._limits
        limits.max_entries, limits.max_bytes, limits.idmp_duration, limits.idmp_maxsize = told

    def _skip(self, db: Database, args: Arguments) -> None:
        (count,) = args
        self.skipping = integer(count)

    def _kept_back(self, db: Database, args: Arguments) -> None:
        self.until = list(map(integer, args))


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


def _in_twos(words: Arguments) -> Iterator[tuple[bytes, bytes]]:
    return zip(words[::2], words[1::2], strict=True)


def _in_threes(words: Arguments) -> Iterator[tuple[bytes, bytes, bytes]]:
    return zip(words[::3], words[1::3], words[2::3], strict=True)


def _released(db: Database, args: Arguments) -> None:
    key, name, *entries = args
    _, group = group_at(db, key, name)
    for entry_id, count in _in_twos(entries):
        group.pending.set(ids.parse(entry_id), None, 0, integer(count))


def _released_until(db: Database, args: Arguments) -> None:
    key, name, *entries = args
    _, group = group_at(db, key, name)
    for entry_id, count, time in _in_threes(entries):
        group.pending.set(ids.parse(entry_id), None, integer(time), integer(count))


def _ended(db: Database, args: Arguments) -> None:
    key, name, *words = args
    columns = words[::5], words[1::5], words[2::5], words[3::5], words[4::5]
    for text, *line in zip(*columns, strict=True):
        _note_ended(db, key, name, line, [text])


def _ended_together(db: Database, args: Arguments) -> None:
    _note_ended(db, args[0], args[1], args[2:6], args[6:])


def _note_ended(
    db: Database, key: bytes, name: bytes, words: Sequence[bytes], texts: Sequence[bytes]
) -> None:
    """Notes that deliveries of entries ended, as far as these are pending."""
    _, group = group_at(db, key, name)
    time, consumer, how, reason = words
    line = EndedDelivery(integer(time), consumer, how, reason)
    for text in texts:
        entry_id = ids.parse(text)
        if entry_id in group.pending:
            group.pending.own_extras().histories.note(entry_id, line)


def _policy(db: Database, args: Arguments) -> None:
    key, *words = args
    stream_at(db, key)
    db.set_policy(key, None, dict(_in_twos(words)))


def _group_policy(db: Database, args: Arguments) -> None:
    key, name, *words = args
    _, group = group_at(db, key, name)
    db.set_policy(key, group, dict(_in_twos(words)))


def _trimmed(db: Database, args: Arguments) -> None:
    stream = stream_at(db, args[0])
    for entry_id in args[1:]:
        stream.log.delete(ids.parse(entry_id))


def _blocks(db: Database, args: Arguments) -> None:
    stream = stream_at(db, args[0])
    try:
        stream.log.arrange(args[1:])
    except (ValueError, TypeError, IndexError, ProtocolError):
        key = shown(args[0])
        raise LoadError(f"the blocks of the stream {key} do not fit its entries") from None


def _retention(db: Database, args: Arguments) -> None:
    key, duration, maxsize = args
    stream_at(db, key).idempotency.configure(integer(duration), integer(maxsize))


def _iids(db: Database, args: Arguments) -> None:
    table = stream_at(db, args[0]).idempotency
    columns = args[1::4], args[2::4], args[3::4], args[4::4]
    for producer, iid, entry_id, time in zip(*columns, strict=True):
        table.record(producer, iid, ids.parse(entry_id), integer(time))


def _duplicate(db: Database, args: Arguments) -> None:
    (key,) = args
    stream_at(db, key).idempotency.duplicates += 1


def _lifetime(db: Database, args: Arguments) -> None:
    key, added, duplicates = args
    table = stream_at(db, key).idempotency
    table.added, table.duplicates = integer(added), integer(duplicates)
