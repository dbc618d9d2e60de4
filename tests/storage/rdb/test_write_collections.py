"""Payloads of hashes, lists, sets and sorted sets are read as what they were written from."""

from __future__ import annotations

import pytest

from storage.engine.limits import StreamLimits
from storage.rdb import codes
from storage.rdb.read import restore
from storage.rdb.write import dump, needed_version
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

LIMITS = StreamLimits()


def a_hash(count: int) -> Hash:
    value = Hash(LIMITS.collections)
    for number in range(count):
        value.set(b"field:%d" % number, b"%d" % number)
    return value


def a_list(count: int) -> ListValue:
    value = ListValue(LIMITS.collections)
    value.push([b"%d" % number for number in range(count)], left=False)
    return value


def a_set(count: int) -> SetValue:
    value = SetValue(LIMITS.collections)
    for number in range(count):
        value.add(b"member:%d" % number)
    return value


def a_sorted_set(count: int) -> SortedSet:
    value = SortedSet(LIMITS.collections)
    for number in range(count):
        value.set(b"member:%d" % number, number / 4 - 10)
    return value


@pytest.mark.parametrize("make", [a_hash, a_list, a_set, a_sorted_set])
@pytest.mark.parametrize("count", [1, 100, 2000])
def test_a_payload_is_read_as_the_value_that_it_was_written_from(
    make: type[Collection], count: int
) -> None:
    value = make(count)  # type: ignore[arg-type]
    assert needed_version(value) == codes.REDIS_7_0
    found = restore(dump(value), LIMITS)
    assert isinstance(found, type(value))
    found.check()
    assert list(found.words(b"k")) == list(value.words(b"k"))


@pytest.mark.parametrize("version", [codes.NEWEST, codes.VALKEY])
def test_times_of_fields_are_kept_where_there_are_any(version: int) -> None:
    value = a_hash(3)
    value.expire_at(b"field:1", 1_800_000_000_123)
    value.expire_at(b"field:2", 1_800_000_000_456)
    assert needed_version(value) == codes.NEWEST
    found = restore(dump(value, version), LIMITS)
    assert isinstance(found, Hash)
    assert (found.fields, found.times) == (value.fields, value.times)


def test_times_of_fields_are_left_out_for_servers_that_have_none() -> None:
    value = a_hash(2)
    value.expire_at(b"field:1", 1_800_000_000_123)
    found = restore(dump(value, codes.REDIS_7_2), LIMITS)
    assert isinstance(found, Hash)
    assert (found.fields, found.times) == (value.fields, {})
