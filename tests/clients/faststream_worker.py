"""A program on FastStream: ``python faststream_worker.py URL CONSUMER TROUBLE CLAIM_MS``.

It handles the entries of ``orders`` as a member of ``packers``, and writes each item that it has
handled into the stream ``packed`` with its own name. At the item TROUBLE it says so there, and
never comes back. Entries that others have left pending for CLAIM_MS milliseconds are its own; with
0 they are not.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from faststream import AckPolicy, FastStream
from faststream.redis import RedisBroker, StreamSub
from redis.asyncio import Redis


def build(url: str, consumer: str, trouble: str, claim_ms: int) -> FastStream:
    """The application, ready to run."""
    broker = RedisBroker(url, logger=None)
    book = Redis.from_url(url)
    orders = StreamSub(
        "orders",
        group="packers",
        consumer=consumer,
        polling_interval=100,
        claim_min_idle_time=claim_ms or None,
    )

    async def pack(item: str) -> None:
        await book.xadd("packed", {"line": f"{consumer} takes {item}"})
        if item == trouble:
            await asyncio.Event().wait()
        await book.xadd("packed", {"line": f"{consumer} packs {item}"})

    broker.subscriber(stream=orders, ack_policy=AckPolicy.NACK_ON_ERROR)(pack)
    return FastStream(broker, logger=logging.getLogger(__name__))


if __name__ == "__main__":
    _, url, consumer, trouble, claim_ms = sys.argv
    asyncio.run(build(url, consumer, trouble, int(claim_ms)).run())
