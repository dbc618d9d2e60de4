"""Ports for servers that cannot be told to take any free one."""

from __future__ import annotations

import atexit
import os
import socket
import sys
from collections import deque
from itertools import count
from typing import Final

FIRST, PORTS = 12_000, 20_000
"""Below those from which systems take ports for connections: no client can come to have one."""

KEPT: Final = 50
"""How many ports are kept for whoever asked for them last; by then they have their servers."""

_numbers = count(os.getpid())
_kept: deque[socket.socket] = deque()


@atexit.register
def _close() -> None:
    for keeper in _kept:
        keeper.close()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that no other process gets from here."""
    while True:
        port = FIRST + next(_numbers) % PORTS
        keeper = socket.socket()
        try:
            keeper.bind(("127.0.0.1", port))
        except OSError:
            keeper.close()
            continue
        _keep(keeper)
        return port


def _keep(keeper: socket.socket) -> None:
    """Has the port until its server listens: Linux lets that listen beside a socket that does not.

    For that both say SO_REUSEADDR. The bind above came before, and fails if a port is kept.
    """
    if sys.platform != "linux":
        keeper.close()
        return
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _kept.append(keeper)
    if len(_kept) > KEPT:
        _kept.popleft().close()
