"""Files and payloads that are written: their bytes, and what becomes of them when they are read."""

from __future__ import annotations

import pytest

from storage.checksums import crc64
from storage.chunks import CHUNK
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from storage.rdb import codes
from storage.rdb.read import Aux, LibraryCode
from storage.rdb.write import dump, needed_version, write_rdb
from tests.storage.rdb.builders import items_of, keyspace_of, payload

ONE = (1 << 64) + 1
NOW = 1_700_000_000_000


def a_keyspace() -> tuple[Keyspace, Stream]:
    keyspace = Keyspace()
    keyspace.now_ms = NOW
    stream = keyspace.databases[0].make_stream(b"s")
    return keyspace, stream


def written(keyspace: Keyspace, version: int = codes.REDIS_7_2) -> bytes:
    return b"".join(write_rdb(keyspace, version=version))


def read_again(keyspace: Keyspace, version: int = codes.REDIS_7_2) -> Stream:
    stream = keyspace_of(written(keyspace, version)).databases[0].values[b"s"]
    assert isinstance(stream, Stream)
    return stream


def test_a_file_has_these_bytes() -> None:
    keyspace, stream = a_keyspace()
    stream.add(ONE, [b"f", b"v"])
    database = keyspace.databases[2]
    database.set_string(b"12", b"-300", NOW + 1)
    keyspace.libraries[b"lib"] = b"#!lua name=lib\n"
    data = b"".join(write_rdb(keyspace, version=10, aux=[(b"redis-ver", b"8.0.6")]))
    listpack = b"\x18\0\0\0\x0a\0" + b"\x01\x01\0\x01\x01\x01\x81f\x02\0\x01"
    listpack += b"\x02\x01\0\x01\0\x01\x81v\x02\x04\x01\xff"
    listpack = len(listpack).to_bytes(4, "little") + listpack[4:]
    expected = (
        b"REDIS0010\xfa\x09redis-ver\x058.0.6\xf5\x0f#!lua name=lib\n"
        + b"\xfe\x00\xfb\x01\x00\x13\x01s\x01\x10"
        + ONE.to_bytes(16, "big")
        + bytes((len(listpack),))
        + listpack
        + b"\x01\x01\x01\x01\x01\x00\x00\x01\x00"
        + b"\xfe\x02\xfb\x01\x01\xfc"
        + (NOW + 1).to_bytes(8, "little")
        + b"\x00\xc0\x0c\xc1\xd4\xfe\xff"
    )
    assert data == expected + crc64(expected).to_bytes(8, "little")
    assert items_of(data)[:2] == [Aux(b"redis-ver", b"8.0.6"), LibraryCode(b"#!lua name=lib\n")]


def test_valkey_has_its_own_beginning_and_its_own_lengths_of_texts() -> None:
    keyspace, stream = a_keyspace()
    stream.add(ONE, [b"x" * 16378, b"v"])
    redis, valkey = written(keyspace), written(keyspace, codes.VALKEY)
    assert redis.startswith(b"REDIS0011")
    assert valkey.startswith(b"VALKEY080")
    assert len(valkey) == len(redis) - 1
    for data in (redis, valkey):
        (key,) = keyspace_of(data).databases[0].values.values()
        assert isinstance(key, Stream)
        assert key.log.get(ONE) == stream.log.get(ONE)


def test_chunks_are_long_and_make_one_file() -> None:
    keyspace = Keyspace()
    for number in range(3000):
        keyspace.databases[0].set_string(b"key:%d" % number, b"x" * 100)
    chunks = list(write_rdb(keyspace, version=10))
    assert len(chunks) > 3
    assert all(len(chunk) >= CHUNK for chunk in chunks[:-2])
    assert len(chunks[-1]) == 8  # The checksum.
    assert len(items_of(b"".join(chunks))) == 3000


def test_an_empty_keyspace_is_a_file() -> None:
    assert items_of(written(Keyspace())) == []


def test_entries_keep_their_nodes_without_what_is_deleted() -> None:
    keyspace, stream = a_keyspace()
    keyspace.limits.max_entries = 3
    for number in range(1, 8):
        stream.add(number << 64, [b"f", b"%d" % number] if number % 2 else [b"g", b"x" * number])
    stream.delete([1 << 64, 5 << 64])
    again = read_again(keyspace)
    assert again.log.block_keys == stream.log.block_keys == [1 << 64, 4 << 64, 7 << 64]
    assert [block.taken for block in again.log.blocks] == [2, 2, 1]
    assert again.log.range(0, 2**128, 9) == stream.log.range(0, 2**128, 9)
    assert (again.entries_added, again.max_deleted_id) == (7, 5 << 64)


def test_groups_are_as_they_were() -> None:
    keyspace, stream = a_keyspace()
    for number in range(1, 1500):
        stream.add(number, [b"f", b"v"])
    group = stream.add_group(b"g", 1499, 1499)
    stream.add_group(b"h", 3, None)
    ann, bob = group.add_consumer(b"ann", NOW), group.add_consumer(b"bob", NOW - 1)
    ann.active = NOW
    group.pending.append_run(list(range(1, 1300)), ann, NOW)
    group.pending.set(77, bob, NOW - 5, 2**62)
    stream.delete([4])
    again = read_again(keyspace)
    assert again.groups[b"h"].entries_read is None
    twin = again.groups[b"g"]
    columns, others = group.pending.columns(0, 9999, 9999), twin.pending.columns(0, 9999, 9999)
    assert (columns.ids, columns.times, columns.counts) == (
        *(others.ids, others.times),
        others.counts,
    )
    assert [owner and owner.name for owner in columns.owners] == [
        owner and owner.name for owner in others.owners
    ]
    assert (twin.consumers[b"ann"].active, twin.consumers[b"bob"].active) == (NOW, -1)
    assert (twin.last_id, twin.entries_read, len(twin.pending)) == (1499, 1499, 1299)


def test_redis_7_0_has_one_time_of_a_consumer() -> None:
    keyspace, stream = a_keyspace()
    group = stream.add_group(b"g", 0, 0)
    assert (needed_version(stream), needed_version(b"x")) == (10, 10)
    group.add_consumer(b"c", NOW).active = NOW
    assert needed_version(stream) == 10
    group.consumers[b"c"].active = -1
    assert needed_version(stream) == 11
    assert read_again(keyspace, 11).groups[b"g"].consumers[b"c"].active == -1
    assert read_again(keyspace, 10).groups[b"g"].consumers[b"c"].active == NOW


@pytest.mark.parametrize("version", [10, 11])
def test_what_nobody_owns_has_no_owner_when_it_is_read(version: int) -> None:
    keyspace, stream = a_keyspace()
    group = stream.add_group(b"g", 9, 0)
    ann = group.add_consumer(b"ann", NOW)
    group.pending.append_run([1, 2, 3], ann, NOW)
    for entry_id in (3, 1):
        group.pending.set(entry_id, None, NOW, 5)
    read_again(keyspace, version).check()
    twin = read_again(keyspace, version).groups[b"g"]
    assert list(twin.consumers) == [b"ann"]
    assert list(twin.pending.extras.released) == [1, 3]
    assert [
        (entry.id, entry.owner and entry.owner.name, entry.time, entry.deliveries)
        for entry in twin.pending.scan(0)
    ] == [(1, None, 0, 5), (2, b"ann", NOW, 1), (3, None, 0, 5)]


def test_a_consumer_without_a_name_keeps_what_it_has() -> None:
    keyspace, stream = a_keyspace()
    group = stream.add_group(b"g", 9, 0)
    nobody = group.add_consumer(b"", NOW)
    group.pending.append_run([1, 2], nobody, NOW)
    group.pending.set(1, None, NOW, 5)
    twin = read_again(keyspace).groups[b"g"]
    assert [entry.time for entry in twin.pending.scan(0)] == [0, NOW]
    assert list(twin.pending.extras.released) == [1]
    assert (twin.consumers[b""].seen, twin.consumers[b""].owned) == (NOW, 1)


def test_a_consumer_without_a_name_is_there_though_it_has_nothing() -> None:
    keyspace, stream = a_keyspace()
    stream.add_group(b"g", 9, 0).add_consumer(b"", NOW)
    assert read_again(keyspace).groups[b"g"].consumers[b""].seen == NOW


def test_a_string_that_is_being_edited_is_written_like_any_other() -> None:
    keyspace = Keyspace()
    keyspace.databases[0].overwrite(b"k", 0, b"12", "setrange")
    assert keyspace_of(written(keyspace)).databases[0].values == {b"k": b"12"}


def test_a_payload_is_a_value_with_a_footer() -> None:
    assert dump(b"12") == payload(b"\x00\xc0\x0c", 10)
