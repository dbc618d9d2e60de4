"""Copies of all data: what is in them, and that they do not change."""

from __future__ import annotations

from storage.engine import effects as e
from storage.engine.stream import Stream
from storage.keyspace.copies import copy_of, put_back
from storage.keyspace.databases import Keyspace

NOW = 1_000


def filled() -> Keyspace:
    keyspace = Keyspace(databases=2)
    keyspace.now_ms = NOW
    first, second = keyspace.databases
    first.set_string(b"s", b"12", NOW + 50, encoding="raw")
    second.overwrite(b"edited", 0, b"text", "setrange")
    stream = first.make_stream(b"k")
    stream.add(1 << 64, [b"f", b"v"])
    stream.idempotency.record(b"p", b"i", 1 << 64, NOW)
    group = stream.add_group(b"g", 0, 0)
    stream.pass_over(group, [1 << 64])
    group.deliver([1 << 64], group.add_consumer(b"c", NOW), NOW)
    keyspace.effects.clear()
    return keyspace


def stream_in(keyspace: Keyspace) -> Stream:
    value = keyspace.databases[0].values[b"k"]
    assert isinstance(value, Stream)
    return value


def test_everything_comes_back_as_often_as_it_is_wanted() -> None:
    keyspace = filled()
    copy = copy_of(keyspace)
    for _ in range(2):
        stream = stream_in(keyspace)
        stream.add(2 << 64, [b"f", b"v"])
        stream.groups[b"g"].acknowledge([1 << 64])
        keyspace.databases[0].set_string(b"s", b"other")
        keyspace.databases[1].overwrite(b"edited", 0, b"TEXT", "setrange")
        keyspace.databases[1].set_string(b"new", b"x")
        keyspace.now_ms += 10
        put_back(keyspace, copy)
        keyspace.check()
        first, second = keyspace.databases
        assert (first.values[b"s"], first.expires, first.encodings) == (
            b"12",
            {b"s": NOW + 50},
            {b"s": "raw"},
        )
        assert second.values == {b"edited": b"text"}
        assert first.used == {b"s": NOW, b"k": NOW}
        stream = stream_in(keyspace)
        assert list(stream.log) == [1 << 64]
        assert (1 << 64) in stream.groups[b"g"].pending
        assert stream.idempotency.find(b"p", b"i", NOW) == 1 << 64


def test_keys_that_have_expired_since_are_left_out() -> None:
    keyspace = filled()
    copy = copy_of(keyspace)
    keyspace.now_ms = NOW + 49
    put_back(keyspace, copy)
    assert b"s" in keyspace.databases[0].values
    keyspace.now_ms = NOW + 50
    put_back(keyspace, copy)
    assert set(keyspace.databases[0].values) == {b"k"}


def test_the_effects_are_that_all_was_emptied_and_what_came_back() -> None:
    keyspace = filled()
    copy = copy_of(keyspace)
    put_back(keyspace, copy)
    assert [type(effect) for effect in keyspace.effects] == [
        e.Flushed,
        e.Flushed,
        *(e.Changed, e.Changed),  # The string, and its encoding.
        e.StreamPutBack,
        *(e.Changed, e.Changed),
    ]
    put = keyspace.effects[4]
    assert isinstance(put, e.StreamPutBack)
    assert put.stream is copy[0][b"k"].value, "it does not change, while that of the key may"
    assert put.stream is not stream_in(keyspace)
