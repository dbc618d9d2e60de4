"""Protected mode: who is turned away while the default user needs no password."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.errors import PROTECTED_MODE
from tests.support.direct import Direct
from tests.support.wire import Wire

DENIED = b"-" + PROTECTED_MODE.encode() + b"\r\n"


class TcpSocket(SimpleNamespace):
    """A socket with options that nobody looks at."""

    family = socket.AF_INET

    def setsockopt(self, *option: int) -> None:
        """Takes any option."""


class Remote(Wire):
    """A client at a TCP address."""

    def __init__(self, direct: Direct, peer: tuple[Any, ...]) -> None:
        self.peer = peer
        super().__init__(direct)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return TcpSocket()
        return self.peer if name in ("peername", "sockname") else default


LOCAL = [("127.0.0.1", 5), ("127.9.9.9", 5), ("::1", 5, 0, 0), ("::ffff:127.0.0.1", 5, 0, 0)]
REMOTE = [("192.0.2.7", 5), ("10.0.0.1", 5), ("2001:db8::1", 5, 0, 0), ("fe80::1%eth0", 5, 0, 2)]


@pytest.mark.parametrize("peer", REMOTE)
def test_clients_on_other_hosts_are_told_why_they_are_turned_away(peer: tuple[Any, ...]) -> None:
    direct = Direct(protected_mode="yes")
    client = Remote(direct, peer)
    assert client.written == DENIED
    assert client.closed
    client.read(b"*1\r\n$4\r\nPING\r\n")
    assert client.written == DENIED
    stats = direct.server.state.stats
    assert (stats.connections, stats.rejected_connections) == (1, 1)
    assert not direct.server.state.sessions


@pytest.mark.parametrize("peer", LOCAL)
def test_clients_on_this_host_are_served(peer: tuple[Any, ...]) -> None:
    client = Remote(Direct(protected_mode="yes"), peer)
    client.read(b"*1\r\n$4\r\nPING\r\n")
    assert client.written == b"+PONG\r\n"


def test_clients_on_a_unix_socket_are_served() -> None:
    client = Wire(Direct(protected_mode="yes"))
    client.read(b"*1\r\n$4\r\nPING\r\n")
    assert client.written == b"+PONG\r\n"


@pytest.mark.parametrize("peer", REMOTE)
def test_everybody_is_served_without_protected_mode(direct: Direct, peer: tuple[Any, ...]) -> None:
    assert direct.client().send("CONFIG", "SET", "protected-mode", "no") == b"+OK\r\n"
    client = Remote(direct, peer)
    client.read(b"*1\r\n$4\r\nPING\r\n")
    assert client.written == b"+PONG\r\n"
    direct.client().send("CONFIG", "SET", "protected-mode", "yes")
    assert Remote(direct, peer).written == DENIED
    client.read(b"*1\r\n$4\r\nPING\r\n")
    assert client.written.count(b"+PONG\r\n") == 2, "who is there stays"


def test_protected_mode_is_on_unless_a_setting_says_otherwise() -> None:
    assert Direct().server.state.config.protected_mode is True
