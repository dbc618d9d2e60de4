"""``penstock tail``: the entries of a stream."""

from __future__ import annotations

import json
import sys
import threading
import time

import pytest
import redis

from penstock.operate.common import connected
from penstock.operate.tail import entries, line, what_is_waited_for
from tests.penstock.operate.conftest import Client, Run


def test_what_is_there_is_told_from_an_id_on(run: Run, client: Client) -> None:
    client.xadd("orders", {"item": "tea", "size": "2"}, id="1-1")
    client.xadd("orders", {b"\xff": "a b"}, id="1-2")
    assert run("tail", "orders", "--from", "0", "--count", "2") == (
        0,
        "1-1  item=tea  size=2\n1-2  \\xff=a b",
        "",
    )
    out = '{"id": "1-1", "fields": [["item", "tea"], ["size", "2"]]}'
    assert run("tail", "orders", "--from", "0", "--count", "1", "--json") == (0, out, "")


def test_json_has_what_is_there_and_what_is_no_text_in_base64(run: Run, client: Client) -> None:
    values = ("line 1\nline 2", '"line 1\\nline 2"', b"\x00\xff", "\x9b\x7f\u202e é 😀")
    for value in values:
        client.xadd("orders", {"note": value})
    _, out, _ = run("tail", "orders", "--from", "0", "--count", "4", "--json")
    found = [json.loads(line)["fields"] for line in out.splitlines()]
    assert found == [
        [["note", values[0]]],
        [["note", values[1]]],
        [["note", {"_base64": "AP8="}]],
        [["note", values[3]]],
    ]
    assert out.endswith('[["note", "\\u009b\\u007f\\u202e é 😀"]]}')


def test_what_a_terminal_might_act_on_is_escaped(run: Run, client: Client) -> None:
    client.xadd("orders", {"a\x1b[2Jb": "\x9b\x7f\u202e\n"}, id="1-1")
    assert run("tail", "orders", "--from", "0", "--count", "1") == (
        0,
        r"1-1  a\x1b[2Jb=\x9b\x7f\u202e\n",
        "",
    )


def test_a_terminal_shows_the_beginning_of_a_long_value() -> None:
    assert line(b"1-1", [b"text", b"x" * 1203], 200) == f"1-1  text={'x' * 200}… (1,003 more)"
    assert line(b"1-1", [b"text", b"x" * 1203]) == f"1-1  text={'x' * 1203}"


def test_a_filter_leaves_what_fits(run: Run, client: Client) -> None:
    for number in range(3):
        client.xadd("orders", {"item": "tea", "number": number}, id=f"1-{number + 1}")
    words = ("--filter", "item=tea", "--filter", "number=2", "--from", "0", "--count", "1")
    assert run("tail", "orders", *words) == (0, "1-3  item=tea  number=2", "")
    assert run("tail", "orders", "--filter", "item")[0] == 2


def test_what_comes_is_told_when_it_comes(url: str, client: Client) -> None:
    client.xadd("orders", {"item": "old"}, id="1-1")
    with connected(url) as server:
        found: list[bytes] = []
        coming = entries(server, "orders", "$")
        thread = threading.Thread(target=lambda: found.append(next(coming)[0]))
        thread.start()
        with redis.Redis.from_url(url) as other:
            while not other.info("clients")["blocked_clients"]:
                time.sleep(0.001)
            other.xadd("orders", {"item": "new"}, id="1-2")
        thread.join()
    assert found == [b"1-2"]


def test_a_key_of_another_type_is_a_line(run: Run, client: Client) -> None:
    client.set("orders", "tea")
    status, out, error = run("tail", "orders")
    assert (status, out) == (1, "")
    assert "WRONGTYPE" in error
    assert error.count("\n") == 1


def test_in_a_terminal_it_says_what_it_waits_for(
    run: Run, client: Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    client.xadd("orders", {"item": "tea"}, id="1-1")
    error = run("tail", "orders", "--from", "0", "--count", "1")[2]
    assert error.startswith("Waiting for entries above 0 of orders on server ")
    assert error.endswith(" (Ctrl-C to quit)\n")
    with connected(url) as server:
        said = what_is_waited_for(server, "new", "$")
    assert said.startswith("Waiting for new entries of new, which is not there yet, on server ")
