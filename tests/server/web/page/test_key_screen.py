"""The screen of a key of any type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    with Filled() as found:
        client = found.client
        client.hset("hash", mapping={"colour": "green", "<b>": "42"})
        client.hexpire("hash", 3600, "colour")
        client.rpush("list", *range(250))
        client.sadd("set", "1", "2", "10")
        client.zadd("zset", {"ann": 1.5, "bob": -1})
        client.set("text", "Good morning", ex=3600)
        client.set("binary", b"\xff\xd8\xff\x00")
        client.xadd("stream", {"n": 1})
        found.look()
        yield found


@pytest.fixture
def asking(filled: Filled) -> Asking:
    return Asking(filled.http)


def page(asking: Asking, key: str) -> str:
    answer = asking.get(f"/key?db=0&key={key}")
    assert answer.status == 200
    return answer.text


def test_a_hash_shows_its_fields_and_until_when_they_are_there(asking: Asking) -> None:
    text = page(asking, "hash")
    assert "hash hash 2 elements, kept as listpackex, does not expire." in text
    assert "Field Value Expires" in text
    assert "<b> 42" in text
    assert "colour green 20" in text


def test_a_long_list_shows_its_first_elements(asking: Asking) -> None:
    text = page(asking, "list")
    assert "list list 250 elements, kept as listpack, does not expire." in text
    assert "Index Element 0 0 1 1 2 2" in text
    assert "99 99 The first 100 of 250." in text


def test_sets_and_sorted_sets_show_their_members(asking: Asking) -> None:
    assert "3 elements, kept as intset" in page(asking, "set")
    assert "Member 1 2 10" in page(asking, "set")
    assert "Score Member -1 bob 1.5 ann" in page(asking, "zset")
    assert "zset sorted set 2 elements" in page(asking, "zset")


def test_a_string_is_text_or_what_kind_of_data_it_is(asking: Asking) -> None:
    assert "12 B, kept as embstr, expires " in page(asking, "text")
    assert "Good morning" in page(asking, "text")
    assert "<binary, 4 B, JPEG>" in page(asking, "binary")


def test_a_stream_leads_to_its_own_screen_and_what_is_not_there_is_told(asking: Asking) -> None:
    assert "1 entry , kept as stream" in page(asking, "stream")
    assert 'href="/stream?db=0&amp;key=stream"' in asking.get("/key?db=0&key=stream").html
    answer = asking.get("/key?db=0&key=nope")
    assert answer.status == 404
    assert "There is no key nope in database 0." in answer.text


def test_keys_of_all_types_are_found_by_a_part_of_their_names(
    asking: Asking, filled: Filled
) -> None:
    text = asking.get("/find?match=set").text
    assert "set Set database 0" in text
    assert "zset Sorted set database 0" in text
    assert "hash Hash database 0" in asking.get("/find?match=hash").text


def test_looking_is_no_use_of_the_key(asking: Asking, filled: Filled) -> None:
    used = filled.penstock.server.state.keyspace.databases[0].used
    before = dict(used)
    for key in ("hash", "list", "set", "zset", "text"):
        page(asking, key)
    assert dict(used) == before


def test_a_user_without_the_right_to_read_sees_what_it_is_and_why_no_more(filled: Filled) -> None:
    words = ("reset", "on", ">secret", "~*", "+type", "+@connection")
    filled.client.execute_command("ACL", "SETUSER", "looker", *words)
    asking = Asking(filled.http)
    asking.log_in("looker", "secret")
    text = page(asking, "hash")
    assert "kept as listpackex" in text
    assert "Your user may not run HGETALL." in text
    assert "green" not in text
