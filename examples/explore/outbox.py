"""An outbox: what is to be announced is kept until it is.

https://microservices.io/patterns/data/transactional-outbox.html describes the pattern; here is its
relay, which may announce something twice. ``IDMP`` is that of
https://redis.io/docs/latest/develop/data-types/streams/idempotency. With redis-py 8.1.0.
"""

from __future__ import annotations

from typing import Any

from examples.explore import shop
from penstock.testing import Penstock

PACKAGE = "redis"

DAY_S = 86_400


def publish_then_delete(client: Any) -> None:
    """Announces what is there, then takes it out of the outbox."""
    for entry, fields in client.xrange("outbox"):
        client.xadd("orders", fields)
        client.xdel("outbox", entry)


def delete_then_publish(client: Any) -> None:
    """Takes it out first."""
    for entry, fields in client.xrange("outbox"):
        client.xdel("outbox", entry)
        client.xadd("orders", fields)


def publish_once(client: Any) -> None:
    """Announces each by its ID in the outbox, which the stream keeps for a day."""
    for entry, fields in client.xrange("outbox"):
        words = [word for field in fields.items() for word in field]
        client.execute_command("XADD", "orders", "IDMP", "relay", entry, "*", *words)
        client.xdel("outbox", entry)


def fill(client: Any) -> None:
    """Puts three orders into the outbox, and makes the stream that they are announced in."""
    for item in shop.ITEMS:
        client.xadd("outbox", {"item": item})
    client.xgroup_create("orders", "packers", "0", mkstream=True)
    client.execute_command("XCFGSET", "orders", "IDMP-DURATION", DAY_S)


def each_announced(client: Any) -> str:
    """Each order is announced at least once."""
    announced = [fields["item"] for _, fields in client.xrange("orders")]
    lost = [item for item in shop.ITEMS if item not in announced]
    repeated = [item for item in shop.ITEMS if announced.count(item) > 1]
    shop.tallies.append(shop.Tally(repeated=repeated, lost=lost))
    return f"lost: {', '.join(lost)}" if lost else ""


def test_publish_then_delete(penstock: Penstock) -> None:
    """Outbox: `XADD`, then `XDEL`."""
    penstock.explore.crashes(publish_then_delete, prepare=fill, invariant=each_announced)


def test_delete_then_publish(penstock: Penstock) -> None:
    """Outbox: `XDEL`, then `XADD`."""
    penstock.explore.crashes(delete_then_publish, prepare=fill, invariant=each_announced)


def test_publish_once(penstock: Penstock) -> None:
    """Outbox: `XADD` with `IDMP`, then `XDEL`."""
    penstock.explore.crashes(publish_once, prepare=fill, invariant=each_announced)
