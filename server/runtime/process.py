"""The process: what the operating system knows of it and lets it have, its event loop, and what
distinguishes one run of a server from others."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import sys
from typing import Final

RESERVED: Final = 32
"""File descriptors that are needed for something else than clients."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""``ru_maxrss`` is in bytes there, in KiB elsewhere."""


def peak_memory() -> int:
    """The most memory that was ever resident, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def resident_memory() -> int:
    """The memory that is resident now, in bytes; its peak where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * _PAGE
    except OSError:
        return peak_memory()


def allocated_memory() -> int | None:
    """The resident memory that is no part of a file, so that allocators have it, in bytes;
    ``None`` where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            _, resident, shared, *_ = map(int, statm.read().split())
    except OSError:
        return None
    return (resident - shared) * _PAGE


def total_memory() -> int:
    """The memory of the machine, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE


def cpu_times() -> dict[str, float]:
    """Seconds of processor time by what spent them, named as INFO names them."""
    times = {
        "": resource.getrusage(resource.RUSAGE_SELF),
        "_children": resource.getrusage(resource.RUSAGE_CHILDREN),
    }
    if hasattr(resource, "RUSAGE_THREAD"):
        times["_main_thread"] = resource.getrusage(resource.RUSAGE_THREAD)
    spent: dict[str, float] = {}
    for suffix, usage in times.items():
        spent["used_cpu_sys" + suffix] = usage.ru_stime
        spent["used_cpu_user" + suffix] = usage.ru_utime
    return spent


def give_memory_back() -> None:
    """Returns freed memory to the system, where the C library can: it keeps what lies between
    pieces in use otherwise."""
    # Imported here, because the server's start has no time for it.
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def make_room(clients: int) -> int:
    """Asks the system for as many file descriptors as ``clients`` take.

    Returns how many clients there is room for: ``clients``, or fewer.
    """
    wanted = clients + RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return clients
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(1, granted - RESERVED)


class Instance:
    """One run of a server: its ``id``, when it began, and how much memory it took then, in bytes.

    ``port`` is the TCP port, chosen by the system if the setting is 0, and that of TLS if there is
    no other; it is 0 before the start, and with a Unix socket alone. ``stopping`` is set when the
    server is to end.
    """

    def __init__(self, started_ms: int) -> None:
        self.id = secrets.token_hex(20)
        self.started_ms = started_ms
        self.startup_memory = resident_memory()
        self.port = 0
        self.stopping = asyncio.Event()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop, uvloop's where that is installed; the caller closes it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
