"""An inbox: a message that is delivered again must not be charged again.

https://microservices.io/patterns/communication-style/idempotent-consumer.html describes the
pattern; the key of a message says that it was handled. With redis-py 8.1.0.
"""

from __future__ import annotations

from typing import Any

from penstock.testing import Penstock

PACKAGE = "redis"

CHARGE_ONCE = """
if redis.call('SET', KEYS[1], '1', 'NX') then
    redis.call('INCRBY', KEYS[2], ARGV[1])
end
"""


def exists_then_set(client: Any) -> None:
    """Looks, charges, then notes it."""
    if not client.exists("handled:42"):
        client.incrby("charged", 5)
        client.set("handled:42", 1)


def set_nx(client: Any) -> None:
    """Notes it, then charges if nobody had noted it."""
    if client.set("handled:42", 1, nx=True):
        client.incrby("charged", 5)


def by_a_script(client: Any) -> None:
    """Does both in one step."""
    client.eval(CHARGE_ONCE, 2, "handled:42", "charged", 5)


def charged_once(client: Any) -> str:
    """Each message is charged, and not twice."""
    charged = int(client.get("charged") or 0)
    if charged > 5:
        return "charged twice"
    return "" if charged else "never charged"


def test_exists_then_set_in_every_order(penstock: Penstock) -> None:
    """Inbox: `EXISTS`, then `SET`."""
    penstock.explore.orders(ann=exists_then_set, bob=exists_then_set, invariant=charged_once)


def test_exists_then_set(penstock: Penstock) -> None:
    """Inbox: `EXISTS`, then `SET`."""
    penstock.explore.crashes(exists_then_set, invariant=charged_once)


def test_set_nx_in_every_order(penstock: Penstock) -> None:
    """Inbox: `SET NX`."""
    penstock.explore.orders(ann=set_nx, bob=set_nx, invariant=charged_once)


def test_set_nx(penstock: Penstock) -> None:
    """Inbox: `SET NX`."""
    penstock.explore.crashes(set_nx, invariant=charged_once)


def test_script_in_every_order(penstock: Penstock) -> None:
    """Inbox: both in a script."""
    penstock.explore.orders(ann=by_a_script, bob=by_a_script, invariant=charged_once)


def test_script(penstock: Penstock) -> None:
    """Inbox: both in a script."""
    penstock.explore.crashes(by_a_script, invariant=charged_once)
