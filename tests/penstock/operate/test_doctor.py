"""``penstock doctor``: what it finds, and that what it advises mends it."""

from __future__ import annotations

import shlex

import pytest

from tests.penstock.operate.conftest import Client, Run, add_letter


def found(run: Run) -> dict[str, str]:
    """What it has found: sentences, with what mends them."""
    status, out, error = run("doctor")
    assert error == ""
    lines = out.splitlines()
    if lines == ["No problems found."]:
        assert status == 0
        return {}
    assert status == 1
    return dict(zip(lines[::2], [line.strip() for line in lines[1::2]], strict=True))


def test_an_empty_server_needs_nothing(run: Run) -> None:
    assert found(run) == {}


def test_streams_that_a_restart_would_lose(run: Run, client: Client) -> None:
    client.xadd("orders", {"item": "tea"})
    sentence = "1 stream will be gone after a restart: appendonly is no."
    assert found(run) == {sentence: "CONFIG SET appendonly yes"}
    client.config_set("appendonly", "yes")
    client.config_set("appendfsync", "no")
    [[sentence, remedy]] = found(run).items()
    assert sentence.endswith("appendfsync is no.")
    client.execute_command(*remedy.split())
    assert found(run) == {}


def test_a_door_that_is_open(run: Run, client: Client) -> None:
    client.config_set("protected-mode", "no")
    sentence = "Other hosts can reach the server (bind *) and need no password."
    bind = client.config_get("bind")["bind"]
    if bind == "127.0.0.1":  # Nobody else reaches it.
        assert found(run) == {}
    else:
        assert found(run) == {sentence.replace("*", bind): "CONFIG SET requirepass <password>"}


def test_entries_that_fail_and_consumers_that_are_gone(run: Run, client: Client) -> None:
    client.config_set("appendonly", "yes")
    client.xgroup_create("orders", "kitchen", mkstream=True)
    client.xadd("orders", {"item": "tea"}, id="1-1")
    client.xreadgroup("kitchen", "alice", {"orders": ">"})
    client.execute_command("XCLAIM", "orders", "kitchen", "bob", 0, "1-1", "RETRYCOUNT", 12)
    [[sentence, remedy]] = found(run).items()
    assert sentence == (
        "An entry of the group kitchen of orders was delivered 12 times, and nothing sets it aside."
    )
    if remedy.startswith("PENSTOCK"):
        client.execute_command(*remedy.split())
        assert found(run) == {}
    else:
        assert remedy == "XPENDING orders kitchen - + 10"


def test_a_group_that_nobody_reads(run: Run, client: Client) -> None:
    client.config_set("appendonly", "yes")
    client.xgroup_create("orders", "late kitchen", mkstream=True)
    client.xadd("orders", {"item": "tea"}, id="1700000000000-1")
    [[sentence, remedy]] = found(run).items()
    assert sentence.startswith("Nobody reads the group late kitchen of orders, and entries have")
    client.execute_command(*shlex.split(remedy))
    assert found(run) == {}


def test_dead_letters_wait_for_somebody(run: Run, client: Client) -> None:
    client.config_set("appendonly", "yes")
    add_letter(client, 1)
    assert found(run) == {"dead holds 1 dead letter.": "penstock dead list dead"}


@pytest.mark.parametrize("url", ["penstock_url"], indirect=True)
def test_a_consumer_that_has_gone_and_holds_entries(run: Run, client: Client) -> None:
    client.config_set("appendonly", "yes")
    client.xgroup_create("orders", "kitchen", mkstream=True)
    client.xadd("orders", {"item": "tea"})
    client.xreadgroup("kitchen", "alice", {"orders": ">"})
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 2 * 86_400_000)
    assert (
        "The consumer alice of kitchen (orders) has been idle for 2 d and holds 1 entry."
        in found(run)
    )


def test_settings_that_may_not_be_read_are_said_to_be_unread(run: Run, client: Client) -> None:
    client.execute_command(*["ACL", "SETUSER", "default", "-config"])
    assert list(found(run)) == ["The settings could not be read, so they were not checked."]
