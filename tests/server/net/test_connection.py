"""One client's socket: replies in order whatever happens between them, and clean ends."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import re
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.clients.client_line import client_line
from server.net.connection import Connection
from server.runtime.log import Log
from server.traffic.turns import FULL_READ, SMALL_SHARE_NS, Turns
from tests.support.direct import Direct, LooseWire
from tests.support.held_output import held_output, hold_output
from tests.support.servers import PenstockThread
from tests.support.wire import TIMEOUT_S, Client, Wire, packed

PING = b"*1\r\n$4\r\nPING\r\n"
PONG = b"+PONG\r\n"

Run = Callable[..., PenstockThread]
Connect = Callable[[PenstockThread], Client]


@pytest.fixture
def run() -> Iterator[Run]:
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(PenstockThread(**settings))


def warning_of(server: PenstockThread) -> Callable[[], str]:
    """Hear what the server logs from now on; the result gives the one warning."""
    stream = io.StringIO()
    server.server.state.log = Log(stream)

    def warning() -> str:
        [text] = [line.split(" # ")[1] for line in stream.getvalue().splitlines() if " # " in line]
        return text

    return warning


@pytest.fixture
def server(run: Run) -> PenstockThread:
    return run()


@pytest.fixture
def connect() -> Iterator[Connect]:
    with contextlib.ExitStack() as stack:
        yield lambda server: stack.enter_context(Client(server.address))


@pytest.fixture
def client(server: PenstockThread, connect: Connect) -> Client:
    return connect(server)


@pytest.fixture
def other(server: PenstockThread, connect: Connect) -> Client:
    return connect(server)


# --- pipelines -------------------------------------------------------------------------------


def test_a_pipeline_is_answered_in_its_order(client: Client) -> None:
    client.write(b"PING\r\n" + packed("ECHO a") + b"PING b\n" + PING)
    client.receive(PONG + b"$1\r\na\r\n$1\r\nb\r\n" + PONG)


def test_a_long_pipeline_with_replies_of_many_megabytes_is_answered_in_its_order(
    client: Client,
) -> None:
    client.write(packed("SET k " + "x" * 300_000) + packed("GET k") * 40 + PING)
    client.receive(b"+OK\r\n" + (b"$300000\r\n" + b"x" * 300_000 + b"\r\n") * 40 + PONG)


def test_a_value_of_many_megabytes_comes_back_whole(client: Client) -> None:
    value = bytes(range(256)) * (64 * 1024)
    client.write(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % len(value))
    for at in range(0, len(value), 50_000):
        client.write(value[at : at + 50_000])
    client.write(b"\r\n" + packed("GET k"))
    client.receive(b"+OK\r\n$%d\r\n%b\r\n" % (len(value), value))


# --- waiting ---------------------------------------------------------------------------------


def test_requests_behind_a_waiting_one_are_answered_after_it(client: Client, other: Client) -> None:
    client.send("PING", "XREAD BLOCK 0 STREAMS k $", "ECHO a", "XREAD BLOCK 0 STREAMS k 1-1")
    client.receive(PONG)
    client.send("ECHO b", "ECHO c")
    other.send("XADD k 1-1 f v", "XADD k 2-1 f v")
    other.receive(b"$3\r\n1-1\r\n$3\r\n2-1\r\n")
    entry = b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n%d-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    client.receive(entry % 1 + b"$1\r\na\r\n" + entry % 2 + b"$1\r\nb\r\n$1\r\nc\r\n")


def test_a_protocol_error_behind_a_waiting_command_closes_after_its_reply(
    client: Client,
) -> None:
    client.write(packed("XREAD BLOCK 30 STREAMS k $") + PING + b"*x\r\n" + PING)
    client.receive(b"*-1\r\n" + PONG + b"-ERR Protocol error: invalid multibulk length\r\n")
    assert client.closed()


def test_quit_behind_a_waiting_command_closes_after_its_reply(client: Client) -> None:
    client.send("XREAD BLOCK 30 STREAMS k $", "QUIT", "PING")
    client.receive(b"*-1\r\n+OK\r\n")
    assert client.closed()


def test_a_client_that_goes_while_it_waits_leaves_nothing_behind(
    server: PenstockThread, client: Client, other: Client, connect: Connect
) -> None:
    client.send("MULTI", "WATCH k", "EXEC", "XREAD BLOCK 0 STREAMS k $")
    client.receive(b"+OK\r\n-ERR WATCH inside MULTI is not allowed\r\n*0\r\n")
    other.send("SUBSCRIBE c")
    other.receive(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
    client.close()
    other.close()
    witness = connect(server)
    while witness.ask("CLIENT", "LIST").count(b"id=") > 1:
        pass
    blocking = server.server.services.blocking
    assert not blocking.waiters
    assert not blocking.waiting
    assert not server.server.services.pubsub.channels
    assert len(server.server.state.sessions) == len(server.server.listening.connections.open) == 1


def test_a_connection_that_is_reset_while_it_waits_leaves_nothing_behind(
    server: PenstockThread, client: Client, other: Client
) -> None:
    identity = client.ask("CLIENT", "ID")
    client.send("XREAD BLOCK 0 STREAMS k $")
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    while identity in server.server.state.sessions:
        other.send("PING")
        other.receive(PONG)
    assert not server.server.services.blocking.waiters


def test_pushes_come_behind_the_reply_that_was_due_before_them(
    client: Client, other: Client
) -> None:
    client.send("HELLO 3")
    client.send("CLIENT REPLY OFF", "CLIENT REPLY ON", "SUBSCRIBE c", "XREAD BLOCK 0 STREAMS k $")
    _skip_to(client, b"+OK\r\n")
    client.receive(b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
    other.send("PUBLISH c early")
    other.receive(b":1\r\n")
    other.send("MULTI", "XADD k 1-1 f v", "PUBLISH c within", "EXEC", "PUBLISH c late")
    message = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%b\r\n"
    client.receive(
        message % (5, b"early")
        + message % (6, b"within")
        + b"%1\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        + message % (4, b"late")
    )


def _skip_to(client: Client, end: bytes) -> None:
    received = b""
    while not received.endswith(end):
        received += client.take(1)


def test_what_a_command_pushes_to_its_own_client_comes_behind_its_reply(client: Client) -> None:
    client.send("HELLO 3", "SUBSCRIBE c", "PUBLISH c m", "PING", "PSUBSCRIBE *", "PUBLISH c n")
    _skip_to(client, b">3\r\n")
    client.receive(b"$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
    client.receive(b":1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n" + PONG)
    client.receive(b">3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:2\r\n:2\r\n")
    client.receive(b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nn\r\n")
    client.receive(b">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$1\r\nn\r\n")


# --- CLIENT REPLY ----------------------------------------------------------------------------


def test_client_reply_off_silences_replies_but_not_messages(client: Client) -> None:
    client.send(
        "HELLO 3", "PING", "CLIENT REPLY OFF", "PING", "SUBSCRIBE c", "PUBLISH c m", "FOO",
        "CLIENT REPLY ON", "PING",
    )  # fmt: skip
    _skip_to(client, PONG)
    client.receive(
        b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
        b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n+OK\r\n" + PONG
    )


def test_the_reply_of_a_wait_is_silenced_too(client: Client) -> None:
    client.send("CLIENT REPLY SKIP", "XREAD BLOCK 20 STREAMS k $", "ECHO a")
    client.receive(b"$1\r\na\r\n")


# --- the end ---------------------------------------------------------------------------------


def test_a_protocol_error_closes_after_the_replies_before_it(
    server: PenstockThread, client: Client
) -> None:
    client.write(PING * 2 + b"*1\r\n+PING\r\n" + PING)
    client.receive(PONG * 2 + b"-ERR Protocol error: expected '$', got '+'\r\n")
    assert client.closed()
    assert server.server.state.stats.errors["ERR"] == 1


def test_a_client_that_closes_its_side_gets_what_it_asked_for(client: Client) -> None:
    client.write(PING * 3)
    client.socket.shutdown(socket.SHUT_WR)
    client.receive(PONG * 3)
    assert client.closed()


def test_a_client_that_closes_its_side_in_the_middle_of_a_request_is_let_go(
    client: Client,
) -> None:
    client.write(PING + packed("SET k v")[:-3])
    client.socket.shutdown(socket.SHUT_WR)
    client.receive(PONG)
    assert client.closed()


def test_too_many_clients_are_turned_away(run: Run, connect: Connect) -> None:
    server = run(maxclients=1)
    first = connect(server)
    first.send("PING")
    first.receive(PONG)
    second = connect(server)
    second.receive(b"-ERR max number of clients reached\r\n")
    assert second.closed()
    first.send("QUIT")
    first.receive(b"+OK\r\n")
    assert first.closed()
    third = connect(server)
    third.send("PING")
    third.receive(PONG)
    assert server.server.state.stats.rejected_connections == 1
    assert server.server.state.stats.connections == 2


# --- clients that do not read ----------------------------------------------------------------


def test_a_client_that_does_not_read_is_not_read_from_either(
    server: PenstockThread, client: Client, other: Client
) -> None:
    other.send("SET k " + "x" * 1_000_000)
    other.receive(b"+OK\r\n")
    client.send(*["GET k"] * 200)
    client.send("SET done 1")
    for _ in range(20):
        other.send("PING", "EXISTS done")
        other.receive(PONG + b":0\r\n")
    reply = b"$1000000\r\n" + b"x" * 1_000_000 + b"\r\n"
    for _ in range(200):
        client.receive(reply)
    client.receive(b"+OK\r\n")


def test_the_log_warns_of_a_web_page_that_was_made_to_connect_once_in_a_minute(
    run: Run, connect: Connect
) -> None:
    server = run()
    warning = warning_of(server)
    for request in (b"POST / HTTP/1.1\r\n", b"PING\r\nHost: x\r\n"):
        client = connect(server)
        client.write(request)
        client.rest()
    assert re.fullmatch(
        r"Possible SECURITY ATTACK detected: POST or Host: came as a command, as from a web page"
        r" that was made to connect here\. Connection from 127\.0\.0\.1:\d+ aborted\.",
        warning(),
    )


def test_a_subscriber_that_does_not_read_is_cut_off(run: Run, connect: Connect) -> None:
    server = run(client_output_buffer_limit="pubsub 1mb 0 0")
    warning = warning_of(server)
    subscriber, publisher = connect(server), connect(server)
    subscriber.send("SUBSCRIBE c")
    subscriber.receive(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
    request = packed("PUBLISH c " + "x" * 100_000)
    publisher.write(request)
    while publisher.line() == b":1\r\n":
        publisher.write(request)
    assert server.server.state.stats.output_limit_disconnections == 1
    assert not server.server.services.pubsub.channels
    assert re.fullmatch(
        r"Client id=\d+ addr=127\.0\.0\.1:\d+ .* flags=P .* cmd=subscribe .*"
        r" is closed for overcoming of output buffer limits",
        warning(),
    )


def test_a_client_that_monitors_and_does_not_read_is_cut_off_like_a_subscriber(
    run: Run, connect: Connect
) -> None:
    server = run(client_output_buffer_limit="normal 0 0 0 pubsub 1mb 0 0")
    watcher, client = connect(server), connect(server)
    watcher.send("MONITOR")
    watcher.receive(b"+OK\r\n")
    request = packed("ECHO " + "x" * 100_000)
    monitors = server.server.state.timings.monitors
    while monitors.sessions:
        client.write(request)
        client.receive(b"$100000\r\n" + b"x" * 100_000 + b"\r\n")
    assert server.server.state.stats.output_limit_disconnections == 1


def test_a_client_that_does_not_read_its_replies_is_cut_off_if_there_is_a_limit(
    run: Run, connect: Connect
) -> None:
    server = run(client_output_buffer_limit="normal 1mb 0 0")
    client = connect(server)
    # One reply is more than the system takes from the server for a client that does not read.
    client.send("SET k " + "x" * 20_000_000)
    client.receive(b"+OK\r\n")
    client.send("GET k")
    with contextlib.suppress(ConnectionResetError):
        client.rest()
    assert server.server.state.stats.output_limit_disconnections == 1
    assert not server.server.state.sessions


def test_a_waiting_client_that_sends_too_much_is_cut_off(run: Run, connect: Connect) -> None:
    server = run(client_query_buffer_limit="1mb")
    client = connect(server)
    client.send("XREAD BLOCK 0 STREAMS k $")
    with pytest.raises(ConnectionError):
        client.write(b"x" * 100_000_000)
    assert not server.server.services.blocking.waiters


def test_a_client_is_held_back_by_a_pause_and_then_answered_in_order(
    client: Client, other: Client
) -> None:
    other.send("CLIENT PAUSE 10000 WRITE")
    other.receive(b"+OK\r\n")
    client.send("PING", "SET k v", "GET k")
    client.receive(PONG)
    client.send("PING")
    other.send("EXISTS k", "CLIENT UNPAUSE")
    other.receive(b":0\r\n+OK\r\n")
    client.receive(b"+OK\r\n$1\r\nv\r\n" + PONG)


def test_a_pause_of_writes_holds_a_count_back_that_replicas_hear_of(
    client: Client, other: Client
) -> None:
    other.send("PFADD h a", "CLIENT PAUSE 10000 WRITE")
    other.receive(b":1\r\n+OK\r\n")
    client.send("PING", "PFCOUNT h")
    client.receive(PONG)
    other.send("GETRANGE h 15 15", "CLIENT UNPAUSE")
    other.receive(b"$1\r\n\x80\r\n+OK\r\n")
    client.receive(b":1\r\n")


def test_a_transaction_that_queues_too_much_is_cut_off(run: Run, connect: Connect) -> None:
    server = run(client_query_buffer_limit="1mb")
    warning = warning_of(server)
    client = connect(server)
    client.send("MULTI")
    client.receive(b"+OK\r\n")
    queued = 0
    with contextlib.suppress(ConnectionError, AssertionError):
        while True:
            client.send("SET k " + "x" * 10_000)
            assert client.line() == b"+QUEUED\r\n"
            queued += 1
    assert 90 < queued < 104
    assert server.server.state.stats.query_limit_disconnections == 1
    assert re.fullmatch(
        r"Closing client that reached max query buffer length: id=\d+ addr=127\.0\.0\.1:\d+ .*"
        rf" flags=x .* multi={queued} .*",
        warning(),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n" + b"x" * 1048576 + b"\r\n",
        b"*200000\r\n" + b"$1\r\na\r\n" * 100_000,
    ],
)
def test_a_request_that_is_too_much_is_cut_off_and_those_before_it_are_answered(
    run: Run, connect: Connect, data: bytes
) -> None:
    server = run(client_query_buffer_limit="1mb")
    warning = warning_of(server)
    client = connect(server)
    client.send("PING")
    client.receive(PONG)
    with contextlib.suppress(ConnectionError):
        client.write(data)
    assert client.closed()
    assert server.server.state.stats.query_limit_disconnections == 1
    assert warning().startswith("Closing client that reached max query buffer length: id=")


def test_a_value_as_long_as_the_query_buffer_may_be_is_taken(run: Run, connect: Connect) -> None:
    client = connect(run(client_query_buffer_limit="1mb"))
    client.send("SET k " + "x" * 1048500)
    client.receive(b"+OK\r\n")


# --- without a socket ------------------------------------------------------------------------


class Transport(asyncio.Transport):
    """Collects what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False
        self.reading = True
        self._own, self._peer = socket.socketpair()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._own if name == "socket" else default

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        self._own.close()
        self._peer.close()

    def is_closing(self) -> bool:
        return self._own.fileno() < 0

    def abort(self) -> None:
        self.aborted = True
        self.close()


def open_connection(direct: Direct) -> tuple[Connection, Transport]:
    server = direct.server
    connection = Connection(server.services, server.listening.connections)
    transport = Transport()
    connection.connection_made(transport)
    return connection, transport


WOKEN = b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"


async def test_a_request_that_comes_right_after_a_wait_has_ended_is_answered_after_it(
    direct: Direct,
) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $"))
    direct.client().send("SET", "k", "v")
    direct.client().send("DEL", "k")
    direct.client().send("XADD", "k", "1-1", "f", "v")
    assert transport.written == WOKEN
    connection.data_received(PING)
    assert transport.written == WOKEN + PONG
    transport.close()


async def test_a_wait_that_has_ended_when_the_client_goes_is_forgotten(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $"))
    direct.client().send("XADD", "k", "1-1", "f", "v")
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $") + PING)
    direct.client().send("XADD", "k", "1-2", "f", "v")
    woken = transport.written
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert transport.written == woken, "what has come behind the command is not answered"
    assert not direct.server.listening.connections.open
    connection.data_received(PING)
    connection.resume()
    assert transport.written == woken
    transport.close()


async def test_requests_behind_a_wait_run_when_what_has_ended_it_is_done(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $") + PING)
    direct.client().send("XADD", "k", "1-1", "f", "v")
    assert transport.written == WOKEN
    await asyncio.sleep(0)
    assert transport.written == WOKEN + PONG
    transport.close()


async def test_a_client_that_is_cut_off_by_its_own_command_gets_nothing_more(
    direct: Direct,
) -> None:
    connection, transport = open_connection(direct)
    session = connection.session
    assert session is not None
    direct.client().send("SUBSCRIBE", "c")
    listener = next(iter(direct.server.services.pubsub.channels[b"c"]))
    listener.link.wire = LooseWire(send=lambda data: session.link.close())
    connection.data_received(PING + packed("PUBLISH c m") + PING)
    assert transport.aborted
    assert session.closing
    assert PONG * 2 not in transport.written


# --- turns -----------------------------------------------------------------------------------


@pytest.fixture
def impatient() -> Direct:
    """A server that runs one request of a client in each turn."""
    direct = Direct()
    direct.server.services.traffic.turns = Turns(share_ns=0)
    return direct


async def test_a_pipeline_is_answered_in_turns_and_not_read_from_meanwhile(
    impatient: Direct,
) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(PING * 3)
    assert (transport.written, transport.reading) == (PONG, False)
    await asyncio.sleep(0)
    assert (transport.written, transport.reading) == (PONG * 2, False)
    await asyncio.sleep(0)
    assert (transport.written, transport.reading) == (PONG * 3, True)
    transport.close()


@pytest.mark.parametrize(("count", "reading"), [(FULL_READ // len(PING) + 1, False), (999, True)])
async def test_a_full_read_with_much_to_do_is_a_turn_as_the_loop_reads_again_at_once(
    direct: Direct, count: int, reading: bool
) -> None:
    direct.server.services.traffic.turns = Turns(share_ns=10**12)
    connection, transport = open_connection(direct)
    ticks = itertools.count(step=SMALL_SHARE_NS // 1000)
    direct.server.state.stopwatch._nanoseconds = ticks.__next__
    connection.data_received(PING * count)
    assert (len(transport.written), transport.reading) == (count * len(PONG), reading)
    await asyncio.sleep(0)
    assert transport.reading
    transport.close()


async def test_other_clients_are_answered_between_the_turns_of_one(impatient: Direct) -> None:
    connection, transport = open_connection(impatient)
    other, other_transport = open_connection(impatient)
    connection.data_received(packed("INCR k") * 1000)
    other.data_received(packed("INCR k"))
    assert (transport.written, other_transport.written) == (b":1\r\n", b":2\r\n")
    other.data_received(packed("GET k"))
    assert other_transport.written == b":2\r\n$1\r\n2\r\n"
    for _ in range(1000):
        await asyncio.sleep(0)
    assert transport.written.endswith(b":1001\r\n")
    transport.close()
    other_transport.close()


async def test_a_long_request_is_read_in_turns(impatient: Direct) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(packed("DEL " + "k " * 200_000))
    turns = 0
    while not transport.written:
        assert not transport.reading
        await asyncio.sleep(0)
        turns += 1
    assert transport.written == b":0\r\n"
    assert turns > 10
    await asyncio.sleep(0)
    assert transport.reading
    transport.close()


async def test_a_protocol_error_comes_behind_the_replies_of_earlier_turns(
    impatient: Direct,
) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(PING * 2 + b"*1\r\n>1\r\n")
    for _ in range(5):
        await asyncio.sleep(0)
    error = b"-ERR Protocol error: expected '$', got '>'\r\n"
    assert transport.written == PONG * 2 + error
    assert transport.is_closing()


async def test_a_client_that_goes_between_two_turns_runs_nothing_more(impatient: Direct) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(packed("INCR k") * 3)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert transport.written == b":1\r\n"
    assert impatient.client().send("GET", "k") == b"$1\r\n1\r\n"
    transport.close()


async def test_a_pause_holds_what_comes_in_a_later_turn(impatient: Direct) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(packed("SET k v") * 2)
    impatient.client().send("CLIENT", "PAUSE", 10000, "WRITE")
    await asyncio.sleep(0)
    assert (transport.written, transport.reading) == (b"+OK\r\n", True)
    impatient.client().send("CLIENT", "UNPAUSE")
    await asyncio.sleep(0)
    assert transport.written == b"+OK\r\n" * 2
    transport.close()


async def test_the_turns_of_clients_are_counted_as_cycles_of_the_event_loop(
    impatient: Direct,
) -> None:
    connection, transport = open_connection(impatient)
    connection.data_received(PING * 3)
    for _ in range(3):
        await asyncio.sleep(0)
    assert impatient.server.services.traffic.turns.cycles == 3
    assert (
        impatient.server.services.traffic.turns.nanoseconds
        >= impatient.server.state.command_nanoseconds()
        > 0
    )
    impatient.client().send("CONFIG", "RESETSTAT")
    assert impatient.server.services.traffic.turns.cycles == 0
    transport.close()


# --- what a client takes ---------------------------------------------------------------------


def line_of(connection: Connection, names: str) -> dict[str, str]:
    """Fields of the client's line in CLIENT LIST."""
    assert connection.session is not None
    line = client_line(connection.session, connection.session.link.created_ms).decode()
    fields = dict(field.partition("=")[::2] for field in line.split())
    return {name: fields[name] for name in names.split()}


INFO = packed("CLIENT INFO")


@pytest.mark.parametrize(
    ("read", "qbuf", "free"),
    [
        (INFO, "26", "20448"),
        (PING + INFO, "40", "20434"),
        (INFO + PING, "40", "20434"),
        (INFO + b"*1\r\n$4\r\nPI", "36", "20438"),
        (b"CLIENT INFO\r\n", "13", "20461"),
        (packed("MULTI") + INFO + packed("EXEC"), "55", "20419"),
    ],
)
async def test_a_client_sees_what_the_read_took_that_brought_its_request_as_in_redis(
    direct: Direct, read: bytes, qbuf: str, free: str
) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(read)
    fields = dict(field.partition("=")[::2] for field in transport.written.decode().split())
    assert (fields["qbuf"], fields["qbuf-free"]) == (qbuf, free)
    taken = sum(int(fields[name]) for name in ("qbuf", "qbuf-free", "argv-mem", "multi-mem"))
    assert int(fields["tot-mem"]) == 2048 + taken
    left = "2" if read.endswith(b"PI") else "0"
    assert line_of(connection, "qbuf qbuf-free") == {"qbuf": left, "qbuf-free": "0"}
    transport.close()


async def test_a_client_that_waits_has_given_the_buffer_back(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $"))
    assert line_of(connection, "flags qbuf qbuf-free") == {
        "flags": "b",
        "qbuf": "0",
        "qbuf-free": "0",
    }
    transport.close()


async def test_what_has_come_of_a_request_shows_in_the_line_of_its_client(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(b"*3\r\n$3\r\nSET\r\n$4\r\nab")
    shown = line_of(connection, "flags qbuf argv-mem tot-mem")
    assert shown == {"flags": "N", "qbuf": "2", "argv-mem": "3", "tot-mem": "2053"}
    transport.close()


async def test_a_client_that_a_pause_holds_is_shown_as_blocked_with_its_command(
    direct: Direct,
) -> None:
    connection, transport = open_connection(direct)
    other, other_transport = open_connection(direct)
    other.data_received(packed("CLIENT PAUSE 10000 WRITE"))
    connection.data_received(packed("SET k value"))
    shown = line_of(connection, "flags argv-mem cmd")
    assert shown == {"flags": "b", "argv-mem": "9", "cmd": "set"}
    other.data_received(packed("CLIENT UNBLOCK 1 ERROR") + packed("INFO clients"))
    assert other_transport.written.startswith(b"+OK\r\n:0\r\n")
    assert b"blocked_clients:1\r\n" in other_transport.written
    other.data_received(packed("CLIENT UNPAUSE"))
    await asyncio.sleep(0)
    assert transport.written == b"+OK\r\n"
    assert line_of(connection, "flags argv-mem") == {"flags": "N", "argv-mem": "0"}
    transport.close()
    other_transport.close()


async def test_a_blocking_command_counts_as_long_as_its_client_waits(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(packed("XREAD BLOCK 0 STREAMS k $"))
    assert line_of(connection, "flags argv-mem") == {"flags": "b", "argv-mem": "20"}
    direct.client().send("XADD", "k", "1-1", "f", "v")
    await asyncio.sleep(0)
    assert line_of(connection, "flags argv-mem") == {"flags": "N", "argv-mem": "0"}
    transport.close()


async def test_replies_that_wait_for_the_disk_count_as_unsent(direct: Direct) -> None:
    direct.client().send("CONFIG", "SET", "client-output-buffer-limit", "normal 1000 0 0")
    connection, transport = open_connection(direct)
    hold_output(direct)
    connection.data_received(packed("ECHO " + "x" * 500))
    assert line_of(connection, "omem oll") == {"omem": "508", "oll": "1"}
    connection.data_received(packed("ECHO " + "x" * 500))
    assert transport.aborted
    assert direct.server.state.stats.output_limit_disconnections == 1


async def test_what_a_client_has_sent_and_got_is_counted(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    connection.data_received(PING * 3)
    connection.data_received(PING + PING[:4])
    names = "tot-net-in tot-net-out tot-cmds read-events parse-batch-cmd-sum parse-batch-cnt"
    assert line_of(connection, names) == {
        "tot-net-in": str(4 * len(PING) + 4),
        "tot-net-out": str(4 * len(PONG)),
        "tot-cmds": "4",
        "read-events": "2",
        "parse-batch-cmd-sum": "4",
        "parse-batch-cnt": "2",
    }
    connection.data_received(PING[4:] + packed("SUBSCRIBE c"))
    before = int(line_of(connection, "tot-net-out")["tot-net-out"])
    direct.client().send("PUBLISH", "c", "message")
    message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$7\r\nmessage\r\n"
    assert line_of(connection, "tot-net-out") == {"tot-net-out": str(before + len(message))}
    stats = direct.server.state.stats
    assert (stats.batches, stats.batched) == (3, 6)
    transport.close()


async def test_lines_of_monitor_that_wait_for_the_disk_count_against_the_limit(
    direct: Direct,
) -> None:
    direct.client().send("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1000 0 0")
    connection, transport = open_connection(direct)
    connection.data_received(packed("MONITOR"))
    hold_output(direct)
    client = direct.client()
    client.send("ECHO", "x" * 900)
    assert not transport.aborted
    client.send("ECHO", "x" * 900)
    assert transport.aborted
    assert not direct.server.state.timings.monitors.sessions


async def test_what_is_released_counts_no_more(direct: Direct) -> None:
    connection, transport = open_connection(direct)
    commit = hold_output(direct)
    connection.data_received(PING)
    assert line_of(connection, "omem") == {"omem": str(len(PONG))}
    commit.settle()
    assert transport.written == PONG
    assert line_of(connection, "omem") == {"omem": "0"}
    transport.close()


# --- clients that have not logged in -------------------------------------------------------------


def test_a_stranger_that_does_not_read_is_cut_off() -> None:
    """What is written to it must not fill the memory."""
    direct = Direct(requirepass="sesame")
    wire = Wire(direct)
    wire.read(PING)
    assert wire.take() == b"-NOAUTH Authentication required.\r\n"
    wire.connection.pause_writing()
    assert wire.closed
    assert direct.server.state.stats.output_limit_disconnections == 1
    assert direct.server.state.sessions == {}


def test_little_is_held_back_for_a_stranger() -> None:
    direct = Direct(requirepass="sesame")
    stranger, client = Wire(direct), Wire(direct)
    client.read(packed("AUTH sesame"))
    client.take()
    hold_output(direct)
    for wire in (stranger, client):
        for _ in range(3000):
            wire.read(PING)
    held = [
        sum(len(data or b"") for one, data in held_output(direct) if one is wire.connection)
        for wire in (stranger, client)
    ]
    assert held[0] < 65 * 1024
    assert held[1] == len(PONG) * 3000


def test_a_client_that_has_logged_in_waits_until_it_reads(run: Run, connect: Connect) -> None:
    server = run(requirepass="sesame")
    client = connect(server)
    client.send("AUTH sesame")
    client.receive(b"+OK\r\n")
    client.socket.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += client.socket.send(PING * 10_000)
    client.socket.settimeout(TIMEOUT_S)
    client.receive(PONG * (sent // len(PING)))
    assert server.server.state.stats.output_limit_disconnections == 0


def test_limits_of_requests_end_with_the_login(run: Run, connect: Connect) -> None:
    server = run(requirepass="sesame")
    client = connect(server)
    client.send("AUTH sesame", "DEL " + "k " * 20, "RESET")
    client.receive(b"+OK\r\n:0\r\n+RESET\r\n")
    client.send("DEL " + "k " * 20)
    client.receive(b"-ERR Protocol error: unauthenticated multibulk length\r\n")
    assert client.closed()
