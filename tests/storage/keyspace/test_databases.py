"""Databases: values, expiry, and the effects of what is done to them."""

from __future__ import annotations

import pytest

from storage.engine.effects import (
    Changed,
    Effect,
    Flushed,
    KeyCopied,
    KeyMoved,
    KeyRenamed,
    StreamCreated,
    Swapped,
)
from storage.engine.stream import Stream
from storage.errors import WrongType
from storage.keyspace.databases import Database, Keyspace
from storage.keyspace.tables import KeyspaceState

NOW = 1_000_000


@pytest.fixture
def keyspace() -> Keyspace:
    keyspace = Keyspace(4)
    keyspace.now_ms = NOW
    return keyspace


@pytest.fixture
def db(keyspace: Keyspace) -> Database:
    return keyspace.databases[0]


def taken(keyspace: KeyspaceState) -> list[Effect | str]:
    """The effects since the last call, those of commands as :func:`shown`."""
    if isinstance(keyspace, Keyspace):
        keyspace.check()
    effects: list[Effect | str] = [
        shown(each) if isinstance(each, Changed) else each for each in keyspace.effects
    ]
    keyspace.effects.clear()
    return effects


def shown(effect: Changed) -> str:
    """The command and, for each key, what is told of it; ``wakes`` if clients look again."""
    words = b" ".join(effect.words).decode()
    told = "; ".join(f"{key.decode()}: {_names(effect)}" for key in effect.keys)
    assert effect.db == 0
    assert effect.weight == len(effect.keys)
    return f"{words} | {told}{' (wakes)' * effect.wakes}"


def _names(effect: Changed) -> str:
    return ", ".join(f"{letter} {name}" for letter, name in effect.events)


# --- looking up ------------------------------------------------------------------------------


def test_what_was_set_is_there(db: Database) -> None:
    db.set_string(b"k", b"v")
    assert db.get(b"k") == b"v"
    assert db.string(b"k") == b"v"
    assert len(db) == 1


def test_what_was_not_set_is_not_there(db: Database) -> None:
    assert db.get(b"k") is None
    assert db.string(b"k") is None
    assert db.stream(b"k") is None


def test_a_stream_is_no_string_and_a_string_no_stream(db: Database) -> None:
    stream = db.make_stream(b"stream")
    db.set_string(b"string", b"v")
    assert db.stream(b"stream") is stream
    assert db.stream_to_read(b"stream") is stream
    assert db.string_to_read(b"string") == b"v"
    for string_lookup in (db.string, db.string_to_read):
        with pytest.raises(WrongType):
            string_lookup(b"stream")
    for stream_lookup in (db.stream, db.stream_to_read):
        with pytest.raises(WrongType):
            stream_lookup(b"string")


def test_reading_counts_hits_and_misses_and_getting_does_not(
    keyspace: Keyspace, db: Database
) -> None:
    db.set_string(b"k", b"v")
    db.get(b"k")
    db.get(b"absent")
    assert (keyspace.hits, keyspace.misses) == (0, 0)
    db.read(b"k")
    db.inspect(b"k")
    db.string_to_read(b"k")
    db.read(b"absent")
    db.inspect(b"absent")
    assert (keyspace.hits, keyspace.misses) == (3, 2)


def test_reading_a_value_of_the_wrong_type_is_a_hit(keyspace: Keyspace, db: Database) -> None:
    db.make_stream(b"s")
    with pytest.raises(WrongType):
        db.string_to_read(b"s")
    assert (keyspace.hits, keyspace.misses) == (1, 0)


def test_reading_is_use_and_looking_from_outside_is_not(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"v")
    keyspace.now_ms = NOW + 5000
    db.inspect(b"k")
    db.get(b"k")
    db.read(b"k", touch=False)
    db.string_to_read(b"k", touch=False)
    assert db.used[b"k"] == NOW
    db.read(b"k")
    assert db.used[b"k"] == NOW + 5000


def test_a_stream_is_used_when_it_was_used_last_whatever_it_is_called_then(
    keyspace: Keyspace, db: Database
) -> None:
    stream = db.make_stream(b"s")
    for now in (NOW, NOW + 5, NOW + 5):
        keyspace.now_ms = now
        assert db.stream(b"s") is stream
        assert db.used_at(b"s") == now
    db.rename(b"s", b"t")
    assert db.used_at(b"t") == NOW + 5
    keyspace.now_ms = NOW + 7
    assert db.use(b"t") is stream
    assert db.used_at(b"t") == NOW + 7


def test_a_miss_is_told_to_who_asked_for_it(keyspace: Keyspace, db: Database) -> None:
    told: list[tuple[int, bytes]] = []
    keyspace.on_miss = lambda index, key: told.append((index, key))
    db.read(b"a")
    db.stream_to_read(b"b")
    keyspace.databases[2].string_to_read(b"c")
    db.inspect(b"not told")
    db.get(b"not told")
    assert told == [(0, b"a"), (0, b"b"), (2, b"c")]


# --- strings ---------------------------------------------------------------------------------


def test_the_first_string_at_a_key_creates_it(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"1")
    db.set_string(b"k", b"2", NOW + 10, "set expire")
    assert taken(keyspace) == [
        "SET k 1 | k: n new, $ set (wakes)",
        f"SET k 2 PXAT {NOW + 10} | k: o overwritten, $ set, g expire (wakes)",
    ]


def test_a_new_string_takes_the_old_expiry_and_encoding_away(db: Database) -> None:
    db.set_string(b"k", b"1", NOW + 10, "append", "raw")
    assert (db.expires, db.encodings) == ({b"k": NOW + 10}, {b"k": "raw"})
    db.set_string(b"k", b"2")
    assert (db.expires, db.encodings) == ({}, {})


def test_other_strings_keep_their_encoding(db: Database) -> None:
    db.set_string(b"a", b"1", None, "append", "raw")
    db.set_string(b"b", b"2")
    assert db.encodings == {b"a": "raw"}


# --- deleting and expiring -------------------------------------------------------------------


def test_deleting_tells_whether_there_was_a_key(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"v", NOW + 10, "append", "raw")
    taken(keyspace)
    assert db.delete(b"k") is True
    assert db.delete(b"k") is False
    assert taken(keyspace) == ["DEL k | k: g del (wakes)"]


def test_a_key_is_gone_at_the_millisecond_of_its_expiry(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"v", NOW + 10)
    taken(keyspace)
    keyspace.now_ms = NOW + 9
    assert db.get(b"k") == b"v"
    keyspace.now_ms = NOW + 10
    assert len(db) == 1
    assert db.get(b"k") is None
    assert len(db) == 0
    assert keyspace.expired == 1
    assert taken(keyspace) == ["DEL k | k: x expired (wakes)"]


def test_a_stream_expires_like_a_string(keyspace: Keyspace, db: Database) -> None:
    db.make_stream(b"s")
    db.expire_at(b"s", NOW + 10)
    keyspace.now_ms = NOW + 10
    assert db.stream(b"s") is None


def test_a_key_that_has_expired_can_be_made_anew(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"old", NOW - 1)
    taken(keyspace)
    db.set_string(b"k", b"new")
    assert taken(keyspace) == [
        "DEL k | k: x expired (wakes)",
        "SET k new | k: n new, $ set (wakes)",
    ]


def test_an_expiry_in_the_past_deletes_at_once(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"v")
    taken(keyspace)
    db.expire_at(b"k", NOW)
    assert taken(keyspace) == ["DEL k | k: g del (wakes)"]
    assert keyspace.expired == 0


def test_an_expiry_can_be_set_and_taken_away(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"v")
    taken(keyspace)
    db.expire_at(b"k", NOW + 10)
    assert db.persist(b"k") is True
    assert db.persist(b"k") is False
    assert db.persist(b"absent") is False
    assert taken(keyspace) == [
        f"PEXPIREAT k {NOW + 10} | k: g expire",
        "PERSIST k | k: g persist",
    ]


def test_the_keys_that_are_due_are_removed_a_few_at_a_time(
    keyspace: Keyspace, db: Database
) -> None:
    for number in range(5):
        db.set_string(b"%d" % number, b"v", NOW + number)
    db.set_string(b"stays", b"v", NOW + 1000)
    keyspace.now_ms = NOW + 100
    taken(keyspace)
    assert db.expire_due(3) == 3
    assert taken(keyspace) == [f"DEL {each} | {each}: x expired (wakes)" for each in range(3)]
    assert db.expire_due(3) == 2
    assert db.expire_due(3) == 0
    assert list(db.values) == [b"stays"]


# --- renaming, copying, moving ---------------------------------------------------------------


def test_renaming_takes_expiry_encoding_and_time_of_use_along(
    keyspace: Keyspace, db: Database
) -> None:
    db.set_string(b"a", b"1", NOW + 10, "append", "raw")
    db.set_string(b"b", b"2")
    keyspace.now_ms = NOW + 5
    taken(keyspace)
    db.rename(b"a", b"b")
    assert (db.values, db.expires, db.encodings, db.used) == (
        {b"b": b"1"}, {b"b": NOW + 10}, {b"b": "raw"}, {b"b": NOW},
    )  # fmt: skip
    assert taken(keyspace) == [KeyRenamed(0, b"a", b"b", replaced=True)]


def test_renaming_to_a_key_that_has_expired_removes_that_first(
    keyspace: Keyspace, db: Database
) -> None:
    db.set_string(b"a", b"1")
    db.set_string(b"b", b"2", NOW - 1)
    taken(keyspace)
    db.rename(b"a", b"b")
    assert taken(keyspace) == ["DEL b | b: x expired (wakes)", KeyRenamed(0, b"a", b"b")]


def test_a_copy_of_a_stream_is_its_own(keyspace: Keyspace, db: Database) -> None:
    stream = db.make_stream(b"a")
    stream.add_group(b"g", 0, 0)
    taken(keyspace)
    other = keyspace.databases[1]
    db.copy(b"a", other, b"b")
    copied = other.stream(b"b")
    assert copied is not None
    stream.add_group(b"later", 0, 0)
    assert list(copied.groups) == [b"g"]
    assert taken(keyspace) == [KeyCopied(0, b"a", 1, b"b")]


def test_a_copy_of_a_string_has_its_expiry_and_encoding(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"a", b"1", NOW + 10, "append", "raw")
    db.copy(b"a", db, b"b")
    assert db.values == {b"a": b"1", b"b": b"1"}
    assert db.expires == {b"a": NOW + 10, b"b": NOW + 10}
    assert db.encodings == {b"a": "raw", b"b": "raw"}
    keyspace.check()


def test_moving_takes_everything_along(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"k", b"1", NOW + 10, "append", "raw")
    taken(keyspace)
    other = keyspace.databases[3]
    db.move(b"k", other)
    assert len(db) == 0
    assert (other.values, other.expires, other.encodings) == (
        {b"k": b"1"}, {b"k": NOW + 10}, {b"k": "raw"},
    )  # fmt: skip
    assert taken(keyspace) == [KeyMoved(0, b"k", 3)]


# --- streams ---------------------------------------------------------------------------------


def test_a_stream_made_without_entries_is_an_effect_and_one_attached_is_none(
    keyspace: Keyspace, db: Database
) -> None:
    db.make_stream(b"made")
    db.attach(b"attached", Stream(keyspace.limits))
    assert taken(keyspace) == [StreamCreated(0, b"made")]
    assert db.stream(b"attached") is not None


# --- whole databases -------------------------------------------------------------------------


def test_flushing_removes_everything(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"a", b"1", NOW + 10, "append", "raw")
    db.make_stream(b"b")
    assert db.scan.random() is not None
    taken(keyspace)
    db.flush()
    assert (db.values, db.expires, db.used, db.encodings) == ({}, {}, {}, {})
    assert db.scan.random() is None
    assert taken(keyspace) == [Flushed(0, {b"a", b"b"})]
    keyspace.now_ms = NOW + 10
    assert db.expire_due(10) == 0


def test_swapping_exchanges_contents_and_leaves_databases_where_they_are(
    keyspace: Keyspace, db: Database
) -> None:
    other = keyspace.databases[1]
    db.set_string(b"a", b"1", NOW + 10, "append", "raw")
    other.make_stream(b"b")
    taken(keyspace)
    keyspace.swap(0, 1)
    assert db.stream(b"b") is not None
    assert other.string(b"a") == b"1"
    assert (other.expires, other.encodings) == ({b"a": NOW + 10}, {b"a": "raw"})
    assert taken(keyspace) == [Swapped(0, 1, {b"a"}, {b"b"})]
    keyspace.now_ms = NOW + 10
    assert (db.expire_due(10), other.expire_due(10)) == (0, 1)


def test_swapping_a_database_with_itself_is_nothing(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"a", b"1")
    taken(keyspace)
    keyspace.swap(0, 0)
    assert db.get(b"a") == b"1"
    assert taken(keyspace) == []


# --- deleting many -----------------------------------------------------------------------------


def test_deleting_several_keys_is_one_effect(keyspace: Keyspace, db: Database) -> None:
    for key in (b"a", b"b", b"c"):
        db.set_string(key, b"1", NOW + 10)
    taken(keyspace)
    assert db.delete_all([b"c", b"none", b"a", b"c"]) == 2
    assert taken(keyspace) == ["DEL c a | c: g del; a: g del (wakes)"]
    assert db.values == {b"b": b"1"}
    assert db.delete_all([b"c", b"a"]) == 0
    assert taken(keyspace) == []
    keyspace.check()


def test_a_key_that_has_expired_is_not_among_those_deleted(
    keyspace: Keyspace, db: Database
) -> None:
    for key, at in ((b"a", None), (b"b", NOW + 10), (b"c", None)):
        db.set_string(key, b"1", at)
    taken(keyspace)
    keyspace.now_ms = NOW + 10
    assert db.delete_all([b"a", b"b", b"c"]) == 2
    assert taken(keyspace) == [
        "DEL a | a: g del (wakes)",
        "DEL b | b: x expired (wakes)",
        "DEL c | c: g del (wakes)",
    ]
    keyspace.check()


@pytest.mark.parametrize("count", [1, 10, 300, 999, 1000])
def test_any_number_of_keys_is_deleted(keyspace: Keyspace, db: Database, count: int) -> None:
    keys = [b"%d" % number for number in range(1000)]
    for key in keys:
        db.set_string(key, b"x" * 30, None, "append", "raw")
    assert db.delete_all(keys[:count]) == count
    keyspace.check()
    assert set(db.values) == set(keys[count:])


# --- walking ---------------------------------------------------------------------------------


def test_the_overdue_keys_are_those_that_have_expired_unnoticed(
    keyspace: Keyspace, db: Database
) -> None:
    db.set_string(b"a", b"1")
    assert db.overdue() == set()
    db.set_string(b"b", b"1", NOW + 10)
    db.set_string(b"c", b"1", NOW)
    assert db.overdue() == {b"c"}
    assert len(db) == 3


def test_the_scan_follows_what_comes_and_goes(keyspace: Keyspace, db: Database) -> None:
    db.set_string(b"before", b"1")
    assert db.scan.page(0, 10) == (0, [b"before"])
    db.set_string(b"before", b"2")
    db.set_string(b"after", b"1", NOW + 10)
    db.make_stream(b"stream")
    db.rename(b"stream", b"renamed")
    keyspace.now_ms = NOW + 10
    db.get(b"after")
    assert sorted(db.scan.page(0, 10)[1]) == [b"before", b"renamed"]
    keyspace.check()


# --- editing in place ------------------------------------------------------------------------


def test_a_string_is_written_over_and_grows(db: Database) -> None:
    assert db.overwrite(b"k", 2, b"xy", "setrange") == 4
    assert db.overwrite(b"k", 0, b"ab", "setrange") == 4
    assert db.overwrite(b"k", 3, b"cd", "append") == 5
    assert taken(db.keyspace) == [
        "SETRANGE k 2 xy | k: n new, $ setrange (wakes)",
        "SETRANGE k 0 ab | k: $ setrange (wakes)",
        "APPEND k cd | k: $ append (wakes)",
    ]
    assert db.string(b"k") == b"abxcd"


def test_an_edited_string_is_not_copied_until_it_is_needed_as_a_whole(db: Database) -> None:
    db.set_string(b"k", b"v" * 100)
    db.overwrite(b"k", 1, b"w", "setrange")
    buffer = db.buffer(b"k")
    db.overwrite(b"k", 0, b"w", "setrange")
    assert db.buffer(b"k") is buffer is db.buffer_to_read(b"k") is db.edit(b"k")
    whole = db.string_to_read(b"k")
    assert type(whole) is bytes
    assert db.buffer(b"k") is whole
    db.overwrite(b"k", 0, b"x", "setrange")
    assert whole == b"ww" + b"v" * 98


def test_an_edit_that_changes_nothing_only_makes_the_string_raw(db: Database) -> None:
    db.set_string(b"k", b"1")
    taken(db.keyspace)
    for _ in range(2):
        assert db.edit(b"k") == b"1"
        db.left(b"k")
    assert taken(db.keyspace) == ["APPEND k  | "]
    assert db.encodings == {b"k": "raw"}


def test_the_copy_of_an_edited_string_is_another_string(db: Database) -> None:
    db.overwrite(b"k", 0, b"ab", "setrange")
    db.copy(b"k", db, b"l")
    db.overwrite(b"k", 0, b"x", "setrange")
    assert (db.string(b"k"), db.string(b"l")) == (b"xb", b"ab")


def test_a_stream_cannot_be_edited(db: Database) -> None:
    db.make_stream(b"stream")
    for look in (db.buffer, db.buffer_to_read, db.edit):
        with pytest.raises(WrongType):
            look(b"stream")
