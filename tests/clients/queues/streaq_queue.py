"""A program on streaq: ``streaq run streaq_queue:worker``.

Its environment tells it what ``tests/clients/test_queues.py`` has.
"""

from __future__ import annotations

import asyncio
import os
import sys

from redis.asyncio import Redis
from streaq import StreaqRetry, Worker

URL = os.environ["URL"]
NAME = os.environ.get("NAME", "producer")

book = Redis.from_url(URL)
# What a worker that is gone had in its hands is handed on after a second.
worker = Worker(redis_url=URL, idle_timeout=1)


async def pack(item: str) -> str:
    """Packs an item; the second time, if it is torn."""
    await book.rpush("said", f"{NAME} takes {item}")
    if item == os.environ.get("TROUBLE"):
        await asyncio.Event().wait()
    if item == "torn" and await book.incr("torn") == 1:
        raise StreaqRetry("it is torn", delay=0)
    await book.rpush("said", f"{NAME} packs {item}")
    return f"packed {item}"


task = worker.task(name="pack")(pack)


async def send(*items: str) -> None:
    """Sends items, and prints their results."""
    async with worker:
        sent = []
        for item in items:
            delay = 0.5 if item == "later" else None
            sent.append(await task.enqueue(item).start(delay=delay))
        for each in sent:
            print((await each.result(timeout=60)).result, flush=True)


if __name__ == "__main__":
    asyncio.run(send(*sys.argv[1:]))
