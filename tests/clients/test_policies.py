"""Libraries that know nothing of policies, as workers of groups that have them.

The policies are lines of the configuration; the workers add, read, claim and acknowledge with the
ordinary methods of redis-py and of ioredis. What each policy does in every detail is in
``tests/server/delivery``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.clients.libraries import LIBRARIES, Library, numbers, waited
from tests.clients.shop import DEAD, HOUR, Shop, opened


class Workers(Shop):
    """The server, and the library that its workers use."""

    def __init__(self, library: str, protocol: int, *lines: str) -> None:
        super().__init__(*lines)
        try:
            self.library: Library = LIBRARIES[library](self.penstock, protocol)
        except BaseException:
            super().close()
            raise

    def add(self, *values: object, **more: object) -> list[str]:
        """Adds entries with these values of ``n``."""
        return [self.library.add({"n": str(value), **more}) for value in values]

    def close(self) -> None:
        """Ends library and server."""
        self.library.close()
        super().close()


Open = Callable[..., Workers]
"""Starts a server with these lines of policies; its group is there already."""


@pytest.fixture(
    params=["redis-py", "redis-py-asyncio", pytest.param("ioredis", marks=pytest.mark.slow)]
)
def library(request: pytest.FixtureRequest) -> str:
    """Which library the workers use."""
    name: str = request.param
    return name


@pytest.fixture
def bare(library: str, protocol: int) -> Iterator[Open]:
    """The same without a stream and a group."""
    with opened(partial(Workers, library, protocol)) as start:
        yield start


@pytest.fixture
def open(bare: Open) -> Open:
    def start(*lines: str) -> Workers:
        workers = bare(*lines)
        workers.library.create()
        return workers

    return start


# --- entries that come again -----------------------------------------------------------------


class TestAckWait:
    def test_another_worker_is_given_what_one_does_not_acknowledge(self, open: Open) -> None:
        shop = open(f"orders* packers ack-wait {HOUR}")
        _, second = shop.add("pen", "ink")
        assert shop.library.take("ann") == ["pen", "ink"]
        assert shop.library.acknowledge(second) == 1
        assert shop.library.take("bob") == []
        shop.advance(HOUR)
        assert shop.library.pack("bob") == ["pen"]
        shop.advance(HOUR)
        assert shop.library.take("ann") == []

    def test_a_worker_that_waits_is_given_it_as_soon_as_it_is_due(self, open: Open) -> None:
        shop = open(f"orders packers ack-wait {HOUR}")
        shop.add("pen")
        shop.library.take("ann")
        bob = shop.library.wait("bob")
        shop.until_waiting(1)
        shop.advance(HOUR)
        assert waited(bob) == ["pen"]
        assert shop.pending() == [("bob", 2)]

    def test_a_worker_that_claims_by_itself_is_in_nobodys_way(self, open: Open) -> None:
        shop = open(f"orders packers ack-wait {HOUR}")
        shop.add("pen")
        shop.library.take("ann")
        shop.advance(HOUR)
        assert numbers(shop.library.claim("bob", HOUR)) == ["pen"]
        assert shop.library.take("eve") == []
        shop.advance(HOUR)
        assert shop.library.take("eve") == ["pen"]
        assert shop.pending() == [("eve", 3)]


def test_backoff_lets_more_time_pass_before_each_attempt(open: Open) -> None:
    shop = open(f"orders packers backoff {HOUR},{3 * HOUR}")
    shop.add("pen")
    attempts = []
    for _ in range(8):
        attempts.append(len(shop.library.take("ann")))
        shop.advance(HOUR)
    assert attempts == [1, 1, 0, 0, 1, 0, 0, 1]


class TestDeadLetters:
    LINE = f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD}"

    def check(self, shop: Workers, consumer: str) -> None:
        """The entry is a dead letter, and pending no more."""
        [letter] = shop.letters()
        assert letter.pop("dead-letter-time").isdigit()
        assert letter.pop("dead-letter-id") in shop.client.xrange("orders")[0]
        assert letter == {
            "dead-letter-stream": "orders",
            "dead-letter-group": "packers",
            "dead-letter-consumer": consumer,
            "dead-letter-deliveries": "2",
            "dead-letter-reason": "max-deliveries",
            "n": "pen",
        }
        assert shop.pending() == []

    def test_what_fails_with_every_worker_goes_there_by_itself(self, open: Open) -> None:
        shop = open(self.LINE)
        shop.add("pen")
        for consumer in ("ann", "bob"):
            assert shop.library.take(consumer) == ["pen"]
            shop.advance(HOUR)
        self.check(shop, "bob")
        assert shop.library.take("eve") == []

    def test_so_does_what_workers_claim_again_and_again(self, open: Open) -> None:
        shop = open(f"orders packers max-deliveries 2 dead-letter {DEAD}")
        shop.add("pen")
        shop.library.take("ann")
        assert numbers(shop.library.claim("bob", 0)) == ["pen"]
        assert shop.library.claim("eve", 0) == []
        self.check(shop, "bob")

    def test_so_does_what_a_worker_dies_of_that_asks_for_its_own_at_each_start(
        self, open: Open
    ) -> None:
        shop = open(f"orders packers max-deliveries 2 dead-letter {DEAD}")
        shop.add("pen")
        shop.library.take("ann")
        assert numbers(shop.library.history("ann")) == ["pen"]
        assert shop.library.history("ann") == []
        self.check(shop, "ann")

    def test_a_dead_letter_goes_back_to_workers_once_they_are_mended(self, open: Open) -> None:
        shop = open(self.LINE)
        shop.add("pen")
        for _ in range(2):
            shop.library.take("ann")
            shop.advance(HOUR)
        ann = shop.library.wait("ann")
        shop.until_waiting(1)
        assert shop.client.execute_command("PENSTOCK REDRIVE", DEAD) == 1
        assert waited(ann) == ["pen"]
        assert shop.pending() == [("ann", 1)]

    def test_no_more_of_them_are_kept_than_may_be(self, open: Open) -> None:
        shop = open(
            f"orders packers max-deliveries 1 dead-letter {DEAD} dead-letter-maxlen 2"
            f" ack-wait {HOUR}"
        )
        shop.add(*range(5))
        shop.library.take("ann")
        shop.advance(HOUR)
        assert [letter["n"] for letter in shop.letters()] == ["3", "4"]


# --- which entries, and how many ---------------------------------------------------------------


def test_max_pending_holds_all_workers_back_until_something_is_acknowledged(open: Open) -> None:
    shop = open("orders packers max-pending 3")
    first, *_ = shop.add(*range(5))
    assert shop.library.take("ann", 2) == ["0", "1"]
    assert shop.library.take("bob") == ["2"]
    eve = shop.library.wait("eve")
    shop.until_waiting(1)
    assert shop.library.acknowledge(first) == 1
    assert waited(eve) == ["3"]
    assert shop.pending() == [("ann", 1), ("bob", 1), ("eve", 1)]


def test_max_pending_consumer_holds_back_the_one_who_has_too_many(open: Open) -> None:
    shop = open("orders packers max-pending-consumer 2")
    shop.add(*range(5))
    assert shop.library.take("ann") == ["0", "1"]
    assert shop.library.take("ann") == []
    assert shop.library.take("bob") == ["2", "3"]


def test_order_by_gives_the_next_of_a_customer_when_the_one_before_is_done(open: Open) -> None:
    shop = open("orders packers order-by customer")
    first, *_ = [
        *shop.add(1, customer="x"),
        *shop.add(2, customer="x"),
        *shop.add(3, customer="y"),
    ]
    assert shop.library.take("ann") == ["1", "3"]
    assert shop.library.take("bob") == []
    bob = shop.library.wait("bob")
    shop.until_waiting(1)
    assert shop.library.acknowledge(first) == 1
    assert waited(bob) == ["2"]


def test_order_by_hands_nothing_out_to_those_who_claim_either(open: Open) -> None:
    shop = open("orders packers order-by customer")
    first, _ = shop.add(1, 2, customer="x")
    assert shop.library.take("ann") == ["1"]
    shop.advance(HOUR)
    assert numbers(shop.library.claim("bob", HOUR)) == ["1"]
    assert shop.library.acknowledge(first) == 1
    assert shop.library.take("bob") == ["2"]


def test_only_leaves_a_group_the_entries_that_are_for_it(open: Open) -> None:
    shop = open("orders packers only kind=parcel", "orders * only kind=letter")
    shop.client.xgroup_create("orders", "clerks", "0")
    for n, kind in enumerate(("parcel", "letter", "parcel")):
        shop.add(n, kind=kind)
    shop.add(9)
    assert shop.library.take("ann") == ["0", "2"]
    reply = shop.client.xreadgroup("clerks", "zoe", {"orders": ">"})
    assert [fields["n"] for _, fields in dict(reply)["orders"]] == ["1"]
    [clerks, packers] = shop.client.xinfo_groups("orders")
    assert (clerks["lag"], clerks["pending"]) == (0, 1)
    assert (packers["lag"], packers["pending"]) == (0, 2)


class TestDelayField:
    def test_an_entry_is_given_when_its_time_has_come(self, open: Open) -> None:
        shop = open("orders packers delay-field at")
        shop.add("later", at=shop.now_ms() + HOUR)
        shop.add("now")
        assert shop.library.pack("ann") == ["now"]
        ann = shop.library.wait("ann")
        shop.until_waiting(1)
        shop.advance(HOUR)
        assert waited(ann) == ["later"]
        assert shop.pending() == [("ann", 1)]

    def test_a_worker_that_never_acknowledges_leaves_nothing_pending(self, open: Open) -> None:
        shop = open("orders packers delay-field at")
        shop.add("later", at=shop.now_ms() + HOUR)
        assert shop.library.read("ann", noack=True) == []
        assert shop.pending() == [("", 0)]
        shop.advance(HOUR)
        assert numbers(shop.library.read("ann", noack=True)) == ["later"]
        assert shop.pending() == []


def test_paused_keeps_everything_until_the_operator_lets_it_go(open: Open) -> None:
    shop = open("orders packers paused yes")
    shop.add("pen")
    assert shop.library.take("ann") == []
    ann = shop.library.wait("ann")
    shop.until_waiting(1)
    shop.set("paused", "no")
    assert waited(ann) == ["pen"]


# --- workers and groups that come and go -------------------------------------------------------


def test_consumer_ttl_gives_the_entries_of_a_worker_that_is_gone_to_others(open: Open) -> None:
    shop = open(f"orders packers consumer-ttl {HOUR}")
    shop.add("pen", "ink")
    assert shop.library.take("ann", 1) == ["pen"]
    bob = shop.library.wait("bob")
    assert waited(bob) == ["ink"]
    bob = shop.library.wait("bob")
    shop.until_waiting(1)
    shop.advance(HOUR)
    assert waited(bob) == ["pen"]
    assert shop.consumers() == ["bob"]
    assert shop.pending() == [("bob", 1), ("bob", 1)]


class TestAutoGroup:
    def test_a_worker_reads_without_having_made_the_group(self, bare: Open) -> None:
        shop = bare("orders packers auto-group 0")
        ann = shop.library.wait("ann")
        shop.until_waiting(1)
        shop.add("pen")
        assert waited(ann) == ["pen"]

    def test_it_makes_no_difference_to_one_that_makes_it(self, bare: Open) -> None:
        shop = bare("orders packers auto-group $")
        shop.library.create()
        shop.add("pen")
        assert shop.library.pack("ann") == ["pen"]

    def test_a_group_that_is_named_misses_nothing_that_comes_before_its_workers(
        self, bare: Open
    ) -> None:
        shop = bare("orders packers auto-group $")
        shop.add("pen", "ink")
        assert shop.library.take("ann") == ["pen", "ink"]


# --- entries that go by themselves -------------------------------------------------------------


class TestDeleteAcked:
    def test_entries_go_when_every_group_has_acknowledged_them(self, open: Open) -> None:
        shop = open("orders * delete acked")
        shop.client.xgroup_create("orders", "clerks", "0")
        shop.add("pen", "ink")
        assert shop.library.pack("ann", 1) == ["pen"]
        assert shop.left() == ["pen", "ink"]
        assert len(dict(shop.client.xreadgroup("clerks", "zoe", {"orders": ">"}))["orders"]) == 2
        for identity, _ in shop.client.xrange("orders"):
            assert shop.client.xack("orders", "clerks", identity) == 1
        assert shop.left() == ["ink"]
        assert shop.library.pack("bob") == ["ink"]
        assert shop.left() == []

    def test_they_may_stay_a_while_for_groups_to_come(self, open: Open) -> None:
        shop = open(f"orders * delete acked delete-grace {HOUR}")
        shop.add("pen")
        assert shop.library.pack("ann") == ["pen"]
        assert shop.left() == ["pen"]
        shop.advance(HOUR)
        assert shop.left() == []


class TestRetention:
    def test_entries_go_at_their_age(self, open: Open) -> None:
        shop = open(f"orders * retention {2 * HOUR}")
        shop.add("old")
        shop.advance(HOUR)
        shop.add("new")
        shop.advance(HOUR)
        assert shop.left() == ["new"]
        assert shop.library.pack("ann") == ["new"]

    def test_those_that_a_group_has_to_do_with_may_stay(self, open: Open) -> None:
        shop = open(f"orders * retention {HOUR} retention-unread keep")
        shop.add("taken", "unread")
        [(identity, _)] = shop.library.read("ann", 1)
        shop.advance(2 * HOUR)
        assert shop.left() == ["taken", "unread"]
        assert shop.library.acknowledge(identity) == 1
        shop.advance(HOUR)
        assert shop.left() == ["unread"]

    def test_the_oldest_go_when_they_are_too_many_bytes(self, open: Open) -> None:
        shop = open("orders * retention-bytes 20kb")
        shop.library.add_many([{"n": str(n), "text": "x" * 100} for n in range(1000)])
        shop.advance(HOUR)
        left = shop.left()
        assert 150 < len(left) < 200
        assert left == [str(n) for n in range(1000 - len(left), 1000)]
