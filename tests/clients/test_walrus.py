"""walrus, whose containers stand for streams and consumer groups; its protocol is redis-py's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from tests.clients.story import ITEMS, PATIENCE_MS, SUMMARY, Observer
from tests.support.servers import PenstockThread

walrus = pytest.importorskip("walrus", reason="walrus is not installed", exc_type=ImportError)

ENTRIES = list(ITEMS.items())


def open_database(penstock: PenstockThread, protocol: int, **options: Any) -> Any:
    """A database of the server.

    walrus reads replies of the older shape, which redis-py gives it in either protocol if RESP3 is
    not asked for but left to be chosen.
    """
    if protocol == 2:
        options["protocol"] = 2
    return walrus.Database(penstock.host, penstock.port, **options)


@pytest.fixture
def database(penstock: PenstockThread, protocol: int) -> Iterator[Any]:
    database = open_database(penstock, protocol, decode_responses=True)
    yield database
    database.close()


def test_a_crashed_consumer_is_replaced(
    database: Any,
    penstock: PenstockThread,
    protocol: int,
    observer: Observer,
    pool: ThreadPoolExecutor,
) -> None:
    orders = database.Stream("orders")
    group = database.consumer_group("packers", ["orders"], consumer="bob")
    assert group.create(ensure_keys_exist=False, mkstream=True) == {"orders": True}

    other = open_database(penstock, protocol, decode_responses=True)
    ann = other.consumer_group("packers", ["orders"], consumer="ann")
    waiting = pool.submit(ann.orders.read, block=PATIENCE_MS)
    observer.until_waiting()
    assert orders.add(ITEMS["1-0"], id="1-0") == "1-0"
    assert waiting.result() == ENTRIES[:1]
    assert ann.orders.ack("1-0") == 1
    for entry_id in ("2-0", "3-0"):
        orders.add(ITEMS[entry_id], id=entry_id)
    assert ann.orders.read(count=2) == ENTRIES[1:]
    other.close()

    left = group.orders.pending()
    assert [(row["message_id"], row["consumer"]) for row in left] == [
        ("2-0", "ann"),
        ("3-0", "ann"),
    ]
    assert group.orders.claim("2-0", "3-0") == ENTRIES[1:]
    assert group.orders.ack("2-0") == 1

    [rest] = group.orders.pending(consumer="bob")
    assert (rest["message_id"], rest["times_delivered"]) == ("3-0", 2)
    assert list(orders) == ENTRIES
    assert orders.groups_info() == [SUMMARY["group"]]
    assert observer.summary() == SUMMARY


def test_a_group_reads_several_streams(database: Any) -> None:
    group = database.consumer_group("packers", ["orders", "returns"])
    group.create()
    database.Stream("returns").add({"item": "ink"}, id="5-0")
    database.Stream("orders").add({"item": "pen"}, id="7-0")
    assert sorted(group.read()) == [
        ["orders", [("7-0", {"item": "pen"})]],
        ["returns", [("5-0", {"item": "ink"})]],
    ]
    assert group.returns.ack("5-0") == 1
    assert group.destroy() == {"orders": True, "returns": True}


def test_a_time_series_reads_its_streams_in_the_order_of_time(
    penstock: PenstockThread, protocol: int
) -> None:
    database = open_database(penstock, protocol)
    series = database.time_series("readers", ["left", "right"])
    series.create()
    days = [datetime(2026, 1, day) for day in (1, 2, 3)]
    for day, stream in zip(days, (series.left, series.right, series.left), strict=True):
        stream.add({"day": day.day}, id=day)
    messages = series.read()
    assert [(message.stream, message.timestamp) for message in messages] == [
        ("left", days[0]),
        ("right", days[1]),
        ("left", days[2]),
    ]
    database.close()


def test_a_stream_is_sliced_and_trimmed(database: Any) -> None:
    orders = database.Stream("orders")
    for entry_id, fields in ENTRIES:
        orders.add(fields, id=entry_id)
    assert orders["2-0"] == ("2-0", ITEMS["2-0"])
    assert orders["1-0":"2-0"] == ENTRIES[:2]
    assert list(reversed(orders.range())) == ENTRIES[::-1]
    assert orders.trim(1, approximate=False) == 2
    assert len(orders) == 1
    del orders["3-0"]
    assert len(orders) == 0
