"""FastStream workers whose handlers raise, in groups that have policies.

Such a message stays pending; without a policy nobody is given it again who does not claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import pytest

from tests.clients.frameworks import FastStream
from tests.clients.observing import until
from tests.clients.shop import DEAD, HOUR, opened, with_group

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("faststream") is None, reason="faststream is not installed"),
]

Open = Callable[..., FastStream]


@pytest.fixture
def open(protocol: int) -> Iterator[Open]:
    """Starts a server with these lines of policies, and the group."""
    with opened(partial(FastStream, protocol)) as start:
        yield lambda *lines: with_group(start(*lines))


# --- messages that fail ------------------------------------------------------------------------


def test_a_message_that_fails_once_comes_again_to_who_just_reads(open: Open) -> None:
    shop = open(f"orders packers ack-wait {HOUR}")
    shop.trouble = {"ink"}
    shop.start("ann")
    shop.send("pen", "ink")
    shop.until_taken(("ann", "pen"), ("ann", "ink"))
    shop.until_pending(("ann", 1))
    shop.trouble.clear()
    shop.advance(HOUR)
    shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "ink"))
    shop.until_pending()


def test_backoff_counts_how_often_it_has_failed(open: Open) -> None:
    shop = open(f"orders packers backoff {HOUR},{5 * HOUR}")
    shop.trouble = {"ink"}
    shop.start("ann")
    shop.send("ink")
    shop.until_pending(("ann", 1))
    shop.advance(HOUR)
    shop.until_pending(("ann", 2))
    shop.advance(4 * HOUR)
    shop.send("pen")
    shop.until_taken(("ann", "ink"), ("ann", "ink"), ("ann", "pen"))
    shop.advance(HOUR)
    shop.until_pending(("ann", 3))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="reads"),
        pytest.param({"claim_min_idle_time": HOUR}, id="XREADGROUP-CLAIM"),
        pytest.param({"min_idle_time": HOUR}, id="XAUTOCLAIM"),
    ],
)
def test_one_that_always_fails_becomes_a_dead_letter_and_comes_back_when_it_is_sent(
    open: Open, options: dict[str, int]
) -> None:
    shop = open(f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD}")
    shop.trouble = {"ink"}
    shop.send("ink")
    shop.lose()
    shop.start("ann", **options)
    shop.advance(HOUR)
    until(lambda: shop.taken == [("ann", "ink")])
    shop.until_pending(("ann", 2))
    shop.advance(HOUR)
    until(lambda: len(shop.letters()) == 1)
    assert shop.taken == [("ann", "ink")]
    shop.trouble.clear()
    assert shop.client.execute_command("PENSTOCK REDRIVE", DEAD) == 1
    shop.until_taken(("ann", "ink"), ("ann", "ink"))
    shop.until_pending()
    assert shop.letters() == []


def test_who_claims_with_a_read_is_told_how_often_a_message_was_delivered(open: Open) -> None:
    """FastStream refuses an entry without these numbers."""
    shop = open(f"orders packers ack-wait {HOUR}")
    shop.send("ink")
    shop.lose()
    shop.start("ann", claim_ms=9 * HOUR)
    shop.advance(HOUR)
    shop.until_taken(("ann", "ink"))
    shop.until_pending()


# --- which messages, and how many --------------------------------------------------------------


def test_max_pending_stops_a_worker_whose_messages_fail(open: Open) -> None:
    shop = open("orders packers max-pending 2")
    shop.trouble = {"pen", "ink"}
    shop.send("pen", "ink", "paper")
    shop.start("ann", max_records=5)
    shop.until_pending(("ann", 1), ("ann", 1))
    shop.until_waiting(1)
    assert shop.taken == [("ann", "pen"), ("ann", "ink")]
    first = shop.client.xpending("orders", "packers")["min"]
    assert shop.client.xack("orders", "packers", first) == 1
    shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "paper"))


def test_max_pending_consumer_leaves_the_rest_to_others(open: Open) -> None:
    shop = open("orders packers max-pending-consumer 1")
    shop.trouble = {"pen", "ink"}
    shop.send("pen", "ink")
    shop.start("ann")
    shop.until_pending(("ann", 1))
    shop.start("bob")
    shop.until_taken(("ann", "pen"), ("bob", "ink"))


def test_order_by_keeps_the_next_of_a_customer_until_the_one_before_is_done(open: Open) -> None:
    shop = open(f"orders packers order-by customer ack-wait {HOUR}")
    shop.trouble = {"pen"}
    shop.send("pen", "ink", customer="x")
    shop.send("paper", customer="y")
    shop.start("ann", max_records=9)
    shop.start("bob", max_records=9)
    until(lambda: len(shop.taken) == 2)
    assert sorted(item for _, item in shop.taken) == ["paper", "pen"]
    shop.trouble.clear()
    shop.advance(HOUR)
    shop.until_done()
    assert [item for _, item in shop.taken if item != "paper"] == ["pen", "pen", "ink"]


# --- workers and entries that go ---------------------------------------------------------------


def test_consumer_ttl_wakes_a_worker_for_what_another_had_that_is_gone(open: Open) -> None:
    shop = open(f"orders packers consumer-ttl {HOUR}")
    shop.send("pen")
    shop.lose()
    shop.start("ann", polling_interval=60_000)
    shop.until_waiting(1)
    shop.advance(HOUR)
    shop.until_taken(("ann", "pen"))
    shop.until_done()
    assert shop.consumers() == ["ann"]


def test_what_failed_is_not_deleted(open: Open) -> None:
    shop = open("orders * delete acked")
    shop.trouble = {"ink"}
    shop.start("ann")
    shop.send("pen", "ink", "paper")
    shop.until_taken(("ann", "pen"), ("ann", "ink"), ("ann", "paper"))
    until(lambda: shop.client.xlen("orders") == 1)
