"""What one test leaves behind, and what the next one finds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.testing import PenstockError, PenstockServer, RemoteServer, process
from penstock.testing import server as server_module
from penstock.testing.control import Control
from tests.plugin.conftest import Installation, Project

LIBRARY = "#!lua name=shop\nredis.register_function('sell', function() return 1 end)"
ENDLESS = "while true do pcall(function() while true do end end) end"
WRITING = "redis.call('SET', 'k', 'v') while true do end"
UNEVENTFUL = [
    *("dead-letters", 0, "redelivered", 0, "consumers-removed", 0, "trimmed", 0, "deleted", 0),
    *("lately", []),
]


class Left(NamedTuple):
    """A rest of a test: what it has asked for, and a question with the answer of a new server."""

    commands: list[tuple[str | int, ...]]
    question: tuple[str | int, ...]
    answer: Any


def one(*words: str | int) -> list[tuple[str | int, ...]]:
    return [words]


LEFT = {
    "a library": Left(one("FUNCTION", "LOAD", LIBRARY), ("FUNCTION", "LIST"), []),
    "a script": Left(
        one("SCRIPT", "LOAD", "return 1"),
        ("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
        [0],
    ),
    "a user": Left(
        one("ACL", "SETUSER", "ann", "on", "nopass", "+@all"), ("ACL", "USERS"), ["default"]
    ),
    "a denial": Left(
        [("ACL", "SETUSER", "ann", "on", ">x"), ("MULTI",), ("AUTH", "ann", "y"), ("DISCARD",)],
        ("ACL", "LOG"),
        [],
    ),
    "a slow command": Left(
        [("CONFIG", "SET", "slowlog-log-slower-than", 0), ("PING",)], ("SLOWLOG", "LEN"), 0
    ),
    "a latency": Left(
        [("CONFIG", "SET", "latency-monitor-threshold", 1), ("DEBUG", "SLEEP", "0.005")],
        ("LATENCY", "LATEST"),
        [],
    ),
    "a group that was paused": Left(
        [
            ("XGROUP", "CREATE", "orders", "kitchen", "0", "MKSTREAM"),
            ("PENSTOCK", "POLICY", "SET", "orders", "GROUP", "kitchen", "paused", "yes"),
        ],
        ("PENSTOCK", "STATS"),
        UNEVENTFUL,
    ),
    "an entry that is due by the real time": Left(
        [
            ("DEBUG", "CLOCK", "FREEZE", 1000),
            ("XGROUP", "CREATE", "orders", "kitchen", "0", "MKSTREAM"),
            ("PENSTOCK", "POLICY", "SET", "orders", "dead-letter", "orders:dead"),
            ("PENSTOCK", "POLICY", "SET", "orders", "ack-wait", "1s", "max-deliveries", 1),
            ("XADD", "orders", "1-1", "item", "tea"),
            ("XREADGROUP", "GROUP", "kitchen", "alice", "STREAMS", "orders", ">"),
        ],
        ("PENSTOCK", "STATS"),
        UNEVENTFUL,
    ),
    "a setting": Left(one("CONFIG", "SET", "hz", 100), ("CONFIG", "GET", "hz"), ["hz", "10"]),
    "a password": Left(
        one("CONFIG", "SET", "requirepass", "x"),
        ("CONFIG", "GET", "requirepass"),
        ["requirepass", ""],
    ),
    "a pause of everything": Left(one("CLIENT", "PAUSE", 3_600_000, "ALL"), ("PING",), "PONG"),
    "a default user who may do nothing": Left(
        one("ACL", "SETUSER", "default", "resetkeys", "-@all"), ("ACL", "WHOAMI"), "default"
    ),
    "a default user who is off": Left(
        one("ACL", "SETUSER", "default", "off"), ("ACL", "WHOAMI"), "default"
    ),
    "a default user with a password": Left(
        one("ACL", "SETUSER", "default", "resetpass", ">x"), ("ACL", "WHOAMI"), "default"
    ),
    "a budget of one command": Left(
        one("CONFIG", "SET", "user-max-commands-per-second", "1"), ("PING",), "PONG"
    ),
    "a limit of output": Left(
        one("CONFIG", "SET", "client-output-buffer-limit", "normal 1 1 1"),
        ("ECHO", "x" * 100),
        "x" * 100,
    ),
    "a limit of clients": Left(one("CONFIG", "SET", "maxclients", 1), ("PING",), "PONG"),
    "a limit of memory": Left(one("CONFIG", "SET", "maxmemory", 1), ("SET", "k", "v"), "OK"),
    "another clock": Left(one("DEBUG", "CLOCK", "FREEZE", 1000), ("XLEN", "k"), 0),
    "a fault": Left(one("DEBUG", "FAULT", "ADD", "*", "CLOSE"), ("PING",), "PONG"),
    "a freeze": Left(one("DEBUG", "FAULT", "FREEZE", 60_000), ("PING",), "PONG"),
    "a failover": Left(one("DEBUG", "FAULT", "FAILOVER", 60_000), ("SET", "k", "v"), "OK"),
    "a full disk": Left(one("DEBUG", "FAULT", "DISK", "full"), ("SET", "k", "v"), "OK"),
    "a trace": Left(
        one("DEBUG", "TRACE", "START"),
        ("DEBUG", "TRACE", "STATUS"),
        ["running", 0, "client", None, "kept", 0, "lost", 0],
    ),
    "keys that stay": Left(one("DEBUG", "SET-ACTIVE-EXPIRE", 0), ("DBSIZE",), 0),
    "another database": Left(one("SELECT", 3), ("CLIENT", "INFO"), re.compile(r"\bdb=0\b")),
    "a transaction": Left(one("MULTI"), ("PING",), "PONG"),
    "another protocol": Left(one("HELLO", 3), ("CLIENT", "INFO"), re.compile(r"\bresp=2\b")),
    "a subscription": Left(one("SUBSCRIBE", "news"), ("PING",), "PONG"),
    "a monitor": Left([("MONITOR",), ("PING",)], ("PING",), "PONG"),
    "another user": Left(
        [("ACL", "SETUSER", "ann", "on", "nopass", "+ping"), ("AUTH", "ann", "x")],
        ("ACL", "WHOAMI"),
        "default",
    ),
}


@pytest.mark.parametrize("left", LEFT)
def test_the_next_test_finds_nothing_of(server: PenstockServer, left: str) -> None:
    before = server.ask("INFO", "server")
    for words in LEFT[left].commands:
        with contextlib.suppress(PenstockError):
            server.ask(*words)
    server.reset()
    reply, answer = server.ask(*LEFT[left].question), LEFT[left].answer
    if isinstance(answer, re.Pattern):
        assert answer.search(reply)
    else:
        assert reply == answer
    assert run_of(server.ask("INFO", "server")) == run_of(before), "another server"


def run_of(info: str) -> list[str]:
    """What distinguishes a run of a server from others."""
    return re.findall(r"run_id:(\w+)", info)


def test_what_was_counted_is_forgotten(server: PenstockServer) -> None:
    server.ask("SET", "k", "v")
    with pytest.raises(PenstockError, match="WRONGTYPE"):
        server.ask("XLEN", "k")
    server.reset()
    assert "cmdstat_set:" not in server.ask("INFO", "commandstats")
    assert server.ask("INFO", "errorstats") == "# Errorstats\r\n"
    assert "total_error_replies:0\r\n" in server.ask("INFO", "stats")


@pytest.mark.parametrize("script", [ENDLESS, WRITING])
def test_a_script_that_never_ends_is_ended(server: PenstockServer, script: str) -> None:
    server.ask("CONFIG", "SET", "busy-reply-threshold", 1)
    run = run_of(server.ask("INFO", "server"))
    with endless(server, script) as client:
        server.reset()
        assert client.recv(100).startswith(b"-ERR ")
    assert server.ask("DBSIZE") == 0
    assert run_of(server.ask("INFO", "server")) == run


@contextlib.contextmanager
def endless(server: PenstockServer, script: str) -> Iterator[socket.socket]:
    """A client whose script never ends, when others are told that."""
    with socket.create_connection((server.host, server.port)) as client:
        words = ("EVAL", script, "0")
        lines = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        client.sendall(f"*{len(words)}\r\n{lines}".encode())
        busy = False
        while not busy:
            try:
                server.ask("PING")
            except PenstockError as error:
                busy = "BUSY" in str(error)
        yield client


# --- a server that cannot be reset -----------------------------------------------------------


@pytest.fixture
def own(installation: Installation) -> Iterator[PenstockServer]:
    """A server that may be spoiled."""
    with PenstockServer(command=[str(installation.command)]) as server:
        yield server


def shut_down(server: PenstockServer) -> None:
    with pytest.raises(PenstockError, match=r"^the server has ended, with exit status 0\n"):
        server.ask("SHUTDOWN")


def kill(server: PenstockServer) -> None:
    [process] = re.findall(r"process_id:(\d+)", server.ask("INFO", "server"))
    os.kill(int(process), signal.SIGKILL)


def stop(server: PenstockServer) -> None:
    """The process neither ends nor answers."""
    [process] = re.findall(r"process_id:(\d+)", server.ask("INFO", "server"))
    os.kill(int(process), signal.SIGSTOP)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (shut_down, "the server has ended, with exit status 0"),
        (kill, "the server has ended, with exit status -9"),
        (
            stop,
            "the server does not answer DEBUG RESET: is it held by CLIENT PAUSE or DEBUG SLEEP?",
        ),
    ],
)
def test_a_new_server_takes_the_place_of_one_that_is_gone(
    own: PenstockServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    end: Callable[[PenstockServer], None],
    why: str,
) -> None:
    monkeypatch.setattr(server_module, "RESET_TIMEOUT_S", 0.5)
    monkeypatch.setattr(server_module, "GRACE_S", 0.1 if end is stop else 10)
    port = own.port
    own.ask("CONFIG", "SET", "appendonly", "yes")
    own.ask("SET", "k", "v")
    own.clock.freeze(1000)
    end(own)
    own.reset()
    text = f"the server is started anew: {why}"
    assert caplog.messages == [text]
    assert own.output.count(text) == 1
    assert own.port == port
    assert own.ask("DBSIZE") == 0
    assert own.ask("CONFIG", "GET", "appendonly") == ["appendonly", "no"]
    assert own.clock.now_ms > 1000
    run = run_of(own.ask("INFO", "server"))
    own.reset()
    assert run_of(own.ask("INFO", "server")) == run
    assert len(caplog.messages) == 1


def test_nobody_else_gets_the_port_of_a_server_that_is_being_replaced(
    own: PenstockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []

    def start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
        """Others come first."""
        with socket.socket() as other:
            taken.append(other.connect_ex((own.host, own.port)) == 0)
            with pytest.raises(OSError, match="Address already in use"):
                other.bind((own.host, own.port))
        return run(command, folder)

    run = process._start
    monkeypatch.setattr(process, "_start", start)
    kill(own)
    own.reset()
    assert (taken, own.ask("DBSIZE")) == ([False], 0)


def test_a_server_whose_port_was_taken_meanwhile_is_not_mixed_up_with_who_has_it(
    own: PenstockServer,
) -> None:
    kill(own)
    with pytest.raises(PenstockError, match=r"^the server has ended"):
        own.ask("PING")
    with socket.create_server((own.host, own.port)):
        text = (
            f"the server could not be started again: {own.host}:{own.port}: Address already in use"
        )
        with pytest.raises(PenstockError, match=f"^{re.escape(text)}$"):
            own.reset()
    own.reset()
    assert own.ask("DBSIZE") == 0


def test_users_that_cannot_be_put_back_take_a_new_server(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    with PenstockServer(
        "--enable-debug-command", "no", command=[str(installation.command)]
    ) as server:
        server.ask("SCRIPT", "LOAD", "return 1")
        server.ask("CONFIG", "SET", "hz", 100)
        server.reset()
        assert server.ask("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db") == [0]
        assert server.ask("CONFIG", "GET", "hz") == ["hz", "10"]
        assert caplog.messages == []
        server.ask("ACL", "SETUSER", "ann", "on")
        server.reset()
        assert server.ask("ACL", "USERS") == ["default"]
    assert caplog.messages == [
        "the server is started anew: its users are others, and it has no DEBUG"
    ]


def test_tests_after_one_that_ends_its_servers_find_new_ones(project: Project) -> None:
    project.write(
        "test_it.py",
        """
def test_it(penstock, penstock_factory):
    other = penstock_factory("--databases", "4")
    for each in (penstock, other):
        each.snapshot()
        each.client.shutdown(nosave=True)

def test_that(penstock, penstock_factory):
    assert penstock.client.incr("k") == 1
    assert penstock_factory("--databases", "4").client.incr("k") == 1
    assert "the server has ended, with exit status 0" in "".join(penstock.server.output)
""",
    )
    assert project.run() == {"passed": 2}, project.output


# --- a server that something else has started ------------------------------------------------


def test_a_server_elsewhere_is_put_back_as_well(server: PenstockServer) -> None:
    with RemoteServer(server.url) as remote:
        remote.ask("FUNCTION", "LOAD", LIBRARY)
        remote.ask("SET", "k", "v")
        server.ask("ACL", "SETUSER", "default", "off")
        server.ask("CLIENT", "PAUSE", 3_600_000, "ALL")
        remote.reset()
        assert remote.ask("FUNCTION", "LIST") == []
        assert remote.ask("ACL", "USERS") == ["default"]
        assert remote.ask("DBSIZE") == 0


def test_a_connection_of_its_own_is_made_anew(server: PenstockServer) -> None:
    control = Control(server.host, server.port)
    own = control.ask("CLIENT", "ID")
    server.ask("CLIENT", "KILL", "ID", own)
    server.ask("CONFIG", "SET", "requirepass", "x")
    control.reset(10)
    assert control.ask("CLIENT", "ID") != own
    control.close()
