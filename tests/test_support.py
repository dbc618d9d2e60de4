"""What tests share, where tests would fail by chance if it were otherwise."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import pytest

from tests.conformance.reference import RealServer
from tests.support import ports
from tests.support.direct import Direct, in_loop
from tests.support.servers import PenstockThread
from tests.support.skipped import summary


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port that whoever asks for one is offered first from here on."""
    port = ports.free_port()
    monkeypatch.setattr(ports, "_numbers", count(port - ports.FIRST))
    return port


def test_what_was_skipped_is_told_with_how_to_have_it() -> None:
    reasons = [
        "Skipped: no redis-cli on PATH",
        "needs Linux's /proc",
        "Skipped: no redis-cli on PATH",
    ]
    assert summary(reasons) == [
        "2 skipped: no redis-cli on PATH; to have it: apt-get install redis-tools",
        "1 skipped: needs Linux's /proc",
    ]


@pytest.mark.skipif("sys.platform != 'linux'", reason="elsewhere nothing can be kept")
def test_a_port_is_kept_from_other_tests_and_not_from_its_server(sure: int) -> None:
    assert ports.free_port() > sure
    with PenstockThread(port=sure) as penstock:
        assert penstock.port == sure
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", sure))


def test_a_real_server_is_not_taken_for_the_one_that_has_its_port(
    real_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PenstockThread() as other:
        free = ports.free_port()
        offered = iter([other.port, free])
        monkeypatch.setattr("tests.conformance.reference.free_port", lambda: next(offered))
        real = RealServer(real_server)
        assert real.port == free
        real.stop()


def test_two_threads_have_servers_without_sockets_at_the_same_time() -> None:
    both = Barrier(2, timeout=60)

    def ping(_: int) -> bytes | None:
        reply = Direct().client().send("PING")
        in_loop(both.wait)  # Each is in its loop while the other one is.
        return reply

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ping, range(2))) == [b"+PONG\r\n"] * 2


def test_a_loop_that_runs_is_used() -> None:
    async def ask() -> bytes | None:
        return Direct().client().send("PING")

    assert asyncio.run(ask()) == b"+PONG\r\n"
