"""Which error a request gets that breaks several rules, in the orders of redis-server 8.0."""

from __future__ import annotations

from typing import Final

import pytest

from server.core import reasons
from server.dispatch.refusals import ORDER
from server.state.session import CLIENT, EXEC, SCRIPT
from tests.support.direct import Direct, DirectClient

ARITY: Final = "ERR wrong number of arguments for 'set' command"
DENIED: Final = "NOPERM No permissions to access a key"
OOM: Final = "OOM command not allowed when used memory > 'maxmemory'."
NO_REPLICAS: Final = "NOREPLICAS Not enough good replicas to write."

WRITES: Final = b"return redis.call('set', KEYS[1], '1')"
SHORT: Final = b"return redis.call('set', KEYS[1])"

SCRIPT_ARITY: Final = "ERR Wrong number of args calling Redis command from script"
SCRIPT_DENIED: Final = "ERR ACL failure in script: No permissions to access a key"
SCRIPT_READ_ONLY: Final = "ERR Write commands are not allowed from read-only scripts."


@pytest.fixture
def direct() -> Direct:
    direct = Direct()
    direct.client().ask("ACL", "SETUSER", "bob", "on", "nopass", "+@all", "~k*")
    return direct


def client_of(direct: Direct, user: str) -> DirectClient:
    client = direct.client()
    assert client.send("AUTH", user, "") == b"+OK\r\n"
    return client


@pytest.mark.parametrize(
    ("words", "full", "error"),
    [
        (("SET", "x"), True, ARITY),
        (("SET", "x", "1"), True, DENIED),
        (("SET", "k", "1"), True, OOM),
        (("SET", "k", "1"), False, NO_REPLICAS),
        (("EVAL", SHORT, 1, "k"), False, SCRIPT_ARITY),
        (("EVAL", WRITES, 1, "k"), False, NO_REPLICAS),
        (("EVAL_RO", WRITES, 1, "k"), False, SCRIPT_READ_ONLY),
        (("EVAL", WRITES, 1, "k"), True, NO_REPLICAS),
        (("EVAL_RO", WRITES, 1, "k"), True, SCRIPT_READ_ONLY),
    ],
)
def test_the_first_reason_counts(
    direct: Direct, words: tuple[str | bytes | int, ...], full: bool, error: str
) -> None:
    client = client_of(direct, "bob")
    config = direct.server.state.config
    config.set_text("maxmemory", "1" if full else "0")
    config.set_text("min-replicas-to-write", "1")
    reply = client.send(*words)
    assert reply is not None
    assert reply.decode().startswith(f"-{error}")


@pytest.mark.parametrize("command", ["EVAL", "EVAL_RO"])
def test_a_script_is_denied_before_it_is_told_of_anything_else(
    direct: Direct, command: str
) -> None:
    script = b"return redis.call('set', 'x', '1')"
    client = client_of(direct, "bob")
    config = direct.server.state.config
    config.set_text("maxmemory", "1")
    config.set_text("min-replicas-to-write", "1")
    reply = client.send(command, script, 0)
    assert reply is not None
    assert reply.decode().startswith(f"-{SCRIPT_DENIED}")


def test_memory_is_the_last_that_counts_for_a_script(direct: Direct) -> None:
    client = client_of(direct, "bob")
    direct.server.state.config.set_text("maxmemory", "1")
    reply = client.send("EVAL", WRITES, 1, "k")
    assert reply is not None
    assert reply.decode().startswith(f"-{OOM}")
    allowed = b"#!lua flags=allow-oom\n" + WRITES
    assert client.send("EVAL", allowed, 1, "k") == b"+OK\r\n"


def test_each_reason_of_the_server_keeps_something_of_a_client_from_running() -> None:
    asked = {bit for bit, _ in ORDER[CLIENT]}
    refusing = {1 << at for at in range(20) if reasons.REFUSING >> at & 1}
    assert refusing <= asked
    assert {bit for bit, _ in ORDER[EXEC]} == {reasons.LIMITED}
    assert {bit for bit, _ in ORDER[SCRIPT]} - asked == {reasons.READING, reasons.FRUGAL}


SOME_OF_OTHERS = (
    ("arset", "k", "0", "v"),
    ("ARGET", "k", "0"),
    ("HOTKEYS", "GET"),
    ("AROUND",),
    ("json.set", "k", "$", "1"),
    ("JSON.GET", "k"),
    ("MY.OWN", "k"),
    ("GEOADD", "k", "1", "2", "m"),
)


def test_the_log_names_a_family_of_commands_that_are_not_here_once(
    direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[str, str]] = []
    monkeypatch.setattr(direct.server.state.log, "write", lambda *line: lines.append(line))
    client = direct.client()
    for words in SOME_OF_OTHERS:
        listed = "".join(f"'{word}' " for word in words[1:])
        unknown = f"-ERR unknown command '{words[0]}', with args beginning with: {listed}\r\n"
        assert client.send(*words) == unknown.encode()
    assert lines == [
        (
            "notice",
            f"A client has called {name}: Penstock does not have the commands of Redis 8.10.0"
            f" for {family}, which the redis_version in INFO may make clients expect;"
            " this is said once",
        )
        for name, family in (
            ("ARSET", "arrays"),
            ("HOTKEYS", "the most used keys"),
            ("JSON.SET", "JSON"),
            ("GEOADD", "places on the earth"),
        )
    ]
