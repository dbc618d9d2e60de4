"""Whole files: what real servers wrote, what none at hand writes, and what is damaged."""

from __future__ import annotations

from math import nan
from struct import pack

import pytest

from storage.engine.entries import unpack
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.rdb.read import Aux, Item, Key, LibraryCode, is_rdb, read_rdb
from storage.rdb.source import DamagedRDB, Source
from storage.types.collection import Collection, Words
from tests.storage.rdb.builders import items_of, keys_of, keyspace_of, rdb_file, sample
from tests.support.bits import flipped, refusals

NAMES = ["redis-7.0", "redis-8.0", "valkey-9.1"]
CODE = b'#!lua name=lib\nredis.register_function("f",function() return 1 end)'


def words_of(item: Item) -> list[Words]:
    """The commands that make the collection of a key."""
    assert isinstance(item, Key)
    assert isinstance(item.value, Collection)
    return list(item.value.words(item.key))


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 20])
@pytest.mark.parametrize("name", NAMES)
def test_the_file_of_a_real_server_is_read_whole(name: str, chunk: int) -> None:
    items = items_of(sample(name), chunk)
    keys = {item.key: item for item in items if isinstance(item, Key)}
    assert [item for item in items if isinstance(item, LibraryCode)] == [LibraryCode(CODE)]
    strings = {
        b"string": b"text",
        b"number": b"-70000",
        b"expiring": b"x",
        b"repeated": b"ab" * 500,
    }
    assert {key: keys[key].value for key in strings} == strings
    assert keys[b"expiring"].expires_at == 4102444800000
    assert keys[b"string"].expires_at is None
    assert (keys[b"elsewhere"].db, keys[b"elsewhere"].value) == (3, b"1")
    assert words_of(keys[b"hash"]) == [(b"HSET", b"hash", b"a", b"b")]
    large = [text for words in words_of(keys[b"large-hash"]) for text in words[2:]]
    assert dict(zip(large[::2], large[1::2], strict=True)) == {
        b"f%d" % number: b"v" * 70 for number in range(200)
    }
    if name != "redis-7.0":
        for key, field in ((b"hash-expiring", b"a"), (b"large-hash-expiring", b"f3")):
            time = b"4102444800000"
            assert words_of(keys[key])[-1] == (b"HPEXPIREAT", key, time, b"FIELDS", b"1", field)
    assert words_of(keys[b"zset"]) == [(b"ZADD", b"zset", b"1", b"a")]
    (infinite,) = words_of(keys[b"infinite"])
    assert infinite[2:] == (b"-inf", b"b" * 100, b"inf", b"a")
    members = [text for words in words_of(keys[b"large-zset"]) for text in words[2:]]
    assert dict(zip(members[1::2], map(float, members[::2]), strict=True)) == {
        b"m%d" % number: number / 7 for number in range(200)
    }
    assert all(item.value is not None for item in keys.values())
    assert isinstance(keys[b"stream"].value, Stream)


@pytest.mark.parametrize("name", NAMES)
def test_the_stream_in_it_is_as_it_was(name: str) -> None:
    stream = keyspace_of(sample(name)).databases[0].values[b"stream"]
    assert isinstance(stream, Stream)
    assert [unpack(entry) for entry in stream.log.range(0, 2**128, 9)] == [
        [b"1-1", [b"name", b"tea", b"price", b"340"]],
        [b"3-1", [b"other", b"x" * 100]],
    ]
    assert (stream.last_id, stream.max_deleted_id) == ((3 << 64) + 1, (2 << 64) + 1)
    assert stream.entries_added == 3
    group = stream.groups[b"kitchen"]
    assert (group.last_id, group.entries_read) == ((1 << 64) + 1, None)
    (entry,) = group.pending.scan(0)
    assert entry.owner is group.consumers[b"ann"]
    assert (entry.time, entry.deliveries) == (1600000000000, 3)
    bob = group.consumers[b"bob"]
    assert bob.active == (bob.seen if name == "redis-7.0" else -1)


def test_it_says_when_and_how_often_keys_were_used() -> None:
    assert keys_of(sample("redis-7.0"))[b"string"][5:] == (0, None)
    assert keys_of(sample("redis-8.0"))[b"string"][5:] == (None, 5)


def test_a_file_says_who_wrote_it() -> None:
    items = items_of(sample("valkey-9.1"))
    assert items[:2] == [Aux(b"valkey-ver", b"9.1.2"), Aux(b"redis-bits", b"64")]


A_MODULE = b"\x81\x00\x01\x02\x03\x04\x05\x06\x07" + (
    b"\x01\x05\x02\x40\x50\x03abcd\x04abcdefgh\x05\x03xyz\x00"
)
"""The ID of a module, and data of each kind."""


def test_another_type_is_named_and_passed_over() -> None:
    after = b"\x00\x05after\x01x"
    items = items_of(rdb_file(b"\x07\x01k" + A_MODULE, after))
    assert items == [
        Key(0, b"k", "module", None, None, None, None),
        Key(0, b"after", "string", b"x", None, None, None),
    ]


def packed(kind: int, data: bytes) -> bytes:
    """The key ``k`` whose value is one packed string."""
    return bytes((kind,)) + b"\x01k" + bytes((len(data),)) + data


ZIPLIST = b"\x11\0\0\0\x0d\0\0\0\x02\0\0\x01a\x03\x01b\xff"
OLD_FORMS = {
    b"\x04\x01k\x01\x01a\x01b": (b"HSET", b"k", b"a", b"b"),
    b"\x01\x01k\x02\x01a\x01b": (b"RPUSH", b"k", b"a", b"b"),
    packed(10, ZIPLIST): (b"RPUSH", b"k", b"a", b"b"),
    b"\x0e\x01k\x02" + 2 * (b"\x11" + ZIPLIST): (b"RPUSH", b"k", b"a", b"b", b"a", b"b"),
    b"\x12\x01k\x01\x01\x03abc": (b"RPUSH", b"k", b"abc"),
    b"\x02\x01k\x01\xc0\x05": (b"SADD", b"k", b"5"),
    packed(11, b"\x02\0\0\0\x02\0\0\0\xff\xff\x07\0"): (b"SADD", b"k", b"-1", b"7"),
    b"\x03\x01k\x03\x01d\xff\x01a\x031.5\x01c\xfe": (
        *(b"ZADD", b"k", b"-inf", b"d", b"1.5", b"a", b"inf", b"c"),
    ),
    b"\x05\x01k\x02\x01a" + pack("<d", 2) + b"\xc0\x07" + pack("<d", -1): (
        *(b"ZADD", b"k", b"-1", b"7", b"2", b"a"),
    ),
    packed(12, ZIPLIST.replace(b"b", b"7")): (b"ZADD", b"k", b"7", b"a"),
    packed(17, b"\x0c\0\0\0\x02\0\x81a\x02\x07\x01\xff"): (b"ZADD", b"k", b"7", b"a"),
    packed(9, b"\x01\x01a\x01\x00b\xff"): (b"HSET", b"k", b"a", b"b"),
    packed(13, ZIPLIST): (b"HSET", b"k", b"a", b"b"),
}
"""Values in forms that old servers wrote, and the command that makes them."""


@pytest.mark.parametrize(("data", "words"), OLD_FORMS.items())
def test_old_forms_of_collections_are_read(data: bytes, words: Words) -> None:
    (key,) = items_of(rdb_file(data))
    assert words_of(key) == [words]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x04\x01k\x00", "a value of 0 elements of which 0 differ"),
        (b"\x04\x01k\x02\x01a\x01b\x01a\x01c", "a value of 2 elements of which 1 differ"),
        (packed(11, b"\x03\0\0\0\x01\0\0\0abc"), "an intset with a wrong length"),
        (packed(9, b"\x01\x01a\xff"), "a zipmap that ends early"),
        (b"\x03\x01k\x01\x01a\xfd", "a score that is not a number"),
        (b"\x03\x01k\x01\x01a\x01x", "a member without a score that is a number"),
        (b"\x05\x01k\x01\x01a" + pack("<d", nan), "a score that is not a number"),
        (b"\x05\x01k\x02" + 2 * (b"\x01a" + bytes(8)), "a value of 2 elements of which 1 differ"),
        (packed(12, ZIPLIST), "a member without a score that is a number"),
        (packed(17, b"\x0a\0\0\0\x01\0\x81a\x02\xff"), "a member without a score that is a number"),
        (packed(13, ZIPLIST[:-1] + b"\x01"), "a ziplist without its end"),
        (packed(13, b"abc"), "a ziplist with a wrong length"),
        (packed(16, b"abc"), "a listpack with a wrong length"),
        (packed(16, b"\x0a\0\0\0\x01\0\x81a\x02\xff"), "a field of a hash without its value"),
    ],
)
def test_a_collection_that_cannot_be_is_damage(data: bytes, reason: str) -> None:
    with pytest.raises(DamagedRDB) as caught:
        items_of(rdb_file(data))
    assert caught.value.reason == reason


def test_what_stands_before_a_key_belongs_to_it_alone() -> None:
    seconds = b"\xfd\x00\xe1\xf5\x05\xf8\x07\xf9\x09\x00\x01a\x01x"
    slot = b"\xf4\x01\x02\x03"
    module = b"\xf7" + A_MODULE[:9] + b"\x02\x01" + A_MODULE[9:]
    items = items_of(rdb_file(b"\xfe\x02\xfb\x02\x01", slot, module, seconds, b"\x00\x01b\x01y"))
    assert items == [
        Key(2, b"a", "string", b"x", 100_000_000_000, 7, 9),
        Key(2, b"b", "string", b"y", None, None, None),
    ]


def test_a_checksum_of_zero_is_not_compared() -> None:
    assert items_of(rdb_file(b"\x00\x01a\x01x")[:-8] + bytes(8)) == [
        Key(0, b"a", "string", b"x", None, None, None)
    ]


def test_what_is_behind_the_end_is_left() -> None:
    source = Source([rdb_file() + b"*1\r\n"])
    assert list(read_rdb(source, StreamLimits())) == []
    assert b"".join(source.rest()) == b"*1\r\n"


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"", 0, "it ends early"),
        (b"*2\r\n$6\r\nSELECT", 0, "this is no RDB file: it does not begin with REDIS or VALKEY"),
        (b"REDIS00x1", 0, "this is no RDB file: it does not begin with REDIS or VALKEY"),
        (rdb_file(magic=b"REDIS0013"), 5, "version 13, where 5 to 12 is known"),
        (rdb_file(magic=b"REDIS0004"), 5, "version 4, where 5 to 12 is known"),
        (rdb_file(magic=b"VALKEY081"), 6, "version 81, where 80 is known"),
        (rdb_file(b"\x08"), 9, "a value of the unknown type 8"),
        (rdb_file(b"\x16\x01k"), 9, "a value of the unknown type 22"),
        (rdb_file(b"\xf3"), 9, "a value of the unknown type 243"),
        (rdb_file(b"\x07\x01k\x01\x06"), 13, "data of a module of the unknown kind 6"),
        (
            rdb_file(b"\xf7\x01\x03"),
            11,
            "data of a module that do not say when to load them",
        ),
        (b"REDIS0012\x00\x01a\x05x", 14, "it ends early"),
        (b"REDIS0012\xff\x00\x00", 12, "it ends early"),
    ],
)
def test_what_is_damaged_is_told_with_its_offset(data: bytes, offset: int, reason: str) -> None:
    with pytest.raises(DamagedRDB) as caught:
        items_of(data)
    assert (caught.value.offset, caught.value.reason) == (offset, reason)


def test_a_wrong_checksum_is_told_in_the_end() -> None:
    data = flipped(rdb_file(b"\x00\x01a\x01x"), 8 * 13)
    with pytest.raises(DamagedRDB, match=r"at byte 15: the checksum is \w{16}, that of the data"):
        items_of(data)


@pytest.mark.parametrize("name", NAMES)
def test_no_flipped_bit_gets_through(name: str) -> None:
    data = sample(name)
    assert list(refusals(data, items_of, DamagedRDB, range(0, 8 * len(data), 1049)))


def test_a_file_is_known_by_its_beginning() -> None:
    assert is_rdb(b"REDIS0011...")
    assert is_rdb(b"VALKEY080...")
    assert not is_rdb(b"*2\r\n$6\r\nSELECT\r\n")
