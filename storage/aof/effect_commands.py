"""The commands for effects that can be encoded independently of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from storage.aof import extension_records as own
from storage.aof.commands import (
    CLAIMED_AT_ONCE,
    bulk,
    bulk_ids,
    bulks,
    claim,
    command,
    deliver_again,
    number,
)
from storage.engine import effects as e
from storage.engine import ids
from storage.engine.histories import EndedDelivery
from storage.engine.stream import signed

OWNERLESS: Final = b""
"""Under this consumer other servers see entries that have no owner. They have been idle since 1970,
so whoever claims idle entries gets them first."""


def counter(entries_read: int | None) -> bytes:
    """A group's entries-read as a word."""
    return b"-1" if entries_read is None else number(signed(entries_read))


# --- keys ------------------------------------------------------------------------------------


def _key_renamed(effect: e.KeyRenamed) -> list[bytes]:
    return [command(b"RENAME", effect.key, effect.target)]


def _key_copied(effect: e.KeyCopied) -> list[bytes]:
    words = [b"COPY", effect.key, effect.target]
    if effect.target_db != effect.db:
        words += (b"DB", number(effect.target_db))
    return [command(*words, b"REPLACE")]


def _key_moved(effect: e.KeyMoved) -> list[bytes]:
    return [command(b"MOVE", effect.key, number(effect.target_db))]


def _swapped(effect: e.Swapped) -> list[bytes]:
    return [command(b"SWAPDB", number(effect.db), number(effect.other))]


# --- streams ---------------------------------------------------------------------------------


def _stream_restored(effect: e.StreamRestored) -> list[bytes]:
    """A RESTORE, and records of what its payload lacks."""
    _, key, payload, expires_at, layout, times, _, _ = effect
    options = (b"REPLACE",) if expires_at is None else (b"REPLACE", b"ABSTTL")
    commands = [command(b"RESTORE", key, number(expires_at or 0), payload, *options)]
    if layout:
        commands.append(own.record(own.BLOCKS, key, *layout))
    for group, consumers in times:
        commands += own.seen(key, group, consumers)
    return commands


def _stream_trimmed(effect: e.StreamTrimmed) -> list[bytes]:
    return [command(b"XTRIM", effect.key, b"MAXLEN", b"=", number(effect.length))]


def _entries_deleted(effect: e.EntriesDeleted) -> list[bytes]:
    """Other servers have no trimming that leaves entries in between: they see a deletion."""
    entry_ids = list(map(ids.text, effect.ids))
    delete = command(b"XDEL", effect.key, *entry_ids)
    if not effect.trimmed:
        return [delete]
    return [own.record(own.TRIMMED, effect.key, *entry_ids), own.skip(1), delete]


def set_position(key: bytes, last_id: int, entries_added: int, max_deleted_id: int) -> bytes:
    """The XSETID that gives a stream these counters."""
    added = number(signed(entries_added))
    counters = (b"ENTRIESADDED", added, b"MAXDELETEDID", ids.text(max_deleted_id))
    return command(b"XSETID", key, ids.text(last_id), *counters)


def _stream_position_set(effect: e.StreamPositionSet) -> list[bytes]:
    return [set_position(effect.key, effect.last_id, effect.entries_added, effect.max_deleted_id)]


def _idempotency_configured(effect: e.IdempotencyConfigured) -> list[bytes]:
    return [own.retention(effect.key, effect.duration, effect.maxsize)]


def _idempotent_id_recorded(effect: e.IdempotentIDRecorded) -> list[bytes]:
    return own.iids(effect.key, [(effect.producer, effect.iid, effect.id, effect.time)])


def _duplicate_suppressed(effect: e.DuplicateSuppressed) -> list[bytes]:
    return [own.record(own.DUPLICATE, effect.key)]


# --- groups ----------------------------------------------------------------------------------


def create_group(effect: e.GroupCreated, make_stream: bool = False) -> bytes:
    """XGROUP CREATE, which makes the stream as well if that is said."""
    words = [b"XGROUP", b"CREATE", effect.key, effect.group, ids.text(effect.last_id)]
    if make_stream:
        words.append(b"MKSTREAM")
    if effect.entries_read is not None:
        words += (b"ENTRIESREAD", counter(effect.entries_read))
    return command(*words)


def _group_created(effect: e.GroupCreated) -> list[bytes]:
    return [create_group(effect)]


def set_group_position(effect: e.GroupPositionSet, last_id: bytes) -> bytes:
    """XGROUP SETID with the last ID as a bulk string; an entries-read that nobody gave is not
    named, and one that is lost is -1."""
    head, read = b"*5\r\n$6\r\nXGROUP\r\n$5\r\nSETID\r\n", b""
    if not effect.explicit or effect.entries_read is not None:
        head = b"*7\r\n$6\r\nXGROUP\r\n$5\r\nSETID\r\n"
        read = b"$11\r\nENTRIESREAD\r\n" + bulk(counter(effect.entries_read))
    return b"".join((head, bulk(effect.key), bulk(effect.group), last_id, read))


def _group_destroyed(effect: e.GroupDestroyed) -> list[bytes]:
    return [command(b"XGROUP", b"DESTROY", effect.key, effect.group)]


def _consumer_deleted(effect: e.ConsumerDeleted) -> list[bytes]:
    return [command(b"XGROUP", b"DELCONSUMER", effect.key, effect.group, effect.consumer)]


def _redelivered(effect: e.Redelivered) -> list[bytes]:
    _, key, group, consumer, entry_ids, time = effect
    return [deliver_again(key, group, consumer, entry_ids, time)]


def release(key: bytes, group: bytes, entries: Sequence[tuple[int, int, int]]) -> list[bytes]:
    """Free entries of their owner, given by ID, delivery count, and the time before which the
    group's policies keep them back, 0 if they do not."""
    words: list[bytes] = []
    name = own.RELEASED_UNTIL if any(entry[2] for entry in entries) else own.RELEASED
    for entry_id, count, time in entries:
        words += (ids.text(entry_id), number(count))
        if name is own.RELEASED_UNTIL:
            words.append(number(time))
    claims = [
        claim(key, group, OWNERLESS, [entry[0] for entry in run], 0, count)
        for count, run in groupby(entries, key=lambda entry: entry[1])
    ]
    return [own.record(name, key, group, *words), own.skip(len(claims)), *claims]


def _released(effect: e.Released) -> list[bytes]:
    times = effect.times or (0,) * len(effect.ids)
    entries = list(zip(effect.ids, effect.counts, times, strict=True))
    return release(effect.key, effect.group, entries)


def keep_back(
    key: bytes, group: bytes, entry_ids: Sequence[int], until: Sequence[int]
) -> list[bytes]:
    """Make entries pending without an owner that were never delivered, until these times."""
    commands: list[bytes] = []
    for at in range(0, len(entry_ids), CLAIMED_AT_ONCE):
        stop = at + CLAIMED_AT_ONCE
        commands.append(own.kept_back(until[at:stop]))
        commands.append(claim(key, group, OWNERLESS, entry_ids[at:stop], 0, 0))
    return commands


def _kept_back(effect: e.KeptBack) -> list[bytes]:
    return keep_back(effect.key, effect.group, effect.ids, effect.until)


def _deliveries_ended(effect: e.DeliveriesEnded) -> list[bytes]:
    key, group, consumers = effect.key, effect.group, effect.consumers
    line = EndedDelivery(effect.time, consumers[0], effect.how, effect.reason)
    if consumers.count(consumers[0]) == len(consumers):
        return own.ended_together(key, group, line, effect.ids)
    named = zip(effect.ids, consumers, strict=True)
    return own.ended(key, group, [(each, line._replace(consumer=name)) for each, name in named])


def _policy_set(effect: e.PolicySet) -> list[bytes]:
    return [own.policy(effect.key, effect.group, effect.settings)]


def acknowledge(effect: e.Acknowledged) -> bytes:
    """The XACK of the entries, in the client's own words if these are known."""
    words, entry_ids = effect.words, effect.ids
    named = bulks(words) if words else bulk_ids(entry_ids)
    head = b"*%d\r\n$4\r\nXACK\r\n" % (3 + (len(words) or len(entry_ids)))
    return b"".join((head, bulk(effect.key), bulk(effect.group), named))


PLAIN: Final[dict[type, Callable[[Any], list[bytes]]]] = {
    e.KeyRenamed: _key_renamed,
    e.KeyCopied: _key_copied,
    e.KeyMoved: _key_moved,
    e.Swapped: _swapped,
    e.StreamRestored: _stream_restored,
    e.StreamTrimmed: _stream_trimmed,
    e.EntriesDeleted: _entries_deleted,
    e.StreamPositionSet: _stream_position_set,
    e.IdempotencyConfigured: _idempotency_configured,
    e.IdempotentIDRecorded: _idempotent_id_recorded,
    e.DuplicateSuppressed: _duplicate_suppressed,
    e.GroupCreated: _group_created,
    e.GroupDestroyed: _group_destroyed,
    e.ConsumerDeleted: _consumer_deleted,
    e.Redelivered: _redelivered,
    e.Released: _released,
    e.KeptBack: _kept_back,
    e.DeliveriesEnded: _deliveries_ended,
    e.PolicySet: _policy_set,
    e.Acknowledged: lambda effect: [acknowledge(effect)],
}
"""The commands of each kind of effect that needs no look at its neighbours."""
