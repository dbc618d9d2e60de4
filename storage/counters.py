"""Counters of 64 bits that wrap around.

Redis keeps entries-added and entries-read in 64 bits and shows them as signed numbers, so what is
counted beyond 2**63 - 1, where only XSETID and ENTRIESREAD get a counter to, shows as negative.
Here they are kept as what they count; :func:`signed` is how they are shown and written down.
"""

from __future__ import annotations

from typing import Final

_HALF: Final = 2**63
_ALL: Final = 2**64


def signed(value: int) -> int:
    """The counter, or the difference of two, as a signed number of 64 bits."""
    return (value + _HALF) % _ALL - _HALF


def unsigned(value: int) -> int:
    """The counter that is shown or written down as ``value``."""
    return value % _ALL
