"""A consumer written by hand: its history first, then what is new.

As the page on streams shows it: https://redis.io/docs/latest/develop/data-types/streams/. Another
one claims what somebody has left: https://redis.io/docs/latest/commands/xautoclaim/. With redis-py
8.1.0.
"""

from __future__ import annotations

from typing import Any

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "redis"


def history_first(client: Any) -> None:
    """Asks for its own pending entries until there is none, then for new ones."""
    start, at_history = "0", True
    while True:
        found = read(client, "ann", start if at_history else ">")
        if at_history and not found:
            at_history = False
        for order, fields in found:
            shop.pack(fields["item"])
            client.xack("orders", "packers", order)
            start = order


def only_new(client: Any) -> None:
    """Never asks for its history."""
    while True:
        work_on(client, read(client, "ann", ">"))


def claiming(client: Any) -> None:
    """Another consumer, which takes over what has been idle for a minute."""
    while True:
        work_on(client, client.xautoclaim("orders", "packers", "bob", 60_000)[1])
        work_on(client, read(client, "bob", ">"))


def read(client: Any, consumer: str, start: str) -> list[tuple[str, dict[str, str]]]:
    """Return entries of the stream; of new ones it waits for the first."""
    reply = client.xreadgroup("packers", consumer, {"orders": start}, count=10, block=2000)
    if not reply:
        return []
    found = reply["orders"][0] if isinstance(reply, dict) else reply[0][1]
    return [(order, fields) for order, fields in found]


def work_on(client: Any, entries: list[tuple[str, dict[str, str]]]) -> None:
    """Packs each, then acknowledges it."""
    for order, fields in entries:
        shop.pack(fields["item"])
        client.xack("orders", "packers", order)


def test_history_first(penstock: Penstock) -> None:
    """redis-py by hand: history, then `>`."""
    shop.explore(penstock, history_first)


def test_only_new(penstock: Penstock) -> None:
    """redis-py by hand: only `>`."""
    shop.explore(penstock, only_new)


def test_another_claims(penstock: Penstock) -> None:
    """redis-py by hand: only `>`, and another consumer claims with XAUTOCLAIM."""
    shop.explore(penstock, only_new, recover=claiming)
