"""Ports for servers that cannot be told to take any free one."""

from __future__ import annotations

import os
import socket
from itertools import count
from typing import Final

FIRST: Final = 12_000
PER_WORKER: Final = 1_000
WORKERS: Final = 20

_numbers = count(os.getpid())


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on.

    It is from a range of this worker of pytest-xdist, below those from which systems take ports for
    connections: until the server listens, no other test and no client can come to have it.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST + worker % WORKERS * PER_WORKER
    while True:
        port = first + next(_numbers) % PER_WORKER
        with socket.socket() as probe:
            # As servers do, which may take the port of one that has just ended.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
