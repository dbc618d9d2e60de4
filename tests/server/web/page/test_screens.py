"""The screens: what is on them, page by page."""

from __future__ import annotations

import html.parser
import http.client
import json
import threading
from collections.abc import Iterator

import pytest
import redis

from server.road.state import Phase
from server.web.page import group_screen, overview, routes, server_screen, stream_screen
from server.web.page.sampling import Sampler
from tests.server.web.page.asking import Asking
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


def test_groups_in_trouble_come_first(asking: Asking) -> None:
    rows = asking.get("/").rows()
    assert rows[0][:3] == ["orders", "kitchen", "stuck redelivered behind"]
    assert rows[0][4:7] == ["345", "55", "up to 12"]
    assert rows[1][:3] == ["payments", "ledger", "fine"]
    assert rows[-1][:3] == ["orders:dead", "–", "no groups"]  # noqa: RUF001
    assert len(rows) == 35


def test_only_those_that_fail_or_have_a_name(asking: Asking) -> None:
    assert [row[:2] for row in asking.get("/?failing=1").rows()] == [["orders", "kitchen"]]
    assert [row[0] for row in asking.get("/?match=sensors:1").rows()] == [
        f"sensors:1{at}" for at in range(10)
    ]
    assert [row[1] for row in asking.get("/?match=led").rows()] == ["ledger"]
    assert "There are no streams that you may see." in asking.get("/?match=none").text


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("age", ["orders", "kitchen"]), ("lag", ["orders", "kitchen"]),
        ("pending", ["orders", "kitchen"]), ("name", ["orders", "analytics"]),
        ("nonsense", ["orders", "kitchen"]),
    ],
)  # fmt: skip
def test_rows_are_in_the_order_that_is_asked_for(
    asking: Asking, order: str, first: list[str]
) -> None:
    assert asking.get(f"/?order={order}").rows()[0][:2] == first


def test_an_overview_of_many_has_pages(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "PAGE", 10)
    seen: list[str] = []
    for page in range(1, 5):
        answer = asking.get(f"/?order=name&page={page}")
        assert ("Next →</a>" in answer.html) is (page < 4)
        assert ("Previous</a>" in answer.html) is (page > 1)
        seen += ["/".join(row[:2]) for row in answer.rows()]
    assert len(seen) == len(set(seen)) == 35
    assert asking.get("/?page=99").rows() == []


# --- a stream --------------------------------------------------------------------------------


def test_a_stream_shows_its_groups_and_its_newest_entries(asking: Asking) -> None:
    answer = asking.get("/stream?db=0&key=orders")
    rows = answer.rows()
    assert [row[0] for row in rows[:3]] == ["kitchen", "invoices", "analytics"]
    assert [row[1] for row in rows[:3]] == ["345", "20", "0"]
    assert rows[3][1] == "order 10399 item tea cups 0"
    assert len(rows) == 3 + stream_screen.PAGE
    assert "400 were ever added" in answer.text


def entries(asking: Asking, address: str) -> tuple[list[str], str]:
    answer = asking.get(address)
    return [row[1].split()[1] for row in answer.rows() if row[1].startswith("order")], answer.html


def link(html: str, text: str) -> str | None:
    before, found, _ = html.partition(f'class="button">{text}</a>')
    return before.rpartition('href="')[2].partition('"')[0].replace("&amp;", "&") if found else None


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


def test_entries_with_a_field(asking: Asking) -> None:
    found, html = entries(asking, "/stream?db=0&key=orders&field=item&value=coco")
    assert found == [str(at) for at in range(10_398, 10_323, -3)]
    older = link(html, "Older →")
    assert older is not None
    assert "field=item" in older
    assert entries(asking, older)[0][0] == "10323"


def test_a_filter_looks_at_some_entries_and_says_where_it_stopped(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_screen, "SEARCHED", 100)
    seen = []
    address = "/stream?db=0&key=orders&field=order&value=10000"
    for _ in range(4):
        answer = asking.get(address)
        seen += [row[1] for row in answer.rows() if row[1].startswith("order")]
        if "Go on from there" not in answer.html:
            break
        assert "100 entries were looked at" in answer.text
        address = answer.html.split(">Go on from there")[0].rpartition('href="')[2]
        address = address.rstrip('"').replace("&amp;", "&")
    assert seen == ["order 10000 item tea cups 0"]
    upwards = asking.get("/stream?db=0&key=orders&field=order&value=10399&at=0").html
    assert "&amp;from=" in upwards.split(">Go on from there")[0].rpartition('href="')[2]


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
        ("/letters?db=0&key=x", "There is no stream x in database 0."),
    ],
)
def test_what_is_not_there(asking: Asking, address: str, text: str) -> None:
    answer = asking.get(address)
    assert (answer.status, text in answer.text) == (404, True)


def test_an_empty_stream_and_one_of_another_database(asking: Asking, filled: Filled) -> None:
    other = redis.Redis(host="127.0.0.1", port=filled.penstock.port, db=3)
    other.xgroup_create("empty", "g", "$", mkstream=True)
    other.set("string", "x")
    filled.look()
    assert "There are no such entries here." in asking.get("/stream?db=3&key=empty").text
    assert asking.get("/stream?db=3&key=string").status == 404
    assert asking.get("/?match=empty").rows()[0][0] == "empty db3"
    other.flushdb()
    other.close()
    filled.look()


# --- a group ---------------------------------------------------------------------------------


def test_a_group_shows_consumers_and_what_has_been_pending_for_the_longest_time(
    asking: Asking,
) -> None:
    answer = asking.get(GROUP)
    rows = answer.rows()
    assert [row[:3] for row in rows[:3]] == [
        ["ann", "not waiting", "40"], ["bob", "not waiting", "12"], ["cleo", "not waiting", "3"],
    ]  # fmt: skip
    pending = [row for row in rows if len(row) == 5][3:]
    assert [row[3] for row in pending[:4]] == ["12", "7", "3", "3"]
    assert pending[0][1:3] == ["ann", pending[0][2]]
    assert pending[0][4] == "order 10000 item tea cups 0"
    assert len(pending) == group_screen.PAGE


def test_pending_entries_in_other_orders(asking: Asking, filled: Filled) -> None:
    late = filled.client.xrange("orders", count=50)[-1][0]
    filled.client.xclaim("orders", "kitchen", "bob", 0, [late], retrycount=99)
    rows = [row for row in asking.get(GROUP + "&order=deliveries").rows() if len(row) == 5][3:]
    assert [row[3] for row in rows[:3]] == ["99", "12", "7"]
    first = asking.get(GROUP + "&order=id")
    following = link(first.html, "Next →")
    assert following is not None
    rows = [row for row in first.rows() if len(row) == 5][3:]
    more = [row for row in asking.get(following).rows() if len(row) == 5][3:]
    assert len({row[0] for row in rows + more}) == 50
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
    assert "1 readers wait" in asking.get(address).text
    assert asking.get(address).rows()[0][:2] == ["w", "waiting"]
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
    rows = asking.get("/group?db=0&key=small&group=g").rows()[1:]
    assert [[row[0], row[1], row[3], row[4]] for row in rows] == [
        ["1-0", "c", "1", "deleted from the stream"],
        ["3-0", "c", "1", "n 3"],
        ["2-0", "given back", "given up", "n 2"],
    ]
    client.delete("small")


def test_of_very_many_pending_entries_some_are_looked_at(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_screen, "MOST_SEGMENTS", 0)
    assert "There are very many: not all of them were looked at." in asking.get(GROUP).text


def test_a_group_with_many_consumers_has_pages(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_screen, "PAGE", 2)
    first = asking.get(GROUP)
    assert [row[0] for row in first.rows()[:2]] == ["ann", "bob"]
    second = asking.get(GROUP + "&cpage=2")
    assert second.rows()[0][0] == "cleo"
    assert link(second.html, "← Previous") is not None


def test_the_chart_and_the_histogram_are_of_what_the_sampler_has_seen(
    asking: Asking, filled: Filled
) -> None:
    answer = asking.get("/trace?db=0&key=orders&group=kitchen")
    assert answer.headers["content-type"] == "application/json"
    times, lag, pending = json.loads(answer.html)
    assert len(times) == len(lag) == len(pending) >= 1
    assert (lag[-1], pending[-1]) == (345, 55)
    filled.client.xgroup_create("payments", "new", "$")
    assert "Nothing is pending." in asking.get("/group?db=0&key=payments&group=new").text
    assert asking.get("/trace?db=0&key=payments&group=new").html == "[[], [], []]"
    filled.client.xgroup_destroy("payments", "new")


# --- dead letters, server --------------------------------------------------------------------


def test_streams_of_dead_letters_are_found(asking: Asking) -> None:
    assert asking.get("/letters").rows() == [["orders:dead", "db0", "7"]]


def test_a_letter_tells_where_it_comes_from(asking: Asking) -> None:
    rows = asking.get("/letters?db=0&key=orders:dead").rows()
    assert len(rows) == 7
    assert rows[0][1].startswith("orders id 1")
    assert rows[0][1].endswith("group kitchen consumer ann deliveries 5")
    assert rows[0][2:] == ["cups: not a number: 'three'", "order 9000 cups three"]


def test_what_is_no_letter_is_shown_as_it_is(asking: Asking, filled: Filled) -> None:
    client = filled.client
    client.xadd("mixed", {"n": 1}, id="1-0")
    client.xadd("mixed", {"dead-letter-stream": "x", "dead-letter-reason": "y"}, id="2-0")
    client.xadd("mixed", {"dead-letter-reason": "y", "n": 1}, id="3-0")
    client.xadd("mixed", {"dead-letter-stream": "x"}, id="4-0")
    client.xadd("mixed", {"n": b"x" * 1_100_000}, id="5-0")
    many = {f"f{at}": at for at in range(9)}
    client.xadd("mixed", {"dead-letter-stream": "x", "dead-letter-reason": "y", **many}, id="6-0")
    rows = asking.get("/letters?db=0&key=mixed").rows()
    assert [row[1] for row in rows] == [*["no dead letter"] * 4, "too large to be shown", "x"]
    assert rows[5][3].endswith("f7 7 1 more fields")
    for at in range(30):
        client.xadd("mixed", {"n": at})
    first = asking.get("/letters?db=0&key=mixed")
    following = link(first.html, "Next →")
    assert following is not None
    assert len(asking.get(following).rows()) == 11
    client.delete("mixed")


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
    answer = asking.get("/server")
    text = answer.text
    assert "Append-only file on appendfsync everysec" in text
    assert any(row[3] == "default" for row in answer.rows() if len(row) == 9)
    assert any(row[2].startswith("XADD") for row in answer.rows() if len(row) == 4)
    assert any((row[2], row[4]) == ("auth", "nobody") for row in answer.rows() if len(row) == 6)
    assert "This page read-only web-actions is no" in text
    assert "User default the default user, who needs no password" in text


def test_many_clients_have_pages(asking: Asking, filled: Filled) -> None:
    clients = [redis.Redis(host="127.0.0.1", port=filled.penstock.port) for _ in range(55)]
    for client in clients:
        client.ping()
    first = asking.get("/server")
    following = link(first.html, "Next →")
    assert following is not None
    rows = [row for row in first.rows() if len(row) == 9]
    assert len(rows) == server_screen.PAGE
    second = asking.get(following)
    assert len([row for row in second.rows() if len(row) == 9]) >= 6
    assert link(second.html, "First") == "/server#clients"
    for client in clients:
        client.close()


def test_a_server_without_a_file_says_so() -> None:
    with Filled() as found:
        text = Asking(found.http).get("/server").text
        assert "Append-only file off a restart begins without data" in text
        assert "Nothing was denied." in text
        found.penstock.call(found.penstock.server.state.config.set_text, "save", "60 1")
        found.penstock.call(found.penstock.server.state.config.set_text, "dbfilename", "dump.rdb")
        text = Asking(found.http).get("/server").text
        assert "Append-only file off a restart begins with what was saved last" in text


def test_a_disk_that_fails_and_a_command_of_a_script_are_told(
    asking: Asking, filled: Filled
) -> None:
    state = filled.penstock.server.state
    filled.penstock.call(state.set_disk_error, "No space left on device")
    text = asking.get("/server").text
    assert "Append-only file cannot be written No space left on device" in text
    filled.penstock.call(state.set_disk_error, None)
    filled.client.slowlog_reset()
    filled.client.eval("return redis.call('set', 'a', ARGV[1])", 0, *["word"] * 20)
    rows = [row for row in asking.get("/server").rows() if len(row) == 4]
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
        screens = {"/", "/letters", "/letters?db=0&key=letters", "/server"}
        todo, seen = set(screens), set()
        while todo:
            address = todo.pop()
            seen.add(address)
            answer = asking.get(address)
            assert answer.status == 200, address
            check_markup(answer.html)
            for href in answer.html.split('href="')[1:]:
                target = href.split('"')[0].replace("&amp;", "&")
                assert target.startswith("/")
                if target.startswith(("/stream", "/group")) and "#" not in target:
                    todo |= {target} - seen
        assert sum(address.startswith("/group") for address in seen) >= len(HOSTILE)


ELEMENTS = (
    *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "footer"),
    *("a", "span", "div", "section", "p", "b", "h1", "h2", "code", "small", "dl", "dt", "dd"),
    *("form", "input", "button", "label", "select", "option"),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "polyline", "rect"),
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
                if key in ("href", "src", "action", "hx-get"):
                    assert value is not None
                    assert value.startswith("/")

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
    assert response.readline() == b"event: sample\n"
    assert response.readline().startswith(b"data: ")
    connection.close()


def test_only_so_many_browsers_are_told(
    filled: Filled, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_LISTENERS", 0)
    assert asking.get("/events").status == 503


async def test_a_browser_that_hears_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "SILENCE_S", 0.001)
    sampler = Sampler(Direct().server.services)
    told = routes.Events(sampler)._events()
    assert await anext(told) == "retry: 5000\n\n"
    assert await anext(told) == ": nothing new\n\n"
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


def test_a_page_that_was_never_looked_at_says_so(filled: Filled, asking: Asking) -> None:
    number, filled.sampler.number = filled.sampler.number, 0
    text = asking.get("/").text
    filled.sampler.number = number
    assert "Looked at not yet" in text


@pytest.mark.parametrize("key", ["order", "cpage", "from", "failing", "match", "page", "after"])
def test_fields_that_make_no_sense_are_ignored(asking: Asking, key: str) -> None:
    for value in ("x", "-1", "9" * 30, "%ff%00", ""):
        for path in (GROUP + "&order=id", "/?", "/server?", "/letters?db=0&key=orders:dead"):
            assert asking.get(f"{path}&{key}={value}").status == 200


def test_an_address_with_very_many_fields_has_none(asking: Asking) -> None:
    assert asking.get("/stream?db=0&key=orders&" + "a=&" * 2000).status == 404


def test_an_entry_of_many_fields_shows_some(asking: Asking, filled: Filled) -> None:
    filled.client.xadd("wide", {f"f{at}": at for at in range(20)}, id="1-0")
    (row,) = asking.get("/stream?db=0&key=wide").rows()
    assert row[1].endswith("f11 11 8 more fields")
    filled.client.delete("wide")


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
        rows = [row for row in asking.get(f"{address}&order={order}").rows() if len(row) == 5]
        assert [row[0] for row in rows[1:4]] == ["2400-0", "1-0", "2-0"]
    client.delete("long")
