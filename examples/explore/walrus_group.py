"""walrus: a consumer group, as its page on streams shows it.

https://walrus.readthedocs.io/en/latest/streams.html has the group, how it reads and acknowledges,
and how what is pending is listed and claimed. With walrus 0.9.8.
"""

from __future__ import annotations

import os
from typing import Any

from walrus import Database

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "walrus"

MODULE = "examples.explore.walrus_group"


def work(url: str, *, claims: bool) -> None:
    """Packs new orders, and before that what is pending, if it ``claims``."""
    group = Database.from_url(url).consumer_group("packers", ["orders"], consumer="ann")
    group.create()
    if claims:
        pending = [entry["message_id"] for entry in group.orders.pending()]
        pack(group, group.orders.claim(*pending) if pending else [])
    while True:
        for _, messages in group.read(block=2000) or []:
            pack(group, messages)


def pack(group: Any, messages: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
    """Packs each, then acknowledges it."""
    for message, fields in messages:
        shop.pack(fields[b"item"].decode())
        group.orders.ack(message)


def test_group(penstock: Penstock) -> None:
    """walrus: `ConsumerGroup.read`."""
    shop.explore(penstock, shop.program(penstock, "-m", MODULE))


def test_claim(penstock: Penstock) -> None:
    """walrus: and `pending` and `claim` at the start."""
    shop.explore(penstock, shop.program(penstock, "-m", MODULE, CLAIMS="yes"))


if __name__ == "__main__":
    work(os.environ["REDIS_URL"], claims="CLAIMS" in os.environ)
