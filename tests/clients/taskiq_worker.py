"""A program on taskiq: ``taskiq worker taskiq_worker:broker``, told by its environment.

What the environment has is in ``tests/clients/frameworks.py``. ``python taskiq_worker.py ITEM ...``
sends items to the workers.
"""

from __future__ import annotations

import asyncio
import os
import sys

from redis.asyncio import Redis
from taskiq_redis import RedisStreamBroker

URL = os.environ["URL"]
NAME = os.environ.get("NAME", "producer")

# With a timeout redis-py sends by asyncio.wait_for, which before Python 3.12 may lose a
# cancellation that comes just when it is done. The read that taskiq cancels as the worker is to end
# then goes on, and taskiq waits for its next message for ever.
broker = RedisStreamBroker(
    URL,
    queue_name="orders",
    consumer_group_name="packers",
    consumer_name=NAME,
    consumer_id="0",
    xread_block=100,
    xread_count=2,
    # No task is idle for so long.
    idle_timeout=int(os.environ.get("CLAIM_MS", "0")) or 10**12,
    unacknowledged_lock_timeout=1,
    socket_timeout=None,
)
book = Redis.from_url(URL)


async def pack(item: str) -> None:
    """Packs an item, and writes it into the stream ``packed``."""
    await book.xadd("packed", {"line": f"{NAME} takes {item}"})
    if item == os.environ.get("TROUBLE"):
        await asyncio.Event().wait()
    await book.xadd("packed", {"line": f"{NAME} packs {item}"})


task = broker.task(task_name="pack")(pack)


async def send(*items: str) -> None:
    """Sends items to whichever worker takes them."""
    await broker.startup()
    for item in items:
        await task.kiq(item)
    await broker.shutdown()
    await book.aclose()


if __name__ == "__main__":
    asyncio.run(send(*sys.argv[1:]))
