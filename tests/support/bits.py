"""Every bit of a file: it is refused with the bit changed, or what is read from it is harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

Content = TypeVar("Content")
Refusal = TypeVar("Refusal", bound=Exception)


def flipped(data: bytes, bit: int) -> bytes:
    """The data with the bit of this number changed: 0 to 7 are those of the first byte."""
    at = bit // 8
    return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]


def flips(data: bytes, bits: range | None = None) -> Iterator[tuple[int, bytes]]:
    """The data with one bit changed after the other, each alone, and in which byte it is.

    It is done for all bits, or for these. Where only some can be, a step of 7 has at least one in
    each byte, and each of the eight as often as the others.
    """
    for bit in range(8 * len(data)) if bits is None else bits:
        yield bit // 8, flipped(data, bit)


def outcomes(
    data: bytes,
    read: Callable[[bytes], Content],
    refusal: type[Refusal],
    bits: range | None = None,
) -> Iterator[tuple[int, Content | Refusal]]:
    """What comes of reading the data with each of these bits changed: the error, or the content."""
    for at, changed in flips(data, bits):
        try:
            yield at, read(changed)
        except refusal as error:
            yield at, error


def refusals(
    data: bytes,
    read: Callable[[bytes], object],
    refusal: type[Refusal],
    bits: range | None = None,
) -> Iterator[tuple[int, Refusal]]:
    """The same for data of which no bit may change, whatever may come of it."""
    for at, outcome in outcomes(data, read, refusal, bits):
        assert isinstance(outcome, refusal), f"a bit of the byte at {at} may change"
        yield at, outcome
