"""The stream of replication, as far back as it is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.replication.feed import BLOCK, Backlog

SIZES = st.integers(0, 3 * BLOCK) | st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1])


def everything(backlog: Backlog, position: int) -> bytes:
    """All that is behind a position."""
    data = b""
    while more := backlog.read(position + len(data)):
        data += more
    return data


def test_what_is_appended_is_read_behind_any_position() -> None:
    backlog = Backlog(100)
    backlog.append(b"abc")
    backlog.append(b"def")
    assert (backlog.start, backlog.end) == (100, 106)
    assert [backlog.read(position) for position in (100, 102, 106)] == [b"abcdef", b"cdef", b""]


def test_it_holds_positions_from_its_start_to_its_end() -> None:
    backlog = Backlog(5)
    backlog.append(b"ab")
    assert [backlog.holds(position) for position in (4, 5, 6, 7, 8)] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_one_read_ends_where_a_block_does() -> None:
    backlog = Backlog(0)
    backlog.append(bytes(BLOCK + 10))
    assert (len(backlog.read(1)), len(backlog.read(BLOCK))) == (BLOCK - 1, 10)


def test_only_whole_blocks_are_dropped() -> None:
    backlog = Backlog(7)
    backlog.append(bytes(2 * BLOCK + 1))
    backlog.drop(7 + BLOCK - 1)
    assert backlog.start == 7
    backlog.drop(7 + 2 * BLOCK)
    assert (backlog.start, backlog.end) == (7 + 2 * BLOCK, 8 + 2 * BLOCK)
    assert backlog.read(backlog.start) == b"\0"


@given(st.lists(SIZES, max_size=8), st.data())
def test_whatever_is_appended_and_dropped_the_rest_is_the_same(
    sizes: list[int], data: st.DataObject
) -> None:
    backlog = Backlog(3)
    whole = b""
    for number, size in enumerate(sizes):
        piece = bytes([number]) * size
        backlog.append(piece)
        whole += piece
        backlog.drop(data.draw(st.integers(backlog.start, backlog.end)))
        position = data.draw(st.integers(backlog.start, backlog.end))
        assert everything(backlog, position) == whole[position - 3 :]
        assert backlog.end == 3 + len(whole)


@pytest.mark.parametrize("dropped", [0, BLOCK])
def test_appending_goes_on_after_everything_was_read_or_dropped(dropped: int) -> None:
    backlog = Backlog(0)
    backlog.append(bytes(BLOCK))
    backlog.drop(dropped)
    backlog.append(b"x")
    assert backlog.read(BLOCK) == b"x"
