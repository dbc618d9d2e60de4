"""CONFIG, reply by reply as a real server gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.direct import Direct, DirectClient


def failed(name: str, reason: str) -> bytes:
    text = f"-ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}\r\n"
    return text.encode()


def test_get_answers_with_names_and_values(client: DirectClient) -> None:
    assert client.send("CONFIG", "GET", "timeout") == b"*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"


def test_get_answers_with_a_map_in_resp3(direct: Direct) -> None:
    client = direct.client(resp3=True)
    assert client.send("CONFIG", "GET", "timeout") == b"%1\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
    assert client.send("CONFIG", "GET", "nope") == b"%0\r\n"


def test_get_takes_glob_patterns_in_any_case(client: DirectClient) -> None:
    reply = client.send("CONFIG", "GET", "STREAM-NODE-*")
    assert reply == (
        b"*4\r\n$21\r\nstream-node-max-bytes\r\n$4\r\n4096\r\n"
        b"$23\r\nstream-node-max-entries\r\n$3\r\n100\r\n"
    )
    assert client.send("CONFIG", "GET", "h[yz]") == b"*2\r\n$2\r\nhz\r\n$2\r\n10\r\n"


def test_get_answers_each_setting_once_whatever_patterns_fit(client: DirectClient) -> None:
    once = b"*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"
    assert client.send("CONFIG", "GET", "tim*", "timeout", "t?meout") == once


def test_get_shows_a_name_as_it_was_sent(client: DirectClient) -> None:
    reply = client.send("CONFIG", "GET", "TimeOut", "timeout")
    assert reply == b"*2\r\n$7\r\nTimeOut\r\n$1\r\n0\r\n"


@pytest.mark.parametrize("pattern", ["nope", "", "x*", b"\xff\x00"])
def test_get_of_nothing_that_exists_is_empty(client: DirectClient, pattern: str) -> None:
    assert client.send("CONFIG", "GET", pattern) == b"*0\r\n"


def test_benchmarks_and_tools_learn_what_is_saved(client: DirectClient) -> None:
    assert client.send("CONFIG", "GET", "save") == b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n"
    assert client.send("CONFIG", "GET", "appendonly") == b"*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"
    assert client.send("CONFIG", "SET", "save", "") == b"+OK\r\n"
    assert client.send("CONFIG", "SET", "save", "900 1") == b"+OK\r\n"
    assert client.send("CONFIG", "GET", "save") == b"*2\r\n$4\r\nsave\r\n$5\r\n900 1\r\n"


def test_set_changes_several_settings(direct: Direct, client: DirectClient) -> None:
    assert client.send("CONFIG", "SET", "TIMEOUT", 5, "hz", 20) == b"+OK\r\n"
    assert (direct.server.state.config.timeout, direct.server.state.config.hz) == (5, 20)


def test_set_changes_nothing_if_one_value_is_bad(direct: Direct, client: DirectClient) -> None:
    reply = client.send("CONFIG", "SET", "timeout", 5, "Hz", "fast")
    assert reply == failed("Hz", "argument couldn't be parsed into an integer")
    assert direct.server.state.config.timeout == 0


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        (["foo", 1], b"-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n"),
        (
            ["timeout", 1, b"f\x00o", 1],
            b"-ERR Unknown option or number of arguments for CONFIG SET - 'f'\r\n",
        ),
        (["timeout", 1, "hz"], b"-ERR syntax error\r\n"),
        (["timeout", 1, "Timeout", 2], failed("Timeout", "duplicate parameter")),
        (["databases", 3], failed("databases", "can't set immutable config")),
        (["hz", "x", "databases", 3], failed("databases", "can't set immutable config")),
        (["databases", 3, "foo", 1], failed("databases", "can't set immutable config")),
        (["dir", "/tmp"], failed("dir", "can't set protected config")),
        (["hz", "x", "timeout", "x"], failed("hz", "argument couldn't be parsed into an integer")),
        (["timeout"], b"-ERR wrong number of arguments for 'config|set' command\r\n"),
    ],
)
def test_set_refuses_what_it_cannot_do(
    direct: Direct, client: DirectClient, arguments: list[str], reply: bytes
) -> None:
    assert client.send("CONFIG", "SET", *arguments) == reply
    assert direct.server.state.config.timeout == 0


def test_settings_of_streams_reach_the_engine(direct: Direct, client: DirectClient) -> None:
    assert client.send(
        "CONFIG", "SET",
        "stream-node-max-bytes", "1kb", "stream-node-max-entries", 7,
        "stream-idmp-duration", 8, "stream-idmp-maxsize", 9,
    ) == b"+OK\r\n"  # fmt: skip
    limits = direct.server.state.keyspace.limits
    assert (limits.max_bytes, limits.max_entries) == (1024, 7)
    assert (limits.idmp_duration, limits.idmp_maxsize) == (8, 9)


def test_keyspace_events_are_shown_in_one_order(client: DirectClient) -> None:
    client.send("CONFIG", "SET", "notify-keyspace-events", "KEA")
    assert (
        client.send("CONFIG", "GET", "notify-keyspace-events")
        == b"*2\r\n$22\r\nnotify-keyspace-events\r\n$3\r\nAKE\r\n"
    )


def test_resetstat_sets_the_counters_to_zero(direct: Direct, client: DirectClient) -> None:
    client.send("CONFIG", "GET", "hz")
    client.send("NO-SUCH-COMMAND")
    assert direct.server.state.commands_processed() == 1
    assert direct.server.state.stats.errors["ERR"] == 1
    assert client.send("CONFIG", "RESETSTAT") == b"+OK\r\n"
    assert direct.server.state.stats.errors["ERR"] == 0
    client.send("CONFIG", "GET", "hz")
    assert (
        direct.server.state.commands_processed() == 2
    )  # RESETSTAT itself is counted when it has run


def test_rewrite_needs_a_file(client: DirectClient) -> None:
    assert (
        client.send("CONFIG", "REWRITE") == b"-ERR The server is running without a config file\r\n"
    )


def test_rewrite_writes_what_has_changed(tmp_path: Path) -> None:
    direct = Direct()
    client = direct.client()
    path = tmp_path / "a.conf"
    path.write_text(f"timeout 1\ndir {direct.server.state.config.dir}\n")
    direct.server.state.config.file = str(path)
    client.send("CONFIG", "SET", "timeout", 5)
    assert client.send("CONFIG", "REWRITE") == b"+OK\r\n"
    assert path.read_text() == (
        f"timeout 5\ndir {direct.server.state.config.dir}\n\n# Generated by CONFIG REWRITE\n"
        "user default on nopass sanitize-payload ~* &* +@all\n"
    )


def test_rewrite_says_why_it_cannot(direct: Direct, client: DirectClient, tmp_path: Path) -> None:
    direct.server.state.config.file = str(tmp_path / "gone.conf")
    assert (
        client.send("CONFIG", "REWRITE")
        == b"-ERR Rewriting config file: No such file or directory\r\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        ([], b"-ERR wrong number of arguments for 'config' command\r\n"),
        (["GET"], b"-ERR wrong number of arguments for 'config|get' command\r\n"),
        (["HELP", "x"], b"-ERR wrong number of arguments for 'config|help' command\r\n"),
        (["RESETSTAT", "x"], b"-ERR wrong number of arguments for 'config|resetstat' command\r\n"),
        (["REWRITE", "x"], b"-ERR wrong number of arguments for 'config|rewrite' command\r\n"),
        (["FOO"], b"-ERR unknown subcommand 'FOO'. Try CONFIG HELP.\r\n"),
    ],
)
def test_subcommands_take_what_they_take(
    client: DirectClient, arguments: list[str], reply: bytes
) -> None:
    assert client.send("CONFIG", *arguments) == reply
