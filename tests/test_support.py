"""What tests share, where tests would fail by chance if it were otherwise."""

from __future__ import annotations

import socket
from itertools import count

import pytest

from tests.conformance.reference import RealServer
from tests.support import ports
from tests.support.servers import PenstockThread


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port that whoever asks for one is offered first from here on."""
    port = ports.free_port()
    monkeypatch.setattr(ports, "_numbers", count(port - ports.FIRST))
    return port


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
