"""Hashes as values: what changes one, what it looks like elsewhere, picks and pages of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.limits import FEW, StreamLimits
from storage.types.collection import SAMPLE
from storage.types.hash import Hash
from storage.types.kinds import HASH, kind_of

FIELDS = st.binary(max_size=3)


def a_hash(count: int) -> Hash:
    """A hash with fields ``0``, ``1`` and so on, which are worth themselves."""
    value = Hash(StreamLimits().collections)
    for number in range(count):
        value.set(b"%d" % number, b"%d" % number)
    return value


@given(st.lists(st.tuples(st.booleans(), FIELDS, FIELDS)), st.booleans())
def test_it_is_a_dictionary_with_or_without_an_index(
    steps: list[tuple[bool, bytes, bytes]], indexed: bool
) -> None:
    value, model = a_hash(0), dict[bytes, bytes]()
    for setting, field, text in steps:
        if indexed:
            value.members.page(0, 1)
        if setting:
            assert value.set(field, text) is (field not in model)
            model[field] = text
        else:
            assert value.remove(field) is (model.pop(field, None) is not None)
    assert list(value.fields.items()) == list(model.items())
    assert len(value) == len(model)
    value.check()


@given(
    st.lists(st.tuples(st.sampled_from("sepxr"), FIELDS, st.integers(1, 5)), max_size=30),
    st.booleans(),
)
def test_fields_expire_unless_they_are_set_anew(
    steps: list[tuple[str, bytes, int]], large: bool
) -> None:
    value, times = a_hash(0), dict[bytes, int]()
    if large:
        value.set(bytes(65), b"")
    for step, field, at in steps:
        if step == "e" and field in value.fields:
            value.expire_at(field, at)
            times[field] = at
        elif step == "p":
            assert value.persist(field) is (times.pop(field, None) is not None)
        elif step == "x":
            value.edit(field, b"new")
        elif step in "sr":
            (value.remove if step == "r" else lambda name: value.set(name, b""))(field)
            times.pop(field, None)
        value.check()
    assert value.times == times
    assert sorted(value.drop_due(3)) == sorted(name for name, at in times.items() if at <= 3)
    assert value.due_at == -1 or value.due_at > 3
    value.check()


def test_small_hashes_have_what_expires_first_in_front() -> None:
    value = a_hash(5)
    for field, at in ((b"3", 20), (b"1", 20), (b"4", 10)):
        value.expire_at(field, at)
    assert list(value.fields) == [b"4", b"1", b"3", b"0", b"2"]
    assert value.encoding() == "listpackex"
    value.set(b"1", b"")
    assert list(value.fields) == [b"4", b"3", b"0", b"2", b"1"]
    copy = value.copy()
    assert copy.drop_due(10) == [b"4"]
    assert list(value.words(b"k")) == [
        (b"HSET", b"k", b"4", b"4", b"3", b"3", b"0", b"0", b"2", b"2", b"1", b""),
        (b"HPEXPIREAT", b"k", b"20", b"FIELDS", b"1", b"3"),
        (b"HPEXPIREAT", b"k", b"10", b"FIELDS", b"1", b"4"),
    ]


def test_a_copy_is_a_value_of_its_own() -> None:
    value = a_hash(600)
    copy = value.copy()
    value.set(b"0", b"other")
    assert (copy.fields[b"0"], copy.encoding()) == (b"0", "hashtable")
    assert kind_of(copy) is HASH


def test_few_fields_and_short_ones_are_small_and_never_again_when_they_were_not() -> None:
    assert a_hash(512).is_small
    value = a_hash(513)
    value.remove(b"512")
    assert not value.is_small
    long = a_hash(1)
    long.set(b"f", bytes(64))
    assert long.encoding() == "listpack"
    long.set(bytes(65), b"")
    assert long.encoding() == "hashtable"


def test_commands_of_64_fields_make_it_anew() -> None:
    commands = list(a_hash(130).words(b"k"))
    assert [(words[:2], len(words)) for words in commands] == [
        ((b"HSET", b"k"), 130),
        ((b"HSET", b"k"), 130),
        ((b"HSET", b"k"), 6),
    ]
    assert commands[2][2:] == (b"128", b"128", b"129", b"129")
    assert list(a_hash(0).words(b"k")) == []


def test_its_memory_grows_with_its_fields_and_their_length() -> None:
    assert a_hash(0).memory() == 0
    small, many, long = a_hash(10), a_hash(1000), a_hash(10)
    long.set(b"f", bytes(10_000))
    assert small.memory() < long.memory()
    assert 50 * small.memory() < many.memory()


@pytest.mark.parametrize("count", [1, SAMPLE, SAMPLE + 1, 2000])
def test_a_pick_is_one_of_the_fields_and_each_may_come(count: int) -> None:
    value = a_hash(count)
    picked = {value.members.pick() for _ in range(30 * count)}
    assert picked <= set(value.fields)
    assert len(picked) > count * 0.9 or picked == set(value.fields)


@pytest.mark.parametrize("count", [0, 1, 10, 90, 100, 101, 10**18])
def test_picks_are_different_fields(count: int) -> None:
    value = a_hash(100)
    picks = value.members.picks(count)
    assert len(picks) == len(set(picks)) == min(count, 100)
    assert set(picks) <= set(value.fields)


def test_a_walk_comes_past_each_field_that_is_there_all_the_time() -> None:
    value = a_hash(1000)
    cursor, seen = 0, set[bytes]()
    while True:
        cursor, page = value.members.page(cursor, 50)
        seen.update(page)
        value.set(b"new%d" % len(seen), b"")
        if not cursor:
            break
    assert seen >= {b"%d" % number for number in range(1000)}


def test_a_long_hash_is_freed_in_portions() -> None:
    limits = StreamLimits()
    value = Hash(limits.collections)
    for number in range(FEW + 1):
        value.set(b"%d" % number, b"")
    value.members.page(0, 1)
    del value
    assert len(limits.disposal) > FEW
    limits.disposal.free(10_000)
    assert len(limits.disposal) == 0
