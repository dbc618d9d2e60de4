"""``penstock dead``: letters listed, shown, sent back and deleted, on any server."""

from __future__ import annotations

import json

import pytest

from tests.penstock.operate.conftest import Client, Run, add_letter


def test_without_letters_there_is_a_sentence(run: Run, client: Client) -> None:
    client.xadd("orders", {"item": "tea"})
    assert run("dead", "list") == (0, "There are no dead letters.", "")
    assert run("dead", "list", "orders") == (0, "There are no such dead letters.", "")


def test_streams_and_their_letters_are_listed(run: Run, client: Client) -> None:
    add_letter(client, 1)
    add_letter(client, 2, "max-deliveries", "bar")
    assert run("dead", "list")[1].splitlines()[1].split() == ["dead", "2"]
    head, first, second = run("dead", "list", "dead")[1].splitlines()
    assert head.split() == ["id", "stream", "group", "consumer", "tries", "reason"]
    assert first.split() == ["2-1", "orders", "kitchen", "alice", "5", "fatal"]
    assert second.split() == ["2-2", "orders", "bar", "alice", "5", "max-deliveries"]
    assert run("dead", "list", "dead", "--reason", "fatal")[1].splitlines()[1:] == [first]
    assert run("dead", "list", "dead", "--group", "bar")[1].splitlines()[1].split()[0] == "2-2"
    assert len(run("dead", "list", "dead", "--count", "1")[1].splitlines()) == 2


def test_a_letter_is_shown_in_full(run: Run, client: Client) -> None:
    add_letter(client, 1)
    lines = run("dead", "show", "dead", "2-1")[1].splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("2-1", "dead-letter-stream: orders", "item: tea 1")
    shown = json.loads(run("dead", "show", "dead", "2-1", "--json")[1])
    assert (shown["id"], shown["fields"][-1]) == ("2-1", ["item", "tea 1"])
    status, _, error = run("dead", "show", "dead", "9-9")
    assert (status, error) == (1, "penstock dead: dead has no dead letter 9-9\n")


@pytest.mark.parametrize("act", ["redrive", "delete"])
def test_what_is_to_be_done_to_all_has_to_be_said(act: str, run: Run, client: Client) -> None:
    add_letter(client, 1)
    for words in ((), ("2-1", "--all")):
        assert run("dead", act, "dead", *words)[0] == 2
    assert client.xlen("dead") == 1


def test_letters_are_deleted_by_reason(run: Run, client: Client) -> None:
    add_letter(client, 1)
    add_letter(client, 2, "max-deliveries")
    client.xadd("dead", {"item": "no letter"}, id="3-1")
    text = "1 letter deleted by XDEL"
    assert run("dead", "delete", "dead", "--all", "--reason", "fatal") == (0, text, "")
    assert [entry_id for entry_id, _ in client.xrange("dead")] == ["2-2", "3-1"]


def test_a_letter_is_back_in_its_stream_as_it_was(run: Run, client: Client) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    add_letter(client, 1)
    add_letter(client, 2)
    status, out, _ = run("dead", "redrive", "dead", "2-2")
    assert (status, out.partition(" by ")[0]) == (0, "1 letter sent back")
    assert [fields for _, fields in client.xrange("orders")] == [{"item": "tea 2"}]
    assert run("dead", "redrive", "dead", "--all")[0] == 0
    assert client.xlen("dead") == 0
    [[_, got]] = client.xreadgroup("kitchen", "bob", {"orders": ">"})
    assert [fields for _, fields in got] == [{"item": "tea 2"}, {"item": "tea 1"}]
    assert run("dead", "redrive", "dead", "--all")[1] == "0 letters sent back"


def test_the_commands_that_sent_letters_back_are_named(
    run: Run, client: Client, url: str, request: pytest.FixtureRequest
) -> None:
    client.xgroup_create("orders", "kitchen", mkstream=True)
    add_letter(client, 1)
    out = run("dead", "redrive", "dead", "2-1")[1]
    if "penstock_url" in request.fixturenames:
        assert out == "1 letter sent back by PENSTOCK REDRIVE"
    else:
        assert out == (
            "1 letter sent back by XADD and XDEL in one MULTI each: every group of the"
            " stream gets them"
        )
