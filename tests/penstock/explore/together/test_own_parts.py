"""What Penstock does by itself for a group, explored: policies, PENSTOCK REDRIVE, `penstock dead`.

A group buries an order that nobody can make. Whatever happens to its worker, to whoever sends
letters back, or to their connections: each other order is made exactly once, and none is lost.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from penstock.testing import Penstock
from tests.penstock.explore.workers import acknowledged, read

KINDS = ["crash", "connection", "stall", "failover", "power-cut"]
ORDERS = ("tea", "ink", "pen")
DEAD = "orders:dead"

MAKE = """
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 1 then
    redis.call('RPUSH', KEYS[2], ARGV[3])
end
"""


def fill(client: Any) -> None:
    """Orders of a group that gives each to a consumer twice at most."""
    client.xgroup_create("orders", "kitchen", "0", mkstream=True)
    policy = ("ack-wait", "30s", "max-deliveries", "2", "dead-letter", DEAD)
    client.execute_command("PENSTOCK", "POLICY", "SET", "orders", "GROUP", "kitchen", *policy)
    for item in ORDERS:
        client.xadd("orders", {"item": item})


def make(client: Any, broken: str = "") -> None:
    """Makes what is delivered, and acknowledges it, in one step; what is ``broken`` is left."""
    while found := read(client, "ann", ">"):
        for order, fields in found:
            if fields["item"] != broken:
                client.eval(MAKE, 2, "orders", "made", "kitchen", order, fields["item"])


def make_what_can_be_made(client: Any) -> None:
    make(client, broken="ink")


def letters(client: Any) -> list[str]:
    return [fields["item"] for _, fields in client.xrange(DEAD)]


def buried_once(client: Any) -> None:
    made, dead = sorted(client.lrange("made", 0, -1)), letters(client)
    assert (made, dead) == (["pen", "tea"], ["ink"]), f"made {made}, dead {dead}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_buries_what_nobody_can_make_and_nothing_else(
    penstock: Penstock, kind: str
) -> None:
    result = penstock.explore.crashes(
        make_what_can_be_made, prepare=fill, invariant=buried_once, done=acknowledged, kinds=[kind]
    )
    assert result.complete


def bury(client: Any) -> None:
    """All orders have become dead letters."""
    fill(client)
    for _ in range(2):
        client.xreadgroup("kitchen", "ann", {"orders": ">"})
        client.execute_command("DEBUG", "CLOCK", "ADVANCE", 31_000)
    assert letters(client) == list(ORDERS)


def redrive_and_make(client: Any) -> None:
    client.execute_command("PENSTOCK", "REDRIVE", DEAD)
    make(client)


def made_once(client: Any) -> None:
    made, dead = sorted(client.lrange("made", 0, -1)), letters(client)
    assert (made, dead) == (sorted(ORDERS), []), f"made {made}, dead {dead}"


def nothing_is_left(client: Any) -> bool:
    return acknowledged(client) and not letters(client)


@pytest.mark.parametrize("kind", KINDS)
def test_letters_that_are_sent_back_are_made_once(penstock: Penstock, kind: str) -> None:
    result = penstock.explore.crashes(
        redrive_and_make, prepare=bury, invariant=made_once, done=nothing_is_left, kinds=[kind]
    )
    assert result.complete


def test_in_every_order_of_two_that_send_back_and_one_that_makes_each_is_made_once(
    penstock: Penstock,
) -> None:
    def redrive(client: Any) -> None:
        client.execute_command("PENSTOCK", "REDRIVE", DEAD)

    def none_twice(client: Any) -> None:
        made = client.lrange("made", 0, -1)
        waiting = client.xinfo_groups("orders")[0]["pending"]
        assert len(set(made)) == len(made)
        assert len(made) + waiting + len(letters(client)) == len(ORDERS)

    result = penstock.explore.orders(
        ann=redrive, bob=redrive, cem=make, prepare=bury, invariant=none_twice
    )
    assert result.complete


@pytest.mark.slow
@pytest.mark.parametrize("command", ["redrive", "delete"])
def test_the_command_dead_may_be_killed_wherever_it_is(penstock: Penstock, command: str) -> None:
    line = f'exec {sys.executable} -m penstock dead {command} {DEAD} --all -u "$REDIS_URL"'

    def each_is_somewhere(client: Any) -> None:
        group = client.xinfo_groups("orders")[0]
        back = group["pending"] if command == "redrive" else len(ORDERS)
        assert (back, letters(client)) == (len(ORDERS), [])

    result = penstock.explore.crashes(
        penstock.explore.process("sh", "-c", line),
        prepare=bury,
        invariant=each_is_somewhere,
        done=lambda client: not letters(client),
    )
    assert result.complete
