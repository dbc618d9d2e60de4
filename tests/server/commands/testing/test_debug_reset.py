"""DEBUG RESET: who may send it, in which state, and what it puts back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server.config.registry import BadSetting
from server.state.server_state import Phase
from tests.support.direct import Direct

RESET = b"+RESET\r\n"
NO_AUTH = b"-NOAUTH Authentication required.\r\n"


def new(**settings: Any) -> Direct:
    return Direct(enable_debug_command="yes", **settings)


def with_users(folder: Path, *lines: str) -> Direct:
    path = folder / "users.acl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return new(aclfile=str(path))


@pytest.fixture
def direct() -> Direct:
    return new()


def test_it_is_refused_where_debug_is() -> None:
    refusal = Direct().client().ask("DEBUG", "RESET")
    assert str(refusal).startswith("ERR DEBUG command not allowed.")


def test_who_might_send_it_at_the_start_may_send_it_now(direct: Direct) -> None:
    admin = direct.client()
    admin.send("ACL", "SETUSER", "default", "resetpass", ">x", "-@all", "+acl")
    stranger = direct.client()
    assert stranger.send("PING") == NO_AUTH
    assert (
        admin.send("PING")
        == b"-NOPERM User default has no permissions to run the 'ping' command\r\n"
    )
    assert stranger.send("DEBUG", "RESET") == RESET
    assert stranger.send("PING") == admin.send("PING") == b"+PONG\r\n"


def test_who_might_not_send_it_at_the_start_may_not(tmp_path: Path) -> None:
    direct = with_users(
        tmp_path,
        "user default on #" + "0" * 64 + " ~* +@all",
        "user ann on nopass +ping",
        "user bob on nopass ~* +@all",
    )
    stranger, ann, bob = direct.client(), direct.client(), direct.client()
    ann.send("AUTH", "ann", "x")
    bob.send("AUTH", "bob", "x")
    assert stranger.send("DEBUG", "RESET") == NO_AUTH
    refused = b"-NOPERM User ann has no permissions to run the 'debug' command\r\n"
    assert ann.send("DEBUG", "RESET") == refused
    bob.send("ACL", "SETUSER", "ann", "+debug")
    bob.send("ACL", "SETUSER", "bob", "-debug")
    assert bob.send("DEBUG", "SLEEP", 0) == refused.replace(b"ann", b"bob")
    assert bob.send("DEBUG", "RESET") == RESET
    assert bob.ask("ACL", "WHOAMI") == b"bob"
    assert ann.send("DEBUG", "RESET") == refused


def test_a_client_whose_user_came_later_is_a_new_one(direct: Direct) -> None:
    admin, client = direct.client(), direct.client()
    admin.send("ACL", "SETUSER", "ann", "on", "nopass", "~*", "+@all")
    client.send("AUTH", "ann", "x")
    assert client.send("DEBUG", "RESET") == RESET
    assert not client.closed
    assert client.ask("ACL", "WHOAMI") == b"default"


@pytest.mark.parametrize(
    "words",
    [
        ["MULTI"],
        ["CLIENT", "REPLY", "OFF"],
        ["SUBSCRIBE", "news"],
        ["MONITOR"],
        ["SELECT", "3"],
        ["HELLO", "3"],
    ],
)
def test_no_state_of_its_client_holds_it_back(direct: Direct, words: list[str]) -> None:
    client = direct.client()
    before = client.session.reasons
    client.send(*words)
    assert client.send("debug", "reset") == RESET
    assert client.session.reasons == before
    assert client.send("CLIENT", "GETNAME") == b"$-1\r\n"
    assert client.session.db is direct.server.state.keyspace.databases[0]


def test_it_is_no_part_of_a_transaction_or_a_script(direct: Direct) -> None:
    client = direct.client()
    client.send("MULTI")
    client.send("SET", "k", "v")
    client.send("DEBUG", "RESET")
    assert client.send("EXEC") == b"-ERR EXEC without MULTI\r\n"
    assert client.send("EXISTS", "k") == b":0\r\n"
    refused = client.ask("EVAL", "return redis.call('DEBUG', 'RESET')", 0)
    assert str(refused).startswith("ERR This Redis command is not allowed from script")


def test_it_waits_for_the_data(direct: Direct) -> None:
    direct.server.state.enter(Phase.LOADING)
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    assert direct.client().send("DEBUG", "RESET") == loading


def test_data_and_snapshots_stay_and_libraries_go(direct: Direct) -> None:
    client = direct.client()
    client.send("SET", "k", "v")
    client.send("DEBUG", "SNAPSHOT", "TAKE", "prepared")
    client.send("FUNCTION", "LOAD", "#!lua name=a\nredis.register_function('f', function() end)")
    assert client.send("DEBUG", "RESET") == RESET
    assert client.ask("GET", "k") == b"v"
    assert client.ask("DEBUG", "SNAPSHOT", "LIST") == [b"prepared"]
    assert client.ask("FUNCTION", "LIST") == []


def test_numbers_of_logs_begin_anew() -> None:
    client = new(slowlog_log_slower_than=-1).client()
    for _ in range(2):
        client.send("CONFIG", "SET", "slowlog-log-slower-than", 0)
        client.send("AUTH", "ann", "x")
        client.send("CONFIG", "SET", "slowlog-log-slower-than", -1)
        assert [entry[0] for entry in client.ask("SLOWLOG", "GET")] == [1, 0]
        assert client.ask("ACL", "LOG")[0][14:16] == [b"entry-id", 0]
        client.send("DEBUG", "RESET")
        assert client.ask("SLOWLOG", "LEN") == 0
        assert client.ask("ACL", "LOG") == []


def test_every_user_has_its_budget_again() -> None:
    direct = new(user_max_commands_per_second="2")
    client = direct.client()
    assert [client.ask("PING") for _ in range(2)] == [b"PONG", b"PONG"]
    assert str(client.ask("PING")).startswith("LIMIT ")
    assert client.send("DEBUG", "RESET") == RESET
    assert [client.ask("PING") for _ in range(2)] == [b"PONG", b"PONG"]
    assert str(client.ask("PING")).startswith("LIMIT ")


def test_a_setting_that_cannot_be_put_back_is_named_and_all_stay(direct: Direct) -> None:
    client = direct.client()
    client.send("CONFIG", "SET", "hz", 50, "timeout", 60)

    def refuse(value: int) -> None:
        if value == 10:
            raise BadSetting("not now")

    direct.server.state.config.listen("hz", refuse)
    refusal = b"-ERR DEBUG RESET: the setting hz cannot be put back: not now\r\n"
    assert client.send("DEBUG", "RESET") == refusal
    assert client.ask("CONFIG", "GET", "hz", "timeout") == [b"hz", b"50", b"timeout", b"60"]
