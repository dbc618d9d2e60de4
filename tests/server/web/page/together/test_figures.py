"""Each figure on a screen is what commands answer at that moment, while clients add, read and
acknowledge; and what is told of rates, reasons and latency."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import redis

from server.runtime.histogram import BOUNDS_NS, at_most
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled
from tests.support.wire import wait_until

GROUPS = ("fast", "slow")


@pytest.fixture
def filled() -> Iterator[Filled]:
    with Filled(enable_debug_command="yes") as found:
        yield found


def work(filled: Filled, number: int, done: threading.Event) -> None:
    """Adds, reads and acknowledges, as quickly as it is answered."""
    with redis.Redis(host="127.0.0.1", port=filled.penstock.port) as client:
        while not done.is_set():
            client.xadd("busy", {"n": number})
            group = GROUPS[number % 2]
            for _, entries in client.xreadgroup(group, f"c{number}", {"busy": ">"}, count=3):
                for entry, _ in entries[1:]:
                    client.xack("busy", group, entry)


@contextmanager
def load(filled: Filled) -> Iterator[None]:
    """Four clients at work."""
    for group in GROUPS:
        filled.client.xgroup_create("busy", group, "0", mkstream=True)
    done = threading.Event()
    threads = [threading.Thread(target=work, args=(filled, at, done)) for at in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


@contextmanager
def stopped(client: Any) -> Iterator[None]:
    """A moment: what would write waits, however many clients do."""
    client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    try:
        yield
    finally:
        client.execute_command("CLIENT", "UNPAUSE")


def numbers(text: str, *labels: str) -> list[int]:
    """The numbers behind these words."""
    found = [re.search(rf"{label} ([0-9,]+)", text) for label in labels]
    return [int(each[1].replace(",", "")) if each else -1 for each in found]


def has_acked(client: Any, least: int) -> bool:
    """Whether each group has acknowledged so many entries."""
    stats = client.execute_command("PENSTOCK STATS", "busy")
    return all(of_group[b"acked"] >= least for of_group in stats.values())


def check_group(client: Any, asking: Asking, told: dict[str, Any], acked: int) -> None:
    name = told["name"].decode()
    page = asking.get(f"/group?db=0&key=busy&group={name}")
    names = ("Lag, not delivered yet", "Pending, with consumers", "Entries read", "Acknowledged")
    expected = [told["lag"], told["pending"], told["entries-read"], acked]
    assert numbers(page.text, *names) == expected
    assert told["last-delivered-id"].decode() in page.text
    consumers = {each["name"].decode(): each for each in client.xinfo_consumers("busy", name)}
    shown = {row[0].split()[0]: row[2] for row in page.table("asked")}
    assert shown == {each: str(consumer["pending"]) for each, consumer in consumers.items()}
    for each, consumer in consumers.items():
        text = asking.get(f"/consumer?db=0&key=busy&group={name}&name={each}").text
        assert f"Holds {consumer['pending']} of {told['pending']} pending in the group" in text
    held = [row[1].split()[0] for row in page.table("Deliveries")]
    pending = client.xpending_range("busy", name, "-", "+", 20)
    assert set(held[:20]) <= {each["message_id"].decode() for each in pending} or len(held) > 20


def test_each_figure_is_what_commands_answer_while_clients_are_at_work(filled: Filled) -> None:
    client, asking = filled.client, Asking(filled.http)
    with load(filled):
        for at in range(1, 5):
            wait_until(partial(has_acked, client, 50 * at))
            with stopped(client):
                filled.look()
                length, groups = client.xlen("busy"), client.xinfo_groups("busy")
                stats = client.execute_command("PENSTOCK STATS", "busy")
                for told in groups:
                    check_group(client, asking, told, stats[told["name"]][b"acked"])
                stream = asking.get("/stream?db=0&key=busy")
                assert numbers(stream.text, "Entries") == [length]
                assert f"{length:,} ever added" in stream.text
                rows = [(row[1].split()[0], row[2]) for row in stream.table("Kept")]
                assert rows == [(str(told["lag"]), str(told["pending"])) for told in groups]
                overview = asking.get("/").text
                sums = [sum(told[name] for told in groups) for name in ("lag", "pending")]
                assert numbers(overview, "Lag", "Pending") == sums
                clients = numbers(asking.get("/server").text, "Clients")
                assert clients == [len(client.client_list())]


# --- rates -----------------------------------------------------------------------------------


def test_what_goes_in_and_out_is_told_of_streams_groups_and_consumers(filled: Filled) -> None:
    client, asking = filled.client, Asking(filled.http)
    for group in GROUPS:
        client.xgroup_create("s", group, "0", mkstream=True)
        client.xgroup_createconsumer("s", group, "ann")
    asking.get("/")
    filled.look()
    for at in range(40):
        client.xadd("s", {"n": at})
    for group, count in (("fast", 30), ("slow", 10)):
        [(_, entries)] = client.xreadgroup(group, "ann", {"s": ">"}, count=count + 10)
        client.xack("s", group, *[entry for entry, _ in entries[:count]])
    filled.look()
    assert "4.0 in /s 4.0 out /s" in asking.get("/stream?db=0&key=s").text
    rows = asking.get("/stream?db=0&key=s").table("Kept")
    assert [row[0] for row in rows] == ["fast Fine 3.0 out /s", "slow Fine 1.0 out /s"]
    # Which comes first depends on whether both were read in the same millisecond.
    assert sorted(row[:4] for row in asking.get("/").table("Lag")) == [
        ["fast s", "Fine", "4.0", "3.0"],
        ["slow s", "Fine", "4.0", "1.0"],
    ]
    assert "4.0 in /s 3.0 out /s" in asking.get("/group?db=0&key=s&group=fast").text
    assert asking.get("/group?db=0&key=s&group=slow").table("asked")[0][3] == "1.0"
    page = asking.get("/consumer?db=0&key=s&group=slow&name=ann")
    assert "2.0 in /s 1.0 out /s" in page.text
    assert "Entries in and out a second: up to 2.0, now 2.0 and 1.0" in page.html
    assert "Entries held: up to 10, now 10" in page.html


# --- why entries are kept back ---------------------------------------------------------------


def test_what_is_kept_back_is_told_by_reason_and_the_last_delay_that_is_no_time(
    filled: Filled,
) -> None:
    client, asking = filled.client, Asking(filled.http)
    client.xgroup_create("later", "g", "0", mkstream=True)
    words = ("delay-field", "at", "order-by", "customer", "paused", "no")
    client.execute_command("PENSTOCK POLICY", "SET", "later", "GROUP", "g", *words)
    client.xadd("later", {"at": 2 * 10**12}, id="1-0")
    for number in range(2, 5):
        client.xadd("later", {"customer": "x", "at": "<b>soon"}, id=f"{number}-0")
    client.xreadgroup("g", "ann", {"later": ">"})
    page = asking.get("/group?db=0&key=later&group=g").text
    assert "Kept back 3 with nobody For their turn 2 Until a time 1" in page
    assert "3 fields for a delay were no time delivered at once, the last is 4-0 : <b>soon" in page
    told = client.execute_command("PENSTOCK STATS", "later", "g")
    assert (told[b"bad-delays"], told[b"bad-delay"][b"id"]) == (3, b"4-0")
    client.execute_command("ACL", "SETUSER", "some", "on", ">x", "~*", "+@all", "-penstock|stats")
    asking.log_in("some", "x")
    assert "For their turn" not in asking.get("/group?db=0&key=later&group=g").text


def test_an_entry_that_waits_after_a_failure_is_counted_once(filled: Filled) -> None:
    client = filled.client
    client.xgroup_create("failed", "g", "0", mkstream=True)
    client.execute_command("PENSTOCK POLICY", "SET", "failed", "GROUP", "g", "backoff", "1h")
    for number in (1, 2):
        client.xadd("failed", {"n": number}, id=f"{number}-0")
    client.xreadgroup("g", "ann", {"failed": ">"})
    client.execute_command("PENSTOCK NACK", "failed", "g", "FAIL", "IDS", 1, "1-0")
    client.execute_command("PENSTOCK NACK", "failed", "g", "FAIL", "DELAY", 0, "IDS", 1, "2-0")
    page = Asking(filled.http).get("/group?db=0&key=failed&group=g").text
    assert "Kept back 2 with nobody After a failure 1 Given back 1 Policies" in page


# --- the server ------------------------------------------------------------------------------


def test_the_server_screen_tells_how_long_commands_take(filled: Filled) -> None:
    client, asking = filled.client, Asking(filled.http)
    client.config_set("latency-monitor-threshold", 1)
    for at in range(5):
        client.xadd("s", {"n": at})
    filled.penstock.call(filled.penstock.server.state.timings.latency.note, b"fork", 7_000_000)
    page = asking.get("/server?tab=latency")
    (row,) = [row for row in page.table("99 %") if row[0] == "XADD"]
    info = client.info("latencystats")["latency_percentiles_usec_xadd"]
    assert row[1] == "5"
    units = {"µs": 1, "ms": 1000}
    shown = [float(number) * units[unit] for number, unit in map(str.split, row[4:6])]
    assert shown == pytest.approx([info["p50"], info["p99"]], rel=0.01)
    assert ["fork", page.table("Held up")[0][1], "7 ms", "7 ms"] in page.table("Held up")
    client.config_set("latency-tracking", "no")
    assert "latency-tracking is no" in asking.get("/server?tab=latency").text
    client.execute_command("ACL", "SETUSER", "some", "on", ">x", "+info")
    asking.log_in("some", "x")
    denied = asking.get("/server?tab=latency").text
    assert "Your user may not run LATENCY HISTOGRAM." in denied


def test_the_past_of_the_server_is_remembered(filled: Filled) -> None:
    filled.look()
    filled.client.ping()
    for _ in range(200):
        filled.penstock.call(filled.sampler._loop_lag.observe, 3_000_000)
    filled.look()
    vitals = filled.sampler.vitals
    assert vitals.column("late")[-1] >= 5000
    assert vitals.column("commands")[-1] > vitals.column("commands")[0]
    page = Asking(filled.http).get("/server")
    assert "Loop lag, 99 % up to" in page.text
    assert 'aria-label="Memory: up to' in page.html


def test_of_a_histogram_it_is_told_up_to_which_bound_a_share_reaches() -> None:
    counts = [0] * (len(BOUNDS_NS) + 1)
    assert at_most(counts, 99) == 0
    counts[4] = 99
    assert at_most(counts, 99) == BOUNDS_NS[4]
    counts[7] = 5
    assert at_most(counts, 99) == BOUNDS_NS[7]
    counts[-1] = 100
    assert at_most(counts, 99) == BOUNDS_NS[-1]
