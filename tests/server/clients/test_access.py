"""Access control at work: what is noted once, and who notices a change of a user."""

from __future__ import annotations

import pytest

from server.core import reasons
from tests.support.direct import START_MS, Direct, DirectClient

NO_KEY = b"-NOPERM No permissions to access a key\r\n"


@pytest.fixture
def admin(direct: Direct) -> DirectClient:
    return direct.client()


def user(direct: Direct, *rules: str, name: str = "t") -> DirectClient:
    """A client that is a user with such rules."""
    direct.client().send("ACL", "SETUSER", name, "reset", "on", "nopass", *rules)
    client = direct.client()
    assert client.send("AUTH", name, "x") == b"+OK\r\n"
    return client


class TestParkedReaders:
    def test_one_that_waits_for_its_time_is_checked_before_it_claims(self, direct: Direct) -> None:
        admin = direct.client()
        admin.send("XADD", "s", "1-1", "f", "v")
        admin.send("XGROUP", "CREATE", "s", "g", "0")
        admin.send("XREADGROUP", "GROUP", "g", "first", "STREAMS", "s", ">")
        client = user(direct, "+@all", "~*")
        words = ["GROUP", "g", "second", "BLOCK", "0", "CLAIM", "100", "STREAMS", "s", ">"]
        assert client.send("XREADGROUP", *words) is None
        admin.send("ACL", "SETUSER", "t", "resetkeys")
        direct.advance(100)
        assert client.reply_when_woken == NO_KEY
        assert admin.send("XPENDING", "s", "g") == (
            b"*4\r\n:1\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n*1\r\n*2\r\n$5\r\nfirst\r\n$1\r\n1\r\n"
        )

    def test_one_whose_time_is_up_is_answered_as_ever(self, direct: Direct) -> None:
        client = user(direct, "+@all", "~*")
        assert client.send("XREAD", "BLOCK", 50, "STREAMS", "s", "$") is None
        direct.client().send("ACL", "SETUSER", "t", "resetkeys")
        direct.advance(50)
        assert client.reply_when_woken == b"*-1\r\n"

    def test_a_refusal_is_counted_and_noted_once(self, direct: Direct, admin: DirectClient) -> None:
        client = user(direct, "+@all", "~*")
        client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        admin.send("ACL", "SETUSER", "t", "-xread")
        admin.send("XADD", "s", "1-1", "f", "v")
        refusal = b"-NOPERM User t has no permissions to run the 'xread' command\r\n"
        assert client.reply_when_woken == refusal
        state = direct.server.state
        entry = state.table[b"xread"]
        assert (entry.calls, entry.rejected, entry.failed) == (0, 1, 0)
        assert state.stats.errors["NOPERM"] == state.stats.denied["command"] == 1
        [note] = direct.server.services.access.log.entries
        assert (note.subject, note.user, note.context, note.count) == (
            b"xread",
            b"t",
            "toplevel",
            1,
        )


class TestNotes:
    def test_a_request_that_a_pause_would_hold_is_refused_and_noted_once(
        self, direct: Direct, admin: DirectClient
    ) -> None:
        client = user(direct, "+get", "~a")
        admin.send("CLIENT", "PAUSE", 1000)
        assert client.send("GET", "b") == NO_KEY
        [note] = direct.server.services.access.log.entries
        assert (note.reason, note.subject, note.count) == ("key", b"b", 1)

    def test_the_age_is_in_seconds(self, direct: Direct, admin: DirectClient) -> None:
        client = user(direct, "+get", "~a")
        client.send("GET", "b")
        ages = {0: b"0", 2: b"0.002", 1500: b"1.5", 60_000: b"60"}
        for milliseconds, shown in ages.items():
            direct.now_ms = START_MS + milliseconds
            reply = admin.send("ACL", "LOG")
            assert reply is not None
            assert b"age-seconds\r\n$%d\r\n%b\r\n" % (len(shown), shown) in reply

    def test_a_failed_login_names_who_was_tried(self, direct: Direct, admin: DirectClient) -> None:
        admin.send("AUTH", "nobody", "x")
        admin.send("MULTI")
        admin.send("AUTH", "someone", "x")
        assert admin.send("EXEC") == (
            b"*1\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n"
        )
        found = [(e.user, e.context) for e in direct.server.services.access.log.entries]
        assert found == [(b"someone", "multi"), (b"nobody", "toplevel")]

    def test_no_password_is_in_the_log(self, direct: Direct, admin: DirectClient) -> None:
        admin.send("AUTH", "nobody", "hunter2")
        admin.send("HELLO", 3, "AUTH", "nobody", "hunter2")
        for entry in direct.server.services.access.log.entries:
            assert b"hunter2" not in entry.client + entry.subject + entry.user


class TestChanges:
    def test_only_clients_of_limited_users_are_limited(self, direct: Direct) -> None:
        client = user(direct, "+@all", "~*")  # But no channels.
        assert client.session.reasons == reasons.LIMITED
        direct.client().send("ACL", "SETUSER", "t", "allchannels")
        assert client.session.reasons == 0

    def test_in_multi_and_subscribed_a_user_is_limited_all_the_same(self, direct: Direct) -> None:
        client = user(direct, "+multi", "+exec", "+get", "~a")
        client.send("MULTI")
        assert client.send("GET", "b") == NO_KEY
        client.send("EXEC")
        assert client.send("GET", "b") == NO_KEY
        assert client.send("GET", "a") == b"$-1\r\n"

    def test_a_default_user_that_is_let_in_lets_those_in_who_wait(self, direct: Direct) -> None:
        admin = user(direct, "+@all", "~*")
        admin.send("CONFIG", "SET", "requirepass", "sesame")
        client = direct.client()
        assert client.send("PING") == b"-NOAUTH Authentication required.\r\n"
        admin.send("CONFIG", "SET", "requirepass", "")
        assert client.send("PING") == b"+PONG\r\n"

    def test_a_user_that_is_removed_by_its_own_transaction_gets_the_reply(
        self, direct: Direct
    ) -> None:
        client = user(direct, "+@all", "~*")
        client.send("MULTI")
        client.send("ACL", "DELUSER", "t")
        client.send("PING")
        assert client.send("EXEC") == b"*2\r\n:1\r\n+PONG\r\n"
        assert client.session.closing
        assert not client.closed

    def test_a_script_that_runs_has_the_rights_of_its_caller_alone(self, direct: Direct) -> None:
        admin, client = direct.client(), user(direct, "+eval", "+get", "~a")
        script = "return redis.pcall('set', 'b', '1')"
        assert admin.send("EVAL", script, 0) == b"+OK\r\n"
        assert client.send("EVAL", script, 0) == (
            b"-ERR ACL failure in script: User t has no permissions to run the 'set' command\r\n"
        )
        assert admin.send("EVAL", script, 0) == b"+OK\r\n"
        [note] = direct.server.services.access.log.entries
        assert note.context == "lua"
        assert b" cmd=eval user=t " in note.client


class TestKeysOfCommands:
    """What is checked is what is used, and what COMMAND GETKEYS tells."""

    @pytest.mark.parametrize(
        ("request_", "keys"),
        [
            ("XREADGROUP GROUP STREAMS s:2 STREAMS s:1 >", ["s:1"]),
            ("XREADGROUP GROUP g STREAMS STREAMS s:2 >", ["s:2"]),
            ("XREADGROUP GROUP STREAMS STREAMS STREAMS STREAMS >", ["STREAMS"]),
            ("XREADGROUP COUNT 1 GROUP STREAMS c STREAMS s:1 s:2 > >", ["s:1", "s:2"]),
            ("XREAD STREAMS STREAMS 0", ["STREAMS"]),
            ("XREAD BLOCK 0 STREAMS s:1 STREAMS 0 0", ["s:1", "STREAMS"]),
            ("MSETEX 1 a v EX 10", ["a"]),
            ("EVAL x 01 a", []),
            ("EVAL x 1 a b", ["a"]),
        ],
    )
    def test_they_are_those_that_its_parser_finds(
        self, direct: Direct, request_: str, keys: list[str]
    ) -> None:
        args = request_.encode().split()
        entry = direct.server.state.table[args[0].lower()]
        found = [key.decode() for key, _ in entry.key_uses(args)]
        assert found == keys
        shown = b"".join(b"$%d\r\n%b\r\n" % (len(key), key.encode()) for key in keys)
        reply = direct.client().send("COMMAND", "GETKEYS", *args)
        assert reply == b"*%d\r\n%b" % (len(keys), shown)

    def test_a_stream_called_streams_is_no_way_around(self, direct: Direct) -> None:
        admin = direct.client()
        for key in ("s:1", "s:2", "STREAMS"):
            admin.send("XADD", key, "1-1", "f", "v")
        client = user(direct, "+@all", "~s:1", "~STREAMS")
        assert client.send("XREAD", "COUNT", 1, "STREAMS", "s:2", "0") == NO_KEY
        assert client.send("XREAD", "STREAMS", "STREAMS", "s:2", "0", "0") == NO_KEY
        assert client.send("XREAD", "COUNT", 1, "STREAMS", "STREAMS", "0") != NO_KEY

    @pytest.mark.parametrize(
        ("request_", "rights"),
        [
            ("SET k v", 2),
            ("SET k GET", 2),
            ("SET k v GET", 3),
            ("SET k v IFEQ GET", 2),
            ("SET k v NX GET EX 10", 3),
            ("SET k v FOO GET", 3),
            ("DELEX k", 2),
            ("DELEX k IFEQ v", 3),
            ("BITFIELD k GET u8 0", 1),
            ("BITFIELD k GET u8 0 SET u8 0 1", 3),
            ("XLEN k", 0),
            ("XADD k * f v", 2),
            ("XREAD STREAMS k 0", 1),
        ],
    )
    def test_the_rights_are_those_to_what_it_does(
        self, direct: Direct, request_: str, rights: int
    ) -> None:
        args = request_.encode().split()
        entry = direct.server.state.table[args[0].lower()]
        assert entry.key_uses(args) == [(b"k", rights)]
        for given, rule in enumerate(["~other", "%R~k", "%W~k", "~k"]):
            client = user(direct, "+@all", rule, name=f"u{given}")
            allowed = given > 0 and given & rights == rights
            assert (client.send(*args) != NO_KEY) is allowed, rule
