"""How many clients the operating system lets the process serve."""

from __future__ import annotations

import resource
from typing import Final

from server.config.types import BadSetting

RESERVED: Final = 32
"""File descriptors that are needed for something else than clients."""


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


def require_room(clients: int) -> None:
    """Makes room for ``clients``; raises :class:`BadSetting` if the system has less."""
    room = make_room(clients)
    if room < clients:
        raise BadSetting(
            "The operating system is not able to handle the specified number of clients,"
            f" try with {room}"
        )
