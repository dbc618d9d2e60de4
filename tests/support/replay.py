"""Applying effects: the state that a list of effects describes, made from them alone.

Applied in order to an empty keyspace, the effects of any commands give a state equal to the one
that the commands left. The keyspace's own list of effects is not added to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from server.core.outcomes import Steps, finish
from server.core.table import TABLE
from server.services import Services
from server.state.session import Session
from storage.engine import effects as e
from storage.engine.groups import Group
from storage.engine.histories import EndedDelivery
from storage.engine.log import decode_entry
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace
from storage.rdb.read import restore
from tests.support.direct import Direct


def replay(keyspace: Keyspace, effects: Iterable[e.Effect]) -> None:
    """Applies the effects in order."""
    for effect in effects:
        _APPLY[type(effect)](keyspace, effect)
    keyspace.effects.clear()


def _database(keyspace: Keyspace, effect: Any) -> Database:
    database: Database = keyspace.databases[effect.db]
    return database


def _stream(keyspace: Keyspace, effect: Any) -> Stream:
    value = keyspace.databases[effect.db].values[effect.key]
    assert isinstance(value, Stream)
    return value


def _group(keyspace: Keyspace, effect: Any) -> Group:
    return _stream(keyspace, effect).groups[effect.group]


# --- keys ------------------------------------------------------------------------------------


def _changed(keyspace: Keyspace, effect: e.Changed) -> None:
    name, *words = effect.words
    if name == b"FUNCTION":
        _change_libraries(keyspace, *words)
    elif name in _COMMANDS:
        _COMMANDS[name](_database(keyspace, effect), *words)
    else:
        _run(_database(keyspace, effect), effect.words)


@cache
def _runner() -> tuple[Services, Session]:
    """A server and a session of it, which only lend themselves to handlers."""
    direct = Direct()
    return direct.server.services, direct.client().session


def _run(database: Database, words: tuple[bytes, ...]) -> None:
    """Runs the command of a collection, of which a handler asks nothing but its session's
    database."""
    server, session = _runner()
    session.db = database
    outcome = TABLE[words[0].lower()].handler(server, session, [*words])
    if isinstance(outcome, Steps):
        finish(outcome)


def _set(database: Database, key: bytes, value: bytes, *options: bytes) -> None:
    at = int(options[1]) if options[:1] == (b"PXAT",) else None
    database.set_string(key, value, database.expires.get(key) if options == (b"KEEPTTL",) else at)


def _append(database: Database, key: bytes, data: bytes) -> None:
    database.overwrite(key, len(database.buffer(key) or b""), data, "append")


def _setrange(database: Database, key: bytes, offset: bytes, data: bytes) -> None:
    database.overwrite(key, int(offset), data, "setrange")


def _add_nothing(database: Database, key: bytes, zero: bytes) -> None:
    value = database.string(key)
    assert (value is not None, zero) == (True, b"0")
    database.set_string(key, value or b"", database.expires.get(key), "incrbyfloat", "embstr")


_COMMANDS: Final[dict[bytes, Callable[..., object]]] = {
    b"SET": _set,
    b"APPEND": _append,
    b"SETRANGE": _setrange,
    b"INCRBYFLOAT": _add_nothing,
    b"DEL": lambda database, *keys: database.delete_all(keys),
    b"PEXPIREAT": lambda database, key, at: database.expire_at(key, int(at)),
    b"PERSIST": lambda database, key: database.persist(key),
}
"""The commands that an effect may consist of, done as a server does them."""


def _change_libraries(keyspace: Keyspace, subcommand: bytes, *words: bytes) -> None:
    if subcommand == b"LOAD":
        code = words[-1]
        keyspace.keep_library(0, code.split(b"name=")[1].split()[0], code)
    elif subcommand == b"DELETE":
        keyspace.drop_library(0, *words)
    else:
        keyspace.drop_libraries(0)


def _key_renamed(keyspace: Keyspace, effect: e.KeyRenamed) -> None:
    _database(keyspace, effect).rename(effect.key, effect.target)


def _key_copied(keyspace: Keyspace, effect: e.KeyCopied) -> None:
    target = keyspace.databases[effect.target_db]
    _database(keyspace, effect).copy(effect.key, target, effect.target)


def _key_moved(keyspace: Keyspace, effect: e.KeyMoved) -> None:
    _database(keyspace, effect).move(effect.key, keyspace.databases[effect.target_db])


def _stream_restored(keyspace: Keyspace, effect: e.StreamRestored) -> None:
    database = _database(keyspace, effect)
    stream = restore(effect.payload, keyspace.limits)
    assert isinstance(stream, Stream)
    if effect.layout:
        stream.log.arrange(effect.layout)
    for group, consumers in effect.times:
        for name, seen, active in consumers:
            consumer = stream.groups[group].consumers[name]
            consumer.seen, consumer.active = seen, active
    database.restore_stream(effect.key, stream, effect.payload, effect.expires_at)


def _stream_put_back(keyspace: Keyspace, effect: e.StreamPutBack) -> None:
    assert isinstance(effect.stream, Stream)
    _database(keyspace, effect).put_back(effect.key, effect.stream, effect.expires_at)


def _flushed(keyspace: Keyspace, effect: e.Flushed) -> None:
    _database(keyspace, effect).flush()


def _swapped(keyspace: Keyspace, effect: e.Swapped) -> None:
    keyspace.swap(effect.db, effect.other)


# --- streams ---------------------------------------------------------------------------------


def _stream_created(keyspace: Keyspace, effect: e.StreamCreated) -> None:
    _database(keyspace, effect).make_stream(effect.key)


def _entry_added(keyspace: Keyspace, effect: e.EntryAdded) -> None:
    if effect.created:
        _database(keyspace, effect).make_stream(effect.key)
    _stream(keyspace, effect).add(effect.id, decode_entry(effect.payload)[1])


def _entries_added(keyspace: Keyspace, effect: e.EntriesAdded) -> None:
    for place, payload in enumerate(effect.run.payloads()):
        _stream(keyspace, effect).add(effect.run.first + place, decode_entry(payload)[1])


def _stream_trimmed(keyspace: Keyspace, effect: e.StreamTrimmed) -> None:
    _stream(keyspace, effect).log.trim_to_length(effect.length)


def _entries_deleted(keyspace: Keyspace, effect: e.EntriesDeleted) -> None:
    stream = _stream(keyspace, effect)
    if effect.trimmed:
        for entry_id in effect.ids:
            stream.log.delete(entry_id)
    else:
        stream.delete(effect.ids)


def _stream_position_set(keyspace: Keyspace, effect: e.StreamPositionSet) -> None:
    stream = _stream(keyspace, effect)
    stream.last_id = effect.last_id
    stream.entries_added = effect.entries_added
    stream.max_deleted_id = effect.max_deleted_id


def _idempotency_configured(keyspace: Keyspace, effect: e.IdempotencyConfigured) -> None:
    _stream(keyspace, effect).idempotency.configure(effect.duration, effect.maxsize)


def _idempotent_id_recorded(keyspace: Keyspace, effect: e.IdempotentIDRecorded) -> None:
    table = _stream(keyspace, effect).idempotency
    table.record(effect.producer, effect.iid, effect.id, effect.time)


def _duplicate_suppressed(keyspace: Keyspace, effect: e.DuplicateSuppressed) -> None:
    _stream(keyspace, effect).idempotency.duplicates += 1


# --- groups ----------------------------------------------------------------------------------


def _group_created(keyspace: Keyspace, effect: e.GroupCreated) -> None:
    _stream(keyspace, effect).add_group(effect.group, effect.last_id, effect.entries_read)


def _group_position_set(keyspace: Keyspace, effect: e.GroupPositionSet) -> None:
    group = _group(keyspace, effect)
    group.last_id = effect.last_id
    group.entries_read = effect.entries_read


def _group_destroyed(keyspace: Keyspace, effect: e.GroupDestroyed) -> None:
    _stream(keyspace, effect).drop_group(effect.group)


def _consumer_created(keyspace: Keyspace, effect: e.ConsumerCreated) -> None:
    _group(keyspace, effect).add_consumer(effect.consumer, effect.seen)


def _consumer_deleted(keyspace: Keyspace, effect: e.ConsumerDeleted) -> None:
    _group(keyspace, effect).remove_consumer(effect.consumer)


def _consumer_seen(keyspace: Keyspace, effect: e.ConsumerSeen) -> None:
    consumer = _group(keyspace, effect).consumers[effect.consumer]
    consumer.seen = effect.seen
    consumer.active = effect.active


def _delivered(keyspace: Keyspace, effect: e.Delivered) -> None:
    group = _group(keyspace, effect)
    consumer = group.consumers[effect.consumer]
    for entry_id, count in zip(effect.ids, effect.counts, strict=True):
        group.hand_over(entry_id, consumer, effect.time, count, effect.seen)
    consumer.seen = effect.seen


def _redelivered(keyspace: Keyspace, effect: e.Redelivered) -> None:
    _group(keyspace, effect).pending.count_deliveries(list(effect.ids), effect.time)


def _released(keyspace: Keyspace, effect: e.Released) -> None:
    pending = _group(keyspace, effect).pending
    times = effect.times or (0,) * len(effect.ids)
    for entry_id, count, time in zip(effect.ids, effect.counts, times, strict=True):
        pending.set(entry_id, None, time, count)


def _kept_back(keyspace: Keyspace, effect: e.KeptBack) -> None:
    _group(keyspace, effect).pending.keep_back(effect.ids, effect.until)


def _deliveries_ended(keyspace: Keyspace, effect: e.DeliveriesEnded) -> None:
    histories = _group(keyspace, effect).pending.own_extras().histories
    for entry_id, consumer in zip(effect.ids, effect.consumers, strict=True):
        histories.note(entry_id, EndedDelivery(effect.time, consumer, effect.how, effect.reason))


def _policy_set(keyspace: Keyspace, effect: e.PolicySet) -> None:
    stream = _stream(keyspace, effect)
    settings = dict(effect.settings)
    if effect.group is None:
        stream.policy = settings
    else:
        stream.groups[effect.group].policy = settings
    keyspace.policies = True


def _acknowledged(keyspace: Keyspace, effect: e.Acknowledged) -> None:
    _group(keyspace, effect).acknowledge(list(effect.ids))


_APPLY: Final[dict[type, Callable[[Keyspace, Any], None]]] = {
    e.Changed: _changed,
    e.KeyRenamed: _key_renamed,
    e.KeyCopied: _key_copied,
    e.KeyMoved: _key_moved,
    e.StreamRestored: _stream_restored,
    e.StreamPutBack: _stream_put_back,
    e.Flushed: _flushed,
    e.Swapped: _swapped,
    e.StreamCreated: _stream_created,
    e.EntryAdded: _entry_added,
    e.EntriesAdded: _entries_added,
    e.StreamTrimmed: _stream_trimmed,
    e.EntriesDeleted: _entries_deleted,
    e.StreamPositionSet: _stream_position_set,
    e.IdempotencyConfigured: _idempotency_configured,
    e.IdempotentIDRecorded: _idempotent_id_recorded,
    e.DuplicateSuppressed: _duplicate_suppressed,
    e.GroupCreated: _group_created,
    e.GroupPositionSet: _group_position_set,
    e.GroupDestroyed: _group_destroyed,
    e.ConsumerCreated: _consumer_created,
    e.ConsumerDeleted: _consumer_deleted,
    e.ConsumerSeen: _consumer_seen,
    e.Delivered: _delivered,
    e.Redelivered: _redelivered,
    e.Released: _released,
    e.KeptBack: _kept_back,
    e.DeliveriesEnded: _deliveries_ended,
    e.PolicySet: _policy_set,
    e.Acknowledged: _acknowledged,
}
"""How each kind of effect is applied."""
