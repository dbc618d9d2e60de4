"""Orders of functions are run one by one, and those that end wrong are found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.testing import Penstock, exploring
from tests.penstock.explore.workers import (
    Worker,
    entries,
    look_then_take,
    not_oversold,
    one_in_stock,
    take_if_unchanged,
)


def report(penstock: Penstock, **options: Any) -> str:
    with pytest.raises(AssertionError) as error:
        penstock.explore.orders(**options)
    return str(error.value)


def test_two_who_look_and_then_take_oversell(penstock: Penstock) -> None:
    text = report(
        penstock,
        ann=look_then_take,
        bob=look_then_take,
        prepare=one_in_stock,
        invariant=not_oversold,
    )
    assert text == (
        "2 of 4 orders with at most 1 preemption end wrong. The first: abba\n"
        "  stock -1\n"
        "    ann  GET stock\n"
        "    bob  GET stock\n"
        "    bob  DECRBY stock 1\n"
        "    ann  DECRBY stock 1\n"
        "  others: baab\n"
        "  this one alone: pytest ... --explore abba"
    )


def test_watch_is_right(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=take_if_unchanged,
        bob=take_if_unchanged,
        prepare=one_in_stock,
        invariant=not_oversold,
        preemptions=None,
    )
    assert (result.complete, result.everything, result.diverged) == (True, True, [])
    assert result.explored == result.of == 6


def test_one_order_is_run_alone(penstock: Penstock, session: exploring.ExploringSession) -> None:
    session.only = "abab"
    text = report(
        penstock,
        ann=look_then_take,
        bob=look_then_take,
        prepare=one_in_stock,
        invariant=not_oversold,
    )
    assert text.splitlines()[0] == "1 of 1 order ends wrong. The first: abab"


def test_an_order_that_cannot_be_is_refused(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    session.only = "aaab"
    text = report(penstock, ann=look_then_take, bob=look_then_take, prepare=one_in_stock)
    assert text == "step 2 is one of ann, but only bob can make one"


def locking(seconds: float) -> Worker:
    """Works in redis-py's lock, which ends after ten seconds."""

    def worker(client: Any) -> None:
        from redis.exceptions import LockError

        try:
            with client.lock("lock", timeout=10):
                if client.incr("inside") > 1:
                    client.set("met", 1)
                time.sleep(seconds)
                client.decr("inside")
        except LockError:
            pass

    return worker


def never_met(client: Any) -> None:
    assert client.get("met") is None, "two inside"


def test_a_lock_has_two_holders_once_work_takes_longer(penstock: Penstock) -> None:
    work = locking(15)
    text = report(penstock, ann=work, bob=work, invariant=never_met)
    assert "  two inside" in text.splitlines()
    assert "    +    time passes: 15 s" in text.splitlines()


def test_a_lock_has_one_holder_while_work_is_short(penstock: Penstock) -> None:
    work = locking(5)
    assert penstock.explore.orders(ann=work, bob=work, invariant=never_met).complete


def streams(client: Any) -> None:
    client.xgroup_create("orders", "kitchen", "0", mkstream=True)


def reading(name: str) -> Worker:
    def worker(client: Any) -> None:
        read = client.xreadgroup("kitchen", name, {"orders": ">"}, count=1, block=0)
        for order, _ in entries(read):
            client.rename(f"cup:{order}", f"{name}:cup")

    return worker


def producing(client: Any) -> None:
    for order in ("1-0", "2-0"):
        client.set(f"cup:{order}", 1)
        client.xadd("orders", {"item": "tea"}, id=order)


def test_blocked_readers_are_woken_in_every_order(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=reading("ann"),
        bob=reading("bob"),
        cat=producing,
        prepare=streams,
        invariant=lambda client: client.exists("ann:cup", "bob:cup") == 2,
        preemptions=None,
    )
    assert result.everything
    assert result.explored > 5


def test_a_reader_that_waits_for_ever_ends_the_order(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=reading("ann"), bob=reading("bob"), prepare=streams, preemptions=None
    )
    assert (result.everything, result.explored) == (True, 2)


def test_a_read_that_waits_for_a_while_is_over_when_time_has_passed(penstock: Penstock) -> None:
    def patient(client: Any) -> None:
        if not client.xread({"orders": "$"}, block=7_000):
            client.set("gave up", client.time()[0])

    begin = {}

    def prepare(client: Any) -> None:
        begin["s"] = client.time()[0]

    def gave_up_in_time(client: Any) -> None:
        assert int(client.get("gave up")) == begin["s"] + 7

    result = penstock.explore.orders(
        ann=patient, bob=lambda client: None, prepare=prepare, invariant=gave_up_in_time
    )
    assert [outcome.id for outcome in result.outcomes] == ["a+aa"]


def test_more_workers_run_at_random_and_alike_for_the_same_seed(penstock: Penstock) -> None:
    def tried(seed: int) -> list[str]:
        result = penstock.explore.orders(
            ann=look_then_take,
            bob=look_then_take,
            cat=look_then_take,
            dan=look_then_take,
            prepare=one_in_stock,
            most=8,
            seed=seed,
        )
        assert not result.complete
        return [outcome.id for outcome in result.outcomes]

    assert tried(1) == tried(1) != tried(2)


def test_an_exception_of_a_worker_is_wrong(penstock: Penstock) -> None:
    def failing(client: Any) -> None:
        if client.get("a"):
            raise RuntimeError("there is an a")

    text = report(penstock, ann=failing, bob=lambda client: client.set("a", 1))
    assert text.splitlines()[:2] == [
        "1 of 2 orders with at most 0 preemptions ends wrong. The first: ba",
        "  ann: RuntimeError: there is an a",
    ]


def test_a_bound_is_told(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=look_then_take, bob=look_then_take, prepare=one_in_stock, most=3
    )
    assert (result.summary, result.complete) == ("3 orders, most=3", False)


def test_commands_of_a_pipeline_are_steps_of_their_own(penstock: Penstock) -> None:
    def two_writes(transaction: bool) -> Callable[[Any], None]:
        def worker(client: Any) -> None:
            client.pipeline(transaction=transaction).incr("a").incr("a").execute()

        return worker

    def between(client: Any) -> None:
        client.set("seen", client.get("a") or 0)

    def seen(transaction: bool) -> set[str]:
        values: set[str] = set()
        penstock.explore.orders(
            ann=two_writes(transaction),
            bob=between,
            invariant=lambda client: values.add(client.get("seen")),
            preemptions=None,
        )
        return values

    assert seen(transaction=False) == {"0", "1", "2"}
    assert seen(transaction=True) == {"0", "2"}


def test_one_worker_has_no_orders(penstock: Penstock) -> None:
    with pytest.raises(ValueError, match="orders are those of two workers or more: "):
        penstock.explore.orders(ann=look_then_take)


def test_workers_without_end_are_refused(penstock: Penstock) -> None:
    def spinning(client: Any) -> None:
        while not client.get("a"):
            pass

    text = report(penstock, ann=spinning, bob=spinning)
    assert text == "the workers have made 500 steps: do they end?"


def test_a_worker_that_subscribes_is_refused(penstock: Penstock) -> None:
    def subscribing(client: Any) -> None:
        with client.pubsub() as subscription:
            subscription.subscribe("news")

    told = "a worker that subscribes cannot be explored: it waits for no reply"
    assert report(penstock, ann=subscribing, bob=look_then_take, prepare=one_in_stock) == told
    with pytest.raises(AssertionError, match=told):
        penstock.explore.crashes(subscribing)
