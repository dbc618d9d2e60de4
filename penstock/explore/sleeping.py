"""Sleeps of workers, which pass by the clock of the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Sleep = Callable[[float], None]

_sleepers: Final[dict[int, Sleep]] = {}
"""What ``time.sleep`` does in a thread that runs a worker."""


@contextmanager
def sleeping_by(sleep: Sleep) -> Iterator[None]:
    """Lets ``time.sleep`` call this in the present thread."""
    thread = threading.get_ident()
    before = _sleepers.get(thread)
    _sleepers[thread] = sleep
    try:
        yield
    finally:
        if before is None:
            del _sleepers[thread]
        else:
            _sleepers[thread] = before


@contextmanager
def sleeps_replaced() -> Iterator[None]:
    """Puts another function in the place of ``time.sleep``, which sleeps as ever in threads that
    run no worker."""
    before = time.sleep

    def sleep(seconds: float, /) -> None:
        _sleepers.get(threading.get_ident(), before)(seconds)

    time.sleep = sleep  # type: ignore[assignment]
    try:
        yield
    finally:
        time.sleep = before
