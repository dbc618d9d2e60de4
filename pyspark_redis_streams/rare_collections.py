"""Entries are lists without cycles, and many: Python need not look for cycles among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

MANY_OBJECTS: Final = 1_000_000
"""Lists that may be alive before Python looks for cycles among them.

There are two an entry: to look at them every few hundred takes three times as long as to read them.
"""

_lock: Final = Lock()
_usual: Final[list[int]] = []
"""The threshold of before, once for each that is at work."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Has the garbage collector leave entries alone, until the last of all threads is done."""
    with _lock:
        _usual.append(_usual[0] if _usual else gc.get_threshold()[0])
        gc.set_threshold(MANY_OBJECTS, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        with _lock:
            usual = _usual.pop()
            if not _usual:
                gc.set_threshold(usual, *gc.get_threshold()[1:])
