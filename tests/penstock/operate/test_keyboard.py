"""Keys of a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from penstock.operate import top_pages as keys
from penstock.operate.keyboard import Keyboard, key_of


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"\x1b[A", keys.UP),
        (b"\x1bOB", keys.DOWN),
        (b"\x1b", keys.BACK),
        (b"\n", keys.ENTER),
        (b"\x7f", keys.ERASE),
        (b"q", "q"),
        ("\u00e4".encode(), "\u00e4"),
        (b"\x1b[99~", ""),
        (b"\x00", ""),
        (b"\xff", "\ufffd"),
        (b"pasted", ""),
    ],
)
def test_what_a_terminal_sends_is_a_key(data: bytes, key: str) -> None:
    assert key_of(data) == key


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_a_key_is_read_as_soon_as_it_is_pressed_and_none_is_none(ends: tuple[int, int]) -> None:
    reading, writing = ends
    keyboard = Keyboard(reading)
    assert keyboard.read(0) is None
    os.write(writing, b"\x1b[B")
    assert keyboard.read(60) == keys.DOWN
    os.close(writing)
    with pytest.raises(EOFError):
        keyboard.read(60)


def test_where_there_is_no_terminal_no_key_comes() -> None:
    assert Keyboard(None).read(0) is None
