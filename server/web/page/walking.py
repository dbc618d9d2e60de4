"""Go through the entries of a stream, however many and however large, a little in each round of the
event loop, and look into large values in pieces.

Whoever goes through entries on the page does it here: a number of entries says nothing about how
long they take, or how much memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from server.runtime.clockwork import Slice
from server.web.page.preview import SEARCHED, id_of, places_of
from storage.engine.log import EntryLog

ENTRIES: Final = 50
PIECE: Final = 64 * 1024
"""How many entries, and of how many bytes (but one entry at least), are read from the stream at
once; and how many bytes of a value are worked on before others may have their turn."""


async def entries(
    log: EntryLog, low: int, high: int, pace: Slice, *, newest: bool = False
) -> AsyncIterator[bytes]:
    """Yield the entries with IDs from ``low`` to ``high``, or with ``newest`` those from ``high``
    down; rests after each, if it is time."""
    while low <= high:
        payloads = _portion(log, low, high, newest)
        if not payloads:
            return
        last = id_of(payloads[-1])
        low, high = (low, last - 1) if newest else (last + 1, high)
        payloads.reverse()
        while payloads:
            yield payloads.pop()
            await pace.rest()


def _portion(log: EntryLog, low: int, high: int, newest: bool) -> list[bytes]:
    """Return the first of these entries; blocks are whole, or of one large entry."""
    found: list[bytes] = []
    size = 0
    for payloads in log.by_block(low, high, ENTRIES, newest):
        found += payloads[::-1] if newest else payloads
        size += sum(map(len, payloads))
        if size >= PIECE:
            break
    return found


async def has(payload: bytes, name: bytes, value: bytes, pace: Slice) -> bool:
    """Whether an entry has ``value`` in the value of a field, among its first :data:`SEARCHED`; of
    the field of that name, or of any if the name is empty."""
    _, places = places_of(payload, SEARCHED)
    for own, (start, length) in zip(places[::2], places[1::2], strict=True):
        if name and (own[1] != len(name) or not payload.startswith(name, own[0])):
            continue
        end = start + length
        for at in range(start, max(end - len(value), start) + 1, PIECE):
            if payload.find(value, at, min(at + PIECE + len(value), end)) >= 0:
                return True
            await pace.rest()
    return False
