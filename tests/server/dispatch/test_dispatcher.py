from __future__ import annotations

import pytest

from server.core import table as command_table
from tests.server.conftest import Exchange
from tests.support.direct import Direct, DirectClient

NO_AUTHENTICATION = b"-NOAUTH Authentication required.\r\n"


@pytest.fixture
def direct() -> Direct:
    """A server that refuses DEBUG."""
    return Direct()


def log_out(client: DirectClient) -> None:
    client.session.authenticated = False
    client.session.update_reasons()


def unknown(name: bytes, arguments: bytes) -> bytes:
    return b"-ERR unknown command '%b', with args beginning with: %b\r\n" % (name, arguments)


class TestUnknownCommands:
    @pytest.mark.parametrize(
        ("request_", "name", "arguments"),
        [
            ([b"FOO"], b"FOO", b""),
            ([b"FOO", b"bar", b"baz"], b"FOO", b"'bar' 'baz' "),
            ([b"", b""], b"", b"'' "),
            ([b"get ", b"k"], b"get ", b"'k' "),
            ([b"client|id"], b"client|id", b""),
            ([b"fo\no\r", b"a\r\nb", b"it's", b'"q"'], b"fo o ", b"'a  b' 'it's' '\"q\"' "),
            ([b"\xff\0foo", b"a\0b", b"\xfe"], b"\xff", b"'a' '\xfe' "),
            ([b"N" * 200, b"x"], b"N" * 128, b"'x' "),
            ([b"foo", b"a" * 200, b"b"], b"foo", b"'%b' " % (b"a" * 128)),
            ([b"foo", b"a" * 124, b"b", b"c"], b"foo", b"'%b' 'b' " % (b"a" * 124)),
            ([b"foo", b"a" * 125, b"b", b"c"], b"foo", b"'%b' " % (b"a" * 125)),
            (
                [b"foo", b"a" * 60, b"b" * 60, b"c" * 60],
                b"foo",
                b"'%b' '%b' 'cc' " % (b"a" * 60, b"b" * 60),
            ),
        ],
    )
    def test_they_are_shown_with_their_first_arguments(
        self, client: DirectClient, request_: list[bytes], name: bytes, arguments: bytes
    ) -> None:
        assert client.send(*request_) == unknown(name, arguments)

    @pytest.mark.parametrize(
        ("name", "shown"),
        [(b"FOO", b"FOO"), (b"a\0b", b"a"), (b"a\nb", b"a b"), (b"N" * 200, b"N" * 128)],
    )
    def test_unknown_subcommands_are_shown_with_their_container(
        self, client: DirectClient, name: bytes, shown: bytes
    ) -> None:
        expected = b"-ERR unknown subcommand '%b'. Try XGROUP HELP.\r\n" % shown
        assert client.send("xgroup", name, "k", "g") == expected

    @pytest.mark.parametrize("name", ["GEOADD", "JSON.SET"])
    def test_commands_that_are_not_served(self, client: DirectClient, name: str) -> None:
        assert client.send(name) == unknown(name.encode(), b"")

    def test_names_may_be_written_in_any_case(self, client: DirectClient) -> None:
        assert client.send("PiNg") == b"+PONG\r\n"
        assert client.send("cLiEnT", "iD") == b":1\r\n"


class TestTheOrderOfReasons:
    def test_unknown_and_misshapen_come_before_unauthenticated(self, client: DirectClient) -> None:
        log_out(client)
        assert client.send("FOO") == unknown(b"FOO", b"")
        assert client.send("GET") == b"-ERR wrong number of arguments for 'get' command\r\n"
        assert client.send("CLIENT", "FOO") == (
            b"-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n"
        )
        assert client.send("GET", "k") == NO_AUTHENTICATION

    def test_a_protected_command_is_refused_before_a_stranger_is(
        self, client: DirectClient
    ) -> None:
        log_out(client)
        reply = client.send("DEBUG", "SLEEP", 0)
        assert reply is not None
        assert reply.startswith(b"-ERR DEBUG command not allowed. ")

    def test_a_stranger_comes_before_multi(self, client: DirectClient) -> None:
        client.send("MULTI")
        log_out(client)
        assert client.send("SHUTDOWN") == NO_AUTHENTICATION

    def test_exec_of_a_stranger_is_discarded(self, client: DirectClient) -> None:
        log_out(client)
        assert client.send("EXEC") == (
            b"-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n"
        )

    def test_a_subscriber_hears_of_unknown_commands_first(self, client: DirectClient) -> None:
        client.send("SUBSCRIBE", "c")
        only = (
            b"-ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT /"
            b" RESET are allowed in this context\r\n"
        )
        assert client.send("FOO") == unknown(b"FOO", b"")
        assert client.send("GET") == b"-ERR wrong number of arguments for 'get' command\r\n"
        assert client.send("CLIENT", "ID") == only % b"client|id"
        assert client.send("HELLO", 3) == only % b"hello"
        assert client.send("EXEC") == (
            b"-EXECABORT Transaction discarded because of: " + (only % b"exec")[5:]
        )


class TestTransactions:
    def test_a_refused_command_spoils_the_transaction(self, client: DirectClient) -> None:
        for refused in (["FOO"], ["GET"], ["CLIENT", "FOO"], ["DEBUG", "SLEEP", "0"]):
            client.send("MULTI")
            reply = client.send(*refused)
            assert reply is not None
            assert reply.startswith(b"-ERR ")
            assert client.send("EXEC") == (
                b"-EXECABORT Transaction discarded because of previous errors.\r\n"
            )

    def test_shutdown_is_not_queued(self, client: DirectClient) -> None:
        client.send("MULTI")
        expected = b"-ERR Command not allowed inside a transaction\r\n"
        assert client.send("SHUTDOWN", "FOO") == expected

    def test_what_is_queued_is_counted_with_what_it_takes_in_memory(
        self, client: DirectClient
    ) -> None:
        client.send("MULTI")
        client.send("SET", "key", "value")
        assert client.session.queue_bytes == 128 + 3 * 48 + 11


class TestWebPages:
    def test_they_get_no_answer_and_no_second_line(self, exchange: Exchange) -> None:
        assert exchange(b"POST / HTTP/1.1\r\nPING\r\n") == b""
        assert exchange(b"*1\r\n$5\r\nhost:\r\n*1\r\n$4\r\nPING\r\n") == b""

    def test_what_came_before_has_been_answered(self, exchange: Exchange) -> None:
        assert exchange(b"PING\r\nHost: x\r\nPING\r\n") == b"+PONG\r\n"


class TestCounting:
    def test_calls_failures_and_refusals_are_counted_apart(self, client: DirectClient) -> None:
        table = client.server.state.table
        client.send("SELECT", 1)
        client.send("SELECT", 99)
        client.send("SELECT")
        entry = table[b"select"]
        assert (entry.calls, entry.failed, entry.rejected) == (2, 1, 1)
        client.send("CLIENT", "FOO")
        client.send("CLIENT")
        assert table[b"client"].rejected == 1

    def test_each_server_counts_for_itself(self) -> None:
        one, other = Direct(), Direct()
        one.client().send("CLIENT", "ID")
        one.client().send("PING")
        assert one.server.state.commands_processed() == 2
        assert other.server.state.commands_processed() == 0
        assert sum(entry.calls for entry in command_table.every()) == 0

    def test_counts_can_be_forgotten(self, client: DirectClient) -> None:
        server = client.server
        client.send("CLIENT", "ID")
        client.send("FOO")
        server.state.forget_counts()
        assert server.state.commands_processed() == 0
        assert not server.state.stats.errors
