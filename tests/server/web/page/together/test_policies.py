"""What the screens tell of policies, and of the dead letters that they have written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import redis

from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled
from tests.support.wire import wait_until

STREAM = "/stream?db=0&key=orders"
GROUP = "/group?db=0&key=orders&group=kitchen"
LETTERS = "/letters?db=0&key=orders:dead"


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    """``orders`` has policies of all three kinds, ``plain`` has none."""
    lines = "orders * ack-wait 90000 retention 86400000"
    with Filled(stream_policy=lines, enable_debug_command="yes") as found:
        client = found.client
        for key in ("orders", "plain"):
            client.xgroup_create(key, "kitchen", "0", mkstream=True)
        client.execute_command("PENSTOCK POLICY", "SET", "orders", "max-pending", 20)
        own = (
            "dead-letter",
            "orders:dead",
            "max-deliveries",
            1,
            "backoff",
            "exponential:1s:60s:5%",
        )
        client.execute_command("PENSTOCK POLICY", "SET", "orders", "GROUP", "kitchen", *own)
        client.xadd("orders", {"cups": "three"})
        client.xreadgroup("kitchen", "ann", {"orders": ">"})
        client.execute_command("DEBUG", "CLOCK", "ADVANCE", 1000)
        assert client.xlen("orders:dead") == 1
        yield found


@pytest.fixture
def asking(filled: Filled) -> Asking:
    return Asking(filled.http)


def test_a_group_shows_those_that_are_in_force(asking: Asking) -> None:
    text = asking.get(GROUP).text.partition("Policies Change…")[2]
    told = re.findall(
        r"(ack-wait|backoff|dead-letter|max-deliveries|max-pending) (1 min 30 s|\S+(?: \(.*?\))?)",
        text,
    )
    assert told[:5] == [
        ("ack-wait", "1 min 30 s"),
        ("backoff", "exponential:1000:60000:5% (1 s, 1 min)"),
        ("dead-letter", "orders:dead"),
        ("max-deliveries", "1"),
        ("max-pending", "20"),
    ]
    assert "After 1 delivery it is a dead letter" in asking.get(GROUP).text


def test_a_stream_shows_its_own_and_what_it_gives_its_groups(asking: Asking) -> None:
    text = asking.get(STREAM).text
    assert "max-pending 20" in text
    assert "retention 1 d" in text
    assert "max-deliveries" not in text


def test_nothing_is_told_where_there_are_none(asking: Asking) -> None:
    assert "Policies" in asking.get(STREAM).text
    assert "Policies" not in asking.get(STREAM.replace("orders", "plain")).text
    assert "None: the group works as in Redis." in asking.get(GROUP.replace("orders", "plain")).text


def test_a_letter_tells_its_group_who_had_it_and_how_often(asking: Asking, filled: Filled) -> None:
    page = asking.get(LETTERS)
    ((_, died, origin, reason, fields, _),) = page.table("Died")
    ((_, entry),) = filled.client.xrange("orders:dead")
    assert origin == f"{entry[b'dead-letter-id'].decode()} orders / kitchen"
    assert "UTC" in died
    assert (reason, fields) == ("max-deliveries 1 delivery, last ann", "cups three")
    assert '<a href="/group?db=0&amp;key=orders&amp;group=kitchen">kitchen</a>' in page.html


def test_names_of_streams_that_a_user_may_not_see_are_not_told(filled: Filled) -> None:
    rules = ("on", ">secret", "resetkeys", "~orders", "+@all")
    filled.client.execute_command("ACL", "SETUSER", "narrow", *rules)
    asking = Asking(filled.http)
    assert asking.log_in("narrow", "secret").status == 303
    page = asking.get(GROUP)
    assert "dead-letter a stream that is not for your user" in page.text
    assert "orders:dead" not in page.html


def test_entries_that_are_with_nobody_say_why(filled: Filled, asking: Asking) -> None:
    client = filled.client
    client.xgroup_create("later", "kitchen", "0", mkstream=True)
    words = ("delay-field", "at", "order-by", "customer")
    client.execute_command("PENSTOCK POLICY", "SET", "later", "GROUP", "kitchen", *words)
    client.xadd("later", {"at": 2 * 10**12}, id="1-0")
    for number in range(2, 5):
        client.xadd("later", {"customer": "x" if number < 4 else "y"}, id=f"{number}-0")
    client.xreadgroup("kitchen", "ann", {"later": ">"})
    client.execute_command("XNACK", "later", "kitchen", "FAIL", "IDS", 1, "4-0")
    page = asking.get("/group?db=0&key=later&group=kitchen&order=id")
    rows = page.table("Deliveries")
    assert rows[0][2:4] == ["Kept back", rows[0][3]]
    assert rows[0][3].startswith("due in ")
    assert [row[2] for row in rows[1:]] == ["ann", "Kept back", "Given back"]


def test_a_worker_that_fails_is_told_from_its_reason_to_its_dead_letter() -> None:
    with Filled(enable_debug_command="yes") as found:
        client, asking = found.client, Asking(found.http)
        client.xgroup_create("jobs", "g", "0", mkstream=True)
        own = ("reasons", "yes", "dead-letter", "jobs:dead", "max-deliveries", 2, "ack-wait", "30s")
        client.execute_command("PENSTOCK POLICY", "SET", "jobs", "GROUP", "g", *own)
        entry = client.xadd("jobs", {"n": 1})
        client.xreadgroup("g", "ann", {"jobs": ">"})
        fail = ("jobs", "g", "FAIL", "REASON", "<b>no pot", "IDS", 1, entry)
        client.execute_command("PENSTOCK NACK", *fail)
        address = f"/entry?db=0&key=jobs&id={entry.decode()}"
        text = asking.get(address).text
        assert "Who had it, and why it failed g ann gave it back" in text
        assert "“<b>no pot”" in text
        client.xreadgroup("g", "bob", {"jobs": ">"})
        client.execute_command("PENSTOCK NACK", *fail)
        client.execute_command("DEBUG", "CLOCK", "ADVANCE", 60_000)
        client.xreadgroup("g", "bob", {"jobs": ">"})
        found.look()
        overview = asking.get("/").text
        assert "1 dead letter in the last 10 min. See dead letters" in overview
        assert "Lately what happened, newest first 1 dead letter of jobs / g" in overview
        group = asking.get("/group?db=0&key=jobs&group=g").text
        assert "After 2 deliveries it is a dead letter: 1 so far, 1 in the last 10 min" in group
        (letter,) = asking.get("/letters?db=0&key=jobs:dead").table("Died")
        assert letter[3].startswith("<b>no pot max-deliveries, 2 deliveries")
        client.execute_command("ACL", "SETUSER", "some", "on", ">x", "~*", "+@read", "+xpending")
        client.execute_command("ACL", "SETUSER", "some", "-penstock|stats", "-penstock|history")
        asking.log_in("some", "x")
        assert "Lately what happened" not in asking.get("/").text


def test_a_consumer_tells_from_where_it_came_and_whether_it_is_still_there() -> None:
    with Filled() as found:
        client = found.client
        client.xadd("s", {"n": 1})
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "stays", {"s": ">"})
        client.xadd("s", {"n": 2})
        with redis.Redis(host="127.0.0.1", port=found.penstock.port) as other:
            other.xreadgroup("g", "goes", {"s": ">"})
        asking = Asking(found.http)
        wait_until(lambda: "Gone" in asking.get("/group?db=0&key=s&group=g").text)
        rows = {
            row[0].split()[0]: row for row in asking.get("/group?db=0&key=s&group=g").table("asked")
        }
        assert rows["stays"][0].startswith("stays 127.0.0.1:")
        assert rows["goes"][:2] == ["goes not connected", "Gone"]
        gone = asking.get("/consumer?db=0&key=s&group=g&name=goes").text
        assert "closed at" in gone
