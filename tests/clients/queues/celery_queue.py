"""A program on Celery: ``celery -A celery_queue worker``.

Its environment tells it what ``tests/clients/test_queues.py`` has.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from celery import Celery
from redis import Redis

URL = os.environ["URL"]
NAME = os.environ.get("NAME", "producer")

book = Redis.from_url(URL)
app = Celery("celery_queue", broker=URL, backend=URL)
if NAME == "bob":
    # He takes what nobody has acknowledged for two seconds, and looks for it all the time.
    app.conf.broker_transport_options = {
        "visibility_timeout": 2,
        "unacked_restore_interval": 0.5,
        "unacked_restore_throttle": 1,
    }
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1


def pack(self: Any, item: str) -> str:
    """Packs an item; the second time, if it is torn."""
    book.rpush("said", f"{NAME} takes {item}")
    if item == os.environ.get("TROUBLE"):
        threading.Event().wait()
    if item == "torn" and book.incr("torn") == 1:
        raise self.retry(exc=RuntimeError("it is torn"), countdown=0)
    book.rpush("said", f"{NAME} packs {item}")
    return f"packed {item}"


task = app.task(bind=True, name="pack")(pack)


if __name__ == "__main__":
    sent = []
    for item in sys.argv[1:]:
        sent.append(task.apply_async((item,), countdown=0.5 if item == "later" else 0))
    for result in sent:
        print(result.get(timeout=60), flush=True)
