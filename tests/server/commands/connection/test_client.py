from __future__ import annotations

from collections.abc import Callable

import pytest

from server.state.session import Session
from tests.server.conftest import Exchange
from tests.support.direct import Direct, DirectClient

SYNTAX = b"-ERR syntax error\r\n"
BAD_NAME = b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"


def fields(line: bytes | None) -> dict[str, str]:
    """The fields of a reply that holds one client's line."""
    assert line is not None
    head, _, rest = line.partition(b"\r\n")
    assert head == b"$%d" % (len(rest) - 2)
    assert rest.endswith(b"\n\r\n")
    return dict(word.split("=", 1) for word in rest.decode().split())


def listed(reply: bytes | None) -> list[int]:
    """The numbers of the clients in a reply of CLIENT LIST."""
    assert reply is not None
    lines = reply.partition(b"\r\n")[2].decode().splitlines()
    return [int(line.split()[0].removeprefix("id=")) for line in lines if line]


class TestTheClientItself:
    @pytest.mark.parametrize("name", [b"a b", b"a\n", b"\xff", b"\x7f", b"a\0"])
    def test_a_name_is_printable(self, client: DirectClient, name: bytes) -> None:
        assert client.send("CLIENT", "SETNAME", name) == BAD_NAME
        assert client.send("CLIENT", "GETNAME") == b"$-1\r\n"

    def test_the_library_is_noted(self, client: DirectClient) -> None:
        assert client.send("CLIENT", "SETINFO", "lib-name", "redis-py(x)") == b"+OK\r\n"
        assert client.send("CLIENT", "SETINFO", "LIB-VER", "8.1") == b"+OK\r\n"
        line = fields(client.send("CLIENT", "INFO"))
        assert (line["lib-name"], line["lib-ver"]) == ("redis-py(x)", "8.1")
        assert client.send("CLIENT", "SETINFO", "LIB-VER", "") == b"+OK\r\n"
        assert fields(client.send("CLIENT", "INFO"))["lib-ver"] == ""

    def test_other_attributes_are_refused(self, client: DirectClient) -> None:
        reply = client.send("CLIENT", "SETINFO", b"FOO\0x", "a b")
        assert reply == b"-ERR Unrecognized option 'FOO'\r\n"
        reply = client.send("CLIENT", "SETINFO", "lib-ver", "a b")
        assert reply == (b"-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n")

    @pytest.mark.parametrize(("subcommand", "mark"), [("NO-EVICT", "e"), ("NO-TOUCH", "T")])
    def test_marks_can_be_set(self, client: DirectClient, subcommand: str, mark: str) -> None:
        assert client.send("CLIENT", subcommand, "on") == b"+OK\r\n"
        assert fields(client.send("CLIENT", "INFO"))["flags"] == mark
        assert client.send("CLIENT", subcommand, "OFF") == b"+OK\r\n"
        assert fields(client.send("CLIENT", "INFO"))["flags"] == "N"
        assert client.send("CLIENT", subcommand, "foo") == SYNTAX

    @pytest.mark.parametrize("name", ["MAINT_NOTIFICATIONS", "HELP\0"])
    def test_other_subcommands_are_unknown(self, client: DirectClient, name: str) -> None:
        shown = name.rstrip("\0").encode()
        expected = b"-ERR unknown subcommand '%b'. Try CLIENT HELP.\r\n" % shown
        assert client.send("CLIENT", name, "ON") == expected


class TestReply:
    def test_off_silences_everything_until_on(self, client: DirectClient) -> None:
        assert client.send("CLIENT", "REPLY", "OFF") == b""
        assert client.send("PING") == b""
        assert client.send("FOO") == b""
        assert client.send("CLIENT", "REPLY", "SKIP") == b""
        assert client.send("CLIENT", "REPLY", "FOO") == b""
        assert client.send("PING") == b""
        assert client.send("CLIENT", "REPLY", "ON") == b"+OK\r\n"
        assert client.send("PING") == b"+PONG\r\n"

    def test_skip_twice_silences_one_command(self, client: DirectClient) -> None:
        assert client.send("CLIENT", "REPLY", "SKIP") == b""
        assert client.send("CLIENT", "REPLY", "SKIP") == b""
        assert client.send("FOO") == b""
        assert client.send("ECHO", "b") == b"$1\r\nb\r\n"

    def test_on_is_answered_after_skip(self, client: DirectClient) -> None:
        client.send("CLIENT", "REPLY", "SKIP")
        assert client.send("CLIENT", "REPLY", "ON") == b"+OK\r\n"
        assert client.send("PING") == b"+PONG\r\n"

    def test_skip_then_off_is_off(self, client: DirectClient) -> None:
        client.send("CLIENT", "REPLY", "SKIP")
        assert client.send("CLIENT", "REPLY", "OFF") == b""
        assert client.send("PING") == b""
        assert client.send("PING") == b""

    def test_subscriptions_are_confirmed_all_the_same(self, client: DirectClient) -> None:
        client.send("CLIENT", "REPLY", "OFF")
        expected = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
        assert client.send("SUBSCRIBE", "a") == expected

    def test_a_subscription_uses_up_a_skip(self, client: DirectClient) -> None:
        client.send("CLIENT", "REPLY", "SKIP")
        assert client.send("SUBSCRIBE", "a") != b""
        assert client.send("UNSUBSCRIBE", "a") != b""
        assert client.send("ECHO", "a") == b"$1\r\na\r\n"


class TestTheLine:
    def test_it_has_the_fields_of_redis_in_their_order(self, client: DirectClient) -> None:
        line = fields(client.send("CLIENT", "INFO"))
        assert " ".join(line) == (
            "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free"
            " argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name"
            " lib-ver io-thread tot-net-in tot-net-out tot-cmds read-events parse-batch-cmd-sum"
            " parse-batch-cnt"
        )

    def test_a_new_client(self, client: DirectClient) -> None:
        assert client.send("CLIENT", "INFO") == (
            b"$385\r\nid=1 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=-1 name= age=0 idle=0"
            b" flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf=0 qbuf-free=0 argv-mem=0"
            b" multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=2048 events=r cmd=client|info"
            b" user=default redir=-1 resp=2 lib-name= lib-ver= io-thread=0 tot-net-in=0"
            b" tot-net-out=0 tot-cmds=0 read-events=0 parse-batch-cmd-sum=0 parse-batch-cnt=0\n\r\n"
        )

    def test_resp3_gets_it_as_text(self, direct: Direct) -> None:
        client = direct.client(resp3=True)
        line = client.send("CLIENT", "INFO")
        assert line is not None
        assert line.startswith(b"=389\r\ntxt:id=1 ")
        assert b" resp=3 " in line
        assert client.send("CLIENT", "LIST", "ID", 99) == b"=4\r\ntxt:\r\n"

    def test_age_and_idle_time_are_seconds(self, direct: Direct, client: DirectClient) -> None:
        direct.now_ms += 2500
        other = direct.client()
        direct.now_ms += 1000
        client.send("PING")
        direct.now_ms += 1999
        line = fields(other.send("CLIENT", "LIST", "ID", 1))
        assert (line["age"], line["idle"]) == ("5", "1")

    def test_what_a_client_does_shows_in_flags_and_counts(self, direct: Direct) -> None:
        subscriber, writer, watcher, waiter = (direct.client() for _ in range(4))
        subscriber.send("SUBSCRIBE", "a", "b")
        subscriber.send("PSUBSCRIBE", "p*")
        watcher.send("WATCH", "k", "l")
        watcher.send("MULTI")
        watcher.send("SET", "k", "v")
        waiter.send("SELECT", 7)
        waiter.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")

        def line(number: int) -> dict[str, str]:
            return fields(writer.send("CLIENT", "LIST", "ID", number))

        first = line(1)
        assert [first[name] for name in ("flags", "sub", "psub", "cmd")] == [
            "P",
            "2",
            "1",
            "psubscribe",
        ]
        third = line(3)
        assert [third[name] for name in ("flags", "multi", "watch", "multi-mem", "cmd")] == [
            "x",
            "1",
            "2",
            "277",
            "set",
        ]
        fourth = line(4)
        assert [fourth[name] for name in ("flags", "db", "cmd")] == ["b", "7", "xread"]
        writer.send("SET", "k", "other")
        assert line(3)["flags"] == "xd"
        assert line(3)["watch"] == "0"

    def test_an_unknown_command_is_shown_as_null(self, direct: Direct) -> None:
        client, other = direct.client(), direct.client()
        client.send("FOO")
        assert fields(other.send("CLIENT", "LIST", "ID", 1))["cmd"] == "NULL"
        client.send("CLIENT", "FOO")
        assert fields(other.send("CLIENT", "LIST", "ID", 1))["cmd"] == "NULL"
        client.send("GET")
        assert fields(other.send("CLIENT", "LIST", "ID", 1))["cmd"] == "get"

    def test_a_client_at_a_unix_socket_is_marked(self, client: DirectClient) -> None:
        client.session.link.addr = "/run/penstock.sock:0"
        assert fields(client.send("CLIENT", "INFO"))["flags"] == "U"

    def test_a_real_connection_has_a_descriptor(self, exchange: Exchange) -> None:
        received = exchange(b"CLIENT INFO\r\nQUIT\r\n")
        assert int(received.split(b" fd=")[1].split()[0]) > 2

    def test_what_a_client_does_not_read_is_counted(self, client: DirectClient) -> None:
        client.wire.buffers = {"qbuf": 10, "oll": 1, "omem": 1000, "fd": 9}
        line = fields(client.send("CLIENT", "INFO"))
        shown = [line[name] for name in ("fd", "qbuf", "oll", "omem", "tot-mem", "events")]
        assert shown == ["9", "10", "1", "1000", "3058", "rw"]


class TestList:
    def test_all_clients_are_listed_by_number(self, direct: Direct) -> None:
        clients = [direct.client() for _ in range(3)]
        assert listed(clients[2].send("CLIENT", "LIST")) == [1, 2, 3]

    def test_by_number_in_the_order_asked_for(self, direct: Direct) -> None:
        clients = [direct.client() for _ in range(3)]
        assert listed(clients[0].send("CLIENT", "LIST", "id", 3, 99, 1, 3)) == [3, 1, 3]
        assert clients[0].send("CLIENT", "LIST", "ID", 0) == b"$0\r\n\r\n"

    def test_by_type(self, direct: Direct) -> None:
        one, two = direct.client(), direct.client()
        two.send("SUBSCRIBE", "a")
        assert listed(one.send("CLIENT", "LIST", "TYPE", "normal")) == [1]
        assert listed(one.send("CLIENT", "LIST", "TYPE", "PUBSUB")) == [2]
        for name in ("master", "replica", "slave"):
            assert one.send("CLIENT", "LIST", "TYPE", name) == b"$0\r\n\r\n"

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["ID"], b"ERR syntax error"),
            (["TYPE"], b"ERR syntax error"),
            (["FOO", "1"], b"ERR syntax error"),
            (["TYPE", "normal", "FOO", "1"], b"ERR syntax error"),
            (["NOT-MAXAGE", "1"], b"ERR syntax error"),
            (["NOT-SKIPME", "yes"], b"ERR syntax error"),
            (["NAME"], b"ERR syntax error"),
            (["NAME", "a", "FLAGS"], b"ERR syntax error"),
            (["SKIPME", "maybe"], b"ERR syntax error"),
            (["NOT-ID", "x"], b"ERR Invalid client ID"),
            (["ID", "1", "x"], b"ERR Invalid client ID"),
            (["ID", "01"], b"ERR Invalid client ID"),
            (["TYPE", "a\nb\0c"], b"ERR Unknown client type 'a b'"),
        ],
    )
    def test_bad_options(self, client: DirectClient, words: list[str], text: bytes) -> None:
        assert client.send("CLIENT", "LIST", *words) == b"-%b\r\n" % text

    @pytest.mark.parametrize(
        ("words", "numbers"),
        [
            (["NAME", "bob"], [2]),
            (["NOT-NAME", "bob"], [1, 3]),
            (["NAME", ""], []),
            (["LIB-NAME", "lib"], [2]),
            (["NOT-LIB-NAME", ""], [1, 2, 3]),
            (["LIB-VER", "1.2"], [2]),
            (["NOT-LIB-VER", "1.2"], [1, 3]),
            (["FLAGS", "P"], [3]),
            (["FLAGS", "PN"], []),
            (["FLAGS", ""], [1, 2, 3]),
            (["NOT-FLAGS", "P"], [1, 2]),
            (["DB", "4"], [2]),
            (["NOT-DB", "0"], [2]),
            (["IP", "127.0.0.1"], [1, 3]),
            (["IP", "::1"], [2]),
            (["NOT-IP", "::1"], [1, 3]),
            (["ADDR", "[::1]:5"], [2]),
            (["NOT-ADDR", "[::1]:5"], [1, 3]),
            (["NOT-LADDR", "127.0.0.1:6379"], []),
            (["USER", "default"], [1, 2, 3]),
            (["NOT-USER", "default"], []),
            (["NOT-TYPE", "pubsub"], [1, 2]),
            (["IDLE", "5"], [2, 3]),
            (["MAXAGE", "5"], [1, 2, 3]),
            (["SKIPME", "yes"], [2, 3]),
            (["SKIPME", "no"], [1, 2, 3]),
            (["NOT-ID", "1", "3"], [2]),
            (["ID", "3", "1", "TYPE", "normal"], [1]),
            (["TYPE", "normal", "ID", "3", "1", "NAME", "bob"], []),
            (["ID", "3", "2", "SKIPME", "yes"], [2, 3]),
            (["ID", "3", "ID", "2"], [2]),
            (["NAME", "bob", "NAME", "x"], []),
            (["NAME", "bob", "NOT-NAME", "bob"], []),
        ],
    )
    def test_by_whatever_is_known_of_a_client(
        self, direct: Direct, words: list[str], numbers: list[int]
    ) -> None:
        client, two, three = direct.client(), direct.client(), direct.client()
        two.session.link.addr = "[::1]:5"
        two.send("CLIENT", "SETNAME", "bob")
        two.send("CLIENT", "SETINFO", "LIB-NAME", "lib")
        two.send("CLIENT", "SETINFO", "LIB-VER", "1.2")
        two.send("SELECT", 4)
        three.send("SUBSCRIBE", "a")
        direct.now_ms += 5000
        assert listed(client.send("CLIENT", "LIST", *words)) == numbers

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["FLAGS", "NZ"], b"ERR Unknown flags found in the provided filter: NZ"),
            (["IDLE", "x"], b"ERR idle is not an integer or out of range"),
            (["IDLE", "0"], b"ERR idle should be greater than 0"),
            (["DB", "x"], b"ERR DB is not an integer or out of range"),
            (["DB", "16"], b"ERR DB number should be between 0 and 15"),
            (["DB", "-1"], b"ERR DB number should be between 0 and 15"),
            (["NOT-USER", "nobody"], b"ERR No such user 'nobody'"),
            (["NOT-TYPE", "foo"], b"ERR Unknown client type 'foo'"),
            (["MAXAGE", "0"], b"ERR maxage should be greater than 0"),
        ],
    )
    def test_bad_values_of_filters(
        self, client: DirectClient, words: list[str], text: bytes
    ) -> None:
        assert client.send("CLIENT", "LIST", *words) == b"-%b\r\n" % text
        assert client.send("CLIENT", "KILL", *words) == b"-%b\r\n" % text


class TestKill:
    def test_the_old_form_closes_the_client_at_an_address(self, direct: Direct) -> None:
        client, other = direct.client(), direct.client()
        other.session.link.addr = "1.2.3.4:5"
        assert client.send("CLIENT", "KILL", "1.2.3.4:5") == b"+OK\r\n"
        assert other.closed
        assert client.send("CLIENT", "KILL", "1.2.3.4:5") == b"-ERR No such client\r\n"
        assert listed(client.send("CLIENT", "LIST")) == [1]

    def test_the_old_form_does_not_spare_the_caller(self, client: DirectClient) -> None:
        assert client.send("CLIENT", "KILL", "127.0.0.1:50000") == b"+OK\r\n"
        assert client.session.closing

    def test_filters_add_up(self, direct: Direct) -> None:
        client, two, three = direct.client(), direct.client(), direct.client()
        three.send("SUBSCRIBE", "a")
        reply = client.send("CLIENT", "KILL", "TYPE", "pubsub", "ID", 2)
        assert reply == b":0\r\n"
        assert client.send("CLIENT", "KILL", "TYPE", "pubsub", "USER", "default") == b":1\r\n"
        assert (two.closed, three.closed) == (False, True)

    @pytest.mark.parametrize(
        "choose",
        [
            lambda session: ("ID", session.id),
            lambda session: ("ADDR", session.link.addr),
            lambda session: ("LADDR", session.link.laddr),
            lambda session: ("MAXAGE", 10),
            lambda session: ("IDLE", 10),
            lambda session: ("IP", "1.1.1.1"),
        ],
    )
    def test_each_filter(
        self, direct: Direct, choose: Callable[[Session], tuple[str, str | int]]
    ) -> None:
        old = direct.client()
        old.session.link.addr, old.session.link.laddr = "1.1.1.1:1", "2.2.2.2:2"
        direct.now_ms += 10_000
        young, client = direct.client(), direct.client()
        assert client.send("CLIENT", "KILL", *choose(old.session)) == b":1\r\n"
        assert (old.closed, young.closed) == (True, False)

    def test_the_caller_is_spared_unless_it_says_otherwise(self, direct: Direct) -> None:
        client, other = direct.client(), direct.client()
        assert client.send("CLIENT", "KILL", "SKIPME", "yes") == b":1\r\n"
        assert other.closed
        assert not client.session.closing
        assert client.send("CLIENT", "KILL", "SKIPME", "NO") == b":1\r\n"
        assert client.session.closing

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["FOO", "bar"], b"ERR syntax error"),
            (["ID", "3", "FOO"], b"ERR syntax error"),
            (["ID", "3", "FOO", "x"], b"ERR syntax error"),
            (["ID", "3", "0"], b"ERR client-id should be greater than 0"),
            (["SKIPME", "maybe"], b"ERR syntax error"),
            (["ID", "0", "FOO"], b"ERR client-id should be greater than 0"),
            (["ID", "-3"], b"ERR client-id should be greater than 0"),
            (["ID", "x"], b"ERR client-id should be greater than 0"),
            (["TYPE", "foo"], b"ERR Unknown client type 'foo'"),
            (["USER", "nobody"], b"ERR No such user 'nobody'"),
            (["MAXAGE", "x"], b"ERR maxage is not an integer or out of range"),
            (["MAXAGE", "0"], b"ERR maxage should be greater than 0"),
        ],
    )
    def test_bad_filters_close_nobody(self, direct: Direct, words: list[str], text: bytes) -> None:
        client, other = direct.client(), direct.client()
        reply = client.send("CLIENT", "KILL", "ID", other.session.id, *words)
        assert reply == b"-%b\r\n" % text
        assert not other.closed


class TestUnblock:
    def test_it_ends_a_wait_with_an_error(self, direct: Direct) -> None:
        client, waiter = direct.client(), direct.client(resp3=True)
        waiter.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        assert client.send("CLIENT", "UNBLOCK", 2, "ERROR") == b":1\r\n"
        assert waiter.reply_when_woken == (b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")
        assert direct.server.state.stats.errors["UNBLOCKED"] == 1
        assert direct.server.state.table[b"xread"].failed == 1

    def test_wait_ends_with_the_number_of_replicas(self, direct: Direct) -> None:
        client, waiter = direct.client(), direct.client()
        waiter.send("WAIT", 1, 0)
        client.send("CLIENT", "UNBLOCK", 2)
        assert waiter.reply_when_woken == b":0\r\n"
