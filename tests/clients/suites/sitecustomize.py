"""Leads the processes of a suite to the server of the test, where they know the usual port alone.

Python imports this at the start of each process that has this folder in ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import socket
from typing import Any

USUAL = 6379


def lead(port: int) -> None:
    """Has connections to the usual port made to another one."""

    def other(address: Any) -> Any:
        if isinstance(address, tuple) and address[1] == USUAL:
            return (address[0], port, *address[2:])
        return address

    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    changed: Any = socket.socket
    changed.connect = lambda own, address: connect(own, other(address))
    changed.connect_ex = lambda own, address: connect_ex(own, other(address))


if "SUITE_PORT" in os.environ:
    lead(int(os.environ["SUITE_PORT"]))
