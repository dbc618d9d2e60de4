from __future__ import annotations

import pytest

from tests.support.direct import DirectClient

HELLO_2 = (
    b"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n8.10.0\r\n$5\r\nproto\r\n:2\r\n"
    b"$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
    b"$7\r\nmodules\r\n*0\r\n"
)
HELLO_3 = HELLO_2.replace(b"*14\r\n", b"%7\r\n").replace(b":2\r\n", b":3\r\n")
BAD_NAME = b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
WRONG_PASSWORD = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
NO_AUTHENTICATION = b"-NOAUTH Authentication required.\r\n"


@pytest.fixture
def stranger(client: DirectClient) -> DirectClient:
    """A client that has not logged in."""
    client.session.authenticated = False
    client.session.update_reasons()
    return client


class TestHello:
    @pytest.mark.parametrize("version", ["abc", "3 ", "03", "99999999999999999999", ""])
    def test_the_version_is_an_integer(self, client: DirectClient, version: str) -> None:
        expected = b"-ERR Protocol version is not an integer or out of range\r\n"
        assert client.send("HELLO", version) == expected

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (["FOO"], b"FOO"),
            (["AUTH", "x"], b"AUTH"),
            (["auth"], b"auth"),
            (["SETNAME"], b"SETNAME"),
            (["AUTH", "default", "x", "setname"], b"setname"),
            ([b"a\nb\0c"], b"a b"),
        ],
    )
    def test_an_option_that_is_none_or_lacks_its_value_is_named(
        self, client: DirectClient, words: list[str | bytes], named: bytes
    ) -> None:
        expected = b"-ERR Syntax error in HELLO option '%b'\r\n" % named
        assert client.send("HELLO", 3, *words) == expected
        assert client.send("HELLO") == HELLO_2

    def test_a_bad_name_is_refused_before_a_bad_password(self, client: DirectClient) -> None:
        assert client.send("HELLO", 3, "AUTH", "nobody", "x", "SETNAME", "a b") == BAD_NAME

    def test_a_wrong_password_changes_nothing(self, client: DirectClient) -> None:
        reply = client.send("HELLO", 3, "AUTH", "nobody", "x", "SETNAME", "me")
        assert reply == WRONG_PASSWORD
        assert client.send("HELLO") == HELLO_2
        assert client.send("CLIENT", "GETNAME") == b"$-1\r\n"
        assert client.server.state.stats.denied["auth"] == 1

    def test_a_stranger_must_log_in_with_it(self, stranger: DirectClient) -> None:
        refusal = (
            b"-NOAUTH HELLO must be called with the client already authenticated, otherwise the"
            b" HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and"
            b" select the RESP protocol version at the same time\r\n"
        )
        assert stranger.send("HELLO") == refusal
        assert stranger.send("HELLO", 3) == refusal
        assert stranger.send("HELLO", 3, "SETNAME", "me") == refusal
        assert stranger.send("HELLO", 4) == b"-NOPROTO unsupported protocol version\r\n"
        assert stranger.send("HELLO", 3, "AUTH", "default", "x") == HELLO_3
        assert stranger.send("PING") == b"+PONG\r\n"


class TestAuth:
    def test_a_stranger_may_only_log_in_reset_and_leave(self, stranger: DirectClient) -> None:
        assert stranger.send("PING") == NO_AUTHENTICATION
        assert stranger.send("CLIENT", "ID") == NO_AUTHENTICATION
        assert stranger.send("AUTH", "nobody", "x") == WRONG_PASSWORD
        assert stranger.send("AUTH", "default", "x") == b"+OK\r\n"
        assert stranger.send("PING") == b"+PONG\r\n"


class TestPingAndEcho:
    def test_ping_answers_pong_or_the_message(self, client: DirectClient) -> None:
        assert client.send("PING") == b"+PONG\r\n"
        assert client.send("ping", b"a\r\n\0") == b"$4\r\na\r\n\0\r\n"
        assert client.send("PING", "") == b"$0\r\n\r\n"

    def test_echo_answers_with_the_message(self, client: DirectClient) -> None:
        assert client.send("ECHO", b"\r\n\xff") == b"$3\r\n\r\n\xff\r\n"
        assert client.send("ECHO") == b"-ERR wrong number of arguments for 'echo' command\r\n"


class TestSelect:
    @pytest.mark.parametrize("index", ["2147483648", "-2147483649"])
    def test_the_index_has_32_bits(self, client: DirectClient, index: str) -> None:
        assert client.send("SELECT", index) == (
            b"-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"
        )


class TestReset:
    def test_everything_begun_is_left(self, client: DirectClient) -> None:
        client.send("HELLO", 3, "SETNAME", "me")
        client.send("SELECT", 3)
        client.send("CLIENT", "NO-EVICT", "ON")
        client.send("CLIENT", "NO-TOUCH", "ON")
        client.send("WATCH", "k")
        client.send("SUBSCRIBE", "c")
        client.send("PSUBSCRIBE", "p*")
        client.send("MULTI")
        assert client.send("RESET") == b"+RESET\r\n"
        assert client.send("EXEC") == b"-ERR EXEC without MULTI\r\n"
        line = client.send("CLIENT", "INFO")
        assert line is not None
        assert line.startswith(b"$")
        assert b" name= " in line
        assert b" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 " in line
        assert b" resp=2 " in line

    def test_the_library_stays_noted(self, client: DirectClient) -> None:
        client.send("CLIENT", "SETINFO", "LIB-NAME", "lib")
        client.send("RESET")
        line = client.send("CLIENT", "INFO")
        assert line is not None
        assert b" lib-name=lib " in line
