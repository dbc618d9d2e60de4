"""Stream IDs as integers, ``milliseconds << 64 | sequence``, which compare as they should."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

SEQUENCE_BITS: Final = 64
MAX_PART: Final = (1 << SEQUENCE_BITS) - 1
MAX_ID: Final = (1 << 2 * SEQUENCE_BITS) - 1


def parse_id(text: bytes | str) -> int:
    """The integer of an ID ``milliseconds-sequence``; without a sequence, of its first entry.

    Raises ValueError if the text is not an ID.
    """
    part = text.decode("ascii") if isinstance(text, bytes) else text
    milliseconds, dash, sequence = part.partition("-")
    if dash and not sequence:
        raise ValueError(f"{part!r} is not a stream ID")
    return _number(milliseconds) << SEQUENCE_BITS | _number(sequence or "0")


def parse_ids(texts: Sequence[bytes]) -> list[int]:
    """Return the integers of IDs in full, as servers give them; faster than one by one."""
    if not texts:
        return []
    numbers = list(map(int, b"-".join(texts).split(b"-")))
    return [
        milliseconds << SEQUENCE_BITS | sequence
        for milliseconds, sequence in zip(numbers[::2], numbers[1::2], strict=True)
    ]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or (number := int(text)) > MAX_PART:
        raise ValueError(f"{text!r} is not a 64-bit number")
    return number


def format_id(number: int) -> str:
    """Return the text ``milliseconds-sequence`` of an ID."""
    return f"{number >> SEQUENCE_BITS}-{number & MAX_PART}"


def before_millisecond(milliseconds: int) -> int:
    """Return the largest ID that is older than a Unix time in milliseconds; 0 for the time 0."""
    return max((milliseconds << SEQUENCE_BITS) - 1, 0)


def split_range(after: int, to: int, pieces: int) -> list[tuple[int, int]]:
    """Cuts the IDs above ``after`` up to ``to`` into at most that many ranges of the same width.

    Each range is ``(after, to)`` again; together they hold every ID once. As IDs begin with the
    time, ranges of one width hold about the same number of entries when these come evenly.
    """
    width = to - after
    pieces = max(1, min(pieces, width))
    cuts = [after + width * piece // pieces for piece in range(pieces + 1)]
    return list(pairwise(cuts))
