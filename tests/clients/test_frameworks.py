"""Workers of frameworks: one is killed, another goes on; and groups that have policies.

The workers know nothing of policies: without one, nobody is given again what a worker leaves
behind, unless someone claims it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import pytest

from tests.clients.frameworks import FRAMEWORKS, TIMEOUT_S, Workers, kill
from tests.clients.observing import until
from tests.clients.shop import DEAD, HOUR, opened, with_group

pytestmark = pytest.mark.slow

Open = Callable[..., Workers]


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> type[Workers]:
    """Which framework the workers use."""
    found, packages = FRAMEWORKS[request.param]
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return found


@pytest.fixture
def bare(framework: type[Workers], protocol: int) -> Iterator[Open]:
    """Starts a server with these lines of policies."""
    with opened(partial(framework, protocol)) as start:
        yield start


@pytest.fixture
def open(bare: Open) -> Open:
    """The same with the group."""
    return lambda *lines: with_group(bare(*lines))


def test_a_worker_finishes_what_a_killed_one_has_begun(bare: Open) -> None:
    shop = bare()
    ann = shop.start_process("ann", trouble="ink")
    until(lambda: shop.client.exists("orders") == 1)
    shop.send("pen", "ink", "paper")
    shop.until_said("ann takes ink")
    kill(ann)
    assert shop.said == ["ann takes pen", "ann packs pen", "ann takes ink"]

    shop.advance(HOUR)
    bob = shop.start_process("bob", claim_ms=HOUR)
    # taskiq looks for what others have left each time that it has read something new.
    shop.send("lid")
    shop.until_said("bob packs ink")
    shop.until_done()
    bob.send_signal(signal.SIGTERM)
    assert bob.wait(TIMEOUT_S) == 0
    done = ["ann packs pen", "bob packs ink", "bob packs lid", "bob packs paper"]
    assert sorted(shop.done) == done
    assert shop.consumers() == ["ann", "bob"]


# --- items that workers die of -----------------------------------------------------------------


def test_an_item_that_kills_every_worker_ends_as_a_dead_letter_and_is_done_when_it_is_sent_back(
    open: Open,
) -> None:
    """Several are read at once: the limit keeps others from dying with what they are read with."""
    shop = open(
        f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD} max-pending-consumer 1"
    )
    shop.send("pen", "ink", "paper")
    for name in ("ann", "bob"):
        worker = shop.start_process(name, trouble="ink")
        shop.until_said(f"{name} takes ink")
        kill(worker)
        # It may have read on meanwhile: what falls due is not to be sent to it.
        shop.until_waiting(0)
        shop.advance(HOUR)
    [letter] = shop.letters()
    assert (letter["dead-letter-consumer"], letter["dead-letter-deliveries"]) == ("bob", "2")
    assert any("ink" in value for value in letter.values())
    shop.start("eve")
    shop.until_done()
    assert "eve packs ink" not in shop.done
    assert shop.client.execute_command("PENSTOCK REDRIVE", DEAD) == 1
    shop.until_done()
    assert shop.done[-1] == "eve packs ink"


def test_what_a_lost_worker_had_is_done_without_anything_new(open: Open) -> None:
    shop = open(f"orders packers ack-wait {HOUR}")
    shop.send("pen", "ink")
    shop.lose()
    shop.start("ann")
    shop.advance(HOUR)
    shop.until_done("ann packs pen", "ann packs ink")


def test_backoff_does_the_same_by_the_number_of_deliveries(open: Open) -> None:
    shop = open(f"orders packers backoff {HOUR},{5 * HOUR}")
    shop.send("pen")
    shop.lose()
    shop.advance(HOUR)
    shop.lose()
    shop.start("ann")
    shop.advance(4 * HOUR)
    assert shop.pending() == [("gone", 2)]
    shop.advance(HOUR)
    shop.until_done("ann packs pen")


def test_a_worker_that_claims_what_nobody_may_have_gets_the_rest(open: Open) -> None:
    """It is answered as ever, and what was delivered too often is a dead letter."""
    shop = open(f"orders packers max-deliveries 1 dead-letter {DEAD}")
    shop.send("pen")
    shop.lose()
    shop.advance(HOUR)
    shop.send("ink")
    shop.start("ann", claim_ms=HOUR)
    shop.until_done("ann packs ink")
    [letter] = shop.letters()
    assert any("pen" in value for value in letter.values())


# --- which items, and how many -----------------------------------------------------------------


def test_limits_of_what_is_pending_keep_no_item_from_being_done(open: Open) -> None:
    shop = open("orders packers max-pending 2 max-pending-consumer 1")
    shop.start("ann")
    shop.start("bob")
    shop.send(*(str(number) for number in range(10)))
    shop.until_done()
    assert sorted(line[-1] for line in shop.done) == [str(number) for number in range(10)]


def test_order_by_holds_for_what_a_worker_claims(open: Open) -> None:
    shop = open("orders packers order-by customer")
    shop.send("pen", "ink", customer="x")
    shop.lose()
    shop.advance(HOUR)
    shop.send("paper")
    shop.start("ann", claim_ms=HOUR)
    shop.until_done()
    of_x = [line for line in shop.done if line != "ann packs paper"]
    assert (of_x, len(shop.done)) == (["ann packs pen", "ann packs ink"], 3)


def test_only_and_delay_field_see_fields_beside_those_of_the_framework(open: Open) -> None:
    shop = open("orders packers only kind=parcel delay-field at")
    shop.send("pen", kind="letter")
    shop.send("ink", kind="parcel", at=shop.now_ms() + HOUR)
    shop.send("paper", kind="parcel", at=0)
    shop.send("lid")
    shop.start("ann", claim_ms=HOUR)
    until(lambda: shop.pending() == [("", 0)])
    assert shop.done == ["ann packs paper"]
    shop.advance(HOUR)
    shop.until_done("ann packs paper", "ann packs ink")


def test_paused_workers_go_on_when_the_operator_says_so(open: Open) -> None:
    shop = open("orders packers paused yes")
    shop.start("ann", claim_ms=HOUR)
    shop.send("pen")
    until(lambda: shop.consumers() == ["ann"])
    assert (shop.done, shop.pending()) == ([], [])
    shop.set("paused", "no")
    shop.until_done("ann packs pen")


# --- workers, groups and items that go ---------------------------------------------------------


def test_consumer_ttl_hands_on_what_a_worker_had_that_is_gone(open: Open) -> None:
    shop = open(f"orders packers consumer-ttl {HOUR}")
    shop.send("pen")
    shop.lose()
    shop.advance(HOUR)
    assert shop.consumers() == []
    shop.start("ann")
    shop.until_done("ann packs pen")
    assert shop.consumers() == ["ann"]


@pytest.mark.parametrize("start", ["0", "$"])
def test_auto_group_loses_nothing_that_is_sent_before_there_are_workers(
    bare: Open, start: str
) -> None:
    shop = bare(f"orders packers auto-group {start}")
    shop.client.xadd("orders", {"of": "another program"})
    assert shop.client.xreadgroup("packers", "gone", {"orders": ">"}, noack=True)
    shop.send("pen")
    shop.start("ann")
    shop.send("ink")
    shop.until_done("ann packs pen", "ann packs ink")


def test_what_every_group_has_done_is_deleted(open: Open) -> None:
    shop = open("orders * delete acked")
    shop.start("ann")
    shop.send("pen", "ink")
    shop.until_done("ann packs pen", "ann packs ink")
    assert shop.client.xlen("orders") == 0
