"""FastStream: a subscriber of a group, as its pages show it.

https://faststream.ag2.ai/latest/redis/streams/groups/ has the subscription, and
https://faststream.ag2.ai/latest/redis/streams/claiming/ a second one that claims; its reference has
the option that does both in one. With FastStream 0.7.8.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from faststream import FastStream
from faststream.redis import RedisBroker, StreamSub

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "faststream"

MODULE = "examples.explore.faststream_group"


def application(url: str, claims: str) -> FastStream:
    """A subscriber of new orders, and what ``claims`` says: ``with reads`` or ``with another``."""
    broker = RedisBroker(url, logger=None)
    option = {"claim_min_idle_time": 60_000} if claims == "with reads" else {}

    @broker.subscriber(stream=StreamSub("orders", group="packers", consumer="ann", **option))
    async def pack(item: str) -> None:
        shop.pack(item)

    if claims == "with another":
        orders = StreamSub("orders", group="packers", consumer="bob", min_idle_time=60_000)
        broker.subscriber(stream=orders)(pack)
    return FastStream(broker, logger=None)


def fill(client: Any) -> None:
    """Makes the group, and has FastStream publish the orders."""
    client.xgroup_create("orders", "packers", "0", mkstream=True)

    async def publish() -> None:
        async with RedisBroker(os.environ[shop.URL], logger=None) as broker:
            for item in shop.ITEMS:
                await broker.publish(item, stream="orders")

    asyncio.run(publish())


def test_group(penstock: Penstock) -> None:
    """FastStream: `StreamSub(group, consumer)`."""
    shop.explore(penstock, shop.program(penstock, "-m", MODULE), prepare=fill)


def test_claim_min_idle_time(penstock: Penstock) -> None:
    """FastStream: `StreamSub(..., claim_min_idle_time)`."""
    worker = shop.program(penstock, "-m", MODULE, CLAIMS="with reads")
    shop.explore(penstock, worker, prepare=fill)


def test_min_idle_time(penstock: Penstock) -> None:
    """FastStream: and a second subscriber, with `min_idle_time`."""
    worker = shop.program(penstock, "-m", MODULE, CLAIMS="with another")
    shop.explore(penstock, worker, prepare=fill)


if __name__ == "__main__":
    told = os.environ
    asyncio.run(application(told["REDIS_URL"], told.get("CLAIMS", "")).run())
