"""Databases: what is done to collections, and fields that expire."""

from __future__ import annotations

import pytest

from storage.engine.effects import HASH, Changed
from storage.errors import WrongType
from storage.keyspace.databases import Database, Keyspace
from storage.types.hash import Hash
from storage.types.set import SetValue

NOW = 1_000_000
EVENT = ((HASH, "hset"),)


@pytest.fixture
def keyspace() -> Keyspace:
    keyspace = Keyspace(2)
    keyspace.now_ms = NOW
    return keyspace


@pytest.fixture
def db(keyspace: Keyspace) -> Database:
    return keyspace.databases[0]


def told(keyspace: Keyspace) -> list[tuple[tuple[bytes, ...], list[str]]]:
    """The words of the effects since the last call, with the names of their events."""
    keyspace.check()
    found = [
        (effect.words, [name for _, name in effect.events])
        for effect in keyspace.effects
        if isinstance(effect, Changed)
    ]
    keyspace.effects.clear()
    return found


def put(db: Database, key: bytes, *fields: bytes) -> Hash:
    value = db.collection_to_fill(key, Hash)
    for field in fields:
        value.set(field, b"v")
    db.changed(key, value, (b"HSET", key, *fields), EVENT)
    return value


def test_a_collection_is_stored_with_its_first_element_and_goes_with_its_last(
    keyspace: Keyspace, db: Database
) -> None:
    value = db.collection_to_fill(b"k", Hash)
    assert b"k" not in db.values
    put(db, b"k", b"f")
    assert told(keyspace) == [((b"HSET", b"k", b"f"), ["new", "hset"])]
    found = db.collection(b"k", Hash)
    assert found is not None
    found.remove(b"f")
    db.changed(b"k", found, (b"HDEL", b"k", b"f"), ((HASH, "hdel"),))
    assert told(keyspace) == [((b"HDEL", b"k", b"f"), ["hdel", "del"])]
    assert b"k" not in db.values
    assert len(value) == 0


def test_a_collection_of_another_type_is_refused(db: Database) -> None:
    put(db, b"k", b"f")
    db.set_string(b"s", b"text", None)
    for key, kind in ((b"k", SetValue), (b"s", Hash)):
        with pytest.raises(WrongType):
            db.collection(key, kind)
        with pytest.raises(WrongType):
            db.collection_to_read(key, kind)
        with pytest.raises(WrongType):
            db.collection_to_fill(key, kind)
    assert db.collection(b"nothing", Hash) is None
    assert db.collection_to_read(b"nothing", Hash) is None
    assert db.collection_to_read(b"k", Hash) is db.values[b"k"]


def test_what_is_put_replaces_whatever_was_there(keyspace: Keyspace, db: Database) -> None:
    for former, names in ((None, ["new"]), (b"string", ["overwritten", "type_changed"])):
        db.flush()
        if former is not None:
            db.set_string(b"k", former, NOW + 5)
        keyspace.effects.clear()
        value = Hash(keyspace.limits.collections)
        value.set(b"f", b"v")
        db.put(b"k", value, value.words(b"k"), EVENT, NOW + 50)
        [(words, events)] = told(keyspace)
        assert words == (b"HSET", b"k", b"f", b"v")
        assert events == [*names, "hset"]
        assert db.expires[b"k"] == NOW + 50


def test_fields_go_when_their_time_is_over_and_the_key_with_the_last(
    keyspace: Keyspace, db: Database
) -> None:
    value = put(db, b"k", b"a", b"b", b"c")
    for field, at in ((b"a", NOW + 10), (b"b", NOW + 20), (b"c", NOW + 20)):
        value.expire_at(field, at)
    db.changed(b"k", value, (b"HPEXPIREAT",), EVENT)
    told(keyspace)
    assert db.field_times == {b"k": NOW + 10}
    keyspace.now_ms = NOW + 11
    assert db.get(b"k") is value
    assert told(keyspace) == [((b"HDEL", b"k", b"a"), ["hexpired"])]
    assert db.field_times == {b"k": NOW + 20}
    keyspace.now_ms = NOW + 21
    assert db.collection(b"k", Hash) is None
    assert told(keyspace) == [((b"HDEL", b"k", b"b", b"c"), ["hexpired", "del"])]
    assert keyspace.expired_fields == 3


def test_fields_that_nobody_asks_for_go_as_keys_do(keyspace: Keyspace, db: Database) -> None:
    value = put(db, b"k", b"a", b"b")
    value.expire_at(b"a", NOW + 10)
    db.changed(b"k", value, (b"HPEXPIREAT",), EVENT)
    told(keyspace)
    keyspace.now_ms = NOW + 11
    assert db.expire_due(10) == 1
    assert told(keyspace) == [((b"HDEL", b"k", b"a"), ["hexpired"])]
    assert db.field_times == {}
    assert list(value.fields) == [b"b"]
