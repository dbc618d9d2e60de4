"""The phases of a server's life, of which clients are told."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """What a server is doing. It goes through these in their order, and may leave some out.

    Clients can connect as soon as the first socket listens, which is before the data is there, and
    are answered as a real server answers while it loads: commands with the flag ``loading`` run,
    all others get ``LOADING``. Once it is stopped nobody is answered at all.
    """

    STARTING = "the sockets are being opened"
    LOADING = "the data is being loaded"
    SERVING = "every command is run"
    STOPPED = "connections are being closed, after a failed start as well"
