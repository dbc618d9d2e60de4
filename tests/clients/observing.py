"""Knowing when the server is in a state, by asking it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60
"""How long a state may take to come before the test gives it up."""

PAUSE_S = 0.005
"""How long whoever is waited for has the processor, which questions would take from it."""


def until(holds: Callable[[], bool]) -> None:
    """Asks until the answer is yes; every question should be a round trip to the server."""
    give_up = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up, "what the test waits for has not happened"
        time.sleep(PAUSE_S)


def blocked_clients(client: Any) -> int:
    """How many clients are parked."""
    count: int = client.info("clients")["blocked_clients"]
    return count


def until_parked(client: Any, count: int) -> None:
    """Returns when so many clients wait for an entry."""
    until(lambda: blocked_clients(client) == count)
