"""Two thousand readers of one stream: parked they cost nothing, and they are all woken."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from redis import Redis

from tests.clients.observing import until, until_parked
from tests.support.process import PenstockProcess
from tests.support.wire import Client

pytestmark = pytest.mark.slow

READERS = 2000

DESCRIPTORS = READERS + 200
"""How many the test process needs; the server raises its own limit."""

ENTRY = b"*1\r\n*2\r\n$6\r\norders\r\n*1\r\n*2\r\n$3\r\n%b\r\n*2\r\n$1\r\nn\r\n$1\r\n1\r\n"


@pytest.fixture(autouse=True)
def _enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip(f"a process may open only {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def server() -> Iterator[PenstockProcess]:
    # All readers may arrive before the server has accepted the first.
    backlog = ("--tcp-backlog", str(READERS))
    with PenstockProcess("--port", "0", "--bind", "127.0.0.1", *backlog) as process:
        yield process


@pytest.fixture
def client(server: PenstockProcess) -> Iterator[Redis]:
    host, port = server.address
    with Redis(host, port, decode_responses=True, legacy_responses=False) as client:
        client.xgroup_create("orders", "packers", mkstream=True)
        yield client


@pytest.fixture
def readers(server: PenstockProcess) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        connected = [stack.enter_context(Client(server.address)) for _ in range(READERS)]
        # The server may accept one in each turn of its loop: who asks INFO meanwhile slows it down.
        for reader in connected:
            reader.send("PING")
        for reader in connected:
            reader.receive(b"+PONG\r\n")
        yield connected


def cpu_seconds(client: Redis) -> float:
    """How long the server process has computed so far."""
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def read_plainly(readers: list[Client]) -> None:
    for reader in readers:
        reader.send("XREAD BLOCK 0 STREAMS orders $")


def read_in_group(readers: list[Client]) -> None:
    for number, reader in enumerate(readers):
        reader.send(f"XREADGROUP GROUP packers c{number} COUNT 1 BLOCK 0 STREAMS orders >")


def test_parked_readers_take_no_computing_time(client: Redis, readers: list[Client]) -> None:
    read_plainly(readers[::2])
    read_in_group(readers[1::2])
    until_parked(client, READERS)
    before = cpu_seconds(client)
    # The server itself says when a second is over.
    assert client.xread({"nothing": "$"}, block=1000) == {}
    assert cpu_seconds(client) - before < 0.3


def test_one_entry_wakes_every_reader(client: Redis, readers: list[Client]) -> None:
    read_plainly(readers)
    until_parked(client, READERS)
    client.xadd("orders", {"n": 1}, id="1-0")
    for reader in readers:
        reader.receive(ENTRY % b"1-0")
    assert client.info("clients")["blocked_clients"] == 0


def test_one_entry_wakes_one_consumer_of_a_group(client: Redis, readers: list[Client]) -> None:
    read_in_group(readers[:1])
    until_parked(client, 1)
    read_in_group(readers[1:])
    until_parked(client, READERS)
    client.xadd("orders", {"n": 1}, id="1-0")
    readers[0].receive(ENTRY % b"1-0")
    assert client.info("clients")["blocked_clients"] == READERS - 1


def test_readers_that_disconnect_leave_nothing_behind(client: Redis, readers: list[Client]) -> None:
    read_plainly(readers[::2])
    read_in_group(readers[1::2])
    until_parked(client, READERS)
    for reader in readers:
        reader.close()
    until(lambda: client.info("clients")["connected_clients"] == 1)
    clients = client.info("clients")
    names = ["blocked_clients", "total_blocking_keys", "total_blocking_keys_on_nokey"]
    assert [clients[name] for name in names] == [0, 0, 0]
    client.xadd("orders", {"n": 1}, id="1-0")
    assert client.xpending("orders", "packers")["pending"] == 0
