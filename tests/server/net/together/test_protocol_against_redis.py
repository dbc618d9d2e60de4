"""Whatever is sent, a real server answers the same bytes and closes at the same place."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.reference import RealServer
from tests.protocol.test_requests import ACCEPTED, PING, REFUSED
from tests.support.servers import PenstockThread

Address = tuple[str, int]
Compare = Callable[[bytes], None]


def answer(address: Address, data: bytes) -> bytes:
    """All that comes back until the server closes."""
    received = b""
    with socket.create_connection(address, timeout=10) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        except ConnectionError:
            # The server has closed while there was still something to send.
            pass
    return received


@pytest.fixture(scope="module")
def compare(real_server: str) -> Iterator[Compare]:
    """Sends bytes to both servers and compares what they answer."""
    with RealServer(real_server) as real, PenstockThread() as penstock:

        def both(data: bytes) -> None:
            assert answer(penstock.address, data) == answer(real.address, data)

        yield both


@pytest.mark.parametrize("data", [data for data, _ in [*ACCEPTED, *REFUSED]])
def test_requests_and_what_is_none_are_answered_alike(compare: Compare, data: bytes) -> None:
    compare(PING + data + PING)


@pytest.mark.parametrize(
    "data",
    [
        b"*" + b"1" * 70_000,
        b"*1\r\n$" + b"1" * 70_000,
        b"A" * 70_000,
        b"PI\0NG\r\n" + PING,
        b"*1\r\n\0\r\n" + PING,
        b"*1\r\n$4\r\nPOST\r\n" + PING,
        b"Host: example\r\n" + PING,
        b"*3\r\n$4\r\nECHO\r\n",
        b"*100000000\r\n$4\r\nPING\r\n",
    ],
)
def test_lines_without_an_end_and_other_oddities_are_answered_alike(
    compare: Compare, data: bytes
) -> None:
    compare(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(line=st.text(alphabet="ab\"'\\xn4 \t\v\f\r\xe9", max_size=12))
def test_any_inline_command_is_split_alike(compare: Compare, line: str) -> None:
    compare(b"ECHO " + line.encode("latin-1") + b"\nPING\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet="*$+=(>~|%#_:,-01249\r\nPING", max_size=24))
def test_anything_that_looks_like_resp_is_answered_alike(compare: Compare, text: str) -> None:
    compare(PING + text.encode())
