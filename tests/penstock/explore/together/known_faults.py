"""Workers with faults that are well known, each of another kind, beside the form that mends it."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from typing import Any

from redis.exceptions import WatchError

from tests.penstock.explore.workers import each_order, entries, read

TAKEN_S = 10
"""How long a lock is taken for."""

RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
"""


# --- entries of a group -----------------------------------------------------------------------


def acknowledging_first(client: Any) -> None:
    """Loses what it has acknowledged and not counted."""

    def handle(order: str, price: int) -> None:
        client.xack("orders", "kitchen", order)
        client.incrby("total", price)

    each_order(client, handle)


def in_a_pipeline(*, transaction: bool) -> Any:
    """Counts and acknowledges in one request, which without a transaction is two steps."""

    def worker(client: Any) -> None:
        def handle(order: str, price: int) -> None:
            pipe = client.pipeline(transaction=transaction)
            pipe.incrby("total", price).xack("orders", "kitchen", order).execute()

        each_order(client, handle)

    return worker


def one_order(client: Any) -> None:
    client.xgroup_create("orders", "kitchen", "0", mkstream=True)
    client.xadd("orders", {"item": "tea", "price": 5})


def counted_at_most_once(client: Any) -> None:
    assert client.get("total") in (None, "5"), f"total {client.get('total')}"


def reading(client: Any) -> None:
    for order, fields in read(client, "ann", ">"):
        client.incrby("total", int(fields["price"]))
        client.xack("orders", "kitchen", order)


def claiming(*, idle_ms: int) -> Any:
    """Takes over what another has; with no idle time, what that works on."""

    def worker(client: Any) -> None:
        for order, fields in client.xautoclaim("orders", "kitchen", "bob", idle_ms)[1]:
            client.incrby("total", int(fields["price"]))
            client.xack("orders", "kitchen", order)

    return worker


# --- producers --------------------------------------------------------------------------------


def adding(client: Any) -> None:
    client.xadd("orders", {"item": "tea"})


def adding_once(client: Any) -> None:
    client.execute_command("XADD", "orders", "IDMP", "shop", "42", "*", "item", "tea")


def nobody(client: Any) -> None:
    """Does nothing: whoever has added is not asked again."""


def added_once(client: Any) -> None:
    assert client.xlen("orders") == 1, f"{client.xlen('orders')} entries"


def trimming(*words: str) -> Any:
    """Adds three orders to a stream of two."""

    def worker(client: Any) -> None:
        for item in ("tea", "ink", "pen"):
            client.execute_command("XADD", "orders", *words, "MAXLEN", "=", "2", "*", "item", item)

    return worker


def empty_group(client: Any) -> None:
    client.xgroup_create("orders", "kitchen", "0", mkstream=True)


def packing(client: Any) -> None:
    """Waits for each order, and packs it."""
    for _ in range(3):
        reply = client.xreadgroup("kitchen", "bob", {"orders": ">"}, count=1, block=60_000)
        for order, fields in entries(reply):
            client.set(f"packed:{fields['item']}", 1)
            client.xack("orders", "kitchen", order)


def all_packed(client: Any) -> None:
    missing = [item for item in ("tea", "ink", "pen") if not client.get(f"packed:{item}")]
    assert not missing, f"never packed: {', '.join(missing)}"


# --- keys -------------------------------------------------------------------------------------


def lock(client: Any, name: str) -> None:
    while not client.set("lock", name, nx=True, ex=TAKEN_S):
        time.sleep(1)


def delete(client: Any, name: str) -> None:
    """Releases the lock, whoever holds it."""
    client.delete("lock")


def delete_own(client: Any, name: str) -> None:
    """Releases the lock if it is still one's own."""
    client.eval(RELEASE, 1, "lock", name)


def slow(release: Any) -> Any:
    """Works for longer than it holds the lock."""

    def worker(client: Any) -> None:
        lock(client, "ann")
        time.sleep(TAKEN_S + 5)
        release(client, "ann")

    return worker


def quick(release: Any) -> Any:
    """Notes whether it held the lock as long as it worked."""

    def worker(client: Any) -> None:
        lock(client, "bob")
        time.sleep(TAKEN_S / 2)
        if client.get("lock") != "bob":
            client.set("broken", 1)
        release(client, "bob")

    return worker


def not_broken(client: Any) -> None:
    assert not client.get("broken"), "a lock was gone before its time"


def in_the_database(client: Any) -> None:
    client.set("database", "old")


def filling_the_cache(client: Any) -> None:
    """Fills a cache with what it has read, which may be old by then."""
    if client.get("cache") is None:
        client.set("cache", client.get("database"))


def filling_if_unchanged(client: Any) -> None:
    def fill(pipe: Any) -> None:
        cached, found = pipe.get("cache"), pipe.get("database")
        pipe.multi()
        if cached is None:
            pipe.set("cache", found)

    client.transaction(fill, "cache", "database")


def writing(client: Any) -> None:
    client.set("database", "new")
    client.delete("cache")


def fresh(client: Any) -> None:
    assert client.get("cache") in (None, client.get("database")), "the cache is old for ever"


def watching_in_vain(client: Any) -> None:
    """Watches, and takes it as done if somebody else has changed the key."""
    with client.pipeline() as pipe, suppress(WatchError):
        pipe.watch("total")
        total = int(pipe.get("total") or 0)
        pipe.multi()
        pipe.set("total", total + 5)
        pipe.execute()


def watching(client: Any) -> None:
    def add(pipe: Any) -> None:
        total = int(pipe.get("total") or 0)
        pipe.multi()
        pipe.set("total", total + 5)

    client.transaction(add, "total")


def both_counted(client: Any) -> None:
    assert client.get("total") == "10", f"total {client.get('total')}, should be 10"


# --- a failover -------------------------------------------------------------------------------

given: list[str] = []
"""The numbers of tickets that were handed to people; no server takes them back."""


def numbering(client: Any) -> None:
    """Numbers tickets by a counter, which a failover may set back."""
    for name in ("ann", "bob"):
        number = client.incr("tickets")
        given.append(str(number))
        client.set(f"ticket:{number}", name)


def naming(client: Any) -> None:
    """Gives each ticket a number that nobody else has."""
    for name in ("ann", "bob"):
        number = uuid.uuid4().hex
        given.append(number)
        client.set(f"ticket:{number}", name)


def each_number_once(client: Any) -> None:
    numbers, given[:] = list(given), []
    assert len(set(numbers)) == len(numbers), f"tickets {', '.join(numbers)}"
