"""Entries that are gone through: how much at a time, and when others have their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, cast

import pytest

from server.runtime.clockwork import Slice
from server.web.page.preview import SEARCHED, id_of
from server.web.page.walking import ENTRIES, PIECE, entries, has
from storage.engine import ids
from storage.engine.entries import encode_entry
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog

MEGABYTE: Final = 1024 * 1024


class Hurried:
    """A share of time that is always over; counts how often others have had their turn."""

    def __init__(self) -> None:
        self.rests = 0

    async def rest(self) -> None:
        """Counts it, as :meth:`.Slice.rest` is called."""
        self.rests += 1

    @property
    def slice(self) -> Slice:
        """This, for what asks for one: compiled classes cannot be derived."""
        return cast("Slice", self)


class Watched:
    """A log of entries that notes how many of them are read at once."""

    def __init__(self) -> None:
        self.entries = EntryLog(StreamLimits())
        self.read: list[int] = []

    def by_block(self, start: int, end: int, count: int, newest: bool) -> Iterator[list[bytes]]:
        """As that of any log."""
        self.read.append(0)
        for payloads in self.entries.by_block(start, end, count, newest):
            self.read[-1] += len(payloads)
            yield payloads

    @property
    def log(self) -> EntryLog:
        """This, for what asks for one."""
        return cast("EntryLog", self)

    def add(self, count: int, size: int) -> None:
        """Adds so many entries, each with a value of so many bytes."""
        first = self.entries.length + 1
        for entry_id in range(first, first + count):
            self.entries.append(entry_id, [b"f", b"v" * size])


@pytest.fixture
def log() -> Watched:
    return Watched()


@pytest.fixture
def pace() -> Hurried:
    return Hurried()


def walked(watched: Watched, pace: Hurried, *, newest: bool = False) -> list[int]:
    """The IDs of all entries, as they come."""

    async def walk() -> list[int]:
        read = entries(watched.log, ids.MIN, ids.MAX, pace.slice, newest=newest)
        return [id_of(each) async for each in read]

    return asyncio.run(walk())


@pytest.mark.parametrize("newest", [False, True])
def test_small_entries_are_read_many_at_a_time(log: Watched, pace: Hurried, newest: bool) -> None:
    log.add(120, 10)
    assert walked(log, pace, newest=newest) == list(range(1, 121))[:: -1 if newest else 1]
    assert log.read == [ENTRIES, ENTRIES, 20, 0]


@pytest.mark.parametrize("newest", [False, True])
def test_large_entries_are_read_one_by_one_with_a_rest_after_each(
    log: Watched, pace: Hurried, newest: bool
) -> None:
    log.add(5, MEGABYTE)
    assert walked(log, pace, newest=newest) == [1, 2, 3, 4, 5][:: -1 if newest else 1]
    assert log.read == [1, 1, 1, 1, 1, 0]
    assert pace.rests == 5


def test_small_entries_before_large_ones_do_not_bring_many_of_these(
    log: Watched, pace: Hurried
) -> None:
    log.add(ENTRIES, 10)
    log.add(3, MEGABYTE)
    walked(log, pace)
    assert log.read == [ENTRIES, 1, 1, 1, 0]


def test_only_what_was_asked_for_is_read(log: Watched, pace: Hurried) -> None:
    log.add(5, 10)

    async def walk() -> list[int]:
        return [id_of(each) async for each in entries(log.log, 2, 3, pace.slice)]

    assert asyncio.run(walk()) == [2, 3]


def found_in(payload: bytes, name: bytes, value: bytes) -> bool:
    return asyncio.run(has(payload, name, value, Hurried().slice))


def test_a_filter_finds_fields_by_name_and_a_part_of_the_value() -> None:
    payload = encode_entry(1, [b"item", b"green tea", b"tea", b"no", b"item", b"x"])
    assert found_in(payload, b"item", b"tea")
    assert found_in(payload, b"item", b"")
    assert found_in(payload, b"item", b"x")
    assert not found_in(payload, b"tea", b"yes")
    assert not found_in(payload, b"ite", b"tea")
    assert found_in(payload, b"", b"green")
    assert not found_in(payload, b"", b"milk")
    late = encode_entry(1, [b"a", b"b"] * SEARCHED + [b"item", b"tea"])
    assert not found_in(late, b"item", b"tea")
    assert found_in(encode_entry(1, [b"f", b""]), b"f", b"")


@pytest.mark.parametrize("at", [0, PIECE - 2, PIECE, 3 * PIECE - 3, 4 * PIECE - 3])
def test_what_is_looked_for_may_lie_across_pieces(at: int) -> None:
    value = bytearray(b"." * (4 * PIECE))
    value[at : at + 3] = b"tea"
    payload = encode_entry(1, [b"f", bytes(value), b"other", b"milk"])
    assert found_in(payload, b"f", b"tea")
    assert not found_in(payload, b"f", b"milk")
    assert not found_in(payload, b"f", b"teas")


def test_a_large_value_is_looked_through_in_pieces(pace: Hurried) -> None:
    payload = encode_entry(1, [b"f", b"v" * MEGABYTE])
    assert not asyncio.run(has(payload, b"f", b"tea", pace.slice))
    assert pace.rests == MEGABYTE // PIECE
