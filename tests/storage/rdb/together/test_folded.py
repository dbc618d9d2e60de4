"""Nodes stay as they are in a file until somebody looks into them."""

from __future__ import annotations

from typing import Final

import pytest

from storage.engine.compression import COLD_AFTER_MS
from storage.engine.entries import encode_entry
from storage.engine.ids import MAX, MIN
from storage.engine.log import EntryLog
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from storage.rdb.decode import read_stream
from storage.rdb.read import restore
from storage.rdb.source import Source
from storage.rdb.write import dump
from storage.steps import result
from tests.storage.rdb.builders import a_stream, node

NODES: Final = 3
ENTRIES: Final = 20
"""How many each node has."""


def _id(number: int) -> int:
    return 7 << 64 | number + 1


def _entry(number: int) -> bytes:
    return encode_entry(_id(number), [b"field", b"value of %d" % number])


ALL: Final = [_entry(number) for number in range(NODES * ENTRIES)]


def _node(first: int) -> bytes:
    items: list[int | bytes] = [ENTRIES, 0, 1, b"field", 0]
    for number in range(ENTRIES):
        items += [2, 0, number, b"value of %d" % (first + number), 4]
    return node(*items)


@pytest.fixture
def stream() -> Stream:
    firsts = range(0, NODES * ENTRIES, ENTRIES)
    data = a_stream(
        *((_id(first), _node(first)) for first in firsts),
        entries=len(ALL),
        last=(7, len(ALL)),
        added=len(ALL),
    )
    source = Source([data])
    return result(read_stream(source, source.byte(), Keyspace().limits))


def folded(log: EntryLog) -> list[bool]:
    """Which of the blocks take as much as their nodes."""
    sizes = [len(_node(first)) for first in range(0, NODES * ENTRIES, ENTRIES)]
    packed = [block.memory_usage() - 10 * ENTRIES for block in log.blocks]
    return [one == other for one, other in zip(packed, sizes[-len(packed) :], strict=True)]


def test_a_block_is_taken_apart_once_an_entry_of_it_is_read(stream: Stream) -> None:
    log = stream.log
    assert (log.length, folded(log)) == (60, [True, True, True])
    assert log.get(_id(25)) == ALL[25]
    assert folded(log) == [True, False, True]
    assert log.range(MIN, MAX, 100) == ALL
    assert folded(log) == [False, False, False]
    log.check()


def test_what_is_held_stays_as_it_was_and_leaves_its_block_alone(stream: Stream) -> None:
    log = stream.log
    number, pieces = log.hold(MIN, MAX, 100)
    backwards, reversed_pieces = log.hold_reverse(MIN, MAX, 100)
    assert (number, backwards, folded(log)) == (60, 60, [True, True, True])
    assert log.trim_to_length(20) == 40
    assert b"".join(piece for some in pieces for piece in some) == b"".join(ALL)
    assert [piece for some in reversed_pieces for piece in some] == ALL[::-1]
    assert folded(log) == [True]


def test_a_copy_has_the_same_entries_and_nothing_is_taken_apart_for_it(stream: Stream) -> None:
    twin = stream.log.copy()
    assert folded(twin) == folded(stream.log) == [True, True, True]
    assert [block.contents() for block in twin.blocks] == [
        ([_id(number) for number in range(first, first + ENTRIES)], ALL[first : first + ENTRIES])
        for first in range(0, NODES * ENTRIES, ENTRIES)
    ]
    assert folded(twin) == [True, True, True]
    twin.delete(_id(0))
    assert (twin.length, stream.log.range(MIN, MAX, 100)) == (59, ALL)


def test_how_it_is_laid_out_is_told_without_taking_anything_apart(stream: Stream) -> None:
    log = stream.log
    log.delete(_id(0))
    log.delete(_id(21))
    restored = restore(dump(stream), Keyspace().limits)
    assert isinstance(restored, Stream)
    twin = restored.log
    before = [block.memory_usage() for block in twin.blocks]
    told = twin.layout()
    assert [block.lowest for block in twin.blocks] == [_id(1), _id(20), _id(40)]
    assert [block.memory_usage() for block in twin.blocks] == before
    assert twin.range(MIN, MAX, 100) == log.range(MIN, MAX, 100)
    assert [block.memory_usage() for block in twin.blocks] != before
    assert twin.layout() == told
    twin.check()


def test_entries_are_added_to_the_last_one(stream: Stream) -> None:
    log = stream.log
    stream.add(_id(60), [b"field", b"value of 60"])
    assert folded(log)[:2] == [True, True]
    assert len(log.blocks) == NODES
    assert log.range(MIN, MAX, 100) == [*ALL, _entry(60)]
    log.check()


def test_a_block_that_nobody_reads_is_compressed_in_its_time(stream: Stream) -> None:
    log, packer = stream.log, stream.log._limits.packer
    packer.round(0)
    packer.round(COLD_AFTER_MS - 1)
    assert folded(log) == [True, True, True]
    packer.round(COLD_AFTER_MS)
    assert folded(log) == [False, False, True], "the block at the end is left alone"
    assert sum(block.memory_usage() for block in log.blocks[:2]) < 2 * len(_node(0))
    assert log.range(MIN, MAX, 100) == ALL


def test_what_is_given_up_before_its_time_is_not_compressed(stream: Stream) -> None:
    packer = stream.log._limits.packer
    packer.round(0)
    for block in stream.log.blocks:
        block.discard()
    assert not packer.round(COLD_AFTER_MS)
    assert [block.memory_usage() for block in stream.log.blocks] == [0, 0, 0]


def test_a_node_that_takes_long_is_taken_apart_at_once() -> None:
    value = b"v" * 40_000
    data = node(2, 0, 1, b"f", 0, *(2, 0, 0, value, 4), *(2, 0, 1, value, 4))
    source = Source([a_stream((_id(0), data), entries=2, last=(7, 2))])
    stream = result(read_stream(source, source.byte(), Keyspace().limits))
    (block,) = stream.log.blocks
    assert block.memory_usage() > len(data) + 10 * 2
    assert block.contents()[0] == [_id(0), _id(1)]
