"""A program on FastStream: ``python faststream_worker.py``, told by its environment.

It handles the entries of ``orders`` as a member of ``packers``, and writes each item that it has
handled into the stream ``packed``. What the environment has is in ``tests/clients/frameworks.py``.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

from faststream import AckPolicy, FastStream
from faststream.redis import RedisBroker, StreamSub
from redis.asyncio import Redis


def subscribed(
    url: str, consumer: str, pack: Callable[[str], Awaitable[None]], **options: Any
) -> RedisBroker:
    """A broker that hands items to a consumer; ``options`` are more of its subscription."""
    broker = RedisBroker(url, logger=None)
    usual: dict[str, Any] = {"polling_interval": 100}
    orders = StreamSub("orders", group="packers", consumer=consumer, **{**usual, **options})
    broker.subscriber(stream=orders, ack_policy=AckPolicy.NACK_ON_ERROR)(pack)
    return broker


def build(url: str, consumer: str, trouble: str, claim_ms: int) -> FastStream:
    """The application, ready to run."""
    book = Redis.from_url(url)

    async def pack(item: str) -> None:
        await book.xadd("packed", {"line": f"{consumer} takes {item}"})
        if item == trouble:
            await asyncio.Event().wait()
        await book.xadd("packed", {"line": f"{consumer} packs {item}"})

    broker = subscribed(url, consumer, pack, claim_min_idle_time=claim_ms or None)
    return FastStream(broker, logger=logging.getLogger(__name__))


if __name__ == "__main__":
    told = os.environ
    application = build(told["URL"], told["NAME"], told["TROUBLE"], int(told["CLAIM_MS"]))
    asyncio.run(application.run())
