"""rq: a worker in one process, as its pages show it.

https://python-rq.org/docs/workers/ has the worker, and ``SimpleWorker``, which does not fork;
https://python-rq.org/docs/exceptions/ has ``Retry``, and what becomes of jobs that fail. With rq
3.0.0.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from redis import Redis
from rq import Queue, Retry, SimpleWorker

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "rq"

MODULE = "examples.explore.rq_queue"

ITEMS = shop.ITEMS[:1]
"""One order: rq sends so many commands for each that three take too long to explore."""


def fill(client: Any, retry: Retry | None = None) -> None:
    """Has rq send a job for each order, named after it."""
    queue = queue_of(os.environ[shop.URL])
    for item in ITEMS:
        queue.enqueue(shop.pack, item, job_id=item, retry=retry)


def queue_of(url: str) -> Queue:
    """The queue of orders."""
    return Queue("orders", connection=Redis.from_url(url))


def worker_of(queue: Queue) -> SimpleWorker:
    """A worker whose clock is the server's whenever it tells that it lives."""
    catch_up = shop.follow_the_server()

    class Worker(SimpleWorker):
        def heartbeat(self, *args: Any, **kwargs: Any) -> None:
            catch_up()
            super().heartbeat(*args, **kwargs)

    worker = Worker([queue], connection=queue.connection)
    worker.pid, worker.ip_address = 1, "here"  # These are sent, and lives would differ by them.
    return worker


def is_done(client: Any) -> bool:
    """Whether no job waits, nor is under way."""
    return not client.exists("rq:queue:orders", "rq:queue:orders:intermediate", "rq:wip:orders")


def unfinished(client: Any) -> list[bytes]:
    """Return the jobs that are not finished: those that rq has given up are, too."""
    states = {item: client.hget(f"rq:job:{item}", "status") for item in ITEMS}
    return [item.encode() for item, state in states.items() if state not in (None, b"finished")]


def test_simple_worker(penstock: Penstock) -> None:
    """rq: `SimpleWorker`."""
    worker = shop.program(penstock, "-m", MODULE)
    shop.explore(penstock, worker, unfinished, ITEMS, prepare=fill, done=is_done)


def test_retry(penstock: Penstock) -> None:
    """rq: and `Retry(max=3)`."""
    worker = shop.program(penstock, "-m", MODULE)
    retrying = partial(fill, retry=Retry(max=3))
    shop.explore(penstock, worker, unfinished, ITEMS, prepare=retrying, done=is_done)


if __name__ == "__main__":
    worker_of(queue_of(os.environ["REDIS_URL"])).work()
