"""Counts hits by every strategy of limits: ``python limits_program.py URL``."""

from __future__ import annotations

import asyncio
import sys

from limits import parse
from limits.aio.storage import RedisStorage as AsyncStorage
from limits.aio.strategies import MovingWindowRateLimiter as AsyncMoving
from limits.storage import RedisStorage
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

TWO = parse("2 per year")

storage = RedisStorage(sys.argv[1])
for strategy in FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter:
    limiter = strategy(storage)
    name = strategy.__name__
    hits = [limiter.hit(TWO, name, "ann") for _ in range(3)]
    print(name, hits, limiter.test(TWO, name, "bob"), limiter.get_window_stats(TWO, name, "ann")[1])
    limiter.clear(TWO, name, "ann")
    print(name, limiter.hit(TWO, name, "ann", cost=2), limiter.hit(TWO, name, "ann"))
print(storage.reset())


async def count() -> None:
    """The same with coroutines."""
    limiter = AsyncMoving(AsyncStorage(f"async+{sys.argv[1]}", implementation="redispy"))
    print([await limiter.hit(TWO, "ann") for _ in range(3)])


asyncio.run(count())
