# Compiled by mypyc.
"""Counters of 64 bits that wrap around.

Redis stores entries-added and entries-read in 64 bits and shows them as signed numbers, so values
above 2**63 - 1, which only XSETID and ENTRIESREAD can set, appear negative. Here the unsigned value
is stored; :func:`signed` converts it for replies and for the append-only file.
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
