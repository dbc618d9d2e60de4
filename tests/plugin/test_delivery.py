"""Policies, what is counted of groups, and dead letters that are moved back, in Python."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing import Penstock, PenstockError, PenstockServer, RemoteServer
from penstock.testing.delivery import _SWITCHES
from penstock.testing.tools import Tools
from server.config.policies import ALL, GROUP, Table

SAMPLES = {
    "ack-wait": "30s",
    "backoff": "exponential:1s:5m:20%",
    "max-deliveries": 5,
    "dead-letter": "orders:dead",
    "dead-letter-maxlen": 10,
    "consumer-ttl": 60_000,
    "rate-limit": "100/1s",
    "max-pending": 3,
    "max-pending-consumer": 2,
    "order-by": "customer",
    "priority-field": "urgency",
    "look-ahead": 50,
    "only": "item=tea",
    "delay-field": "due",
    "paused": True,
    "reasons": False,
    "retention": "1d",
    "retention-bytes": "1mb",
    "retention-unread": "keep",
    "delete": "acked",
    "delete-grace": "1h",
    "auto-group": "$",
}

IN_FORCE = {
    **{name: str(value) for name, value in SAMPLES.items()},
    "ack-wait": "30000",
    "backoff": "exponential:1000:300000:20%",
    "rate-limit": "100/1000",
    "paused": "yes",
    "reasons": "no",
    "retention": "86400000",
    "delete-grace": "3600000",
}


def underscored(values: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in values.items()}


def of(table: Table, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the policies of a table, by the names that Python has for them."""
    return underscored({name.decode(): values[name.decode()] for name in table})


@pytest.fixture
def kitchen(handle: Penstock) -> Penstock:
    """A server with a stream that has a group."""
    handle.ask("XGROUP", "CREATE", "orders", "kitchen", "0", "MKSTREAM")
    return handle


def bury(tools: Tools, *ids: str) -> None:
    """Makes dead letters of orders with these IDs."""
    for order in ids:
        tools.ask("XADD", "orders", order, "item", "soup")
    tools.ask("XREADGROUP", "GROUP", "kitchen", "alice", "STREAMS", "orders", ">")
    tools.ask("XNACK", "orders", "kitchen", "FATAL", "IDS", len(ids), *ids)


@pytest.mark.parametrize(("group", "table"), [("kitchen", GROUP), (None, ALL)])
def test_every_policy_is_set_told_and_removed_by_its_name(
    kitchen: Penstock, group: str | None, table: Table
) -> None:
    kitchen.policies.set("orders", group, **of(table, SAMPLES))
    found: dict[str, Any] = kitchen.policies.get("orders", group)
    assert found == of(table, IN_FORCE)
    kitchen.policies.set("orders", group, **found)
    assert kitchen.policies.get("orders", group) == found
    assert kitchen.policies.remove("orders", group, *found) == len(table)
    assert kitchen.policies.get("orders", group) == {}
    assert kitchen.policies.remove("orders", group, *found) == 0


def test_the_policies_of_a_stream_are_in_force_for_its_groups(kitchen: Penstock) -> None:
    kitchen.policies.set("orders", ack_wait="30s", max_pending=3)
    kitchen.policies.set("orders", "kitchen", ack_wait=0)
    assert kitchen.policies.get("orders", "kitchen") == {"ack_wait": "0", "max_pending": "3"}
    assert kitchen.policies.remove("orders", "kitchen", "ack_wait", "max_pending") == 1
    assert kitchen.policies.get("orders", "kitchen") == {"ack_wait": "30000", "max_pending": "3"}


def test_true_and_false_are_for_the_policies_that_no_turns_off(kitchen: Penstock) -> None:
    names = [name.decode().replace("-", "_") for name in ALL if ALL[name].off == b"no"]
    assert sorted(names) == list(_SWITCHES)
    off: dict[str, Any] = dict.fromkeys(names, False)
    kitchen.policies.set("orders", **off)
    assert kitchen.policies.get("orders") == dict.fromkeys(names, "no")


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        (
            {"max_delivery": 5},
            "PENSTOCK POLICY SET orders GROUP kitchen ack-wait 30s max-delivery 5:"
            " ERR unknown policy 'max-delivery', expected one of: ack-wait, backoff, consumer-ttl,"
            " dead-letter, dead-letter-maxlen, delay-field, look-ahead, max-deliveries,"
            " max-pending, max-pending-consumer, only, order-by, paused, priority-field,"
            " rate-limit, reasons",
        ),
        (
            {"retention": "1d"},
            "PENSTOCK POLICY SET orders GROUP kitchen ack-wait 30s retention 1d:"
            " ERR the policy 'retention' is one of streams, not of groups",
        ),
        (
            {"backoff": "soon"},
            "PENSTOCK POLICY SET orders GROUP kitchen ack-wait 30s backoff soon:"
            " ERR backoff: 'soon' is not times such as 1s,5s,30s, or exponential:1s:5m:20%"
            " (first, longest, jitter)",
        ),
        (
            {"max_deliveries": 5},
            "PENSTOCK POLICY SET orders GROUP kitchen ack-wait 30s max-deliveries 5:"
            " ERR max-deliveries: dead-letter must name a stream for them",
        ),
    ],
)
def test_what_the_server_refuses_is_told_and_changes_nothing(
    kitchen: Penstock, policies: dict[str, Any], text: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        kitchen.policies.set("orders", "kitchen", ack_wait="30s", **policies)
    assert str(caught.value) == text
    assert kitchen.policies.get("orders", "kitchen") == {}


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        ({"ack_wait": 0.5}, "ack_wait: 0.5 is no value; allowed: text such as '30s', an integer,"),
        ({"dead_letter": None}, "dead_letter: None is no value; allowed: text such as '30s', an"),
        (
            {"dead_letter": False},
            "dead_letter is no switch; False is for auto_group, delete, paused, reasons",
        ),
    ],
)
def test_a_value_of_another_type_is_refused_before_it_is_text(
    kitchen: Penstock, policies: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError) as caught:
        kitchen.policies.set("orders", "kitchen", max_pending=3, **policies)
    assert str(caught.value).startswith(text)
    assert kitchen.policies.get("orders", "kitchen") == {}


def test_nothing_to_set_and_a_stream_that_is_not_there_are_told(kitchen: Penstock) -> None:
    with pytest.raises(PenstockError, match=r": ERR syntax error: expected SET key \[GROUP "):
        kitchen.policies.set("orders", "kitchen")
    with pytest.raises(PenstockError, match=r": ERR syntax error: expected SET key \[GROUP "):
        kitchen.policies.remove("orders", "kitchen")
    with pytest.raises(PenstockError, match=r"^PENSTOCK POLICY GET others: ERR no such key$"):
        kitchen.policies.get("others")
    with pytest.raises(PenstockError, match=r"^PENSTOCK POLICY GET orders GROUP bar: NOGROUP "):
        kitchen.policies.get("orders", "bar")


def test_counts_are_dictionaries_all_the_way_down(kitchen: Penstock) -> None:
    kitchen.clock.freeze(1000)
    kitchen.ask("XGROUP", "CREATE", "orders", "lately", "0")
    kitchen.policies.set("orders", "kitchen", dead_letter="orders:dead")
    bury(kitchen, "1-1", "1-2")
    counts = {
        "delivered": 2,
        "redelivered": 0,
        "acked": 0,
        "claimed": 0,
        "released": 0,
        "pending": 0,
        "given-back": 0,
        "kept-back": {"turn": 0, "time": 0, "backoff": 0, "rate": 0},
        "attended": 1,
        "paused": 0,
        "bad-delays": 0,
        "bad-delay": None,
        "dead-letters": {"max-deliveries": 0, "fatal": 2, "lately": 2},
    }
    no_letters = {"max-deliveries": 0, "fatal": 0, "lately": 0}
    of_other = counts | {"delivered": 0, "attended": 0, "dead-letters": no_letters}
    assert kitchen.stats("orders") == {"kitchen": counts, "lately": of_other}
    assert kitchen.stats("orders", "lately") == of_other | {"consumers": {}}
    of_group = kitchen.stats("orders", "kitchen")
    [alice] = of_group.pop("consumers").values()
    assert of_group == counts
    assert (alice["pending"], alice["seen"], alice["gone"]) == (0, 1000, None)
    buried = {"time": 1000, "what": "buried", "db": 0, "key": "orders", "group": "kitchen"}
    assert kitchen.stats() == {
        "dead-letters": 2,
        "redelivered": 0,
        "consumers-removed": 0,
        "trimmed": 0,
        "deleted": 0,
        "lately": [buried | {"user": "", "number": 2}],
    }


def test_counts_of_a_group_without_its_stream_are_refused(handle: Penstock) -> None:
    with pytest.raises(TypeError, match=r"^a group is one of a stream: stats\(stream, group\)$"):
        handle.stats(group="kitchen")


def test_dead_letters_are_moved_back_all_of_them_or_some(kitchen: Penstock) -> None:
    kitchen.policies.set("orders", "kitchen", dead_letter="orders:dead")
    bury(kitchen, *(f"1-{number}" for number in range(1, 7)))
    letters = [letter for letter, _ in kitchen.ask("XRANGE", "orders:dead", "-", "+")]
    assert kitchen.redrive("orders:dead", *letters[1:3]) == 2
    assert kitchen.redrive("orders:dead", count=1) == 1
    left = [letter for letter, _ in kitchen.ask("XRANGE", "orders:dead", "-", "+")]
    assert left == letters[3:]
    assert kitchen.redrive("orders:dead") == 3
    with pytest.raises(PenstockError, match=r"^PENSTOCK REDRIVE orders: ERR the stream 'orders' h"):
        kitchen.redrive("orders")
    with pytest.raises(PenstockError, match=r": ERR COUNT must be a positive integer$"):
        kitchen.redrive("orders:dead", count=0)


def do_in_another_database(tools: Tools) -> list[Any]:
    """What the methods return for a stream of database 3."""
    tools.ask("XGROUP", "CREATE", "orders", "kitchen", "0", "MKSTREAM", db=3)
    tools.policies.set("orders", "kitchen", db=3, dead_letter="dead")
    tools.ask("XADD", "orders", "1-1", "item", "soup", db=3)
    tools.ask("XREADGROUP", "GROUP", "kitchen", "alice", "STREAMS", "orders", ">", db=3)
    tools.ask("XNACK", "orders", "kitchen", "FATAL", "IDS", 1, "1-1", db=3)
    return [
        tools.policies.get("orders", "kitchen", db=3),
        tools.stats("orders", "kitchen", db=3)["dead-letters"]["fatal"],
        tools.redrive("dead", db=3),
        tools.policies.remove("orders", "kitchen", "dead_letter", db=3),
    ]


def test_both_kinds_of_servers_have_the_methods_for_each_database(server: PenstockServer) -> None:
    wanted = [{"dead_letter": "dead"}, 1, 1, 1]
    assert do_in_another_database(server) == wanted
    server.reset()
    with RemoteServer(server.url) as remote:
        assert do_in_another_database(remote) == wanted


async def test_the_awaited_form_does_the_same(kitchen: Penstock) -> None:
    aio = kitchen.aio
    await aio.policies.set("orders", "kitchen", dead_letter="orders:dead", paused=False)
    assert await aio.policies.get("orders", "kitchen") == {
        "dead_letter": "orders:dead",
        "paused": "no",
    }
    bury(kitchen, "1-1", "1-2")
    assert (await aio.stats("orders", "kitchen"))["dead-letters"]["fatal"] == 2
    assert await aio.redrive("orders:dead", count=1) == 1
    assert await aio.policies.remove("orders", "kitchen", "paused") == 1
    with pytest.raises(PenstockError, match=r"unknown policy 'pause', expected one of: ack-wait, "):
        await aio.policies.set("orders", "kitchen", pause="yes")
