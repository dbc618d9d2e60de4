"""Decompressing: literal runs, copies, and what is damaged."""

from __future__ import annotations

import pytest

from storage.rdb.source import expand


@pytest.mark.parametrize(
    ("data", "expanded"),
    [
        (b"", b""),
        (b"\x02abc", b"abc"),
        (b"\x02abc\x20\x02", b"abcabc"),
        (b"\x02abc\x40\x02", b"abcabca"),
        (b"\x00a\xe0\x57\x00", b"a" * (1 + 9 + 0x57)),
        (b"\x1f" + bytes(range(32)) + b"\x20\x1f\x00x", bytes(range(32)) + b"\0\1\2x"),
        # The lower and the upper part of a distance of 257.
        (8 * (b"\x1f" + b"y" * 32) + b"\x00z\x21\x00", b"y" * 256 + b"zyyy"),
    ],
)
def test_runs_and_copies_are_put_together(data: bytes, expanded: bytes) -> None:
    assert expand(data, len(expanded)) == expanded


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"\x02ab", 3),  # A run that ends early.
        (b"\x02abc", 4),  # Less than there should be.
        (b"\x02abc", 2),  # More than that.
        (b"\x02abc\x20\x03", 6),  # What is before the beginning.
        (b"\x20\x00", 3),
        (b"\x00a", 1000),  # More than it can be.
        (b"\x00a\xe0\xff\x00\x00b", 3),
    ],
)
def test_what_does_not_fit_is_refused(data: bytes, size: int) -> None:
    with pytest.raises(ValueError, match="compressed data"):
        expand(data, size)


@pytest.mark.parametrize("data", [b"\x00a\x20", b"\x00a\xe0", b"\x00a\xe0\x01"])
def test_a_copy_that_ends_early_is_refused(data: bytes) -> None:
    with pytest.raises(IndexError):
        expand(data, 20)
