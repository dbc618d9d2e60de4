"""A program on dramatiq: ``dramatiq dramatiq_queue``.

Its environment tells it what ``tests/clients/test_queues.py`` has.
"""

from __future__ import annotations

import os
import sys
import threading

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from redis import Redis

URL = os.environ["URL"]
NAME = os.environ.get("NAME", "producer")

book = Redis.from_url(URL)
# A worker that was not heard of for a second is gone, and every command looks for such.
broker = RedisBroker(url=URL, heartbeat_timeout=1000, maintenance_chance=1_000_000)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


def pack(item: str) -> str:
    """Packs an item; the second time, if it is torn."""
    book.rpush("said", f"{NAME} takes {item}")
    if item == os.environ.get("TROUBLE"):
        threading.Event().wait()
    if item == "torn" and book.incr("torn") == 1:
        raise RuntimeError("it is torn")
    book.rpush("said", f"{NAME} packs {item}")
    return f"packed {item}"


actor = dramatiq.actor(store_results=True, min_backoff=10, max_backoff=20)(pack)


if __name__ == "__main__":
    sent = []
    for item in sys.argv[1:]:
        delay = 500 if item == "later" else 0
        sent.append(actor.send_with_options(args=(item,), delay=delay))
    for message in sent:
        print(message.get_result(block=True, timeout=60_000), flush=True)
