"""How many connections and how many commands a user may have; time is what the test says."""

from __future__ import annotations

import pytest

from server.core import reasons
from server.runtime.token_bucket import TokenBucket
from tests.support.direct import Direct, DirectClient
from tests.support.wire import Wire

OK = b"+OK\r\n"
PONG = b"+PONG\r\n"


def too_many_connections(user: str, limit: int) -> bytes:
    text = f"user '{user}' may have no more than {limit} connections (user-max-connections)"
    return b"-LIMIT %b\r\n" % text.encode()


def too_many_commands(user: str, limit: int) -> bytes:
    text = f"user '{user}' may run no more than {limit} commands per second"
    return b"-LIMIT %b (user-max-commands-per-second)\r\n" % text.encode()


def logged_in(direct: Direct, user: str) -> DirectClient:
    client = direct.client()
    assert client.send("AUTH", user, "x") == OK
    return client


@pytest.fixture
def direct() -> Direct:
    """A server with two users besides the default one."""
    direct = Direct()
    admin = direct.client()
    for user in ("ann", "bob"):
        assert admin.send("ACL", "SETUSER", user, "on", "nopass", "~*", "&*", "+@all") == OK
    return direct


@pytest.fixture
def admin(direct: Direct) -> DirectClient:
    return direct.client()


class TestConnections:
    def test_more_than_allowed_are_told_the_limit(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-connections", "0 ann=2")
        first, _ = logged_in(direct, "ann"), logged_in(direct, "ann")
        third = direct.client()
        assert third.send("AUTH", "ann", "x") == too_many_connections("ann", 2)
        assert third.send("HELLO", "3", "AUTH", "ann", "x") == too_many_connections("ann", 2)
        assert third.send("ACL", "WHOAMI") == b"$7\r\ndefault\r\n"  # In RESP2, as before.
        assert third.send("AUTH", "bob", "x") == OK
        assert first.send("AUTH", "ann", "x") == OK  # It is one of the two.
        first.disconnect()
        assert third.send("AUTH", "ann", "x") == OK

    def test_a_wrong_password_tells_nothing_of_the_limit(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("ACL", "SETUSER", "ann", "resetpass", ">secret")
        admin.send("CONFIG", "SET", "user-max-connections", "0 ann=1")
        assert direct.client().send("AUTH", "ann", "secret") == OK
        reply = direct.client().send("AUTH", "ann", "wrong")
        assert reply is not None
        assert reply.startswith(b"-WRONGPASS")

    def test_who_becomes_another_user_makes_room(self, direct: Direct, admin: DirectClient) -> None:
        admin.send("CONFIG", "SET", "user-max-connections", "1 default=0")
        first, second = logged_in(direct, "ann"), direct.client()
        assert second.send("AUTH", "ann", "x") == too_many_connections("ann", 1)
        assert first.send("RESET") == b"+RESET\r\n"
        assert second.send("AUTH", "ann", "x") == OK

    def test_a_lower_limit_ends_no_connection(self, direct: Direct, admin: DirectClient) -> None:
        clients = [logged_in(direct, "ann") for _ in range(3)]
        assert admin.send("CONFIG", "SET", "user-max-connections", "0 ann=1") == OK
        assert [client.send("PING") for client in clients] == [PONG] * 3
        assert direct.client().send("AUTH", "ann", "x") == too_many_connections("ann", 1)

    def test_clients_without_a_login_are_the_default_user(self) -> None:
        direct = Direct(user_max_connections="2")
        wires = [Wire(direct) for _ in range(3)]
        assert [wire.take() for wire in wires] == [b"", b"", too_many_connections("default", 2)]
        assert [wire.closed for wire in wires] == [False, False, True]
        assert direct.server.state.stats.rejected_connections == 1
        assert len(direct.server.state.sessions) == 2
        wires[2].read(b"PING\r\n")
        assert wires[2].take() == b""
        wires[0].connection.connection_lost(None)
        assert Wire(direct).take() == b""

    def test_clients_that_have_not_logged_in_do_not_count(self) -> None:
        direct = Direct(user_max_connections="1", requirepass="x")
        wires = [Wire(direct) for _ in range(3)]
        for wire in wires:
            wire.read(b"AUTH x\r\n")
        full = too_many_connections("default", 1)
        assert [wire.take() for wire in wires] == [OK, full, full]

    def test_a_reset_finds_no_room(self, direct: Direct, admin: DirectClient) -> None:
        client = logged_in(direct, "ann")
        admin.send("CONFIG", "SET", "user-max-connections", "0 default=1")
        assert client.send("RESET") == b"+RESET\r\n"
        assert client.send("PING") == b"-NOAUTH Authentication required.\r\n"
        assert client.send("AUTH", "default", "x") == too_many_connections("default", 1)

    def test_refusals_are_counted_as_errors(self, direct: Direct, admin: DirectClient) -> None:
        admin.send("CONFIG", "SET", "user-max-connections", "0 ann=1")
        logged_in(direct, "ann")
        direct.client().send("AUTH", "ann", "x")
        reply = admin.send("INFO", "errorstats")
        assert reply is not None
        assert b"errorstat_LIMIT:count=1\r\n" in reply


class TestCommands:
    def test_more_than_allowed_are_told_the_limit(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=3")
        client, other = logged_in(direct, "ann"), logged_in(direct, "ann")
        full = too_many_commands("ann", 3)
        replies = [each.send("PING") for each in (client, other, client, other, client)]
        assert replies == [PONG, PONG, PONG, full, full]
        assert logged_in(direct, "bob").send("PING") == PONG
        direct.now_ms += 333
        assert client.send("PING") == full
        direct.now_ms += 1
        assert [client.send("PING") for _ in range(2)] == [PONG, full]
        direct.now_ms += 60_000
        assert [other.send("PING") for _ in range(4)] == [PONG] * 3 + [full]

    def test_refused_commands_change_nothing_and_are_counted(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=1")
        client = logged_in(direct, "ann")
        assert client.send("SET", "k", 1) == OK
        assert client.send("SET", "k", 2) == too_many_commands("ann", 1)
        assert admin.send("GET", "k") == b"$1\r\n1\r\n"
        reply = admin.send("INFO", "commandstats", "errorstats")
        assert reply is not None
        assert b"errorstat_LIMIT:count=1\r\n" in reply
        assert direct.server.state.table[b"set"].rejected == 1

    def test_a_refused_command_spoils_a_transaction(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=2")
        client = logged_in(direct, "ann")
        assert client.send("MULTI") == OK
        assert client.send("SET", "k", 1) == b"+QUEUED\r\n"
        assert client.send("SET", "k", 2) == too_many_commands("ann", 2)
        direct.now_ms += 1000
        reply = client.send("EXEC")
        assert reply is not None
        assert reply.startswith(b"-EXECABORT")
        assert admin.send("GET", "k") == b"$-1\r\n"

    def test_what_a_transaction_and_a_script_run_costs_nothing_more(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=4")
        client = logged_in(direct, "ann")
        for words in (["MULTI"], ["INCR", "k"], ["INCR", "k"]):
            client.send(*words)
        assert client.send("EXEC") == b"*2\r\n:1\r\n:2\r\n"
        assert client.send("PING") == too_many_commands("ann", 4)

    def test_leaving_and_becoming_another_user_is_always_allowed(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=1")
        client = logged_in(direct, "ann")
        assert [client.send("PING") for _ in range(2)] == [PONG, too_many_commands("ann", 1)]
        assert client.send("AUTH", "bob", "x") == OK
        assert client.send("PING") == PONG
        client = logged_in(direct, "ann")
        assert client.send("PING") == too_many_commands("ann", 1)
        assert client.send("RESET") == b"+RESET\r\n"
        assert client.send("QUIT") == OK

    def test_commands_that_may_not_run_anyway_cost_nothing(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("ACL", "SETUSER", "ann", "-get")
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0 ann=1")
        client = logged_in(direct, "ann")
        for words in (["GET", "k"], ["SET", "k"], ["NOSUCH"]):
            reply = client.send(*words)
            assert reply is not None
            assert not reply.startswith(b"-LIMIT")
        assert client.send("PING") == PONG

    def test_xadds_of_a_pipeline_count_one_by_one(self) -> None:
        direct = Direct(user_max_commands_per_second="3")
        wire = Wire(direct)
        wire.read(b"XADD s * f v\r\n" * 5)
        full = too_many_commands("default", 3)
        added = b"".join(b"$15\r\n%d-%d\r\n" % (direct.now_ms, number) for number in range(3))
        assert wire.take() == added + full * 2

    def test_a_change_of_the_limit_counts_at_once(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        client = logged_in(direct, "ann")
        assert client.session.reasons == 0
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "2 default=0")
        assert client.session.reasons == reasons.RATED
        assert [client.send("PING") for _ in range(3)] == [PONG, PONG, too_many_commands("ann", 2)]
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "2 default=0 bob=7")
        assert client.send("PING") == too_many_commands("ann", 2)  # Her limit is what it was.
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "0")
        assert client.send("PING") == PONG
        assert client.session.reasons == 0

    def test_a_user_that_is_made_later_has_the_limit(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        admin.send("CONFIG", "SET", "user-max-commands-per-second", "1 default=0")
        admin.send("ACL", "SETUSER", "eve", "on", "nopass", "~*", "+@all")
        client = logged_in(direct, "eve")
        assert [client.send("PING") for _ in range(2)] == [PONG, too_many_commands("eve", 1)]
        admin.send("ACL", "SETUSER", "eve", "-get")  # It stays the same user.
        assert client.send("PING") == too_many_commands("eve", 1)


class TestSettings:
    @pytest.mark.parametrize("name", ["user-max-connections", "user-max-commands-per-second"])
    def test_they_are_off_and_can_be_set_for_single_users(
        self, admin: DirectClient, name: str
    ) -> None:
        def shown() -> bytes:
            reply = admin.send("CONFIG", "GET", name)
            assert reply is not None
            return reply.split(b"\r\n")[-2]

        assert shown() == b"0"
        admin.send("CONFIG", "SET", name, "100  ann=10 a=b=7 default=0")
        assert shown() == b"100 ann=10 a=b=7 default=0"
        admin.send("CONFIG", "SET", name, "0")
        assert shown() == b"0"

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ("", "argument must be a number, followed by user=number for single users"),
            ("ten", "argument must be a number, followed by user=number for single users"),
            ("ann=10", "argument must be a number, followed by user=number for single users"),
            ("5 ann=x", "argument must be a number, followed by user=number for single users"),
            ("5 ann=", "argument must be a number, followed by user=number for single users"),
            ("-1", "argument must be between 0 and 2147483647 inclusive"),
            ("5 ann=2147483648", "argument must be between 0 and 2147483647 inclusive"),
            ("5 10", "'10' is not a limit of a user such as ann=10"),
            ("5 =10", "'=10' is not a limit of a user such as ann=10"),
            ("5 a'b=10", "'a'b=10' is not a limit of a user such as ann=10"),
            ("5 ann=1 ann=2", "user 'ann' has two limits"),
        ],
    )
    def test_bad_values_are_told_and_change_nothing(
        self, admin: DirectClient, value: str, reason: str
    ) -> None:
        reply = admin.send("CONFIG", "SET", "user-max-connections", value)
        place = "(possibly related to argument 'user-max-connections')"
        assert reply == f"-ERR CONFIG SET failed {place} - {reason}\r\n".encode()
        assert admin.send("CONFIG", "GET", "user-max-connections") == (
            b"*2\r\n$20\r\nuser-max-connections\r\n$1\r\n0\r\n"
        )


class TestBudget:
    def test_a_second_that_passes_fills_it_and_no_more(self) -> None:
        rate = TokenBucket(2, 1000, 0)
        assert [rate.admits(0, 0) for _ in range(3)] == [True, True, False]
        assert [rate.admits(10_000, 10_000) for _ in range(3)] == [True, True, False]

    def test_it_fills_evenly(self) -> None:
        rate = TokenBucket(1000, 1000, 0)
        assert all(rate.admits(0, 0) for _ in range(1000))
        assert [rate.admits(now, now) for now in (0, 1, 1, 2, 3)] == [
            False,
            True,
            False,
            True,
            True,
        ]

    def test_less_than_a_command_is_not_lost(self) -> None:
        rate = TokenBucket(3, 1000, 0)
        assert [rate.admits(0, 0) for _ in range(4)] == [True, True, True, False]
        assert [rate.admits(now, now) for now in (200, 300, 334, 335)] == [
            False,
            False,
            True,
            False,
        ]

    def test_time_that_goes_back_brings_nothing(self) -> None:
        rate = TokenBucket(1, 1000, 5000)
        assert rate.admits(5000, 5000)
        assert not rate.admits(1000, 1000)
        assert not rate.admits(1999, 1999)
        assert rate.admits(2000, 2000)
