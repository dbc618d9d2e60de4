"""What faults do to connections: exact bytes on real sockets, with all that is pipelined."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as LostConnection
from redis.retry import Retry

from tests.support.certificates import Certificates
from tests.support.direct import Direct
from tests.support.ports import free_port
from tests.support.servers import PenstockThread
from tests.support.wire import Client, Wire, connected, packed

OK = b"+OK\r\n"
PONG = b"+PONG\r\n"
BIG = "x" * 100


@pytest.fixture(params=["RESP2", "RESP3"])
def client(penstock: PenstockThread, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of either protocol."""
    with Client(penstock.address) as client:
        if request.param == "RESP3":
            client.send("HELLO 3")
            client.send("PING")
            while client.line() != PONG:
                pass
        yield client


@pytest.fixture
def tester(penstock: PenstockThread) -> Iterator[Client]:
    """Who sets the faults, and sees what has happened."""
    with Client(penstock.address) as client:
        yield client


def add(tester: Client, line: str) -> None:
    assert tester.answer(f"DEBUG FAULT ADD {line}").startswith(b":")


# --- errors ----------------------------------------------------------------------------------


def test_an_error_takes_the_place_of_the_command(client: Client, tester: Client) -> None:
    add(tester, "SET KEY b ERROR TRYAGAIN")
    client.send("SET a 1", "SET b 1", "SET c 1", "PING")
    client.receive(OK + b"-TRYAGAIN\r\n" + OK + PONG)
    assert tester.answer("EXISTS a b c") == b":2\r\n"


def test_an_error_while_commands_are_queued_spoils_the_transaction(
    client: Client, tester: Client
) -> None:
    add(tester, "SET ERROR TRYAGAIN")
    client.send("MULTI", "INCR n", "SET a 1", "INCR n", "EXEC", "PING")
    client.receive(
        OK + b"+QUEUED\r\n-TRYAGAIN\r\n+QUEUED\r\n"
        b"-EXECABORT Transaction discarded because of previous errors.\r\n" + PONG
    )
    assert tester.answer("EXISTS n a") == b":0\r\n"


def test_exec_is_struck_by_its_name_and_discards_its_transaction(
    client: Client, tester: Client
) -> None:
    add(tester, "EXEC TIMES 1 ERROR TRYAGAIN")
    client.send("WATCH a", "MULTI", "SET a 1", "EXEC", "SET b 1", "EXEC")
    client.receive(OK + OK + b"+QUEUED\r\n-TRYAGAIN\r\n" + OK + b"-ERR EXEC without MULTI\r\n")
    assert tester.answer("EXISTS a b") == b":1\r\n"


def test_exec_says_that_a_state_of_the_server_discarded_its_transaction(
    client: Client, tester: Client
) -> None:
    add(tester, "EXEC READONLY")
    client.send("MULTI", "SET a 1", "EXEC", "PING")
    client.receive(
        OK + b"+QUEUED\r\n-EXECABORT Transaction discarded because of:"
        b" READONLY You can't write against a read only replica.\r\n" + PONG
    )


def test_moved_leads_back_to_the_server_that_the_client_asked(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    add(tester, "GET TIMES 1 MOVED")
    assert client.answer("GET k") == b"-MOVED 7629 127.0.0.1:%d\r\n" % penstock.port


def test_a_request_that_is_refused_anyway_is_no_match(client: Client, tester: Client) -> None:
    add(tester, "GET ERROR TRYAGAIN")
    assert client.answer("GET") == b"-ERR wrong number of arguments for 'get' command\r\n"
    tester.send("DEBUG FAULT LIST")
    tester.receive(
        b"*1\r\n*8\r\n$2\r\nid\r\n:1\r\n$5\r\nwords\r\n*3\r\n$3\r\nGET\r\n$5\r\nERROR\r\n"
        b"$8\r\nTRYAGAIN\r\n$7\r\nmatched\r\n:0\r\n$6\r\nstruck\r\n:0\r\n"
    )


def test_an_error_is_counted_like_any_other(client: Client, tester: Client) -> None:
    add(tester, "GET ERROR TRYAGAIN")
    client.answer("GET k")
    assert b"errorstat_TRYAGAIN:count=1\r\n" in tester.ask("INFO", "errorstats")


def test_an_error_is_not_sent_to_who_wants_no_replies(client: Client, tester: Client) -> None:
    add(tester, "GET ERROR TRYAGAIN")
    client.send("CLIENT REPLY SKIP", "GET k", "GET k", "CLIENT REPLY OFF", "GET k")
    client.receive(b"-TRYAGAIN\r\n")
    client.send("CLIENT REPLY ON")
    client.receive(OK)


# --- ends of connections ---------------------------------------------------------------------


def test_close_ends_the_connection_before_the_command(client: Client, tester: Client) -> None:
    add(tester, "SET KEY b CLOSE")
    client.send("SET a 1", "SET b 1", "SET c 1")
    assert client.rest() == OK
    assert tester.answer("EXISTS a b c") == b":1\r\n"


def test_reset_ends_the_connection_with_a_reset_of_tcp(client: Client, tester: Client) -> None:
    add(tester, "SET KEY b RESET")
    assert client.answer("SET a 1") == OK
    client.send("SET b 1", "SET c 1")
    with pytest.raises(ConnectionResetError):
        client.socket.recv(1)
    assert tester.answer("EXISTS a b c") == b":1\r\n"


def test_what_was_answered_before_a_reset_is_there_to_be_read(
    client: Client, tester: Client
) -> None:
    add(tester, "SET KEY b RESET")
    client.send("SET a 1", "SET b 1")
    client.receive(OK)
    with pytest.raises(ConnectionResetError):
        client.socket.recv(1)


def test_a_reset_of_a_unix_socket_is_its_end(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with PenstockThread(enable_debug_command="yes", unixsocket=path):
        with Client(path) as tester:
            add(tester, "PING RESET")
        with Client(path) as client:
            client.send("SET a 1", "PING", "SET b 1")
            assert client.rest() == OK


@pytest.mark.parametrize("size", [0, 1, 50, 1000])
def test_cut_executes_the_command_and_sends_the_beginning_of_the_reply(
    client: Client, tester: Client, size: int
) -> None:
    add(tester, f"GET CUT {size}")
    client.send(f"SET k {BIG}", "GET k", "SET c 1")
    reply = b"$100\r\n" + BIG.encode() + b"\r\n"
    assert client.rest() == OK + reply[:size]
    assert tester.answer("EXISTS c") == b":0\r\n"


def test_noreply_executes_the_command_and_says_nothing(client: Client, tester: Client) -> None:
    add(tester, "SET KEY b NOREPLY")
    client.send("SET a 1", "SET b 1", "SET c 1")
    assert client.rest() == OK
    assert tester.answer("EXISTS a b c") == b":2\r\n"


def test_a_transaction_may_be_executed_without_an_answer(client: Client, tester: Client) -> None:
    add(tester, "EXEC NOREPLY")
    client.send("MULTI", "SET a 1", "EXEC", "SET b 1")
    assert client.rest() == OK + b"+QUEUED\r\n"
    assert tester.answer("EXISTS a b") == b":1\r\n"


def test_drop_neither_executes_nor_answers_and_the_connection_stays(
    client: Client, tester: Client
) -> None:
    add(tester, "SET KEY b TIMES 1 DROP")
    client.send("SET a 1", "SET b 1", "SET c 1", "PING", "SET b 2")
    client.receive(OK + OK + PONG + OK)
    assert client.answer("GET b") == b"$1\r\n"


# --- delays ----------------------------------------------------------------------------------


def test_a_delay_holds_one_client_and_what_it_sent_behind(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    add(tester, "GET TIMES 1 DELAY 86400000")
    client.send("SET a 1", "GET b", "SET c 1")
    client.receive(OK)
    assert tester.answer("SET b 1") == OK, "others are served"
    assert tester.answer("EXISTS c") == b":0\r\n"
    tester.send("DEBUG FAULT CLEAR")
    assert tester.line() == b":0\r\n", "it has struck for the last time already"
    client.receive(b"$1\r\n1\r\n" + OK)
    assert not penstock.server.services.interception.active


def test_a_delay_ends_by_itself(client: Client, tester: Client) -> None:
    add(tester, "GET DELAY 1")
    client.send("SET a 1", "GET a", "GET a", "PING")
    client.receive(OK + 2 * b"$1\r\n1\r\n" + PONG)


def test_a_delayed_command_is_traced_and_struck_once(client: Client, tester: Client) -> None:
    assert tester.answer("DEBUG TRACE START") == OK
    add(tester, "ECHO DELAY 1")
    add(tester, "ECHO ERROR TRYAGAIN")
    client.send("ECHO x")
    client.receive(b"$1\r\nx\r\n")
    tester.send("DEBUG TRACE STATUS", "DEBUG FAULT LIST")
    tester.receive(b"*8\r\n$7\r\nrunning\r\n:1\r\n$6\r\nclient\r\n$-1\r\n$4\r\nkept\r\n:1\r\n")
    tester.receive(b"$4\r\nlost\r\n:0\r\n*2\r\n")
    words = b"$4\r\nECHO\r\n$5\r\nDELAY\r\n$1\r\n1\r\n"
    tester.receive(b"*8\r\n$2\r\nid\r\n:1\r\n$5\r\nwords\r\n*3\r\n" + words)
    tester.receive(b"$7\r\nmatched\r\n:1\r\n$6\r\nstruck\r\n:1\r\n")


def test_a_client_may_leave_while_its_command_is_delayed(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    add(tester, "GET TIMES 1 DELAY 86400000")
    client.send("PING", "GET a")
    client.receive(PONG)
    client.close()
    while penstock.server.services.interception.active:
        assert tester.answer("PING") == PONG


def test_a_server_stops_while_a_command_is_delayed() -> None:
    with PenstockThread(enable_debug_command="yes") as server, Client(server.address) as client:
        add(client, "GET DELAY 86400000")
        client.send("PING", "GET a")
        client.receive(PONG)


def test_a_command_that_blocks_is_delayed_before_it_waits(client: Client, tester: Client) -> None:
    add(tester, "XREAD DELAY 1")
    client.send("PING", "XREAD BLOCK 0 STREAMS k 0")
    client.receive(PONG)
    assert tester.answer("XADD k 1-1 f v") == b"$3\r\n"
    assert client.line() in (b"*1\r\n", b"%1\r\n")


# --- commands that wait ----------------------------------------------------------------------


def parked(penstock: PenstockThread) -> bool:
    return len(penstock.server.services.blocking.waiters) > 0


@pytest.mark.parametrize(("action", "size"), [("NOREPLY", 0), ("CUT 6", 6)])
def test_a_reader_that_waited_is_cut_off_when_its_reply_comes(
    penstock: PenstockThread, client: Client, tester: Client, action: str, size: int
) -> None:
    assert tester.answer("XGROUP CREATE k g 0 MKSTREAM") == OK
    add(tester, f"XREADGROUP {action}")
    client.send("PING", "XREADGROUP GROUP g c BLOCK 0 STREAMS k >", "SET after 1")
    client.receive(PONG)
    while not parked(penstock):
        assert tester.answer("PING") == PONG
    assert tester.answer("XADD k 1-1 f v") == b"$3\r\n"
    assert tester.line() == b"1-1\r\n"
    assert len(client.rest()) == size
    tester.send("XPENDING k g - + 10", "EXISTS after")
    assert tester.line() == b"*1\r\n", "the entry was delivered to a consumer that has not got it"
    while (line := tester.line()) not in (b":0\r\n", b":2\r\n"):
        assert line.startswith((b"*", b"$", b"1-1", b"c", b":"))


def test_a_wait_that_ends_without_an_entry_is_cut_off_as_well(
    client: Client, tester: Client
) -> None:
    add(tester, "XREAD NOREPLY")
    client.send("PING", "XREAD BLOCK 1 STREAMS k $")
    assert client.rest() == PONG


def test_pushes_to_a_client_that_is_cut_off_are_not_sent(
    penstock: PenstockThread, tester: Client
) -> None:
    add(tester, "PUBLISH NOREPLY")
    with Client(penstock.address) as client:
        client.send("HELLO 3", "SUBSCRIBE c", "PING")
        while client.line() != PONG:
            pass
        client.send("PUBLISH c message")
        assert client.rest() == b""


# --- the fast path, the append-only file, TLS --------------------------------------------------


def test_pipelined_xadds_are_struck_one_by_one(client: Client, tester: Client) -> None:
    assert tester.answer("XADD k 1-1 a 0") == b"$3\r\n"
    assert tester.line() == b"1-1\r\n"
    add(tester, "XADD AFTER 2 TIMES 1 ERROR TRYAGAIN")
    client.send(*["XADD k * a 1"] * 5)
    for number in range(5):
        line = client.line()
        if number == 2:
            assert line == b"-TRYAGAIN\r\n"
        else:
            assert line.startswith(b"$")
            client.line()
    assert tester.answer("XLEN k") == b":5\r\n"


@pytest.mark.parametrize(("action", "size"), [("CLOSE", 0), ("NOREPLY", 0), ("CUT 3", 3)])
def test_replies_before_the_end_wait_for_the_append_only_file_and_are_sent(
    tmp_path: Path, action: str, size: int
) -> None:
    settings = {"appendonly": True, "appendfsync": "always", "dir": str(tmp_path)}
    with (
        PenstockThread(enable_debug_command="yes", **settings) as server,
        Client(server.address) as tester,
        Client(server.address) as client,
    ):
        add(tester, f"SET KEY b {action}")
        client.send("SET a 1", "SET b 1", "SET c 1")
        assert client.rest() == OK + OK[:size]
        there = b":1\r\n" if action == "CLOSE" else b":2\r\n"
        assert tester.answer("EXISTS a b c") == there


def test_a_reset_comes_behind_replies_that_wait_for_the_append_only_file(tmp_path: Path) -> None:
    settings = {"appendonly": True, "appendfsync": "always", "dir": str(tmp_path)}
    with (
        PenstockThread(enable_debug_command="yes", **settings) as server,
        Client(server.address) as tester,
        Client(server.address) as client,
    ):
        add(tester, "SET KEY b RESET")
        client.send("SET a 1", "SET b 1")
        client.receive(OK)
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secure(certificates: Certificates) -> Iterator[PenstockThread]:
    settings = certificates.settings(
        port=free_port(), tls_port=free_port(), tls_auth_clients="no", enable_debug_command="yes"
    )
    with PenstockThread(**settings) as server:
        yield server


def over_tls(server: PenstockThread, certificates: Certificates) -> Client:
    context = ssl.create_default_context(cafile=certificates.authority)
    context.check_hostname = False
    return Client(context.wrap_socket(connected(server.server.state.config.tls_port)))


@pytest.mark.parametrize(("action", "size"), [("CLOSE", 0), ("NOREPLY", 0), ("CUT 3", 3)])
def test_connections_over_tls_end_in_the_same_way(
    secure: PenstockThread, certificates: Certificates, action: str, size: int
) -> None:
    with Client(secure.address) as tester, over_tls(secure, certificates) as client:
        add(tester, f"SET KEY b {action}")
        client.send("SET a 1", "SET b 1", "SET c 1")
        assert client.rest() == OK + OK[:size]


def drain_below_tls(sock: socket.socket) -> None:
    """Reads what comes of TCP, until its end."""
    while socket.socket.recv(sock, 65536):
        pass


def test_a_connection_over_tls_is_reset(secure: PenstockThread, certificates: Certificates) -> None:
    with Client(secure.address) as tester, over_tls(secure, certificates) as client:
        add(tester, "SET KEY b RESET")
        assert client.answer("SET a 1") == OK
        client.send("SET b 1")
        with pytest.raises(ConnectionResetError):
            drain_below_tls(client.socket)


def test_delays_and_errors_work_over_tls(
    secure: PenstockThread, certificates: Certificates
) -> None:
    with Client(secure.address) as tester, over_tls(secure, certificates) as client:
        add(tester, "GET DELAY 1")
        add(tester, "DEL OOM")
        client.send("SET a 1", "GET a", "DEL a")
        client.receive(OK + b"$1\r\n1\r\n")
        assert client.line() == b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"


# --- clients of redis-py ---------------------------------------------------------------------


def redis_client(server: PenstockThread, retries: int) -> redis.Redis:
    retry = Retry(NoBackoff(), retries)
    return redis.Redis(host=server.host, port=server.port, decode_responses=True, retry=retry)


def test_a_producer_that_tries_again_adds_twice_without_an_idempotent_id_and_once_with_one(
    penstock: PenstockThread,
) -> None:
    """The case that NOREPLY is for: the entry is there, and the producer does not know it."""
    with redis_client(penstock, 1) as client:
        client.execute_command("DEBUG", "FAULT", "ADD", "XADD", "TIMES", 1, "NOREPLY")
        client.execute_command("XADD", "plain", "*", "n", 1)
        assert client.xlen("plain") == 2
        client.execute_command("DEBUG", "FAULT", "ADD", "XADD", "TIMES", 1, "NOREPLY")
        words = ("XADD", "orders", "IDMP", "producer", "order-1", "*", "n", 1)
        entry_id = client.execute_command(*words)
        assert client.xlen("orders") == 1
        assert [entry for entry, _ in client.xrange("orders")] == [entry_id]


@pytest.mark.parametrize("action", ["CLOSE", "RESET", "CUT 2", "NOREPLY"])
def test_a_client_of_redis_py_hears_that_the_connection_is_lost(
    penstock: PenstockThread, action: str
) -> None:
    with redis_client(penstock, 0) as client:
        client.ping()
        words = ("DEBUG", "FAULT", "ADD", "SET", "TIMES", 1, *action.split())
        client.execute_command(*words)
        with pytest.raises(LostConnection):
            client.set("k", "v")
        assert client.set("k", "v") is True


def test_the_name_of_a_client_chooses_it(penstock: PenstockThread) -> None:
    with redis_client(penstock, 0) as one, redis_client(penstock, 0) as other:
        one.client_setname("worker-1")
        one.execute_command("DEBUG", "FAULT", "ADD", "*", "CLIENT", "worker-*", "LOADING")
        assert other.get("k") is None
        with pytest.raises(redis.BusyLoadingError):
            one.get("k")


# --- by hand ---------------------------------------------------------------------------------


def wired(*faults: str) -> tuple[Direct, Wire]:
    """A server without sockets that has these faults, and a connection to it."""
    direct = Direct(enable_debug_command="yes")
    for line in faults:
        reply = direct.client().send("DEBUG", "FAULT", "ADD", *line.split())
        assert reply is not None
        assert reply.startswith(b":")
    return direct, Wire(direct)


async def test_whatever_lets_a_connection_go_on_does_not_shorten_a_delay() -> None:
    direct, wire = wired("GET TIMES 1 DELAY 86400000")
    wire.read(packed("GET a", "PING"))
    wire.connection.resume()
    assert wire.take() == b""
    direct.client().send("DEBUG", "FAULT", "CLEAR")
    await asyncio.sleep(0)
    assert wire.take() == b"$-1\r\n" + PONG


class Replica:
    """What follows the server, as its session sees it."""

    def cut_off(self, reason: str) -> None:
        """It sends nothing that it may not."""

    def pause(self) -> None:
        """It never has too much."""

    def resume(self) -> None:
        """So it never goes on."""

    def resume_soon(self) -> None:
        """Neither does it later."""


async def test_what_replicas_say_is_left_alone() -> None:
    direct, wire = wired("* CLOSE")
    assert wire.connection.session is not None
    wire.connection.session.follower = Replica()
    wire.connection.session.update_reasons()
    direct.client().send("DEBUG", "TRACE", "START")
    wire.read(packed("REPLCONF ACK 0"))
    assert not wire.closed
    assert direct.client().send("DEBUG", "TRACE", "GET") == b"*0\r\n"
    wire.connection.session.follower = None
    wire.connection.session.update_reasons()
    wire.read(packed("PING"))
    assert wire.closed


async def test_a_message_does_not_follow_half_a_reply() -> None:
    direct, wire = wired("XREAD CUT 3")
    wire.read(packed("HELLO 3", "SUBSCRIBE c", "XREAD BLOCK 0 STREAMS k 0"))
    wire.take()
    client = direct.client()
    client.send("XADD", "k", "1-1", "f", "v")
    client.send("PUBLISH", "c", "message")  # Before the connection has heard of the reply.
    assert wire.take() == b"%1\r"
    await asyncio.sleep(0)
    assert wire.take() == b""
    assert wire.closed
