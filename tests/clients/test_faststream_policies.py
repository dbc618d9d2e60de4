"""FastStream workers that know nothing of policies, in groups that have them.

A handler that raises leaves its message pending, as one that is killed does; without a policy
nobody is given it again who does not claim.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from importlib.util import find_spec
from typing import Any

import pytest

from tests.clients.observing import blocked_clients, until, until_async
from tests.clients.shop import DEAD, HOUR, Shop
from tests.clients.test_faststream import WORKER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("faststream") is None, reason="faststream is not installed"),
]


class Workers(Shop):
    """The server, and what its workers have been given: ``taken`` by name, in order."""

    def __init__(self, protocol: int, *lines: str) -> None:
        super().__init__(*lines)
        self.url = f"{self.penstock.url}?protocol=2" if protocol == 2 else self.penstock.url
        self.taken: list[tuple[str, str]] = []
        self.trouble: set[str] = set()
        """The items at which workers fail."""

    def handler(self, name: str) -> Callable[[str], Awaitable[None]]:
        """What a worker does with an item."""

        async def pack(item: str) -> None:
            self.taken.append((name, item))
            if item in self.trouble:
                raise RuntimeError(f"cannot pack {item}")

        return pack

    async def until_taken(self, *expected: tuple[str, str]) -> None:
        """Returns when this is what the workers have been given, and nothing is left to do."""
        await self.until(lambda: len(self.taken) >= len(expected))
        assert self.taken == list(expected)

    async def until_pending(self, *expected: tuple[str, int]) -> None:
        """Returns when these are the owners and delivery counts of what is pending."""
        await self.until(lambda: self.pending() == list(expected))

    async def until_done(self) -> None:
        """Returns when nothing is left to do."""
        await self.until(self._is_done)

    def _is_done(self) -> bool:
        [group] = self.client.xinfo_groups("orders")
        return (group["lag"], group["pending"]) == (0, 0)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Asks until the answer is yes, and lets the workers work meanwhile."""

        async def asked() -> bool:
            return holds()

        await until_async(asked)


Open = Callable[..., Workers]
Start = Callable[..., Awaitable[None]]
"""Starts a worker: the server, its name, more options of its subscription."""


@pytest.fixture
def open(protocol: int) -> Iterator[Open]:
    """Starts a server with these lines of policies, and the group."""
    with ExitStack() as stack:

        def run(*lines: str) -> Workers:
            workers = Workers(protocol, *lines)
            stack.callback(workers.close)
            workers.client.xgroup_create("orders", "packers", "0", mkstream=True)
            return workers

        yield run


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    from faststream import AckPolicy
    from faststream.redis import RedisBroker, StreamSub

    async with AsyncExitStack() as stack:

        async def run(shop: Workers, name: str, **options: Any) -> None:
            broker = RedisBroker(shop.url, logger=None)
            usual: dict[str, Any] = {"polling_interval": 100}
            orders = StreamSub("orders", group="packers", consumer=name, **{**usual, **options})
            subscriber = broker.subscriber(stream=orders, ack_policy=AckPolicy.NACK_ON_ERROR)
            subscriber(shop.handler(name))
            await broker.start()
            stack.push_async_callback(broker.stop)

        yield run


async def send(shop: Workers, *items: str) -> None:
    """Publishes orders as another program would."""
    from faststream.redis import RedisBroker

    async with RedisBroker(shop.url, logger=None) as broker:
        for item in items:
            await broker.publish(item, stream="orders")


def add(shop: Workers, *items: str, **fields: Any) -> None:
    """Adds orders as a program on another library would, with fields that the server can see."""
    for item in items:
        shop.client.xadd("orders", {"__data__": item, **fields})


# --- messages that fail ------------------------------------------------------------------------


async def test_a_message_that_kills_every_worker_ends_as_a_dead_letter(
    open: Open, start: Start
) -> None:
    """It reads without COUNT: the limit keeps others from dying with what they are read with."""
    shop = open(
        f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD} max-pending-consumer 1"
    )
    await send(shop, "pen", "ink", "paper")
    for name in ("ann", "bob"):
        die_of(shop, name, "ink")
        shop.advance(HOUR)
    [letter] = shop.letters()
    assert (letter["dead-letter-consumer"], letter["dead-letter-deliveries"]) == ("bob", "2")
    assert letter["__data__"].endswith("ink")
    await start(shop, "eve")
    await shop.until_done()
    assert "ink" not in {item for _, item in shop.taken}


def die_of(shop: Workers, name: str, item: str) -> None:
    """A worker in a process of its own, which is killed with an item in its hands."""
    with subprocess.Popen([sys.executable, str(WORKER), shop.url, name, item, "0"]) as worker:
        line = {"line": f"{name} takes {item}"}
        until(lambda: line in [fields for _, fields in shop.client.xrange("packed")])
        worker.send_signal(signal.SIGKILL)


async def test_a_message_that_fails_once_comes_again_to_who_just_reads(
    open: Open, start: Start
) -> None:
    shop = open(f"orders packers ack-wait {HOUR}")
    shop.trouble = {"ink"}
    await start(shop, "ann")
    await send(shop, "pen", "ink")
    await shop.until_taken(("ann", "pen"), ("ann", "ink"))
    await shop.until_pending(("ann", 1))
    shop.trouble.clear()
    shop.advance(HOUR)
    await shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "ink"))
    await shop.until_pending()


async def test_backoff_counts_how_often_it_has_failed(open: Open, start: Start) -> None:
    shop = open(f"orders packers backoff {HOUR},{5 * HOUR}")
    shop.trouble = {"ink"}
    await start(shop, "ann")
    await send(shop, "ink")
    await shop.until_pending(("ann", 1))
    shop.advance(HOUR)
    await shop.until_pending(("ann", 2))
    shop.advance(4 * HOUR)
    await send(shop, "pen")
    await shop.until_taken(("ann", "ink"), ("ann", "ink"), ("ann", "pen"))
    shop.advance(HOUR)
    await shop.until_pending(("ann", 3))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="reads"),
        pytest.param({"claim_min_idle_time": HOUR}, id="XREADGROUP-CLAIM"),
        pytest.param({"min_idle_time": HOUR}, id="XAUTOCLAIM"),
    ],
)
async def test_one_that_always_fails_becomes_a_dead_letter_and_comes_back_when_it_is_sent(
    open: Open, start: Start, options: dict[str, int]
) -> None:
    shop = open(f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD}")
    shop.trouble = {"ink"}
    await send(shop, "ink")
    shop.client.xreadgroup("packers", "gone", {"orders": ">"})
    await start(shop, "ann", **options)
    shop.advance(HOUR)
    await shop.until_pending(("ann", 2))
    shop.advance(HOUR)
    await shop.until(lambda: len(shop.letters()) == 1)
    assert shop.taken == [("ann", "ink")]
    shop.trouble.clear()
    assert shop.client.execute_command("XGROUP REDRIVE", DEAD) == 1
    await shop.until_taken(("ann", "ink"), ("ann", "ink"))
    await shop.until_pending()
    assert shop.letters() == []


async def test_who_claims_with_a_read_is_told_how_often_a_message_was_delivered(
    open: Open, start: Start
) -> None:
    """FastStream refuses an entry without these numbers."""
    shop = open(f"orders packers ack-wait {HOUR}")
    await send(shop, "ink")
    shop.client.xreadgroup("packers", "gone", {"orders": ">"})
    await start(shop, "ann", claim_min_idle_time=9 * HOUR)
    shop.advance(HOUR)
    await shop.until_taken(("ann", "ink"))
    await shop.until_pending()


# --- which messages, and how many --------------------------------------------------------------


async def test_max_pending_stops_a_worker_whose_messages_fail(open: Open, start: Start) -> None:
    shop = open("orders packers max-pending 2")
    shop.trouble = {"pen", "ink"}
    await send(shop, "pen", "ink", "paper")
    await start(shop, "ann", max_records=5)
    await shop.until_pending(("ann", 1), ("ann", 1))
    await shop.until(lambda: blocked_clients(shop.client) == 1)
    assert shop.taken == [("ann", "pen"), ("ann", "ink")]
    first = shop.client.xpending("orders", "packers")["min"]
    assert shop.client.xack("orders", "packers", first) == 1
    await shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "paper"))


async def test_max_pending_consumer_leaves_the_rest_to_others(open: Open, start: Start) -> None:
    shop = open("orders packers max-pending-consumer 1")
    shop.trouble = {"pen", "ink"}
    await send(shop, "pen", "ink")
    await start(shop, "ann")
    await shop.until_pending(("ann", 1))
    await start(shop, "bob")
    await shop.until_taken(("ann", "pen"), ("bob", "ink"))


async def test_order_by_keeps_the_next_of_a_customer_until_the_one_before_is_done(
    open: Open, start: Start
) -> None:
    shop = open(f"orders packers order-by customer ack-wait {HOUR}")
    shop.trouble = {"pen"}
    add(shop, "pen", "ink", customer="x")
    add(shop, "paper", customer="y")
    await start(shop, "ann", max_records=9)
    await start(shop, "bob", max_records=9)
    await shop.until(lambda: len(shop.taken) == 2)
    assert sorted(item for _, item in shop.taken) == ["paper", "pen"]
    shop.trouble.clear()
    shop.advance(HOUR)
    await shop.until_done()
    assert [item for _, item in shop.taken if item != "paper"] == ["pen", "pen", "ink"]


async def test_only_and_delay_field_see_fields_beside_the_one_of_faststream(
    open: Open, start: Start
) -> None:
    shop = open("orders packers only kind=parcel delay-field at")
    add(shop, "pen", kind="letter")
    add(shop, "ink", kind="parcel", at=shop.now_ms() + HOUR)
    add(shop, "paper", kind="parcel")
    await send(shop, "lid")
    await start(shop, "ann")
    await shop.until_taken(("ann", "paper"))
    shop.advance(HOUR)
    await shop.until_taken(("ann", "paper"), ("ann", "ink"))
    await shop.until_done()


async def test_paused_workers_go_on_when_the_operator_says_so(open: Open, start: Start) -> None:
    shop = open("orders packers paused yes")
    await start(shop, "ann")
    await send(shop, "pen")
    await shop.until(lambda: blocked_clients(shop.client) == 1)
    assert shop.taken == []
    shop.set("paused", "no")
    await shop.until_taken(("ann", "pen"))


# --- workers, groups and entries that go -------------------------------------------------------


async def test_consumer_ttl_hands_on_what_a_worker_had_that_is_gone(
    open: Open, start: Start
) -> None:
    shop = open(f"orders packers consumer-ttl {HOUR}")
    await send(shop, "pen")
    shop.client.xreadgroup("packers", "gone", {"orders": ">"})
    await start(shop, "ann", polling_interval=60_000)
    await shop.until(lambda: blocked_clients(shop.client) == 1)
    shop.advance(HOUR)
    await shop.until_taken(("ann", "pen"))
    await shop.until_done()
    assert shop.consumers() == ["ann"]


async def test_auto_group_gives_a_worker_what_was_there_before_it(
    protocol: int, start: Start
) -> None:
    shop = Workers(protocol, "orders packers auto-group 0")
    try:
        await send(shop, "pen")
        await start(shop, "ann")
        await send(shop, "ink")
        await shop.until_taken(("ann", "pen"), ("ann", "ink"))
    finally:
        shop.close()


async def test_what_every_group_has_done_is_deleted(open: Open, start: Start) -> None:
    shop = open("orders * delete acked")
    shop.trouble = {"ink"}
    await start(shop, "ann")
    await send(shop, "pen", "ink", "paper")
    await shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "paper"))
    await shop.until(lambda: shop.client.xlen("orders") == 1)
