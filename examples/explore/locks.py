"""redis-py's lock, held for work that may take longer than its timeout.

https://redis.readthedocs.io/en/stable/lock.html has the lock: with a timeout somebody else may
take it when that is over, unless its holder extends it; without one it is held until it is
released. With redis-py 8.1.0.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from redis.exceptions import LockError

from penstock.testing import Penstock

PACKAGE = "redis"

TIMEOUT_S = 10


def with_timeout(client: Any) -> None:
    """Works for longer than it holds the lock."""
    with client.lock("till", timeout=TIMEOUT_S, raise_on_release_error=False):
        count(client, lambda: time.sleep(TIMEOUT_S + 5))


def extended(client: Any) -> None:
    """Extends the lock before its time is over."""
    with client.lock("till", timeout=TIMEOUT_S, raise_on_release_error=False) as lock:

        def work() -> None:
            for _ in range(3):
                time.sleep(TIMEOUT_S / 2)
                with suppress(LockError):  # It is not held any more.
                    lock.extend(TIMEOUT_S, replace_ttl=True)

        count(client, work)


def without_timeout(client: Any) -> None:
    """Holds the lock until it is released."""
    with client.lock("till"):
        count(client, lambda: time.sleep(TIMEOUT_S + 5))


def count(client: Any, work: Any) -> None:
    """Counts the till while nobody else does: reads, works, writes."""
    money = int(client.get("money") or 0)
    work()
    client.set("money", money + 5)
    client.incr("counts")


def all_counted(client: Any) -> str:
    """What each has counted is there."""
    money, counts = (int(value or 0) for value in client.mget("money", "counts"))
    return "" if money == 5 * counts else "two held the lock"


def counted(client: Any) -> str:
    """Somebody has counted at last."""
    return "" if client.get("money") else "nobody ever gets the lock"


def test_timeout_in_every_order(penstock: Penstock) -> None:
    """Lock: `timeout=10`, 15 s of work."""
    penstock.explore.orders(ann=with_timeout, bob=with_timeout, invariant=all_counted)


def test_timeout(penstock: Penstock) -> None:
    """Lock: `timeout=10`, 15 s of work."""
    penstock.explore.crashes(with_timeout, invariant=counted)


def test_extended_in_every_order(penstock: Penstock) -> None:
    """Lock: `timeout=10`, and `extend` every 5 s."""
    penstock.explore.orders(ann=extended, bob=extended, invariant=all_counted)


def test_extended(penstock: Penstock) -> None:
    """Lock: `timeout=10`, and `extend` every 5 s."""
    penstock.explore.crashes(extended, invariant=counted)


def test_extended_by_who_stalls(penstock: Penstock) -> None:
    """Lock: `timeout=10`, and `extend` every 5 s."""
    penstock.explore.crashes(extended, kinds="stall", invariant=all_counted)


def test_no_timeout_in_every_order(penstock: Penstock) -> None:
    """Lock: no timeout."""
    penstock.explore.orders(ann=without_timeout, bob=without_timeout, invariant=all_counted)


def test_no_timeout(penstock: Penstock) -> None:
    """Lock: no timeout."""
    penstock.explore.crashes(without_timeout, invariant=counted)
