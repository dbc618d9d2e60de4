from __future__ import annotations

import pytest

from tests.support.direct import START_MS, Direct, DirectClient
from tests.support.servers import PenstockThread
from tests.support.wire import Client

SYNTAX = b"-ERR syntax error\r\n"


def test_time_is_seconds_and_microseconds(direct: Direct, client: DirectClient) -> None:
    direct.now_ms = START_MS + 42
    assert client.send("TIME") == b"*2\r\n$10\r\n1700000000\r\n$5\r\n42000\r\n"


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
            with Client(penstock.address) as one, Client(penstock.address) as other:
                assert other.ask("PING") == b"PONG"
                one.send("SHUTDOWN NOSAVE", "SET k v")
                assert one.rest() == b""
                assert other.rest() == b""
            assert not penstock.server.state.keyspace.databases[0].values


class TestWhatThereIsNot:
    def test_modules(self, client: DirectClient) -> None:
        assert client.send("MODULE", "LIST") == b"*0\r\n"

    def test_a_picture_of_the_version(self, client: DirectClient) -> None:
        error = b"-ERR unknown command 'LOLWUT', with args beginning with: 'VERSION' '5' \r\n"
        assert client.send("LOLWUT", "VERSION", "5") == error

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
