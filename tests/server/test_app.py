"""A server's life on real sockets: listening, periodic work, clients that do not read, the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from server.app import Server
from server.config.registry import Config
from server.net.listener import ListenError
from tests.support.direct import Direct
from tests.support.folders import folder_of
from tests.support.ports import free_port
from tests.support.servers import PenstockThread
from tests.support.wire import Client, wait_until

PING = b"*1\r\n$4\r\nPING\r\n"
PONG = b"+PONG\r\n"

MUCH = 24 * 1024**2
"""More bytes than the buffers of the operating system take from a server."""

ECHO_MUCH = b"*2\r\n$4\r\nECHO\r\n$%d\r\n%b\r\n" % (MUCH, bytes(MUCH))


class Rig:
    """A server in the loop of the test, with a clock that stands still until it is set."""

    def __init__(self, **settings: Any) -> None:
        self.now_ms = 1_000_000
        own = {"bind": "127.0.0.1", "port": 0, "dir": folder_of(self)}
        config = Config(**{**own, **settings})
        self.server = Server(config, clock=lambda: self.now_ms)

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A client that has had its first reply; it is gone when the context ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(PING)
        assert await reader.readexactly(len(PONG)) == PONG
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionResetError):
                await writer.wait_closed()

    async def let_much_wait(self) -> socket.socket:
        """A client that asks for much and does not read, when its reply has been written."""
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", self.server.port))
        await loop.sock_sendall(sock, ECHO_MUCH)
        while self.server.state.stats.bytes_out < MUCH:
            await asyncio.sleep(0)
        return sock


StartRig = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def start() -> AsyncIterator[StartRig]:
    """Starts rigs, and stops them after the test."""
    rigs: list[Rig] = []

    async def start_rig(**settings: Any) -> Rig:
        rig = Rig(**settings)
        rigs.append(rig)
        await rig.server.start()
        return rig

    yield start_rig
    for rig in rigs:
        await rig.server.stop()


async def closed(sock: socket.socket) -> bool:
    """Whether the server has cut the connection, when what it had sent has been read."""
    with sock:
        loop = asyncio.get_running_loop()
        try:
            while await loop.sock_recv(sock, 1024**2):
                pass
        except ConnectionResetError:
            pass
    return True


# --- listening -------------------------------------------------------------------------------


async def test_all_addresses_share_the_port_that_was_free(start: StartRig) -> None:
    rig = await start(bind="127.0.0.1 127.0.0.2")
    port = rig.server.port
    assert rig.server.addresses() == [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]


async def test_a_star_is_every_address(start: StartRig) -> None:
    rig = await start(bind="*")
    assert rig.server.addresses() == [f"0.0.0.0:{rig.server.port}"]
    async with rig.client():
        assert len(rig.server.state.sessions) == 1


async def test_an_address_that_the_host_lacks_is_left_out_if_it_may_be(start: StartRig) -> None:
    rig = await start(bind="127.0.0.1 -192.0.2.1")
    assert rig.server.addresses() == [f"127.0.0.1:{rig.server.port}"]


async def test_a_busy_port_is_an_error_on_an_optional_address_too() -> None:
    with socket.create_server(("127.0.0.2", 0)) as busy:
        port = busy.getsockname()[1]
        with pytest.raises(ListenError, match=f"127.0.0.2:{port}: Address already in use"):
            await Rig(bind="-127.0.0.2", port=port).server.start()


async def test_a_start_that_fails_leaves_no_listener_behind(tmp_path: Path) -> None:
    rig = Rig(port=free_port(), unixsocket=str(tmp_path / "none" / "socket"))
    with pytest.raises(ListenError, match="none/socket: No such file or directory"):
        await rig.server.start()
    assert rig.server.addresses() == []
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", rig.server.port)


async def test_port_0_is_no_port_beside_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    rig = Rig(bind="127.0.0.1 -::1", unixsocket=path)
    await rig.server.start()
    assert (rig.server.addresses(), rig.server.port) == ([path], 0)
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"INFO server\r\n")
    told = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    writer.close()
    assert b"tcp_port:0" in told
    assert [line for line in told if line.startswith(b"listener")] == [
        b"listener0:name=unix,bind=" + path.encode()
    ]
    await rig.server.stop()


async def test_port_0_is_a_free_port_where_there_is_nothing_else(start: StartRig) -> None:
    rig = await start()
    assert rig.server.port > 0
    assert rig.server.addresses() == [f"127.0.0.1:{rig.server.port}"]


async def test_a_file_in_the_place_of_the_unix_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    path.write_text("precious")
    with pytest.raises(ListenError, match="Address already in use"):
        await Rig(unixsocket=str(path)).server.start()
    assert path.read_text() == "precious"


async def test_a_unix_socket_that_somebody_removed_does_not_hinder_the_end(tmp_path: Path) -> None:
    rig = Rig(bind="", unixsocket=str(tmp_path / "socket"))
    await rig.server.start()
    assert rig.server.addresses() == [str(tmp_path / "socket")]
    (tmp_path / "socket").unlink()
    await rig.server.stop()
    assert rig.server.addresses() == []


async def test_connections_are_probed_only_if_the_setting_says_so(start: StartRig) -> None:
    for seconds, probed in ((300, 1), (0, 0)):
        rig = await start(tcp_keepalive=seconds)
        async with rig.client():
            (connection,) = rig.server.listening.connections.open
            sock = connection.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == probed


# --- clients that do not read ----------------------------------------------------------------


async def test_a_client_that_does_not_read_does_not_hold_up_the_end(start: StartRig) -> None:
    rig = await start()
    sock = await rig.let_much_wait()
    await rig.server.stop()
    assert not rig.server.listening.connections.open
    assert await closed(sock)


async def test_replies_above_the_hard_limit_cut_the_client_off(start: StartRig) -> None:
    rig = await start(client_output_buffer_limit="normal 1mb 0 0")
    assert await closed(await rig.let_much_wait())
    assert rig.server.state.stats.output_limit_disconnections == 1


async def test_replies_above_the_soft_limit_cut_the_client_off_in_time(start: StartRig) -> None:
    rig = await start(client_output_buffer_limit="normal 0 1mb 10")
    sock = await rig.let_much_wait()
    rig.now_ms += 10_000
    rig.server.cron()
    assert rig.server.state.stats.output_limit_disconnections == 0
    rig.now_ms += 1
    rig.server.cron()
    assert rig.server.state.stats.output_limit_disconnections == 1
    assert await closed(sock)
    while rig.server.listening.connections.open:
        await asyncio.sleep(0)
    assert rig.server.services.traffic.limits.watched() == []


async def test_without_a_limit_a_reply_waits_for_as_long_as_it_takes(start: StartRig) -> None:
    rig = await start()
    async with rig.client() as (reader, writer):
        writer.write(ECHO_MUCH)
        assert await reader.readuntil(b"\r\n") == b"$%d\r\n" % MUCH
        assert await reader.readexactly(MUCH + 2) == bytes(MUCH) + b"\r\n"


# --- periodic work ---------------------------------------------------------------------------


async def test_an_idle_client_is_disconnected_after_the_timeout(start: StartRig) -> None:
    rig = await start(timeout=10)
    async with rig.client() as (reader, _):
        rig.now_ms += 10_000
        rig.server.cron()
        assert len(rig.server.state.sessions) == 1
        rig.now_ms += 1
        rig.server.cron()
        assert await reader.read() == b""


def test_a_client_that_waits_or_listens_is_not_idle() -> None:
    direct = Direct(timeout=10)
    idle, waiting, listening = (direct.client() for _ in range(3))
    assert waiting.send("XREAD", "BLOCK", 0, "STREAMS", "k", "$") is None
    listening.send("SUBSCRIBE", "news")
    direct.now_ms += 60_000
    direct.cron()
    assert [client.closed for client in (idle, waiting, listening)] == [True, False, False]


def test_periodic_work_goes_on_by_itself() -> None:
    with PenstockThread(hz=500) as penstock:
        with Client(penstock.address) as client:
            assert client.ask("SET", "k", "v", "PX", 1) == b"OK"
        keyspace = penstock.server.state.keyspace
        wait_until(lambda: not penstock.call(lambda: len(keyspace.databases[0].values)))


def test_the_longest_argument_changes_for_clients_that_are_connected() -> None:
    with (
        PenstockThread() as penstock,
        Client(penstock.address) as client,
    ):
        assert client.ask("CONFIG", "SET", "proto-max-bulk-len", "1mb") == b"OK"
        client.write(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n")
        assert client.line() == b"-ERR Protocol error: invalid bulk length\r\n"


def test_a_server_thread_that_cannot_start_says_why() -> None:
    with PenstockThread() as penstock:
        twin = PenstockThread(port=penstock.port)
        with pytest.raises(ListenError, match="Address already in use"):
            twin.start()
        twin.stop()
    assert penstock.url == f"redis://127.0.0.1:{penstock.port}"
