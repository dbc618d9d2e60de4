"""What a process has used up: CPU time and memory, as the kernel accounts for them."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SETTLING_S: Final = 45.0
"""How long to wait for that at most."""
SHRUNK: Final = 0.998
"""What is still above this part of the smallest value seen has not shrunk."""

_libc = ctypes.CDLL(None, use_errno=True)


class CpuClock:
    """The CPU time, user and system, that all threads of a process have taken, in nanoseconds.

    This is the clock of ``clock_getcpuclockid``. It counts what the scheduler has handed out, up to
    this very moment, where ``/proc/PID/stat`` counts ticks of ten milliseconds.
    """

    def __init__(self, pid: int) -> None:
        clock = ctypes.c_int()
        error = _libc.clock_getcpuclockid(pid, ctypes.byref(clock))
        if error:
            raise OSError(error, os.strerror(error))
        self._clock = clock.value

    def read(self) -> int:
        """Nanoseconds since the process began."""
        return time.clock_gettime_ns(self._clock)


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in RAM, to the page.

    ``VmRSS`` in ``/proc/PID/status`` may be off by some pages a CPU; ``smaps_rollup`` is not.
    """
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the kernel says nothing about the memory of process {pid}")


def peak_bytes(pid: int) -> int:
    """The most memory of a process that was ever in RAM, or since :func:`forget_peak`."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the kernel says nothing about the memory of process {pid}")


def forget_peak(pid: int) -> None:
    """Lets the peak begin anew with what is in RAM now (5 in ``proc(5)``)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def settled_bytes(pid: int, patience: float) -> int:
    """The memory of a process once it has stopped giving any back.

    Servers do so with delay: allocators return pages, buffers of idle clients shrink, and what has
    not been touched for a while may be compressed. It is over when for ``patience`` seconds nothing
    has come back.
    """
    least = resident_bytes(pid)
    now = start = shrunk = time.monotonic()
    while now < min(shrunk + patience, start + SETTLING_S):
        time.sleep(0.25)
        now = time.monotonic()
        size = resident_bytes(pid)
        if size < least * SHRUNK:
            shrunk = now
        least = min(least, size)
    return least


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which the given part of the values lies; raises ``ValueError`` on none."""
    if not values:
        raise ValueError("there are no values")
    ranked = sorted(values)
    return ranked[min(int(part * len(ranked)), len(ranked) - 1)]
