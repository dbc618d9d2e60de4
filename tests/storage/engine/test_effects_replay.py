"""Applying effects: each of them does to an equal state what it says was done."""

from __future__ import annotations

from typing import get_args

import pytest

from storage.engine import effects as e
from storage.engine.groups import Group
from storage.engine.log import encode_entry
from storage.engine.pending import NEVER, PendingEntry
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from tests.support import replay as module
from tests.support.replay import replay

KEY, GROUP = b"k", b"g"
LATER = 5_000


def added(entry_id: int, created: bool = False, key: bytes = KEY) -> e.EntryAdded:
    return e.EntryAdded(0, key, entry_id, encode_entry(entry_id, [b"f", b"v"]), created)


THREE_ENTRIES: list[e.Effect] = [added(1, created=True), added(2), added(3)]
A_GROUP: list[e.Effect] = [
    *THREE_ENTRIES,
    e.GroupCreated(0, KEY, GROUP, 0, None),
    e.ConsumerCreated(0, KEY, GROUP, b"ann", 100),
]
DELIVERED: list[e.Effect] = [
    *A_GROUP,
    e.Delivered(0, KEY, GROUP, b"ann", (1, 2, 3), 200, (1, 1, 4), 300),
    e.GroupPositionSet(0, KEY, GROUP, 3, 3, False),
]


def replayed(*effects: e.Effect) -> Keyspace:
    """A keyspace in which these effects, and no others, were applied."""
    keyspace = Keyspace(databases=2)
    replay(keyspace, effects)
    keyspace.check()
    assert keyspace.effects == []
    return keyspace


def stream_in(keyspace: Keyspace, key: bytes = KEY, db: int = 0) -> Stream:
    value = keyspace.databases[db].values[key]
    assert isinstance(value, Stream)
    return value


def group_in(keyspace: Keyspace) -> Group:
    return stream_in(keyspace).groups[GROUP]


def pending_in(keyspace: Keyspace) -> list[tuple[int, bytes | None, int, int]]:
    """ID, owner, time and delivery count of each pending entry."""
    return [
        (entry.id, entry.owner.name if entry.owner else None, entry.time, entry.deliveries)
        for entry in group_in(keyspace).pending.scan(0)
    ]


def test_every_kind_of_effect_can_be_applied() -> None:
    assert set(module._APPLY) == set(get_args(e.Effect))


# --- keys ------------------------------------------------------------------------------------


def changed(*words: bytes, db: int = 0) -> e.Changed:
    return e.Changed(db, (), words)


def test_a_string_is_set_with_its_expiry() -> None:
    at = b"%d" % LATER
    database = replayed(
        changed(b"SET", b"s", b"one"), changed(b"SET", b"s", b"two", b"PXAT", at)
    ).databases[0]
    assert (database.values, database.expires) == ({b"s": b"two"}, {b"s": LATER})
    database = replayed(
        changed(b"SET", b"s", b"1", b"PXAT", at), changed(b"SET", b"s", b"1.5", b"KEEPTTL")
    ).databases[0]
    assert (database.values, database.expires) == ({b"s": b"1.5"}, {b"s": LATER})


def test_a_string_is_edited_and_keeps_its_expiry() -> None:
    database = replayed(
        changed(b"SET", b"s", b"one", b"PXAT", b"%d" % LATER),
        changed(b"SETRANGE", b"s", b"1", b"xy"),
        changed(b"SETRANGE", b"s", b"5", b"z"),
        changed(b"SETRANGE", b"t", b"2", b"a"),
        changed(b"APPEND", b"t", b"b"),
    ).databases[0]
    assert (database.string(b"s"), database.string(b"t")) == (b"oxy\0\0z", b"\0\0ab")
    assert (database.expires, database.encodings) == ({b"s": LATER}, {b"s": "raw", b"t": "raw"})


def test_a_string_gets_its_encoding() -> None:
    database = replayed(
        changed(b"SET", b"s", b"1"),
        changed(b"INCRBYFLOAT", b"s", b"0"),
        changed(b"SET", b"t", b"1"),
        changed(b"APPEND", b"t", b""),
    ).databases[0]
    assert database.encodings == {b"s": "embstr", b"t": "raw"}


def test_keys_are_deleted() -> None:
    sets = [changed(b"SET", key, b"1") for key in (b"a", b"b")]
    keyspace = replayed(*THREE_ENTRIES, *sets, changed(b"DEL", KEY), changed(b"DEL", b"a", b"b"))
    assert keyspace.databases[0].values == {}


def test_an_expiry_is_set_and_cleared() -> None:
    expiring: list[e.Effect] = [*THREE_ENTRIES, changed(b"PEXPIREAT", KEY, b"%d" % LATER)]
    assert replayed(*expiring).databases[0].expires == {KEY: LATER}
    assert replayed(*expiring, changed(b"PERSIST", KEY)).databases[0].expires == {}


def test_a_key_is_renamed() -> None:
    database = replayed(
        *THREE_ENTRIES, changed(b"PEXPIREAT", KEY, b"%d" % LATER), e.KeyRenamed(0, KEY, b"new")
    ).databases[0]
    assert list(database.values) == [b"new"]
    assert database.expires == {b"new": LATER}


def test_a_key_is_copied_into_another_database() -> None:
    keyspace = replayed(*THREE_ENTRIES, e.KeyCopied(0, KEY, 1, b"new"), added(4))
    assert list(stream_in(keyspace).log) == [1, 2, 3, 4]
    assert list(stream_in(keyspace, b"new", db=1).log) == [1, 2, 3]


def test_a_key_is_moved_into_another_database() -> None:
    keyspace = replayed(*THREE_ENTRIES, e.KeyMoved(0, KEY, 1))
    assert [list(database.values) for database in keyspace.databases] == [[], [KEY]]


def test_libraries_are_kept_and_dropped() -> None:
    one, two = (b"#!lua name=%b" % name for name in (b"one", b"two"))
    loaded = [changed(b"FUNCTION", b"LOAD", b"REPLACE", code) for code in (one, two, one)]
    assert replayed(*loaded).libraries == {b"one": one, b"two": two}
    assert replayed(*loaded, changed(b"FUNCTION", b"DELETE", b"one")).libraries == {b"two": two}
    emptied = replayed(*loaded, changed(b"FUNCTION", b"FLUSH"), loaded[0])
    assert emptied.libraries == {b"one": one}


def test_a_database_is_emptied() -> None:
    keyspace = replayed(
        *THREE_ENTRIES,
        changed(b"SET", b"s", b"one", db=1),
        e.Flushed(0, {KEY}),
    )
    assert [list(database.values) for database in keyspace.databases] == [[], [b"s"]]


def test_databases_change_places() -> None:
    keyspace = replayed(*THREE_ENTRIES, e.Swapped(0, 1, {KEY}, ()))
    assert [list(database.values) for database in keyspace.databases] == [[], [KEY]]


# --- streams ---------------------------------------------------------------------------------


def test_an_empty_stream_is_made() -> None:
    stream = stream_in(replayed(e.StreamCreated(0, KEY)))
    assert (stream.log.length, stream.last_id) == (0, 0)


def test_entries_are_added_and_make_their_stream() -> None:
    stream = stream_in(replayed(*THREE_ENTRIES))
    assert list(stream.log) == [1, 2, 3]
    assert stream.log.get(2) == encode_entry(2, [b"f", b"v"])
    assert (stream.last_id, stream.entries_added) == (3, 3)


def test_the_oldest_entries_are_trimmed() -> None:
    stream = stream_in(replayed(*THREE_ENTRIES, e.StreamTrimmed(0, KEY, 2, 1, 3)))
    assert (list(stream.log), stream.max_deleted_id) == ([3], 0)


@pytest.mark.parametrize(("trimmed", "highest"), [(False, 2), (True, 0)])
def test_single_entries_are_deleted(trimmed: bool, highest: int) -> None:
    stream = stream_in(replayed(*THREE_ENTRIES, e.EntriesDeleted(0, KEY, (2, 1), trimmed)))
    assert (list(stream.log), stream.max_deleted_id) == ([3], highest)


def test_the_counters_of_a_stream_are_set() -> None:
    stream = stream_in(replayed(*THREE_ENTRIES, e.StreamPositionSet(0, KEY, 9, 20, 7)))
    assert (stream.last_id, stream.entries_added, stream.max_deleted_id) == (9, 20, 7)


def test_idempotent_ids_are_recorded_until_their_retention_changes() -> None:
    recorded: list[e.Effect] = [
        *THREE_ENTRIES,
        e.IdempotentIDRecorded(0, KEY, b"p", b"i", 2, 500),
        e.DuplicateSuppressed(0, KEY),
    ]
    table = stream_in(replayed(*recorded)).idempotency
    assert table.find(b"p", b"i", 600) == 2
    assert (table.added, table.duplicates) == (1, 1)
    table = stream_in(replayed(*recorded, e.IdempotencyConfigured(0, KEY, 7, 8))).idempotency
    assert (table.duration, table.maxsize, table.tracked) == (7, 8, 0)
    assert (table.added, table.duplicates) == (1, 1)


# --- groups ----------------------------------------------------------------------------------


def test_a_group_is_made_with_its_position() -> None:
    keyspace = replayed(*THREE_ENTRIES, e.GroupCreated(0, KEY, GROUP, 2, 1))
    assert (group_in(keyspace).last_id, group_in(keyspace).entries_read) == (2, 1)


@pytest.mark.parametrize("explicit", [False, True])
def test_the_position_of_a_group_is_set(explicit: bool) -> None:
    keyspace = replayed(*A_GROUP, e.GroupPositionSet(0, KEY, GROUP, 2, None, explicit))
    assert (group_in(keyspace).last_id, group_in(keyspace).entries_read) == (2, None)


def test_a_group_is_destroyed() -> None:
    keyspace = replayed(*DELIVERED, e.GroupDestroyed(0, KEY, GROUP))
    assert stream_in(keyspace).groups == {}


def test_a_consumer_is_made_and_seen() -> None:
    ann = group_in(replayed(*A_GROUP)).consumers[b"ann"]
    assert (ann.seen, ann.active) == (100, NEVER)
    seen = e.ConsumerSeen(0, KEY, GROUP, b"ann", 700, 600)
    ann = group_in(replayed(*A_GROUP, seen)).consumers[b"ann"]
    assert (ann.seen, ann.active) == (700, 600)


def test_a_consumer_is_deleted_with_what_it_owns() -> None:
    keyspace = replayed(*DELIVERED, e.ConsumerDeleted(0, KEY, GROUP, b"ann"))
    assert (group_in(keyspace).consumers, pending_in(keyspace)) == ({}, [])


def test_delivered_entries_are_pending() -> None:
    keyspace = replayed(*DELIVERED)
    assert pending_in(keyspace) == [
        (1, b"ann", 200, 1),
        (2, b"ann", 200, 1),
        (3, b"ann", 200, 4),
    ]
    ann = group_in(keyspace).consumers[b"ann"]
    assert (ann.seen, ann.active) == (300, 300)


def test_entries_are_delivered_to_another_consumer() -> None:
    keyspace = replayed(
        *DELIVERED,
        e.ConsumerCreated(0, KEY, GROUP, b"bob", 400),
        e.Delivered(0, KEY, GROUP, b"bob", (2,), 400, (2,), 400),
    )
    group = group_in(keyspace)
    assert group.pending.get(2) == PendingEntry(2, group.consumers[b"bob"], 400, 2)


def test_entries_are_delivered_once_more() -> None:
    keyspace = replayed(*DELIVERED, e.Redelivered(0, KEY, GROUP, b"ann", (1, 3), 900))
    assert pending_in(keyspace) == [
        (1, b"ann", 900, 2),
        (2, b"ann", 200, 1),
        (3, b"ann", 900, 5),
    ]


def test_entries_are_freed_in_their_order() -> None:
    keyspace = replayed(*DELIVERED, e.Released(0, KEY, GROUP, (3, 1), (7, 0)))
    assert pending_in(keyspace) == [(1, None, 0, 0), (2, b"ann", 200, 1), (3, None, 0, 7)]
    assert list(group_in(keyspace).pending.extras.released) == [3, 1]


def test_entries_are_kept_back_until_a_time() -> None:
    keyspace = replayed(*DELIVERED, e.Released(0, KEY, GROUP, (3, 1), (7, 0), (900, 0)))
    assert pending_in(keyspace) == [(1, None, 0, 0), (2, b"ann", 200, 1), (3, None, 900, 7)]


def test_entries_that_were_never_delivered_are_kept_back() -> None:
    keyspace = replayed(*DELIVERED, e.KeptBack(0, KEY, GROUP, (4, 5), (900, 0)))
    assert pending_in(keyspace)[3:] == [(4, None, 900, 0), (5, None, 0, 0)]
    assert not group_in(keyspace).pending.extras.released


def test_streams_and_groups_have_policies() -> None:
    of_group, of_stream = ((b"ack-wait", b"5"),), ((b"delete", b"acked"),)
    keyspace = replayed(
        *DELIVERED, e.PolicySet(0, KEY, GROUP, of_group), e.PolicySet(0, KEY, None, of_stream)
    )
    assert group_in(keyspace).policy == {b"ack-wait": b"5"}
    stream = keyspace.databases[0].stream(KEY)
    assert stream is not None
    assert stream.policy == {b"delete": b"acked"}


def test_entries_are_acknowledged() -> None:
    keyspace = replayed(*DELIVERED, e.Acknowledged(0, KEY, GROUP, (3, 1)))
    assert pending_in(keyspace) == [(2, b"ann", 200, 1)]
