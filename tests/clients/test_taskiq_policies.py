"""taskiq-redis workers that know nothing of policies, in groups that have them.

Its broker claims with XAUTOCLAIM what was left behind, by its idle time, but only after it has read
something new; a policy gives it to whoever reads. A task that raises is done for taskiq; what stays
pending are the tasks of workers that are killed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest

from tests.clients.observing import until
from tests.clients.shop import DEAD, HOUR, Shop
from tests.clients.test_taskiq import kill, send, start_worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("taskiq_redis") is None, reason="taskiq_redis is not installed"),
]

FOREVER = 10**12
"""An idle time in milliseconds that no task reaches: nothing is claimed."""


class Workers(Shop):
    """The server, and worker processes, which tell in a stream what they do."""

    def __init__(self, protocol: int, *lines: str) -> None:
        super().__init__(*lines)
        self.url = f"{self.penstock.url}?protocol=2" if protocol == 2 else self.penstock.url
        self._stack = ExitStack()

    def start(self, name: str, idle_ms: int = FOREVER, **environment: str) -> Process:
        """Starts a worker, which claims what has been idle for so long."""
        worker = start_worker(self.url, name, CLAIM_MS=str(idle_ms), **environment)
        self._stack.callback(kill, worker)
        return worker

    def send(self, *items: str, **fields: Any) -> None:
        """Sends tasks; ``fields`` are those that the server is to see beside the task's own."""
        send(self.url, *items)
        rows: Any = self.client.xrevrange("orders", count=len(items)) if fields else []
        for identity, task in reversed(rows):
            self.client.xdel("orders", identity)
            self.client.xadd("orders", {**task, **fields})

    def lose(self) -> None:
        """A worker reads what there is, and is never seen again."""
        assert self.client.xreadgroup("packers", "gone", {"orders": ">"})

    @property
    def said(self) -> list[str]:
        """What the workers have said, in order."""
        rows: Any = self.client.xrange("packed")
        return [fields["line"] for _, fields in rows]

    def until_said(self, line: str) -> None:
        """Returns when a worker has said this."""
        until(lambda: line in self.said)

    @property
    def done(self) -> list[str]:
        """Who has done which task, in order."""
        return [line for line in self.said if " packs " in line]

    def until_done(self) -> None:
        """Returns when nothing is left to do."""
        until(self._is_done)

    def _is_done(self) -> bool:
        [group] = self.client.xinfo_groups("orders")
        return (group["lag"], group["pending"]) == (0, 0)

    def close(self) -> None:
        """Ends the workers and the server."""
        self._stack.close()
        super().close()


Process = subprocess.Popen[bytes]
Open = Callable[..., Workers]


@pytest.fixture
def bare(protocol: int) -> Iterator[Open]:
    """Starts a server with these lines of policies."""
    with ExitStack() as stack:

        def run(*lines: str) -> Workers:
            workers = Workers(protocol, *lines)
            stack.callback(workers.close)
            return workers

        yield run


@pytest.fixture
def open(bare: Open) -> Open:
    """The same with the group."""

    def run(*lines: str) -> Workers:
        workers = bare(*lines)
        workers.client.xgroup_create("orders", "packers", "0", mkstream=True)
        return workers

    return run


# --- tasks that workers die of -----------------------------------------------------------------


def test_a_task_that_kills_every_worker_ends_as_a_dead_letter_and_is_done_when_it_is_sent_back(
    open: Open,
) -> None:
    """It reads several tasks: the limit keeps others from dying with what they are read with."""
    shop = open(
        f"orders packers ack-wait {HOUR} max-deliveries 2 dead-letter {DEAD} max-pending-consumer 1"
    )
    shop.send("pen", "ink", "paper")
    for name in ("ann", "bob"):
        worker = shop.start(name, TROUBLE="ink")
        shop.until_said(f"{name} takes ink")
        kill(worker)
        # It read on meanwhile: what falls due is not to be sent to it.
        shop.until_waiting(0)
        shop.advance(HOUR)
    [letter] = shop.letters()
    assert (letter["dead-letter-consumer"], letter["dead-letter-deliveries"]) == ("bob", "2")
    assert '"ink"' in letter["data"]
    shop.start("eve")
    shop.until_said("eve packs paper")
    assert shop.client.execute_command("XGROUP REDRIVE", DEAD) == 1
    shop.until_said("eve packs ink")
    shop.until_done()


def test_what_a_lost_worker_had_is_done_without_anything_new(open: Open) -> None:
    shop = open(f"orders packers ack-wait {HOUR}")
    shop.send("pen", "ink")
    shop.lose()
    shop.start("ann")
    shop.advance(HOUR)
    shop.until_done()
    assert shop.done == ["ann packs pen", "ann packs ink"]


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
    shop.until_done()
    assert shop.done == ["ann packs pen"]


def test_a_worker_that_claims_what_nobody_may_have_gets_the_rest(open: Open) -> None:
    """Its XAUTOCLAIM is answered as ever, and what was delivered too often is a dead letter."""
    shop = open(f"orders packers max-deliveries 1 dead-letter {DEAD}")
    shop.send("pen")
    shop.lose()
    shop.advance(HOUR)
    shop.send("ink")
    shop.start("ann", idle_ms=HOUR)
    shop.until_done()
    assert shop.done == ["ann packs ink"]
    [letter] = shop.letters()
    assert '"pen"' in letter["data"]


# --- which tasks, and how many -----------------------------------------------------------------


def test_limits_of_what_is_pending_keep_no_task_from_being_done(open: Open) -> None:
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
    shop.start("ann", idle_ms=HOUR)
    shop.until_done()
    assert shop.done == ["ann packs paper", "ann packs pen", "ann packs ink"]


def test_only_and_delay_field_see_fields_beside_the_one_of_taskiq(open: Open) -> None:
    shop = open("orders packers only kind=parcel delay-field at")
    shop.send("pen", kind="letter")
    shop.send("ink", kind="parcel", at=shop.now_ms() + HOUR)
    shop.send("paper", kind="parcel", at=0)
    shop.start("ann", idle_ms=HOUR)
    until(lambda: shop.pending() == [("", 0)])
    assert shop.done == ["ann packs paper"]
    shop.advance(HOUR)
    shop.until_done()
    assert shop.done == ["ann packs paper", "ann packs ink"]


def test_paused_workers_go_on_when_the_operator_says_so(open: Open) -> None:
    shop = open("orders packers paused yes")
    shop.start("ann", idle_ms=HOUR)
    shop.send("pen")
    until(lambda: shop.consumers() == ["ann"])
    assert (shop.done, shop.pending()) == ([], [])
    shop.set("paused", "no")
    shop.until_done()
    assert shop.done == ["ann packs pen"]


# --- workers, groups and tasks that go ---------------------------------------------------------


def test_consumer_ttl_hands_on_what_a_worker_had_that_is_gone(open: Open) -> None:
    shop = open(f"orders packers consumer-ttl {HOUR}")
    shop.send("pen")
    shop.lose()
    shop.advance(HOUR)
    assert shop.consumers() == []
    shop.start("ann")
    shop.until_done()
    assert (shop.done, shop.consumers()) == (["ann packs pen"], ["ann"])


def test_auto_group_loses_no_task_that_is_sent_before_there_are_workers(bare: Open) -> None:
    shop = bare("orders packers auto-group $")
    shop.client.xadd("orders", {"data": "no task"})
    shop.send("pen")
    shop.start("ann")
    shop.until_done()
    assert shop.done == ["ann packs pen"]


def test_what_every_group_has_done_is_deleted(open: Open) -> None:
    shop = open("orders * delete acked")
    shop.start("ann")
    shop.send("pen", "ink")
    shop.until_done()
    assert shop.done == ["ann packs pen", "ann packs ink"]
    assert shop.client.xlen("orders") == 0
