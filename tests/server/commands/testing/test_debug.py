from __future__ import annotations

import io

import pytest

from server import commands
from server.commands.testing.subcommands import SUBCOMMANDS
from server.runtime.log import Log
from tests.support.direct import START_MS, Direct, DirectClient

DEBUG_REFUSED = (
    b'-ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can'
    b" run it from a local connection, otherwise you need to set this option in the configuration"
    b" file, and then restart the server.\r\n"
)


commands.load()

LINES = 3 + 2 * sum(len(entry.calls) for entry in SUBCOMMANDS.values())
"""How long HELP is: its first line, two for HELP itself, two for each call."""


def test_it_is_refused_unless_it_is_allowed() -> None:
    client = Direct().client()
    for words in (["SLEEP", "0"], ["HELP"], ["FOO"]):
        assert client.send("DEBUG", *words) == DEBUG_REFUSED


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("127.0.0.1:5000", True),
        ("127.9.9.9:5000", True),
        ("[::1]:5000", True),
        ("/run/penstock.sock:0", True),
        ("192.168.1.2:5000", False),
        ("[fe80::1]:5000", False),
    ],
)
def test_local_allows_it_to_clients_of_the_same_host(address: str, allowed: bool) -> None:
    client = Direct(enable_debug_command="local").client()
    client.session.link.addr = address
    expected = b"+OK\r\n" if allowed else DEBUG_REFUSED
    assert client.send("DEBUG", "SLEEP", 0) == expected


@pytest.mark.parametrize(
    ("seconds", "slept"),
    [("1.5", 1.5), (".25", 0.25), ("2x", 2.0), ("x", 0.0), ("-1", 0.0)],
)
def test_sleep_stops_the_server(
    client: DirectClient,
    monkeypatch: pytest.MonkeyPatch,
    seconds: str,
    slept: float,
) -> None:
    naps: list[float] = []
    monkeypatch.setattr("server.commands.testing.debug.time.sleep", naps.append)
    assert client.send("DEBUG", "sleep", seconds) == b"+OK\r\n"
    assert naps == [slept]


def test_active_expiry_can_be_switched_off(direct: Direct, client: DirectClient) -> None:
    assert client.send("DEBUG", "SET-ACTIVE-EXPIRE", 0) == b"+OK\r\n"
    client.send("SET", "k", "v", "PX", 10)
    direct.now_ms += 10
    direct.cron()
    assert len(direct.server.state.keyspace.databases[0]) == 1
    assert client.send("DEBUG", "SET-ACTIVE-EXPIRE", 1) == b"+OK\r\n"
    direct.cron()
    assert len(direct.server.state.keyspace.databases[0]) == 0


def test_log_writes_to_the_log(direct: Direct, client: DirectClient) -> None:
    stream = io.StringIO()
    direct.server.state.log = Log(stream)
    assert client.send("DEBUG", "LOG", "hello") == b"+OK\r\n"
    assert stream.getvalue().endswith(" # DEBUG LOG: hello\n")


@pytest.mark.parametrize(
    "words",
    [["FOO"], ["SLEEP"], ["SLEEP", "0", "0"], ["SET-ACTIVE-EXPIRE"], ["LOG"], ["HELP", "x"]],
)
def test_other_shapes_are_unknown(client: DirectClient, words: list[str]) -> None:
    assert client.send("DEBUG", *words) == (
        b"-ERR unknown subcommand or wrong number of arguments for '%b'. Try DEBUG HELP.\r\n"
        % words[0].encode()
    )


def test_help_names_what_there_is(client: DirectClient) -> None:
    reply = client.send("DEBUG", "HELP")
    assert reply is not None
    assert reply.startswith(b"*%d\r\n+DEBUG <subcommand> [<arg> [value] [opt] ...]." % LINES)
    for name in (b"ERROR", b"GROUP", b"LOADAOF", b"OBJECT", b"PROTOCOL", b"SLEEP", b"HELP"):
        assert b"\r\n+" + name in reply


@pytest.mark.parametrize(
    ("resp3", "expected"),
    [
        (False, b"$39\r\nSome real reply following the attribute\r\n"),
        (
            True,
            b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
            b"$39\r\nSome real reply following the attribute\r\n",
        ),
    ],
)
def test_a_reply_with_an_attribute(direct: Direct, resp3: bool, expected: bytes) -> None:
    assert direct.client(resp3).send("DEBUG", "PROTOCOL", "attrib") == expected


@pytest.mark.parametrize(
    ("resp3", "expected"),
    [
        (False, b"-ERR RESP2 is not supported by this command\r\n"),
        (
            True,
            b"$40\r\nSome real reply following the push reply\r\n"
            b">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n",
        ),
    ],
)
def test_a_reply_with_a_push(direct: Direct, resp3: bool, expected: bytes) -> None:
    assert direct.client(resp3).send("DEBUG", "PROTOCOL", "push") == expected


def test_the_serialized_length_is_that_of_the_commands_for_the_value(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "0123456789")
    direct.now_ms += 5000
    reply = client.send("DEBUG", "OBJECT", "k")
    assert reply is not None
    command = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n"
    lru = START_MS // 1000 & 0xFFFFFF
    assert reply.endswith(
        b" refcount:1 encoding:embstr serializedlength:%d lru:%d lru_seconds_idle:5\r\n"
        % (len(command), lru)
    )


def test_the_replication_id_can_be_changed(client: DirectClient) -> None:
    before = client.send("INFO", "replication")
    assert client.send("DEBUG", "CHANGE-REPL-ID") == b"+OK\r\n"
    assert client.send("INFO", "replication") != before
