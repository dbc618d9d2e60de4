"""Workers to explore, right ones and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Worker = Callable[[Any], None]

COUNT_ONCE = """
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 1 then
    redis.call('INCRBY', KEYS[2], ARGV[3])
end
"""


def fill(client: Any) -> None:
    """Three orders of 5 each."""
    client.xgroup_create("orders", "kitchen", "0", mkstream=True)
    for item in ("tea", "ink", "pen"):
        client.xadd("orders", {"item": item, "price": 5})


def counted_once(client: Any) -> None:
    total = client.get("total")
    assert total == "15", f"total {total}, should be 15"


def acknowledged(client: Any) -> bool:
    group = client.xinfo_groups("orders")[0]
    return bool(group["pending"] == group["lag"] == 0)


def entries(reply: Any) -> list[tuple[str, dict[str, str]]]:
    """What a read of one stream has found, in either version of the protocol."""
    if not reply:
        return []
    found = reply["orders"][0] if isinstance(reply, dict) else reply[0][1]
    return [(order, fields) for order, fields in found]


def read(
    client: Any, consumer: str, start: str, **options: Any
) -> list[tuple[str, dict[str, str]]]:
    return entries(client.xreadgroup("kitchen", consumer, {"orders": start}, count=1, **options))


def each_order(client: Any, handle: Callable[[str, int], None], consumer: str = "alice") -> None:
    """Its own pending entries, then new ones."""
    for start in ("0", ">"):
        while found := read(client, consumer, start):
            for order, fields in found:
                handle(order, int(fields["price"]))


def counting_first(client: Any) -> None:
    """Counts before it acknowledges, in two commands."""

    def handle(order: str, price: int) -> None:
        client.incrby("total", price)
        client.xack("orders", "kitchen", order)

    each_order(client, handle)


def in_a_transaction(consumer: str = "alice") -> Worker:
    """Counts and acknowledges in one step; claims what others have left."""

    def worker(client: Any) -> None:
        def handle(order: str, price: int) -> None:
            with client.pipeline(transaction=True) as pipe:
                pipe.incrby("total", price).xack("orders", "kitchen", order).execute()

        claim(client, consumer, handle)
        each_order(client, handle, consumer)

    return worker


def by_a_script(consumer: str = "alice") -> Worker:
    """Counts only what it is the one to acknowledge."""

    def worker(client: Any) -> None:
        def handle(order: str, price: int) -> None:
            client.eval(COUNT_ONCE, 2, "orders", "total", "kitchen", order, price)

        claim(client, consumer, handle)
        each_order(client, handle, consumer)

    return worker


def claim(client: Any, consumer: str, handle: Callable[[str, int], None]) -> None:
    for order, fields in client.xautoclaim("orders", "kitchen", consumer, 60_000)[1]:
        handle(order, int(fields["price"]))


def only_new(client: Any) -> None:
    """Never looks at what was left pending."""
    while found := read(client, "alice", ">"):
        for order, fields in found:
            client.incrby("total", int(fields["price"]))
            client.xack("orders", "kitchen", order)


def without_end(client: Any) -> None:
    """Waits for new orders for ever, and claims what was left after a minute."""

    def handle(order: str, price: int) -> None:
        client.eval(COUNT_ONCE, 2, "orders", "total", "kitchen", order, price)

    while True:
        claim(client, "alice", handle)
        for order, fields in read(client, "alice", ">", block=5_000):
            handle(order, int(fields["price"]))


# --- sellers ----------------------------------------------------------------------------------


def one_in_stock(client: Any) -> None:
    client.set("stock", 1)


def not_oversold(client: Any) -> None:
    stock = int(client.get("stock"))
    assert stock >= 0, f"stock {stock}"


def look_then_take(client: Any) -> None:
    if int(client.get("stock")) > 0:
        client.decr("stock")


def take_if_unchanged(client: Any) -> None:
    """WATCH as redis-py shows it."""

    def take(pipe: Any) -> None:
        stock = int(pipe.get("stock"))
        pipe.multi()
        if stock > 0:
            pipe.decr("stock")

    client.transaction(take, "stock")
