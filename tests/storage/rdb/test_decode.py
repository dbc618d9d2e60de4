"""Streams: nodes as they come, groups, and everything that can be wrong with them."""

from __future__ import annotations

from typing import Final

import pytest

from storage.engine.entries import unpack
from storage.engine.limits import StreamLimits
from storage.engine.pending import HIGHEST
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from storage.rdb.decode import read_stream
from storage.rdb.source import DamagedRDB, Source
from storage.rdb.write import length, milliseconds, raw
from storage.steps import result
from tests.storage.rdb.builders import a_stream, node

ONE: Final = (1 << 64) + 1
TWO: Final = (2 << 64) + 1


PLAIN: Final = node(1, 0, 1, b"f", 0, 2, 0, 0, b"v", 4)
"""One entry with the field of its node."""


def stream_of(data: bytes) -> Stream:
    """The stream that these bytes are, verified."""
    source = Source([data])
    keyspace = Keyspace()
    stream = result(read_stream(source, source.byte(), keyspace.limits))
    assert source.is_at_end()
    keyspace.databases[0].attach(b"k", stream)
    keyspace.check()
    return stream


def entries_of(stream: Stream) -> list[object]:
    return [unpack(entry) for entry in stream.log.range(0, 2**128, 100)]


def test_a_node_becomes_a_block_of_the_same_size() -> None:
    data = node(
        *(2, 1, 2, b"a", b"b", 0),
        *(2, 0, 0, b"1", b"text", 5),
        *(3, 1, 0, b"gone", b"gone", 5),
        *(0, 2, -1, 1, b"c", b"d", 6),
    )
    stream = stream_of(a_stream((ONE, data), entries=2, last=(9, 0), added=5))
    assert entries_of(stream) == [
        [b"1-1", [b"a", b"1", b"b", b"text"]],
        [b"3-0", [b"c", b"d"]],
    ]
    (block,) = stream.log.blocks
    assert (block.first, block.last, block.taken) == (ONE, 3 << 64, 3)
    assert block.names == [b"a", b"b"]
    assert block.node_size() == len(data)
    assert (stream.last_id, stream.entries_added) == (9 << 64, 5)


def test_a_node_whose_first_entries_are_deleted_keeps_its_beginning() -> None:
    data = node(1, 1, 1, b"f", 0, 3, 0, 0, b"v", 4, 2, 5, 0, b"w", 4)
    stream = stream_of(a_stream((ONE, data), last=(6, 1)))
    assert stream.log.block_keys == [ONE]
    assert entries_of(stream) == [[b"6-1", [b"f", b"w"]]]


def test_a_node_without_live_entries_is_left_out() -> None:
    empty = node(0, 1, 1, b"f", 0, 3, 0, 0, b"v", 4)
    stream = stream_of(a_stream((ONE, empty), (TWO, PLAIN), last=(2, 1)))
    assert stream.log.block_keys == [TWO]


def test_halves_of_ids_wrap_around_as_they_do_in_64_bits() -> None:
    data = node(1, 0, 1, b"f", 0, 2, -(2**63), -1, b"v", 4)
    stream = stream_of(a_stream((5, data), last=(2**63, 4)))
    assert stream.log.first == (2**63 << 64) + 4
    high = (2**64 - 2 << 64) + 2**64 - 3
    data = node(1, 0, 1, b"f", 0, 2, 1, 2, b"v", 4)
    stream = stream_of(a_stream((high, data), last=(2**64 - 1, 2**64 - 1)))
    assert stream.log.first == 2**128 - 1


def test_nodes_that_follow_each_other_share_field_names() -> None:
    stream = stream_of(a_stream((ONE, PLAIN), (TWO, PLAIN), entries=2, last=(2, 1)))
    first, second = stream.log.blocks
    assert first.names is second.names


def test_more_entries_can_be_added_behind_a_node() -> None:
    stream = stream_of(a_stream((ONE, PLAIN)))
    stream.add(TWO, [b"f", b"w"])
    stream.check()
    (block,) = stream.log.blocks
    assert block.node_size() == len(
        node(2, 0, 1, b"f", 0, *(2, 0, 0, b"v", 4), *(2, 1, 0, b"w", 4))
    )


def a_group(
    *,
    name: bytes = b"g",
    pending: tuple[tuple[int, int, int], ...] = (),
    consumers: tuple[tuple[bytes, int, int, tuple[int, ...]], ...] = (),
    read: int = 1,
) -> bytes:
    """A consumer group behind its number."""
    parts = [raw(name), length(1), length(1), length(read), length(len(pending))]
    for entry_id, time, count in pending:
        parts += [entry_id.to_bytes(16, "big"), milliseconds(time), length(count)]
    parts.append(length(len(consumers)))
    for consumer, seen, active, owned in consumers:
        parts += [raw(consumer), milliseconds(seen), milliseconds(active), length(len(owned))]
        parts += [entry_id.to_bytes(16, "big") for entry_id in owned]
    return b"".join(parts)


def groups(*each: bytes) -> bytes:
    return a_stream((ONE, PLAIN), groups=length(len(each)) + b"".join(each))


def test_pending_entries_may_be_of_entries_that_are_gone() -> None:
    stream = stream_of(
        groups(
            a_group(
                pending=((7, 50, 1), (ONE, 60, 2**64 - 1), (TWO, 50, 1)),
                consumers=((b"ann", 100, -1, (7, TWO)), (b"bob", 100, 90, (ONE,))),
                read=2**64 - 1,
            ),
            a_group(name=b"h"),
        )
    )
    group = stream.groups[b"g"]
    assert group.entries_read is None
    assert [
        (entry.id, entry.owner and entry.owner.name, entry.time, entry.deliveries)
        for entry in group.pending.scan(0)
    ] == [(7, b"ann", 50, 1), (ONE, b"bob", 60, HIGHEST), (TWO, b"ann", 50, 1)]
    assert (group.consumers[b"ann"].seen, group.consumers[b"ann"].active) == (100, -1)
    assert (group.consumers[b"bob"].seen, group.consumers[b"bob"].active) == (100, 90)
    assert stream.groups[b"h"].entries_read == 1


def test_redis_5_kept_no_counters() -> None:
    head = b"\x0f\x01" + raw(ONE.to_bytes(16, "big")) + raw(PLAIN) + b"\x01\x03\x00"
    group = raw(b"g") + b"\x01\x01" + b"\x00" + b"\x01" + raw(b"c") + milliseconds(5) + b"\x00"
    stream = stream_of(head + b"\x01" + group)
    assert (stream.entries_added, stream.max_deleted_id, stream.last_id) == (1, 0, 3 << 64)
    assert stream.groups[b"g"].entries_read == 1
    consumer = stream.groups[b"g"].consumers[b"c"]
    assert (consumer.seen, consumer.active) == (5, 5)


def test_entries_may_have_been_deleted_anywhere_and_their_counter_may_have_wrapped() -> None:
    stream = stream_of(a_stream((ONE, PLAIN), deleted=(8, 0), added=0))
    assert (stream.last_id, stream.max_deleted_id, stream.entries_added) == (ONE, 8 << 64, 0)


def test_an_empty_stream_is_one() -> None:
    stream = stream_of(a_stream(entries=0, last=(4, 2), added=9))
    assert (stream.log.length, stream.last_id, stream.entries_added) == (0, (4 << 64) + 2, 9)


DAMAGED: Final = [
    (a_stream((ONE, node(1, 0, 1, b"f"))), "a node of a stream ends early"),
    (a_stream((ONE, node(1, 0, 3, b"f"))), "a node of a stream ends early"),
    (a_stream((ONE, node())), "a node of a stream ends early"),
    (
        a_stream((ONE, node(1, 0, 1, b"f", 5))),
        "a node of a stream whose field names do not end",
    ),
    (
        a_stream((ONE, node(1, 0, 1, b"f", 0, 4, 0, 0, b"v", 4))),
        "an entry of a stream with unknown flags",
    ),
    (
        a_stream((ONE, node(1, 0, 1, b"f", 0, 2, 0, 0, b"v", 5))),
        "an entry of a stream with a wrong number of elements",
    ),
    (
        a_stream((ONE, node(2, 0, 1, b"f", 0, 2, 0, 0, b"v", 4))),
        "a node of a stream with a wrong number of entries",
    ),
    (
        a_stream((ONE, node(1, 1, 1, b"f", 0, 2, 0, 0, b"v", 4))),
        "a node of a stream with a wrong number of entries",
    ),
    (
        a_stream((ONE, node(2, 0, 1, b"f", 0, *(2, 1, 0, b"v", 4), *(2, 1, 0, b"v", 4)))),
        "entries of a stream that are not in the order of their IDs",
    ),
    (
        a_stream((ONE, node(1, 0, 1, b"f", 0, 2, 0, -1, b"v", 4))),
        "entries of a stream that are not in the order of their IDs",
    ),
    (
        a_stream((0, node(1, 0, 1, b"f", 0, 2, 0, 0, b"v", 4))),
        "entries of a stream that are not in the order of their IDs",
    ),
    (
        a_stream((ONE, node(b"one", 0, 1, b"f", 0, 2, 0, 0, b"v", 4))),
        "text in a stream where a number should be",
    ),
    (
        a_stream((ONE, node(1, -1, 1, b"f", 0, 2, 0, 0, b"v", 4))),
        "a negative number in a stream where none can be",
    ),
    (
        a_stream((TWO, PLAIN), (ONE, PLAIN), entries=2, last=(2, 1)),
        "a node of a stream that begins before the one before it ends",
    ),
    (a_stream((ONE, PLAIN), entries=2), "a stream of 2 entries that has 1"),
    (a_stream((ONE, PLAIN), last=(1, 0)), "counters of a stream that do not fit its entries"),
    (groups(a_group(), a_group()), "two consumer groups of one name"),
    (
        groups(a_group(consumers=((b"c", 0, 0, ()), (b"c", 0, 0, ())))),
        "two consumers of one name",
    ),
    (groups(a_group(pending=((ONE, 0, 1),))), "a pending entry that no consumer has"),
    (
        groups(a_group(pending=((ONE, 0, 1), (ONE, 0, 1)))),
        "an entry that is pending twice",
    ),
    (groups(a_group(consumers=((b"c", 0, 0, (ONE,)),))), "the entry 1-1 is not pending"),
    (
        groups(a_group(pending=((ONE, 0, 1),), consumers=((b"c", 0, 0, (ONE, ONE)),))),
        "the entry 1-1 has two consumers",
    ),
    (b"\x15\x01\x03abc", "a node of a stream whose ID does not have 16 bytes"),
]


@pytest.mark.parametrize(("data", "reason"), DAMAGED, ids=[reason for _, reason in DAMAGED])
def test_what_could_not_be_is_refused(data: bytes, reason: str) -> None:
    source = Source([data])
    with pytest.raises(DamagedRDB) as caught:
        result(read_stream(source, source.byte(), StreamLimits()))
    assert caught.value.reason == reason
    assert 0 < caught.value.offset <= len(data)


def test_the_offset_is_that_of_the_byte_in_a_node() -> None:
    damaged = bytearray(PLAIN)
    damaged[12] ^= 0x04  # The length of the element that holds the field's name.
    data = a_stream((ONE, bytes(damaged)))
    with pytest.raises(DamagedRDB) as caught:
        stream_of(data)
    assert caught.value.offset == data.index(damaged) + 18


def test_the_offset_is_that_of_a_node_whose_data_are_compressed() -> None:
    damaged = PLAIN[:12] + b"\x85" + PLAIN[13:] + b"\0" * 40
    packed = bytes((len(PLAIN) - 1,)) + damaged[: len(PLAIN)] + b"\x00\x00\xe0\x1e\x00"
    key = raw(ONE.to_bytes(16, "big"))
    data = b"\x15\x01" + key + b"\xc3" + length(len(packed)) + length(len(damaged)) + packed
    with pytest.raises(DamagedRDB) as caught:
        stream_of(data + bytes(20))
    assert caught.value.offset == 2 + len(key)
    assert caught.value.reason == "a listpack with a wrong length"
