"""What the screens tell of policies, and of the dead letters that they have written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled

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
    rows = asking.get(GROUP).rows()
    assert rows[1:6] == [
        ["ack-wait", "90000 1 min 30 s"],
        ["backoff", "exponential:1000:60000:5% 1 s, 1 min"],
        ["dead-letter", "orders:dead"],
        ["max-deliveries", "1"],
        ["max-pending", "20"],
    ]


def test_a_stream_shows_its_own_and_what_it_gives_its_groups(asking: Asking) -> None:
    page = asking.get(STREAM)
    for row in (["max-pending", "20"], ["retention", "86400000 1 d"]):
        assert row in page.rows()
    assert "max-deliveries" not in page.text


def test_there_is_no_table_where_there_are_none(asking: Asking) -> None:
    for path in (STREAM, GROUP):
        assert "Policies" in asking.get(path).text
        assert "Policies" not in asking.get(path.replace("orders", "plain")).text


def test_a_letter_tells_its_group_who_had_it_and_how_often(asking: Asking, filled: Filled) -> None:
    page = asking.get(LETTERS)
    ((_, origin, reason, fields),) = page.rows()
    ((_, entry),) = filled.client.xrange("orders:dead")
    words = origin.split()
    assert words[:3] == ["orders", "id", entry[b"dead-letter-id"].decode()]
    assert words[3:10] == ["group", "kitchen", "consumer", "ann", "deliveries", "1", "time"]
    assert words[-1] == "UTC"
    assert (reason, fields) == ("max-deliveries", "cups three")
    assert '<a href="/group?db=0&amp;key=orders&amp;group=kitchen">kitchen</a>' in page.html


def test_names_of_streams_that_a_user_may_not_see_are_not_told(filled: Filled) -> None:
    rules = ("on", ">secret", "resetkeys", "~orders", "+@all")
    filled.client.execute_command("ACL", "SETUSER", "narrow", *rules)
    asking = Asking(filled.http)
    assert asking.log_in("narrow", "secret").status == 303
    page = asking.get(GROUP)
    assert ["dead-letter", "a stream that is not for your user"] in page.rows()
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
    owners = [row[1] for row in page.rows() if len(row) == 5 and row[0].endswith("-0")]
    assert owners[0].startswith("kept back for ")
    assert owners[1:] == ["ann", "not delivered yet", "given back"]
