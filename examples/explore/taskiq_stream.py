"""taskiq-redis: a worker of its stream broker, as its page shows it.

https://github.com/taskiq-python/taskiq-redis has the broker, and the command that starts the
worker: ``taskiq worker module:broker``. With taskiq-redis 1.2.4.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from taskiq_redis import RedisStreamBroker

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "taskiq-redis"

MODULE = "examples.explore.taskiq_stream"

COMMAND = ("-m", "taskiq", "worker", "--workers", "1", f"{MODULE}:broker")


def broker_of(url: str) -> Any:
    """A broker with a task."""
    broker = RedisStreamBroker(url, queue_name="orders", consumer_group_name="packers")

    @broker.task(task_name="pack")
    async def pack(item: str) -> None:
        shop.pack(item)

    return broker


def send(*items: str) -> None:
    """Makes the group if there is none, and sends a task for each item."""

    async def send_all() -> None:
        broker = broker_of(os.environ[shop.URL])
        await broker.startup()
        for item in items:
            await broker.find_task("pack").kiq(item)
        await broker.shutdown()

    asyncio.run(send_all())


def fill(client: Any) -> None:
    """Has taskiq make the group, and send a task for each order."""
    send(*shop.ITEMS)


def test_stream_broker(penstock: Penstock) -> None:
    """taskiq-redis: `RedisStreamBroker`."""
    worker = shop.program(penstock, *COMMAND)
    shop.explore(penstock, worker, prepare=fill)


def test_one_more_task(penstock: Penstock) -> None:
    """taskiq-redis: and another task arrives after each crash."""
    worker, later = shop.program(penstock, *COMMAND), shop.program(penstock, "-m", MODULE)
    shop.explore(penstock, worker, prepare=fill, recover=later)


broker = broker_of(os.environ.get("REDIS_URL", "redis://"))

if __name__ == "__main__":
    send("mug")
    os.execv(sys.executable, [sys.executable, *COMMAND])
