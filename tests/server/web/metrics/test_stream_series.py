"""The series of streams, groups and consumers, with a clock that stands still."""

from __future__ import annotations

import asyncio

import pytest

from server.runtime.clockwork import Slice
from server.runtime.histogram import Histogram
from server.web.metrics.exposition import scrape
from server.web.metrics.stream_series import CONSUMERS, GROUPS, MOST_BLOCKS, STREAMS
from server.web.survey import STEP_NS
from tests.server.web.reading import samples, samples_of, streams_of, text_of, value
from tests.support.direct import START_MS, Direct, DirectClient


def say(client: DirectClient, requests: str) -> None:
    """Sends requests, each on a line, none of which must fail."""
    for line in filter(None, map(str.strip, requests.splitlines())):
        reply = client.send(*line.split())
        assert reply is not None
        assert not reply.startswith(b"-"), (line, reply)


ORDERS = {"db": "db0", "stream": "orders"}
COOK = {**ORDERS, "group": "cook"}

KNOWN = """\
redis_stream_length{db="db0",stream="orders"} 4
redis_stream_groups{db="db0",stream="orders"} 1
redis_stream_first_entry_id{db="db0",stream="orders"} 1699999990000
redis_stream_last_entry_id{db="db0",stream="orders"} 1699999999000
redis_stream_last_generated_id{db="db0",stream="orders"} 1699999999000
redis_stream_max_deleted_entry_id{db="db0",stream="orders"} 1699999995000
redis_stream_radix_tree_keys{db="db0",stream="orders"} 1
redis_stream_radix_tree_nodes{db="db0",stream="orders"} 2
redis_stream_entries_added_total{db="db0",stream="orders"} 5
redis_stream_group_consumers{$COOK} 2
redis_stream_group_messages_pending{$COOK} 2
redis_stream_group_last_delivered_id{$COOK} 1699999991000
penstock_stream_group_lag_entries{$COOK} 2
penstock_stream_group_lag_seconds{$COOK} 11.5
penstock_stream_group_oldest_pending_age_seconds{$COOK} 7.5
penstock_stream_group_redeliveries_total{$COOK} 3
penstock_stream_group_acked_total{$COOK} 0
penstock_stream_group_claims_total{$COOK} 2
penstock_stream_group_released_total{$COOK} 0
penstock_stream_group_bad_delays_total{$COOK} 0
penstock_stream_group_dead_letters_total{$COOK,reason="max-deliveries"} 0
penstock_stream_group_dead_letters_total{$COOK,reason="fatal"} 0
penstock_stream_group_dead_letters_lately{$COOK} 0
penstock_stream_group_unowned_entries{$COOK} 0
penstock_stream_group_kept_back{$COOK,reason="turn"} 0
penstock_stream_group_kept_back{$COOK,reason="time"} 0
penstock_stream_group_kept_back{$COOK,reason="backoff"} 0
penstock_stream_group_kept_back{$COOK,reason="rate"} 0
penstock_stream_group_policies{$COOK} 0
penstock_stream_group_parked_readers{$COOK} 0
penstock_stream_group_oldest_consumer_idle_seconds{$COOK} 7.5
penstock_stream_group_troubles{$COOK} 0
redis_stream_group_consumer_messages_pending{consumer="ann",$COOK} 1
redis_stream_group_consumer_messages_pending{consumer="bob",$COOK} 1
redis_stream_group_consumer_idle_seconds{consumer="ann",$COOK} 7.5
redis_stream_group_consumer_idle_seconds{consumer="bob",$COOK} 2.5
penstock_stream_group_consumer_acked_total{consumer="ann",$COOK} 0
penstock_stream_group_consumer_acked_total{consumer="bob",$COOK} 0
penstock_stream_group_consumer_redeliveries_total{consumer="ann",$COOK} 0
penstock_stream_group_consumer_redeliveries_total{consumer="bob",$COOK} 3
penstock_stream_group_consumer_gone_seconds{consumer="ann",$COOK} 0
penstock_stream_group_consumer_gone_seconds{consumer="bob",$COOK} 0
penstock_stream_group_deliveries_bucket{$COOK,le="0"} 0
penstock_stream_group_deliveries_bucket{$COOK,le="1"} 1
penstock_stream_group_deliveries_bucket{$COOK,le="2"} 1
penstock_stream_group_deliveries_bucket{$COOK,le="3"} 1
penstock_stream_group_deliveries_bucket{$COOK,le="5"} 2
penstock_stream_group_deliveries_bucket{$COOK,le="10"} 2
penstock_stream_group_deliveries_bucket{$COOK,le="25"} 2
penstock_stream_group_deliveries_bucket{$COOK,le="100"} 2
penstock_stream_group_deliveries_bucket{$COOK,le="+Inf"} 2
penstock_stream_group_deliveries_sum{$COOK} 5
penstock_stream_group_deliveries_count{$COOK} 2
""".replace("$COOK", 'db="db0",group="cook",stream="orders"')


async def test_a_known_state_is_told_to_the_letter() -> None:
    direct = Direct(metrics_consumers="yes")
    client = direct.client()
    for before in (10_000, 9_000, 5_000, 4_000, 1_000):
        say(client, f"XADD orders {START_MS - before} f v")
    say(
        client,
        f"""XDEL orders {START_MS - 5_000}
        XGROUP CREATE orders cook 0 ENTRIESREAD 0
        XREADGROUP GROUP cook ann COUNT 2 STREAMS orders >""",
    )
    direct.now_ms += 5_000
    for _ in range(2):
        say(client, f"XCLAIM orders cook bob 0 {START_MS - 9_000}")
    say(client, "XREADGROUP GROUP cook bob STREAMS orders 0")
    direct.now_ms += 2_500
    assert await streams_of(direct) == KNOWN


async def test_the_lag_is_known_where_redis_does_not_know_it(
    direct: Direct, client: DirectClient
) -> None:
    for ms in range(1, 6):
        say(client, f"XADD orders {ms} f v")
    say(client, "XGROUP CREATE orders cook 2\nXDEL orders 4")
    found = await samples_of(direct)
    assert value(found, "redis_stream_group_lag", **COOK) is None
    assert value(found, "redis_stream_group_entries_read", **COOK) is None
    assert value(found, "penstock_stream_group_lag_entries", **COOK) == 2


async def test_the_lag_of_redis_is_there_where_redis_knows_it(direct: Direct) -> None:
    say(direct.client(), "XADD orders 1 f v\nXGROUP CREATE orders cook 0")
    found = await samples_of(direct)
    assert value(found, "redis_stream_group_lag", **COOK) == 1


async def test_what_commands_do_with_pending_entries_is_counted(
    direct: Direct, client: DirectClient
) -> None:
    say(
        client,
        """XADD orders 1 f v
        XADD orders 2 f v
        XADD orders 3 f v
        XADD orders 4 f v
        XADD orders 5 f v
        XGROUP CREATE orders cook 0
        XREADGROUP GROUP cook ann STREAMS orders >
        XACK orders cook 1 1 9
        XACKDEL orders cook IDS 1 2
        XCLAIM orders cook bob 0 3 JUSTID
        XAUTOCLAIM orders cook cyd 0 0
        XREADGROUP GROUP cook cyd STREAMS orders 0
        XNACK orders cook FAIL IDS 2 3 4
        XREADGROUP GROUP cook bob CLAIM 0 STREAMS orders >""",
    )
    found = await samples_of(direct)
    name = "penstock_stream_group_{}_total"
    assert value(found, name.format("acked"), **COOK) == 2
    assert value(found, name.format("claims"), **COOK) == 1 + 3 + 3
    assert value(found, name.format("redeliveries"), **COOK) == 3 + 3 + 3
    assert value(found, name.format("released"), **COOK) == 2


async def test_entries_that_were_given_back_wait_for_nobody(
    direct: Direct, client: DirectClient
) -> None:
    say(
        client,
        """XADD orders 1 f v
        XGROUP CREATE orders cook 0
        XREADGROUP GROUP cook ann STREAMS orders >
        XNACK orders cook FAIL IDS 1 1""",
    )
    direct.now_ms += 1000
    found = await samples_of(direct)
    assert value(found, "penstock_stream_group_oldest_pending_age_seconds", **COOK) == 0
    assert value(found, "redis_stream_group_messages_pending", **COOK) == 1


async def test_no_age_is_negative_when_the_clock_goes_back() -> None:
    direct = Direct(metrics_consumers="yes")
    say(
        direct.client(),
        """XADD orders * f v
        XADD orders * f v
        XGROUP CREATE orders cook 0
        XREADGROUP GROUP cook ann COUNT 1 STREAMS orders >""",
    )
    direct.now_ms -= 60_000
    found = await samples_of(direct)
    ages = [number for (name, _), number in found.items() if name.endswith(("_seconds", "_idle"))]
    assert min(ages) == 0
    assert value(found, "penstock_stream_group_lag_seconds", **COOK) == 0


@pytest.mark.parametrize("claiming", [False, True])
async def test_parked_readers_are_counted_for_each_group_that_they_wait_for(
    direct: Direct, claiming: bool
) -> None:
    say(
        direct.client(),
        """XGROUP CREATE orders cook 0 MKSTREAM
        XGROUP CREATE orders office 0
        XGROUP CREATE cakes cook 0 MKSTREAM""",
    )
    claim: list[str | int] = ["CLAIM", 1000] if claiming else []
    for keys in (["orders"], ["orders", "cakes"]):
        places = [">"] * len(keys)
        request = ["GROUP", "cook", "ann", "BLOCK", 0, *claim, "STREAMS", *keys, *places]
        assert direct.client().send("XREADGROUP", *request) is None
    assert direct.client().send("XREAD", "BLOCK", 0, "STREAMS", "orders", "$") is None
    found = await samples_of(direct)
    name = "penstock_stream_group_parked_readers"
    assert value(found, name, **COOK) == 2
    assert value(found, name, db="db0", stream="cakes", group="cook") == 1
    assert value(found, name, db="db0", stream="orders", group="office") == 0
    assert value(found, "redis_blocked_clients") == 3


async def test_an_empty_stream_and_an_empty_group_have_no_ages() -> None:
    direct = Direct(metrics_consumers="yes")
    say(direct.client(), "XGROUP CREATE orders cook 0 MKSTREAM")
    found = await samples_of(direct)
    assert value(found, "redis_stream_length", **ORDERS) == 0
    assert value(found, "redis_stream_first_entry_id", **ORDERS) is None
    assert value(found, "redis_stream_last_entry_id", **ORDERS) is None
    for what in ("lag", "oldest_pending_age", "oldest_consumer_idle"):
        assert value(found, f"penstock_stream_group_{what}_seconds", **COOK) == 0
    assert value(found, "penstock_stream_group_deliveries_count", **COOK) is None


async def test_the_tree_of_a_long_stream_is_not_counted() -> None:
    direct = Direct(stream_node_max_entries=1)
    client = direct.client()
    for number in range(1, MOST_BLOCKS + 1):
        client.send("XADD", "orders", f"{number}-0", "f", "v")
    assert value(await samples_of(direct), "redis_stream_radix_tree_nodes", **ORDERS) is not None
    client.send("XADD", "orders", "*", "f", "v")
    found = await samples_of(direct)
    assert value(found, "redis_stream_radix_tree_nodes", **ORDERS) is None
    assert value(found, "redis_stream_radix_tree_keys", **ORDERS) == MOST_BLOCKS + 1


# --- which streams there are series of -------------------------------------------------------


async def names_of(direct: Direct) -> set[tuple[str, str]]:
    """The databases and names of all streams that there are series of."""
    found = await samples_of(direct)
    all_labels = [dict(labels) for name, labels in found if name == "redis_stream_length"]
    return {(labels["db"], labels["stream"]) for labels in all_labels}


async def test_streams_of_every_database_are_told_and_strings_are_not(direct: Direct) -> None:
    say(
        direct.client(),
        """XADD orders * f v
        SET text x
        SELECT 3
        XADD orders * f v""",
    )
    assert await names_of(direct) == {("db0", "orders"), ("db3", "orders")}


async def test_an_expired_stream_is_not_told_and_not_removed(direct: Direct) -> None:
    say(direct.client(), "XADD orders * f v\nPEXPIRE orders 10")
    assert await names_of(direct) == {("db0", "orders")}
    direct.now_ms += 10
    assert await names_of(direct) == set()
    assert len(direct.server.state.keyspace.databases[0]) == 1


async def test_a_scrape_is_no_use_of_a_key(direct: Direct, client: DirectClient) -> None:
    say(client, "XADD orders * f v\nXGROUP CREATE orders g 0")
    direct.now_ms += 5000
    keyspace = direct.server.state.keyspace
    looked_up = keyspace.hits, keyspace.misses
    await text_of(direct)
    assert (keyspace.hits, keyspace.misses) == looked_up
    assert client.send("OBJECT", "IDLETIME", "orders") == b":5\r\n"


async def test_patterns_choose_the_streams() -> None:
    direct = Direct(metrics_streams="orders:* b[ae]d")
    for key in ("orders:1", "orders", "bad", "bed", "bid"):
        say(direct.client(), f"XADD {key} * f v")
    assert await names_of(direct) == {("db0", "orders:1"), ("db0", "bad"), ("db0", "bed")}
    say(direct.client(), "CONFIG SET metrics-streams bid")
    assert await names_of(direct) == {("db0", "bid")}


async def test_names_of_any_bytes_are_told_apart() -> None:
    direct = Direct(metrics_consumers="yes")
    client = direct.client()
    names = [b"\xff", rb"\xff", b'a"b', b"a\nb", b"a\\nb", "\ufffd".encode(), b""]
    for name in names:
        client.send("XGROUP", "CREATE", name, name, "0", "MKSTREAM")
        client.send("XGROUP", "CREATECONSUMER", name, name, name)
    assert len(await names_of(direct)) == len(names)


# --- how many series there may be ------------------------------------------------------------

STREAM, GROUP, CONSUMER = len(STREAMS), len(GROUPS), len(CONSUMERS)


@pytest.mark.parametrize(
    ("most", "left_out"),
    [
        (STREAM + 2 * GROUP + 3 * CONSUMER, (0, 0, 0)),
        (STREAM + 2 * GROUP + 3 * CONSUMER - 1, (0, 1, 0)),
        (STREAM + 2 * GROUP, (0, 1, 0)),
        (STREAM + GROUP, (0, 1, 3)),
        (STREAM, (0, 2, 0)),
        (STREAM - 1, (1, 0, 0)),
        (0, (1, 0, 0)),
    ],
)
async def test_what_there_are_no_series_left_for_is_counted(
    most: int, left_out: tuple[int, int, int]
) -> None:
    direct = Direct(metrics_consumers="yes", metrics_max_series=most)
    client = direct.client()
    say(
        client,
        """XGROUP CREATE orders cook 0 MKSTREAM
        XGROUP CREATE orders office 0""",
    )
    for name in ("ann", "bob", "cyd"):
        say(client, f"XGROUP CREATECONSUMER orders cook {name}")
    found = await samples_of(direct)
    kinds = ("streams", "groups", "consumers")
    counted = tuple(value(found, "penstock_metrics_left_out", kind=kind) for kind in kinds)
    assert counted == left_out
    of_streams = [name for name, _ in found if "_stream_" in name]
    assert len(of_streams) <= most


async def test_the_series_of_a_histogram_count_as_well() -> None:
    requests = """XADD orders 1 f v
        XGROUP CREATE orders cook 0
        XREADGROUP GROUP cook ann STREAMS orders >"""
    for most, there in ((STREAM + GROUP + 11, True), (STREAM + GROUP + 10, False)):
        direct = Direct(metrics_max_series=most)
        say(direct.client(), requests)
        found = await samples_of(direct)
        count = value(found, "penstock_stream_group_deliveries_count", **COOK)
        assert (count is not None) == there


# --- others are served meanwhile -------------------------------------------------------------


class Hasty:
    """A clock on which every step is long enough."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += STEP_NS
        return self.now


CHANGES = [
    "XADD k1 * f v",
    "XGROUP DESTROY k2 g",
    "XGROUP DELCONSUMER k3 g c1",
    "DEL k4",
    "SWAPDB 0 1",
    "RENAME k5 k6",
    "XADD other * f v",
    "XACK k7 g 1",
    "FLUSHALL",
]


async def test_data_may_change_while_it_is_told() -> None:
    direct = Direct(metrics_consumers="yes")
    client = direct.client()
    for change in CHANGES:
        client.send("FLUSHALL")
        for number in range(8):
            say(
                client,
                f"""XADD k{number} 1 f v
                XADD k{number} 2 f v
                XGROUP CREATE k{number} g 0
                XREADGROUP GROUP g c1 COUNT 1 STREAMS k{number} >
                XREADGROUP GROUP g c2 STREAMS k{number} >""",
            )
        scraping = asyncio.ensure_future(
            scrape(direct.server.services, Histogram(), Slice(STEP_NS, Hasty()))
        )
        turns = 0
        while not scraping.done():
            turns += 1
            if turns % 40 == 0:
                client.send(*change.split())
            await asyncio.sleep(0)
        samples(b"".join(scraping.result()).decode())
        assert turns > 40


async def test_one_step_lasts_until_its_time_is_over() -> None:
    times = iter([0, STEP_NS - 1, STEP_NS, 5 * STEP_NS, 5 * STEP_NS + 1])
    pace = Slice(STEP_NS, lambda: next(times))
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "served")
    await pace.rest()
    assert others == []
    await pace.rest()
    assert others == ["served"]
    await pace.rest()
