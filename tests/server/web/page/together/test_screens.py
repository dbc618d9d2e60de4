"""The screens: what is on them, page by page."""

from __future__ import annotations

import html.parser
import http.client
import json
import re
import threading
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote

import pytest
import redis

from server.state.server_state import Phase
from server.web.page import (
    entry_screen,
    find_screen,
    group_screen,
    letters,
    overview,
    routes,
    server_screen,
    stream_screen,
)
from server.web.page.sampling import Sampler
from tests.server.web.page.asking import Answer, Asking
from tests.server.web.page.filling import HOSTILE, Filled, fill, fill_with_hostile_names
from tests.support.direct import Direct
from tests.support.servers import ONCE
from tests.support.wire import wait_until

GROUP = "/group?db=0&key=orders&group=kitchen"


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    with Filled(appendonly=True, slowlog_log_slower_than=0) as found:
        fill(found.client)
        found.look()
        yield found


@pytest.fixture(scope="module")
def asking(filled: Filled) -> Asking:
    return Asking(filled.http)


# --- overview --------------------------------------------------------------------------------


def groups(answer: Answer) -> list[list[str]]:
    """The rows of all groups, in all parts of the overview."""
    return [row for row in answer.rows() if len(row) == 10 and row[1] != "State"]


def test_groups_in_trouble_come_first_and_say_why(asking: Asking) -> None:
    answer = asking.get("/")
    rows = groups(answer)
    assert rows[0][:2] == ["kitchen orders", "Stuck"]
    assert rows[0][4:7] == ["345", "55", "0"]
    assert rows[1][:2] == ["ledger payments", "Fine"]
    assert len(rows) == 34
    assert "1 of 34 groups is in trouble" in answer.text
    assert "ann holds 40 entries; the oldest of the group was delivered 9 min" in answer.text
    assert ["orders:dead", "7", "–"] in answer.rows()  # noqa: RUF001
    assert "<title>1 in trouble · Penstock</title>" in answer.html


def test_only_those_that_fail_or_have_a_name(asking: Asking) -> None:
    for words in ("failing=1", "which=trouble"):
        assert [row[0] for row in groups(asking.get(f"/?{words}"))] == ["kitchen orders"]
    assert "Nothing fits" in asking.get("/?which=paused").text
    assert [row[0] for row in groups(asking.get("/?match=sensors:1"))] == [
        f"archive sensors:1{at}" for at in range(10)
    ]
    assert [row[0] for row in groups(asking.get("/?match=led"))] == ["ledger payments"]
    assert "Nothing fits" in asking.get("/?match=none").text


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("age", "kitchen orders"), ("lag", "kitchen orders"), ("pending", "kitchen orders"),
        ("name", "kitchen orders"), ("letters", "kitchen orders"), ("nonsense", "kitchen orders"),
    ],
)  # fmt: skip
def test_rows_are_in_the_order_that_is_asked_for(asking: Asking, order: str, first: str) -> None:
    rows = groups(asking.get(f"/?order={order}"))
    assert rows[0][0] == first
    assert rows[1][0] == {"name": "analytics orders", "lag": "invoices orders"}.get(
        order, "analytics orders" if order == "letters" else "ledger payments"
    )


def test_an_overview_of_many_has_pages(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 10)
    seen: list[str] = []
    for page in range(1, 5):
        answer = asking.get(f"/?order=name&page={page}")
        assert ("Next →</a>" in answer.html) is (page < 4)
        assert ("Previous</a>" in answer.html) is (page > 1)
        seen += [row[0] for row in groups(answer)]
    assert len(seen) == len(set(seen)) == 34
    assert groups(asking.get("/?page=99")) == []


def test_a_group_that_a_policy_holds_up_is_paused_and_one_that_falls_behind_says_so() -> None:
    with Filled() as found:
        client = found.client
        for at in range(1, 4):
            client.xadd("s", {"n": at}, id=f"{1_700_000_000_000 + at}-0")
        for name in ("late", "still", "fatal"):
            client.xgroup_create("s", name, "0")
        client.execute_command("PENSTOCK POLICY", "SET", "s", "GROUP", "still", "paused", "yes")
        client.xreadgroup("fatal", "c", {"s": ">"})
        client.execute_command("XNACK", "s", "fatal", "FATAL", "IDS", 1, f"{1_700_000_000_001}-0")
        found.look()
        text = Asking(found.http).get("/").text
        assert "The group has no consumers; 3 entries were not delivered yet, 0 pending." in text
        client.xgroup_createconsumer("s", "late", "c")
        found.look()
        text = Asking(found.http).get("/").text
        assert "3 entries were not delivered yet; the first has waited for" in text
        assert "Nobody gets entries because of the policy paused yes." in text
        assert "An entry was given up. See the entry" in text
        assert "still s Paused" in text
        client.xgroup_delconsumer("s", "fatal", "c")
        assert "late" in Asking(found.http).get("/group?db=0&key=s&group=late").text


# --- a stream --------------------------------------------------------------------------------


def entries(asking: Asking, address: str) -> tuple[list[str], str]:
    answer = asking.get(address)
    return [row[2].split()[1] for row in answer.table("Added")], answer.html


def link(html: str, text: str) -> str | None:
    before, found, _ = html.partition(f">{text}</a>")
    return before.rpartition('href="')[2].partition('"')[0].replace("&amp;", "&") if found else None


def test_a_stream_shows_its_groups_and_its_newest_entries(asking: Asking) -> None:
    answer = asking.get("/stream?db=0&key=orders")
    rows = answer.table("Kept back")
    assert [row[0].split()[0] for row in rows] == ["kitchen", "invoices", "analytics"]
    assert [row[1].split()[0] for row in rows] == ["345", "20", "0"]
    rows = answer.table("Added")
    assert rows[0][2] == "order 10399 item tea cups 0"
    assert len(rows) == stream_screen.PAGE
    assert "400 entries over 19 min" in answer.text
    assert "400 ever" in answer.text


def test_the_entries_of_a_stream_are_read_page_by_page_both_ways(asking: Asking) -> None:
    address, seen, back = "/stream?db=0&key=orders", [], ""
    while True:
        found, html = entries(asking, address)
        seen += found
        following = link(html, "Older →")
        if following is None:
            break
        back, address = address, following
    assert seen == [str(at) for at in range(10_399, 9_999, -1)]
    newer = link(html, "← Newer")
    assert newer is not None
    assert entries(asking, newer)[0] == entries(asking, back)[0]


def test_entries_from_an_id_or_a_time_on(asking: Asking, filled: Filled) -> None:
    ((first, _),) = filled.client.xrange("orders", count=1)
    found, _ = entries(asking, f"/stream?db=0&key=orders&at={first.decode()}")
    assert found == [str(at) for at in range(10_024, 9_999, -1)]
    found, _ = entries(asking, "/stream?db=0&key=orders&at=2020-01-01 00:00".replace(" ", "%20"))
    assert found[-1] == "10000"
    assert asking.get("/stream?db=0&key=orders&at=2999-01-01").text.count("no such entries") == 1
    assert asking.get("/stream?db=0&key=orders&at=soon").status == 400


@pytest.mark.parametrize("field", ["&field=item", ""])
def test_entries_with_a_text_in_a_field(asking: Asking, field: str) -> None:
    found, html = entries(asking, f"/stream?db=0&key=orders{field}&value=coco")
    assert found == [str(at) for at in range(10_398, 10_323, -3)]
    older = link(html, "Older →")
    assert older is not None
    assert "value=coco" in older
    assert entries(asking, older)[0][0] == "10323"


def test_a_search_goes_on_in_steps_and_says_how_far_it_is(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_screen, "SEARCHED", 100)
    seen, reached = [], []
    address: str | None = "/stream?db=0&key=orders&field=order&value=10000"
    while address is not None:
        answer = asking.get(address)
        seen += [row[2] for row in answer.table("Added")]
        reached += re.findall(r"in ([0-9]+) of 400", answer.text)
        address = link(answer.html, "Go on from there")
    assert seen == ["order 10000 item tea cups 0"]
    assert reached == ["100", "200", "300", "400"]
    upwards = asking.get("/stream?db=0&key=orders&field=order&value=10399&at=0").html
    assert "&from=" in (link(upwards, "Go on from there") or "")


def test_a_stream_with_more_groups_than_fit(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_screen, "MOST_GROUPS", 2)
    assert "1 more groups" in asking.get("/stream?db=0&key=orders").text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("/stream?db=0&key=nothing", "There is no stream nothing in database 0."),
        ("/stream?db=99&key=orders", "There is no such database."),
        ("/stream", 'There is no stream "" in database 0.'),
        ("/group?db=0&key=orders&group=x", "The stream orders has no group x."),
        ("/consumer?db=0&key=orders&group=kitchen&name=x", "The group kitchen has no consumer x."),
        ("/entry?db=0&key=orders&id=1-1", "The stream orders has no entry 1-1."),
        ("/value?db=0&key=orders&id=1-1", "The stream orders has no entry 1-1."),
        ("/export?db=0&key=x", "There is no stream x in database 0."),
        ("/letters?db=0&key=x", "There is no stream x in database 0."),
        ("/nothing", "There is no such page."),
    ],
)
def test_what_is_not_there_says_so_with_a_way_on(asking: Asking, address: str, text: str) -> None:
    answer = asking.get(address)
    assert (answer.status, text in answer.text) == (404, True)
    assert 'href="/letters"' in answer.html


def test_an_empty_stream_and_one_of_another_database(asking: Asking, filled: Filled) -> None:
    other = redis.Redis(host="127.0.0.1", port=filled.penstock.port, db=3)
    other.xgroup_create("empty", "g", "$", mkstream=True)
    other.set("string", "x")
    filled.look()
    assert "There are no such entries here." in asking.get("/stream?db=3&key=empty").text
    missing = asking.get("/stream?db=3&key=string")
    assert (missing.status, "string is not a stream: it holds a string." in missing.text) == (
        404,
        True,
    )
    assert groups(asking.get("/?match=empty"))[0][0] == "g empty db3"
    other.flushdb()
    other.close()
    filled.look()


def test_a_stream_is_exported_as_lines_of_json(asking: Asking, filled: Filled) -> None:
    client = filled.client
    for at in range(120):
        client.xadd("wide", {"n": at, b"\xff": "café"}, id=f"{at + 1}-0")
    answer = asking.get("/export?db=0&key=wide")
    lines = [json.loads(line) for line in answer.html.splitlines()]
    assert len(lines) == 120
    assert lines[0] == {"id": "1-0", "fields": [["n", "0"], ["\ufffd\\xff", "café"]]}
    assert answer.headers["content-disposition"] == 'attachment; filename="entries.jsonl"'
    client.xtrim("wide", 100)
    assert len(asking.get("/export?db=0&key=wide&field=n&value=11").html.splitlines()) == 11
    client.delete("wide")


# --- an entry --------------------------------------------------------------------------------


def test_an_entry_is_shown_in_full_as_json_text_and_bytes(asking: Asking, filled: Filled) -> None:
    client = filled.client
    value = '{"a": 1, "b": ["<b>"]}'
    fields = {"json": value, "image": b"\x89PNG" + bytes(60), "note": "tea"}
    client.xadd("one", fields, id="2-0")
    client.xadd("one", {"n": 1}, id="3-0")
    answer = asking.get("/entry?db=0&key=one&id=2-0")
    assert '{ "a" : 1 , "b" : [ "<b>" ] }' in answer.text
    assert "64 B, binary PNG" in answer.text
    assert "000000 89 50 4e 47 00 00 00 00 ·PNG····" in answer.text
    assert "1 short field note tea" in answer.text
    assert link(answer.html, "Newer") == "/entry?db=0&key=one&id=3-0"
    assert link(answer.html, "Older") is None
    assert link(asking.get("/entry?db=0&key=one&id=3-0").html, "Older") == (
        "/entry?db=0&key=one&id=2-0"
    )
    assert asking.get("/entry?db=0&key=one&id=x").status == 400
    raw = asking.get("/value?db=0&key=one&id=2-0&n=0")
    assert (raw.html, raw.headers["content-type"]) == (value, "application/octet-stream")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert asking.get("/value?db=0&key=one&id=2-0&n=9").status == 404
    client.delete("one")


def test_of_megabytes_the_first_part_is_shown_and_all_can_be_downloaded(
    asking: Asking, filled: Filled
) -> None:
    filled.client.xadd("large", {"text": "ä" * 2_000_000, "json": "[" + "1," * 90_000 + "1]"})
    ((entry, _),) = filled.client.xrange("large")
    answer = asking.get(f"/entry?db=0&key=large&id={entry.decode()}")
    assert len(answer.html) < 200_000
    assert "The first part of 4.0 MB. Download all of it" in answer.text
    download = asking.get(f"/value?db=0&key=large&id={entry.decode()}&n=0")
    assert len(download.html) == 2_000_000
    filled.client.delete("large")


def test_an_entry_can_be_copied_as_a_command(asking: Asking, filled: Filled) -> None:
    client = filled.client
    client.xadd("copied", {"a b": b'"\xff\r\n', "<script>": "</b>"}, id="1-1")
    html = asking.get("/entry?db=0&key=copied&id=1-1").html
    found = re.search(r'data-copy="(XADD.*?)"', html)
    assert found is not None
    command = r'XADD "copied" "*" "a b" "\"\xff\r\n" "<script>" "</b>"'
    assert unescape(found[1]) == command
    client.xadd("copied", {"long": "x" * 20_000}, id="2-1")
    assert "It is too long for that." in asking.get("/entry?db=0&key=copied&id=2-1").html
    client.delete("copied")


def test_an_entry_tells_where_it_is(asking: Asking, filled: Filled) -> None:
    ids = [entry.decode() for entry, _ in filled.client.xrange("orders")]
    first = asking.get(f"/entry?db=0&key=orders&id={ids[0]}").text
    assert "Pending in kitchen with ann after 12 tries." in first
    assert "invoices Acknowledged analytics Skipped" in first
    last = asking.get(f"/entry?db=0&key=orders&id={ids[-1]}").text
    assert "kitchen Not delivered yet invoices Not delivered yet analytics Skipped" in last
    assert "It is not pending in any group." in last


def test_an_entry_of_very_many_fields_shows_some(
    asking: Asking, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_screen, "MOST_FIELDS", 5)
    filled.client.xadd("wide", {f"f{at}": at for at in range(20)}, id="1-0")
    assert "in 20 fields, the first 5 shown" in asking.get("/entry?db=0&key=wide&id=1-0").text
    assert asking.get("/stream?db=0&key=wide").table("Added")[0][2].endswith("… 8 more fields")
    filled.client.delete("wide")


# --- a group ---------------------------------------------------------------------------------


def held(answer: Answer) -> list[list[str]]:
    return answer.table("Deliveries")


def test_a_group_shows_consumers_and_what_has_been_pending_for_the_longest_time(
    asking: Asking,
) -> None:
    answer = asking.get(GROUP)
    assert [[row[0].split()[0], *row[1:3]] for row in answer.table("asked")] == [
        ["ann", "Works", "40"], ["bob", "Works", "12"], ["cleo", "Works", "3"],
    ]  # fmt: skip
    pending = held(answer)
    assert [row[4] for row in pending[:4]] == ["12", "7", "3", "3"]
    assert pending[0][2] == "ann"
    assert pending[0][5] == "order 10000 item tea cups 0"
    assert len(pending) == group_screen.PAGE
    assert ["Once", "", "49"] in answer.rows()


def test_pending_entries_in_other_orders(asking: Asking, filled: Filled) -> None:
    late = filled.client.xrange("orders", count=50)[-1][0]
    filled.client.xclaim("orders", "kitchen", "bob", 0, [late], retrycount=99)
    rows = held(asking.get(GROUP + "&order=deliveries"))
    assert [row[4] for row in rows[:3]] == ["99", "12", "7"]
    first = asking.get(GROUP + "&order=id")
    following = link(first.html, "Next →")
    assert following is not None
    assert len({row[1] for row in held(first) + held(asking.get(following))}) == 50
    filled.client.xclaim("orders", "kitchen", "bob", 0, [late], retrycount=1)


def test_a_consumer_that_waits_is_told_from_one_that_is_away(
    asking: Asking, filled: Filled
) -> None:
    def wait() -> None:
        with (
            redis.Redis(host="127.0.0.1", port=filled.penstock.port) as client,
            pytest.raises(redis.ResponseError, match=r"NOGROUP|UNBLOCKED"),
        ):
            client.xreadgroup("ledger2", "w", {"payments": ">"}, block=60_000)

    filled.client.xgroup_create("payments", "ledger2", "$")
    waiting = threading.Thread(target=wait)
    waiting.start()
    address = "/group?db=0&key=payments&group=ledger2"
    wait_until(lambda: filled.client.info("clients")["blocked_clients"])
    answer = asking.get(address)
    assert "1 reader waits for entries." in answer.text
    assert answer.table("asked")[0][0].startswith("w 127.0.0.1:")
    assert answer.table("asked")[0][1] == "Waits for entries"
    assert answer.table("asked")[0][4] == "now"
    assert any(row[1] == "waits in xreadgroup as w" for row in asking.get("/server").rows())
    consumer = asking.get("/consumer?db=0&key=payments&group=ledger2&name=w").text
    assert "Waits for entries, holds 0 entries." in consumer
    filled.client.xgroup_destroy("payments", "ledger2")
    waiting.join()


def test_entries_that_are_gone_or_given_back_say_so(asking: Asking, filled: Filled) -> None:
    client = filled.client
    for at in range(1, 4):
        client.xadd("small", {"n": at}, id=f"{at}-0")
    client.xgroup_create("small", "g", "0")
    client.xreadgroup("g", "c", {"small": ">"})
    client.xdel("small", "1-0")
    client.execute_command("XNACK", "small", "g", "FATAL", "IDS", 1, "2-0")
    answer = asking.get("/group?db=0&key=small&group=g")
    assert [[row[1], row[2], row[4], row[5]] for row in held(answer)] == [
        ["1-0", "c", "1", "deleted from the stream"],
        ["3-0", "c", "1", "n 3"],
        ["2-0", "Given back", "given up", "n 2"],
    ]
    assert "and 1 kept back or given back" in answer.text
    client.delete("small")


def test_of_very_many_pending_entries_some_are_looked_at(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_screen, "MOST_SEGMENTS", 1)
    assert "There are very many: not all of them were looked at." in asking.get(GROUP).text


def test_a_group_with_many_consumers_has_pages(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_screen, "PAGE", 2)
    first = asking.get(GROUP)
    assert [row[0].split()[0] for row in first.table("asked")] == ["ann", "bob"]
    second = asking.get(GROUP + "&cpage=2")
    assert second.table("asked")[0][0].startswith("cleo")
    assert link(second.html, "← Previous") is not None


def test_hundreds_of_consumers_are_shown_page_by_page(asking: Asking, filled: Filled) -> None:
    names = [f"worker-{at:03}" for at in range(310)]
    filled.client.xgroup_create("payments", "many", "0")
    for name in names:
        filled.client.xgroup_createconsumer("payments", "many", name)
    filled.look()
    found: list[str] = []
    following: str | None = "/group?db=0&key=payments&group=many"
    while following is not None:
        page = asking.get(following)
        rows = page.table("asked")
        assert len(rows) <= group_screen.PAGE
        found += [row[0].split()[0] for row in rows]
        following = link(page.html, "Next →")
    assert found == names
    assert hits(asking.get("/find?match=worker-309")) == [
        ["worker-309", "Consumer", "payments / many"]
    ]
    filled.client.xgroup_destroy("payments", "many")
    filled.look()


def test_a_consumer_has_a_screen_of_its_own(
    asking: Asking, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_screen, "PAGE", 25)
    address = "/consumer?db=0&key=orders&group=kitchen&name=ann"
    first = asking.get(address)
    assert "Works on 40 entries." in first.text
    assert len(held(first)) == 25
    following = link(first.html, "Next →")
    assert following is not None
    assert len(held(asking.get(following))) == 15
    monkeypatch.setattr(group_screen, "is_connected", lambda consumer: False)
    assert "Holds 40 entries and last asked for some" in asking.get(address).text
    client = filled.client
    client.xgroup_createconsumer("orders", "analytics", "idle")
    idle = asking.get("/consumer?db=0&key=orders&group=analytics&name=idle").text
    assert "Holds nothing." in idle
    assert "Last got one never" in idle
    client.xgroup_delconsumer("orders", "analytics", "idle")


def test_a_consumer_that_is_gone_is_told_on_the_group_with_what_to_do(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "is_connected", lambda consumer: False)
    answer = asking.get(GROUP)
    assert "ann holds 40 entries and has not asked for any for" in answer.text
    assert "Claim 40 entries…" in answer.text


def test_charts_are_of_what_the_sampler_has_seen(asking: Asking, filled: Filled) -> None:
    filled.look()
    assert 'aria-label="Lag: up to 345, now 345"' in asking.get(GROUP).html
    assert 'aria-label="Pending entries: up to 55, now 55"' in asking.get(GROUP).html
    filled.client.xgroup_create("payments", "new", "$")
    new = asking.get("/group?db=0&key=payments&group=new")
    assert "Nothing is pending." in new.text
    assert 'aria-label="Nothing is known yet"' in new.html
    filled.client.xgroup_destroy("payments", "new")


def test_a_chart_shows_as_much_of_the_past_as_it_is_asked_for(
    asking: Asking, filled: Filled
) -> None:
    filled.look()
    filled.look()
    html = asking.get(f"{GROUP}&minutes=60").html
    assert (
        f'<a href="{GROUP.replace("&", "&amp;")}&amp;minutes=60" aria-current="true">1 h</a>'
        in html
    )
    assert 'aria-current="true">15 min</a>' in asking.get(GROUP).html
    assert 'aria-current="true">24 h</a>' in asking.get(f"{GROUP}&minutes=99999").html


def test_charts_mark_the_start_of_the_server_and_what_happened_to_the_group(
    asking: Asking, filled: Filled
) -> None:
    client = filled.client
    client.execute_command("PENSTOCK POLICY", "SET", "orders", "GROUP", "kitchen", "paused", "yes")
    client.execute_command("PENSTOCK POLICY", "DEL", "orders", "GROUP", "kitchen", "paused")
    filled.look()
    filled.look()
    html = asking.get(GROUP).html
    for text in ("kitchen: was paused, by user default", "kitchen: was resumed, by user default"):
        assert f"<title>{text}</title>" in html
    assert "<title>The server started</title>" in asking.get("/server").html
    assert "was paused" not in asking.get("/group?db=0&key=orders&group=analytics").html


def test_what_a_screen_says_is_what_commands_answer(asking: Asking, filled: Filled) -> None:
    client = filled.client
    for at in range(60):
        client.xadd("busy", {"n": at})
    client.xgroup_create("busy", "g", "0")
    for step in range(5):
        got = client.xreadgroup("g", f"c{step % 2}", {"busy": ">"}, count=7)
        client.xack("busy", "g", *[entry for entry, _ in got[0][1][: step + 1]])
        (told,) = client.xinfo_groups("busy")
        text = asking.get("/group?db=0&key=busy&group=g").text
        assert f"Lag, not delivered yet {told['lag']} " in text
        assert f"Pending, with consumers {told['pending']} " in text
        consumers = {
            row[0].split()[0]: row[2]
            for row in asking.get("/group?db=0&key=busy&group=g").table("asked")
        }
        assert consumers == {
            each["name"].decode(): str(each["pending"])
            for each in client.xinfo_consumers("busy", "g")
        }
    client.delete("busy")


# --- looking for something -------------------------------------------------------------------


def hits(answer: Answer) -> list[list[str]]:
    return [row for row in answer.table("What") if len(row) == 3]


def test_streams_groups_consumers_and_ids_are_found(asking: Asking, filled: Filled) -> None:
    assert hits(asking.get("/find?match=kitchen")) == [["kitchen", "Group", "orders"]]
    assert hits(asking.get("/find?match=cleo")) == [["cleo", "Consumer", "orders / kitchen"]]
    assert hits(asking.get("/find?match=payments"))[0] == ["payments", "Stream", "database 0"]
    entry = filled.client.xrange("orders", count=1)[0][0].decode()
    assert hits(asking.get(f"/find?match={entry}")) == [[entry, "Entry", "orders"]]
    assert link(asking.get(f"/find?match={entry}").html, entry) == (
        f"/entry?db=0&key=orders&id={entry}"
    )
    for nothing in ("nobody", "1-1", "", "%20", "9-", "%E0"):
        text = asking.get(f"/find?match={nothing}").text
        assert "No key, group, consumer or entry matches." in text


def test_of_very_many_hits_some_are_listed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_screen, "HITS_SHOWN", 10)
    answer = asking.get("/find?match=sensors")
    assert len(hits(answer)) == 10
    assert "The first 10 matching keys, groups, consumers and entries" in answer.text
    monkeypatch.setattr(find_screen, "MOST_CONSUMERS", 0)
    assert hits(asking.get("/find?match=cleo")) == [["cleo", "Consumer", "orders / kitchen"]]
    assert hits(asking.get("/find?match=cle")) == []


def test_nothing_is_found_that_the_user_may_not_see(asking: Asking, filled: Filled) -> None:
    client = filled.client
    client.execute_command("ACL", "SETUSER", "some", "on", ">x", "~pay*", "+xinfo")
    narrow = Asking(filled.http)
    narrow.log_in("some", "x")
    assert hits(narrow.get("/find?match=kitchen")) == []
    assert hits(narrow.get("/find?match=cleo")) == []
    entry = client.xrange("payments", count=1)[0][0].decode()
    assert hits(narrow.get(f"/find?match={entry}")) == []
    client.execute_command("ACL", "SETUSER", "some", "-xinfo|consumers")
    assert hits(narrow.get("/find?match=worker-1")) == []
    client.execute_command("ACL", "DELUSER", "some")


# --- dead letters, server --------------------------------------------------------------------


def test_streams_of_dead_letters_are_found_and_counted(asking: Asking) -> None:
    answer = asking.get("/letters")
    assert answer.table("Letters") == [["orders:dead", "7"]]
    assert "Dead letters 7" in answer.text


def test_a_letter_tells_where_it_comes_from(asking: Asking) -> None:
    answer = asking.get("/letters?db=0&key=orders:dead")
    assert answer.html.count('href="/stream?db=0&amp;key=orders"') == 7
    rows = answer.table("Died")
    assert len(rows) == 7
    assert rows[0][2].endswith("orders / kitchen")
    assert rows[0][3] == "cups: not a number: 'three' 5 deliveries, last ann"
    assert rows[0][4] == "order A9006 cups three"


def test_letters_are_filtered_by_text_and_reason(asking: Asking, filled: Filled) -> None:
    address = "/letters?db=0&key=orders:dead"
    assert len(asking.get(address + "&text=A9003").table("Died")) == 1
    assert "7 letters were looked at" in asking.get(address + "&text=A9003").text
    assert len(asking.get(address + "&of=kitchen").table("Died")) == 7
    reason = "&reason=cups:+not+a+number:+%27three%27"
    assert len(asking.get(address + reason).table("Died")) == 7
    assert "No letter fits." in asking.get(address + "&reason=other").text
    assert "No letter fits." in asking.get(address + "&of=other").text
    fourth = filled.client.xrange("orders:dead")[3][0].decode()
    since = asking.get(f"{address}&since={fourth}")
    assert len(since.table("Died")) == 4
    assert "Redrive all of this filter…" in since.text
    assert since.html.count(f'name="since" value="{fourth}"') == 3, "in both forms, and typed"
    assert "No letter fits." in asking.get(address + "&since=2100-01-31+12:00").text
    refused = asking.get(address + "&since=soon")
    assert (refused.status, "neither an ID nor a time" in refused.text) == (400, True)


def test_a_letter_is_shown_in_full(asking: Asking, filled: Filled) -> None:
    ((entry, _),) = filled.client.xrevrange("orders:dead", count=1)
    text = asking.get(f"/entry?db=0&key=orders:dead&id={entry.decode()}").text
    assert "Dead letter" in text
    assert "cups: not a number: 'three' after 5 tries, last with ann." in text
    assert "Where it comes from Stream orders ID" in text


def test_what_is_no_letter_is_shown_as_it_is(
    asking: Asking, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled.client
    client.xadd("mixed", {"n": 1}, id="1-0")
    client.xadd("mixed", {"dead-letter-stream": "x", "dead-letter-reason": "y"}, id="2-0")
    client.xadd("mixed", {"dead-letter-reason": "y", "n": 1}, id="3-0")
    client.xadd("mixed", {"dead-letter-stream": "x"}, id="4-0")
    client.xadd("mixed", {"n": b"x" * 1_100_000}, id="5-0")
    many = {f"f{at}": at for at in range(9)}
    client.xadd("mixed", {"dead-letter-stream": "x", "dead-letter-reason": "y", **many}, id="6-0")
    rows = asking.get("/letters?db=0&key=mixed").table("Died")[::-1]
    assert [row[2] for row in rows] == [
        *["no dead letter"] * 4, "too large to be shown", "– x",  # noqa: RUF001
    ]  # fmt: skip
    assert rows[5][4].endswith("f7 7 … 1 more field")
    for at in range(30):
        client.xadd("mixed", {"n": at})
    first = asking.get("/letters?db=0&key=mixed")
    following = link(first.html, "Next →")
    assert following is not None
    assert len(asking.get(following).table("Died")) == 11
    monkeypatch.setattr(letters, "LOOKED_AT", 10)
    assert link(asking.get("/letters?db=0&key=mixed&reason=y").html, "Next →") is not None
    client.delete("mixed")


@pytest.mark.parametrize("tab", server_screen.TABS)
def test_every_part_of_the_server_screen_listens_to_events(asking: Asking, tab: str) -> None:
    assert 'data-events="/events"' in asking.get(f"/server?tab={tab}").html


def test_the_server_screen_has_clients_and_logs(asking: Asking, filled: Filled) -> None:
    with (
        redis.Redis(
            host="127.0.0.1",
            port=filled.penstock.port,
            username="nobody",
            password="x",
            retry=ONCE,
        ) as wrong,
        pytest.raises(redis.AuthenticationError),
    ):
        wrong.ping()
    assert any(row[2] == "default" for row in asking.get("/server").table("Client"))
    assert "on, appendfsync everysec" in asking.get("/server?tab=files").text
    assert any(row[2].startswith("XADD") for row in asking.get("/server?tab=slow").table("Took"))
    denied = asking.get("/server?tab=denied").table("Times")
    assert any((row[2], row[4]) == ("auth", "nobody") for row in denied)
    text = asking.get("/server?tab=you").text
    assert "This page This page is read-only: web-actions is no." in text
    assert "User default the default user, who needs no password" in text


def test_many_clients_have_pages(asking: Asking, filled: Filled) -> None:
    clients = [redis.Redis(host="127.0.0.1", port=filled.penstock.port) for _ in range(55)]
    for client in clients:
        client.ping()
    first = asking.get("/server")
    following = link(first.html, "Next →")
    assert following is not None
    assert len(first.table("Client")) == server_screen.PAGE
    second = asking.get(following)
    assert len(second.table("Client")) >= 6
    assert link(second.html, "← Previous") == "/server"
    for client in clients:
        client.close()


def test_a_server_without_a_file_says_so() -> None:
    with Filled() as found:
        asking = Asking(found.http)
        assert "a restart begins without data" in asking.get("/server?tab=files").text
        assert "Nothing was denied." in asking.get("/server?tab=denied").text
        found.penstock.call(found.penstock.server.state.config.set_text, "save", "60 1")
        found.penstock.call(found.penstock.server.state.config.set_text, "dbfilename", "dump.rdb")
        assert "a restart begins with what was saved last" in asking.get("/server").text


def test_a_disk_that_fails_and_a_command_of_a_script_are_told(
    asking: Asking, filled: Filled
) -> None:
    state = filled.penstock.server.state
    failing = "The append-only file cannot be written: No space left on device"

    def is_told() -> bool:
        filled.penstock.call(state.set_disk_error, "No space left on device")
        return failing in asking.get("/server?tab=files").text

    wait_until(is_told)  # Every now and then the server itself finds its disk in order.
    filled.penstock.call(state.set_disk_error, None)
    filled.client.slowlog_reset()
    filled.client.eval("return redis.call('set', 'a', ARGV[1])", 0, *["word"] * 20)
    rows = asking.get("/server?tab=slow").table("Took")
    assert rows[0][2].endswith("… (11 more)")
    filled.client.delete("a")


def test_there_is_nothing_to_see_while_data_is_loaded(asking: Asking, filled: Filled) -> None:
    state = filled.penstock.server.state
    filled.penstock.call(state.enter, Phase.LOADING)
    answer = asking.get("/")
    filled.penstock.call(state.enter, Phase.SERVING)
    assert (answer.status, "There is nothing to see yet" in answer.text) == (503, True)


# --- names that are meant to do harm ---------------------------------------------------------


def test_no_name_becomes_markup() -> None:
    with Filled(slowlog_log_slower_than=0) as found:
        fill_with_hostile_names(found.client)
        found.look()
        asking = Asking(found.http)
        screens = {"/", "/letters", "/letters?db=0&key=letters", "/find?match=e"}
        screens |= {f"/find?match={quote(name)}" for name in HOSTILE}
        screens |= {f"/server?tab={tab}" for tab in server_screen.TABS}
        todo, seen = set(screens), set()
        while todo:
            address = todo.pop()
            seen.add(address)
            answer = asking.get(address)
            assert answer.status == 200, address
            check_markup(answer.html)
            for href in answer.html.split('href="')[1:]:
                target = href.split('"')[0].replace("&amp;", "&")
                assert target.startswith(("/", "#"))
                if target.startswith(("/stream", "/group", "/consumer", "/entry")):
                    todo |= {target.partition("#")[0]} - seen
        for screen in ("/group", "/consumer", "/entry"):
            assert sum(address.startswith(screen) for address in seen) >= len(HOSTILE) - 1


ELEMENTS = (
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "footer"),
    *("a", "span", "div", "section", "p", "b", "i", "h1", "h2", "h3", "code", "pre", "small", "dl"),
    *("dt", "dd", "ol", "li", "kbd", "time", "br", "figure", "figcaption", "progress", "dialog"),
    *("form", "input", "button", "label", "select", "option", "datalist", "details", "summary"),
    *("table", "colgroup", "col", "thead", "tbody", "tr", "th", "td"),
    *("svg", "symbol", "use", "g", "line", "path", "polyline", "polygon", "rect", "circle"),
)


def check_markup(markup: str) -> None:
    """That there are no elements, attributes and addresses but ours."""

    class Checker(html.parser.HTMLParser):
        def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
            assert name in ELEMENTS
            assert name != "script" or "src" in dict(attributes)
            for key, value in attributes:
                assert not key.startswith("on")
                assert key != "style"
                if key in ("href", "src", "action", "data-next"):
                    assert value is not None
                    assert value.startswith(("/", "#"))

    Checker().feed(markup)
    assert "\u202e" not in markup
    assert "\0" not in markup


# --- events ----------------------------------------------------------------------------------


def test_browsers_are_told_of_each_look(filled: Filled) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", filled.http, timeout=30)
    connection.request("GET", "/events")
    response = connection.getresponse()
    assert response.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert response.readline() == b"retry: 5000\n"
    response.readline()
    filled.look()
    while (line := response.readline()) != b"event: sample\n":
        assert line in (b"event: beat\n", b"data:\n", b"\n")
    assert response.readline().startswith(b"data: ")
    connection.close()


def test_only_so_many_browsers_are_told(
    filled: Filled, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_LISTENERS", 0)
    assert asking.get("/events").status == 503


async def test_a_browser_hears_that_the_server_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BEAT_S", 0.001)
    sampler = Sampler(Direct().server.services)
    told = routes.Events(sampler)._events()
    assert await anext(told) == "retry: 5000\n\n"
    assert await anext(told) == "event: beat\ndata:\n\n"
    sampler.closing = True
    with pytest.raises(StopAsyncIteration):
        await anext(told)


def test_a_server_stops_although_a_browser_listens() -> None:
    with Filled() as found:
        connection = http.client.HTTPConnection("127.0.0.1", found.http, timeout=30)
        connection.request("GET", "/events")
        assert connection.getresponse().status == 200
        thread = found.penstock
    assert not thread._thread.is_alive()
    connection.close()


# --- what is seldom ----------------------------------------------------------------------------


def test_what_is_left_out_is_counted_on_the_overview(filled: Filled, asking: Asking) -> None:
    filled.sampler.left_out = 7
    text = asking.get("/").text
    filled.look()
    assert "7 more streams and groups are not shown" in text
    assert "are not shown" not in asking.get("/").text


def test_a_page_that_was_never_looked_at_is_loading(filled: Filled, asking: Asking) -> None:
    number, filled.sampler.number = filled.sampler.number, 0
    text = asking.get("/").text
    filled.sampler.number = number
    assert "Looking at all streams" in text
    assert "not for your user" not in text


def test_a_part_of_a_page_comes_without_its_frame(asking: Asking) -> None:
    whole, part = asking.get("/").html, asking.get("/", X_Part="1").html
    assert "<script" in whole
    assert "<script" not in part
    assert "<dialog" not in part
    assert part.count("<main") == 1


@pytest.mark.parametrize("key", ["order", "cpage", "start", "which", "match", "page", "after"])
def test_fields_that_make_no_sense_are_ignored(asking: Asking, key: str) -> None:
    for value in ("x", "-1", "9" * 30, "%ff%00", ""):
        for path in (GROUP + "&order=id", "/?", "/server?", "/letters?db=0&key=orders:dead"):
            assert asking.get(f"{path}&{key}={value}").status == 200


def test_an_address_with_very_many_fields_has_none(asking: Asking) -> None:
    assert asking.get("/stream?db=0&key=orders&" + "a=&" * 2000).status == 404


def test_the_oldest_of_several_segments_come_first(asking: Asking, filled: Filled) -> None:
    client = filled.client
    pipeline = client.pipeline(transaction=False)
    for at in range(1, 2501):
        pipeline.xadd("long", {"order": at}, id=f"{at}-0")
    pipeline.execute()
    client.xgroup_create("long", "g", "0")
    client.xreadgroup("g", "c", {"long": ">"})
    client.xclaim("long", "g", "c", 0, ["2400-0"], idle=99_000, retrycount=9)
    address = "/group?db=0&key=long&group=g"
    for order in ("age", "deliveries"):
        rows = held(asking.get(f"{address}&order={order}"))
        assert [row[1] for row in rows[:3]] == ["2400-0", "1-0", "2-0"]
    client.delete("long")
