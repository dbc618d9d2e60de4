from __future__ import annotations

import io
import socket

import pytest

from server.log import Log
from tests.support.direct import START_MS, Direct, DirectClient
from tests.support.servers import PenstockThread

SYNTAX = b"-ERR syntax error\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
DEBUG_REFUSED = (
    b'-ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can'
    b" run it from a local connection, otherwise you need to set this option in the configuration"
    b" file, and then restart the server.\r\n"
)


@pytest.fixture
def direct() -> Direct:
    return Direct(enable_debug_command="yes")


@pytest.fixture
def client(direct: Direct) -> DirectClient:
    return direct.client()


def test_time_is_seconds_and_microseconds(direct: Direct, client: DirectClient) -> None:
    direct.now_ms = START_MS + 42
    assert client.send("TIME") == b"*2\r\n$10\r\n1700000000\r\n$5\r\n42000\r\n"


class TestWait:
    def test_there_is_never_a_replica(self, direct: Direct, client: DirectClient) -> None:
        assert client.send("WAIT", 1, 100) is None
        direct.advance(99)
        assert client.parked
        direct.advance(1)
        assert client.reply_when_woken == b":0\r\n"

    @pytest.mark.parametrize("replicas", [0, -1])
    def test_none_is_always_there(self, client: DirectClient, replicas: int) -> None:
        assert client.send("WAIT", replicas, 0) == b":0\r\n"

    def test_it_does_not_wait_inside_multi(self, client: DirectClient) -> None:
        client.send("MULTI")
        client.send("WAIT", 1, 0)
        assert client.send("EXEC") == b"*1\r\n:0\r\n"

    def test_without_a_timeout_it_waits_for_ever(
        self, direct: Direct, client: DirectClient
    ) -> None:
        assert client.send("WAIT", 1, 0) is None
        direct.advance(10**19)
        assert client.parked
        client.disconnect()
        assert not direct.server.blocking.waiters

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["x", "y"], b"ERR value is not an integer or out of range"),
            (["0", "x"], b"ERR timeout is not an integer or out of range"),
            (["0", "-1"], b"ERR timeout is negative"),
            (["1", "9223372036854775807"], b"ERR timeout is out of range"),
        ],
    )
    def test_bad_arguments(self, client: DirectClient, words: list[str], text: bytes) -> None:
        assert client.send("WAIT", *words) == b"-%b\r\n" % text


class TestShutdown:
    @pytest.mark.parametrize(
        "words", [[], ["NOSAVE"], ["save"], ["NOW", "FORCE"], ["SAVE", "NOW", "FORCE"]]
    )
    def test_it_ends_the_server_without_a_reply(
        self, direct: Direct, client: DirectClient, words: list[str]
    ) -> None:
        assert client.send("SHUTDOWN", *words) == b""
        assert direct.server.stopping.is_set()
        assert client.session.closing

    @pytest.mark.parametrize(
        "words", [["FOO"], ["NOSAVE", "SAVE"], ["ABORT", "NOW"], ["NOSAVE", "FOO"]]
    )
    def test_options_that_make_no_sense(
        self, direct: Direct, client: DirectClient, words: list[str]
    ) -> None:
        assert client.send("SHUTDOWN", *words) == SYNTAX
        assert not direct.server.stopping.is_set()

    def test_there_is_nothing_to_abort(self, client: DirectClient) -> None:
        assert client.send("SHUTDOWN", "ABORT") == b"-ERR No shutdown in progress.\r\n"

    def test_every_connection_is_closed(self) -> None:
        with PenstockThread() as penstock:
            address = (penstock.host, penstock.port)
            with (
                socket.create_connection(address, timeout=10) as one,
                socket.create_connection(address, timeout=10) as other,
            ):
                other.sendall(b"PING\r\n")
                assert other.recv(100) == b"+PONG\r\n"
                one.sendall(b"SHUTDOWN NOSAVE\r\nSET k v\r\n")
                assert one.recv(100) == b""
                assert other.recv(100) == b""
            assert not penstock.server.keyspace.databases[0].values


class TestDebug:
    def test_it_is_refused_unless_it_is_allowed(self) -> None:
        client = Direct().client()
        for words in (["SLEEP", "0"], ["HELP"], ["FOO"]):
            assert client.send("DEBUG", *words) == DEBUG_REFUSED

    @pytest.mark.parametrize(
        ("address", "allowed"),
        [
            ("127.0.0.1:5000", True),
            ("127.9.9.9:5000", True),
            ("[::1]:5000", True),
            ("/run/penstock.sock:0", True),
            ("192.168.1.2:5000", False),
            ("[fe80::1]:5000", False),
        ],
    )
    def test_local_allows_it_to_clients_of_the_same_host(self, address: str, allowed: bool) -> None:
        client = Direct(enable_debug_command="local").client()
        client.session.addr = address
        expected = b"+OK\r\n" if allowed else DEBUG_REFUSED
        assert client.send("DEBUG", "SLEEP", 0) == expected

    @pytest.mark.parametrize(
        ("seconds", "slept"),
        [("1.5", 1.5), (".25", 0.25), ("2x", 2.0), ("x", 0.0), ("-1", 0.0)],
    )
    def test_sleep_stops_the_server(
        self,
        client: DirectClient,
        monkeypatch: pytest.MonkeyPatch,
        seconds: str,
        slept: float,
    ) -> None:
        naps: list[float] = []
        monkeypatch.setattr("server.commands.admin.time.sleep", naps.append)
        assert client.send("DEBUG", "sleep", seconds) == b"+OK\r\n"
        assert naps == [slept]

    def test_active_expiry_can_be_switched_off(self, direct: Direct, client: DirectClient) -> None:
        assert client.send("DEBUG", "SET-ACTIVE-EXPIRE", 0) == b"+OK\r\n"
        client.send("SET", "k", "v", "PX", 10)
        direct.now_ms += 10
        direct.cron()
        assert len(direct.server.keyspace.databases[0]) == 1
        assert client.send("DEBUG", "SET-ACTIVE-EXPIRE", 1) == b"+OK\r\n"
        direct.cron()
        assert len(direct.server.keyspace.databases[0]) == 0

    def test_log_writes_to_the_log(self, direct: Direct, client: DirectClient) -> None:
        stream = io.StringIO()
        direct.server.log = Log(stream)
        assert client.send("DEBUG", "LOG", "hello") == b"+OK\r\n"
        assert stream.getvalue().endswith(" # DEBUG LOG: hello\n")

    @pytest.mark.parametrize(
        "words",
        [["FOO"], ["SLEEP"], ["SLEEP", "0", "0"], ["SET-ACTIVE-EXPIRE"], ["LOG"], ["HELP", "x"]],
    )
    def test_other_shapes_are_unknown(self, client: DirectClient, words: list[str]) -> None:
        assert client.send("DEBUG", *words) == (
            b"-ERR unknown subcommand or wrong number of arguments for '%b'. Try DEBUG HELP.\r\n"
            % words[0].encode()
        )

    def test_help_names_what_there_is(self, client: DirectClient) -> None:
        reply = client.send("DEBUG", "HELP")
        assert reply is not None
        assert reply.startswith(b"*19\r\n+DEBUG <subcommand> [<arg> [value] [opt] ...].")
        for name in (b"LOADAOF", b"LOG", b"RELOAD", b"SET-ACTIVE-EXPIRE", b"SLEEP", b"HELP"):
            assert b"\r\n+" + name in reply


class TestMemory:
    def test_more_data_takes_more_memory(self, client: DirectClient) -> None:
        def usage(key: str) -> int:
            reply = client.send("MEMORY", "USAGE", key)
            assert reply is not None
            return int(reply[1:])

        client.send("SET", "short", "v")
        client.send("SET", "long", "v" * 1001)
        assert usage("long") - usage("short") == 999
        client.send("XADD", "stream", "*", "field", "value")
        before = usage("stream")
        client.send("XADD", "stream", "*", "field", "v" * 1000)
        assert usage("stream") - before > 1000

    def test_a_missing_key_takes_none(self, client: DirectClient) -> None:
        assert client.send("MEMORY", "USAGE", "k") == b"$-1\r\n"
        assert client.send("MEMORY", "USAGE", "k", "SAMPLES", 0) == b"$-1\r\n"
        assert client.send("MEMORY", "USAGE", "k", "SAMPLES", 1, "samples", 2) == b"$-1\r\n"

    @pytest.mark.parametrize(
        ("words", "reply"),
        [
            (["FOO"], SYNTAX),
            (["FOO", "1"], SYNTAX),
            (["SAMPLES"], SYNTAX),
            (["SAMPLES", "-1"], SYNTAX),
            (["SAMPLES", "x"], NOT_AN_INTEGER),
        ],
    )
    def test_bad_options(self, client: DirectClient, words: list[str], reply: bytes) -> None:
        assert client.send("MEMORY", "USAGE", "k", *words) == reply


class TestWhatThereIsNot:
    def test_modules(self, client: DirectClient) -> None:
        assert client.send("MODULE", "LIST") == b"*0\r\n"

    @pytest.mark.parametrize(
        ("words", "reply"),
        [
            (["LIST"], b"*0\r\n"),
            (["LIST", "withcode", "LIBRARYNAME", "x"], b"*0\r\n"),
            (["LIST", "FOO"], b"-ERR Unknown argument FOO\r\n"),
            (["LIST", "WITHCODE", "WITHCODE"], b"-ERR Unknown argument WITHCODE\r\n"),
            (["LIST", "LIBRARYNAME"], b"-ERR library name argument was not given\r\n"),
            (["FLUSH"], b"+OK\r\n"),
            (["FLUSH", "sync"], b"+OK\r\n"),
            (["FLUSH", "foo"], b"-ERR FUNCTION FLUSH only supports SYNC|ASYNC option\r\n"),
            (
                ["FLUSH", "sync", "foo"],
                b"-ERR unknown subcommand or wrong number of arguments for 'FLUSH'."
                b" Try FUNCTION HELP.\r\n",
            ),
        ],
    )
    def test_functions(self, client: DirectClient, words: list[str], reply: bytes) -> None:
        assert client.send("FUNCTION", *words) == reply

    @pytest.mark.parametrize(
        ("words", "reply"),
        [
            (["EXISTS", "a", "b"], b"*2\r\n:0\r\n:0\r\n"),
            (["FLUSH"], b"+OK\r\n"),
            (["FLUSH", "async"], b"+OK\r\n"),
            (["FLUSH", "foo"], b"-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"),
            (["FLUSH", "sync", "x"], b"-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n"),
        ],
    )
    def test_scripts(self, client: DirectClient, words: list[str], reply: bytes) -> None:
        assert client.send("SCRIPT", *words) == reply

    @pytest.mark.parametrize("subcommand", ["INFO", "HELP"])
    def test_a_cluster(self, client: DirectClient, subcommand: str) -> None:
        expected = b"-ERR This instance has cluster support disabled\r\n"
        assert client.send("CLUSTER", subcommand) == expected

    @pytest.mark.parametrize("container", ["MEMORY", "MODULE", "FUNCTION", "SCRIPT"])
    def test_help_describes_what_is_served(self, client: DirectClient, container: str) -> None:
        reply = client.send(container, "HELP")
        assert reply is not None
        lines = reply.decode().split("\r\n")[1:-1]
        assert lines[0] == (
            f"+{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
        )
        assert len(lines) % 2 == 1
        assert lines[-2:] == ["+HELP", "+    Print this help."]
