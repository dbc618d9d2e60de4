"""Celery: a worker with its Redis transport, as its pages show it.

https://docs.celeryq.dev/en/stable/getting-started/first-steps-with-celery.html has the task and the
worker, https://docs.celeryq.dev/en/stable/userguide/tasks.html when it acknowledges, and
https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html when another one
gets what was not. With Celery 5.7.0.
"""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery
from redis import Redis

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "celery"

MODULE = "examples.explore.celery_queue"

QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
"""What workers tell each other has nothing to do with tasks."""

PACKING_S = 1.0
"""How long packing takes: what the worker does in this time is explored, too."""

PACKER = "packer"
"""The name of the connection of a task that is under way."""

PAUSE_S = 0.1
"""How long a task may need until it has its connection."""

VISIBILITY_S = 3000
"""When a task that was not acknowledged goes to another worker: before an hour has passed."""


def application(url: str, *, acks_late: bool) -> Any:
    """Celery with a task, which is acknowledged when it is done, if it ``acks_late``."""
    app = Celery("orders", broker=url)
    app.conf.update(task_acks_late=acks_late, worker_prefetch_multiplier=1)
    app.conf.broker_transport_options = {"visibility_timeout": VISIBILITY_S}
    app.conf.worker_enable_remote_control = False
    app.task(pack, name="pack", ignore_result=True)
    return app


def pack(item: str) -> None:
    """Packs what was ordered."""
    with Redis.from_url(os.environ[shop.URL], client_name=PACKER) as client:
        client.ping()
        time.sleep(PACKING_S)
        shop.pack(item)


def fill(client: Any) -> None:
    """Has Celery send a task for each order."""
    app = application(os.environ[shop.URL], acks_late=True)
    for item in shop.ITEMS:
        app.send_task("pack", (item,), task_id=item)
    app.close()


def is_done(client: Any) -> bool:
    """Whether no task waits, nor is to be acknowledged."""
    return not client.exists("celery", "unacked")


def is_packed(client: Any) -> bool:
    """Whether no task waits, and none is under way: a worker that has acknowledged it is otherwise
    like one that is at rest."""
    while is_done(client):
        time.sleep(PAUSE_S)
        if PACKER not in [each["name"] for each in client.client_list()]:
            return is_done(client)
    return False


def tasks(client: Any) -> list[bytes]:
    """Return the tasks that wait, or are to be acknowledged."""
    return [*client.lrange("celery", 0, -1), *client.hvals("unacked")]


def test_early(penstock: Penstock) -> None:
    """Celery."""
    worker = shop.program(penstock, "-m", MODULE)
    shop.explore(penstock, worker, tasks, prepare=fill, done=is_packed)


def test_acks_late(penstock: Penstock) -> None:
    """Celery: `acks_late`."""
    worker = shop.program(penstock, "-m", MODULE, ACKS_LATE="yes")
    shop.explore(penstock, worker, tasks, prepare=fill, done=is_done)


if __name__ == "__main__":
    shop.follow_the_server(tick=True)
    app = application(os.environ["REDIS_URL"], acks_late="ACKS_LATE" in os.environ)
    app.worker_main(["worker", "--concurrency", "1", *QUIET])
