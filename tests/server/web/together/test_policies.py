"""What metrics tell of policies."""

from __future__ import annotations

from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.server.web.reading import samples_of, value
from tests.support.direct import START_MS

ACTIONS = ("dead_letters", "redelivered", "consumers_removed", "trimmed", "deleted")


async def actions(kitchen: Kitchen) -> dict[str, float | None]:
    """The counts that are not 0."""
    found = await samples_of(kitchen.direct)
    counts = {
        action: value(found, "penstock_policy_actions_total", action=action) for action in ACTIONS
    }
    return {action: count for action, count in counts.items() if count != 0}


async def test_each_thing_that_policies_do_is_counted_until_the_counts_are_reset() -> None:
    kitchen = Kitchen("max-deliveries", 2, "dead-letter", DEAD, "ack-wait", 100)
    kitchen.set_stream("delete", "acked")
    assert await actions(kitchen) == {}
    kitchen.add_all(range(1, 4))
    assert kitchen.read() == [1, 2, 3]
    kitchen.direct.advance(100)
    assert kitchen.read() == [1, 2, 3]
    assert await actions(kitchen) == {"redelivered": 3}
    kitchen.direct.advance(100)
    assert await actions(kitchen) == {"redelivered": 3, "dead_letters": 3, "deleted": 3}
    kitchen.ask("CONFIG", "RESETSTAT")
    assert await actions(kitchen) == {}
    kitchen.set("consumer-ttl", 1000)
    kitchen.set_stream("retention", 1000)
    kitchen.ask("XADD", KEY, f"{START_MS + 200}-1", "n", 4)
    kitchen.direct.advance(1000)
    assert await actions(kitchen) == {"trimmed": 1, "consumers_removed": 1}


async def test_a_group_tells_whether_it_has_policies_and_what_is_kept_back() -> None:
    kitchen = Kitchen()
    names = {"db": "db0", "stream": KEY, "group": GROUP}

    async def told() -> tuple[float | None, float | None]:
        found = await samples_of(kitchen.direct)
        return (
            value(found, "penstock_stream_group_policies", **names),
            value(found, "penstock_stream_group_unowned_entries", **names),
        )

    assert await told() == (0, 0)
    kitchen.set("order-by", "customer")
    for number in range(1, 4):
        kitchen.add(number, "customer", "x")
    assert kitchen.read() == [1]
    assert await told() == (1, 2)
    kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "order-by")
    assert await told() == (0, 2)
