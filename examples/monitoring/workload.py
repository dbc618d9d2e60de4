"""Work to look at: orders come in, and a kitchen of two that now and then burns one.

``python workload.py redis://localhost:6379`` adds and handles orders until it is stopped. Every
twentieth order fails each time that it is tried; the others are acknowledged. ``ann`` is quick,
``bob`` is slow. What failed is claimed after a while and tried again, so it is delivered more and
more often.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final

import redis

STREAM: Final = "orders"
GROUP: Final = "kitchen"
RETRY_MS: Final = 5_000
"""After how long a failed order is tried again."""

PORTIONS: Final = {"ann": 8, "bob": 2}
"""How many orders each of them takes at a time."""


def prepare(client: redis.Redis) -> None:
    """Makes the stream and the group, unless they are there."""
    try:
        client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    except redis.ResponseError as error:
        if not str(error).startswith("BUSYGROUP"):
            raise


def produce(client: redis.Redis, first: int, count: int) -> None:
    """Adds so many orders, numbered from ``first`` on; the stream keeps the last ten thousand."""
    for number in range(first, first + count):
        client.xadd(STREAM, {"number": number}, maxlen=10_000)


def handle(client: redis.Redis, name: str, retry_ms: int = RETRY_MS) -> int:
    """One round of a cook: a failed order that nobody has tried for a while, then new ones.
    Returns how many were acknowledged."""
    old: Any = client.xautoclaim(STREAM, GROUP, name, retry_ms, count=1)
    new: Any = client.xreadgroup(GROUP, name, {STREAM: ">"}, count=PORTIONS[name])
    orders = [*old[1], *(order for _, some in new or () for order in some)]
    done = [entry_id for entry_id, fields in orders if int(fields[b"number"]) % 20]
    return client.xack(STREAM, GROUP, *done) if done else 0


def main(url: str) -> None:
    """Adds ten orders a second and handles them, for as long as it is let."""
    client = redis.Redis.from_url(url)
    prepare(client)
    first = 1
    while True:
        produce(client, first, 10)
        first += 10
        for name in PORTIONS:
            handle(client, name)
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
