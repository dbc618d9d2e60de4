"""``penstock groups``: how groups are, on any server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.penstock.operate.conftest import Client, Run


def read(client: Client, **options: Any) -> None:
    client.xreadgroup("kitchen", "alice", {"orders": ">"}, **options)


def test_without_groups_there_is_a_sentence(run: Run) -> None:
    assert run("groups") == (0, "There are no consumer groups.", "")


def test_a_group_is_a_row_and_fine(run: Run, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    client.xadd("orders", {"item": "tea"})
    status, out, _ = run("groups")
    verdict, head, row = out.splitlines()
    assert (status, verdict) == (0, "1 group, none of them in trouble.")
    assert head.split() == [
        *("stream", "/", "group", "lag", "pending", "oldest", "tries", "consumers")
    ]
    assert row.split() == ["orders", "/", "kitchen", "1", "0", "-", "0", "0"]
    assert len(head) == len(row)


def test_a_long_name_has_a_line_of_its_own_and_the_numbers_stay_in_their_columns(
    run: Run, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.terminal.PLAIN_WIDTH", 80)
    name = "telemetry-aggregator-" * 3
    for stream in ("orders", name):
        client.xgroup_create(stream, "kitchen", mkstream=True)
    _, head, row, long, numbers = run("groups")[1].splitlines()
    assert long == f"{name} / kitchen"
    assert row.removeprefix("orders / kitchen").split() == numbers.split()
    assert len(head) == len(row) == len(numbers) <= 80


def test_who_fails_comes_first_with_the_reason(run: Run, client: Client) -> None:
    for stream in ("a", "orders"):
        client.xgroup_create(stream, "kitchen", mkstream=True)
    entry_id = client.xadd("orders", {"item": "tea"})
    read(client)
    for _ in range(5):
        client.xclaim("orders", "kitchen", "alice", 0, [entry_id])
    status, out, _ = run("groups")
    assert status == 1
    assert out.splitlines()[0] == "1 of 2 groups is in trouble."
    assert out.splitlines()[2].startswith("orders / kitchen")
    assert out.splitlines()[3] == "    failing: an entry was delivered 6 times"
    assert out.splitlines()[4].startswith("a / kitchen")


def test_an_old_entry_is_stuck_and_one_that_waits_is_behind(run: Run, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    client.xadd("orders", {"item": "tea"}, id="1700000000000-1")
    client.xadd("orders", {"item": "tea"}, id="1700000000000-2")
    read(client, count=1)
    claim = ("XCLAIM", "orders", "kitchen", "alice", 0, "1700000000000-1", "IDLE", 360_000)
    client.execute_command(*claim)
    _, out, _ = run("groups", "--json")
    found = json.loads(out)
    stuck, behind = found.pop("troubles")
    assert stuck == "stuck: an entry has been pending for 6 min"
    assert behind.startswith("behind: an entry has waited for ")
    assert found["oldest"] in range(360_000, 420_000)
    del found["oldest"], found["waits"]
    assert found == {
        "stream": "orders",
        "group": "kitchen",
        "lag": 1,
        "pending": 1,
        "consumers": 1,
        "deliveries": 2,
        "silent": None,
        "died": 0,
        "paused": False,
        "added": 2,
        "read": 1,
    }


def test_json_has_names_that_are_no_text_in_base64(run: Run, client: Client) -> None:
    client.xgroup_create(b"\xff", "a\nb", mkstream=True)
    found = json.loads(run("groups", "--json")[1])
    assert (found["stream"], found["group"]) == ({"_base64": "/w=="}, "a\nb")


def test_names_that_are_no_text_are_shown_and_a_pattern_chooses(run: Run, client: Client) -> None:
    client.xgroup_create(b"\xff", "a\nb", mkstream=True)
    client.xgroup_create("orders", "[bold]", mkstream=True)
    _, out, _ = run("groups", "[^o]*")
    assert out.splitlines()[2].startswith("\\xff / a\\nb")
    assert len(out.splitlines()) == 3
    assert "[bold]" in run("groups", "orders")[1]


def test_a_server_that_is_not_there_is_a_line(run: Run) -> None:
    status, out, error = run("groups", "--url", "redis://127.0.0.1:1")
    assert (status, out) == (1, "")
    assert (
        error == "penstock groups: the server 127.0.0.1:1/0 can't be reached: Connection refused\n"
    )
