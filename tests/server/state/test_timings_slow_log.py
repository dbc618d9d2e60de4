from __future__ import annotations

from typing import Any

import pytest

from tests.support.direct import START_MS, Direct

SECOND = START_MS // 1000
OK = b"+OK\r\n"


class Rig:
    """A server whose commands take as long as a test says. What takes ten seconds is slow, which
    none does by itself."""

    def __init__(self, slower_than: int = 10_000_000, **settings: Any) -> None:
        self.direct = Direct(slowlog_log_slower_than=slower_than, **settings)
        self.client = self.direct.client()
        self.timings = self.direct.server.state.timings

    def ran(self, *args: bytes, microseconds: int = 20_000_000) -> None:
        """A command has run, and taken so long."""
        session = self.client.session
        command = self.direct.server.state.table[args[0].lower()]
        self.timings.count(session, command, list(args), microseconds * 1000)

    def ask(self, *words: str | int) -> bytes | None:
        return self.client.send(*words)

    def identities(self) -> list[int]:
        return [entry.identity for entry in self.timings.slow_log.entries]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def entry(number: int, words: list[bytes], microseconds: int, name: bytes = b"") -> bytes:
    """What SLOWLOG GET says about a command of the first client."""
    arguments = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*7\r\n:%d\r\n:%d\r\n:%d\r\n*%d\r\n%b$15\r\n127.0.0.1:50000\r\n$%d\r\n%b\r\n:%d\r\n" % (
        number,
        SECOND,
        microseconds,
        len(words),
        arguments,
        len(name),
        name,
        len(words),
    )


class TestWhatIsLogged:
    def test_a_command_that_takes_ten_milliseconds(self) -> None:
        rig = Rig(slower_than=10_000)
        rig.ran(b"GET", b"a", microseconds=9_999)
        rig.ran(b"GET", b"b", microseconds=10_000)
        assert rig.ask("SLOWLOG", "GET") == b"*1\r\n" + entry(0, [b"GET", b"b"], 10_000)

    def test_the_last_ones_come_first(self, rig: Rig) -> None:
        rig.ask("CLIENT", "SETNAME", "bob")
        rig.ran(b"GET", b"a")
        rig.ran(b"GET", b"b", microseconds=30_000_000)
        assert rig.ask("SLOWLOG", "GET") == (
            b"*2\r\n"
            + entry(1, [b"GET", b"b"], 30_000_000, b"bob")
            + entry(0, [b"GET", b"a"], 20_000_000, b"bob")
        )

    def test_everything_or_nothing_may_be(self, rig: Rig) -> None:
        rig.ask("CONFIG", "SET", "slowlog-log-slower-than", 0)
        assert rig.ask("SLOWLOG", "LEN") == b":1\r\n"
        rig.ask("CONFIG", "SET", "slowlog-log-slower-than", -1)
        rig.ask("SLOWLOG", "RESET")
        rig.ran(b"GET", b"a", microseconds=10**9)
        assert rig.ask("SLOWLOG", "LEN") == b":0\r\n"

    def test_those_of_scripts_are_without_a_client(self, rig: Rig) -> None:
        rig.ask("CONFIG", "SET", "slowlog-log-slower-than", 0)
        rig.ask("CLIENT", "SETNAME", "bob")
        rig.ask("EVAL", "return redis.call('get', 'k')", 0)
        script, inner, *_ = rig.timings.slow_log.entries
        assert (script.arguments[0], script.address, script.name) == (
            b"EVAL",
            b"127.0.0.1:50000",
            b"bob",
        )
        assert (inner.arguments, inner.address, inner.name) == ([b"get", b"k"], b"", b"")

    def test_the_time_that_it_waited_does_not_count(self, rig: Rig) -> None:
        waiting = rig.direct.client()
        assert waiting.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$") is None
        waiter = waiting.session.waiter
        assert waiter is not None
        waiter.nanoseconds = 20_000_000_000
        rig.direct.advance(60_000)
        rig.ask("XADD", "s", "*", "f", "v")
        logged = rig.timings.slow_log.entries[0]
        assert logged.arguments[0] == b"XREAD"
        assert 20_000_000 <= logged.microseconds < 60_000_000

    @pytest.mark.parametrize("reason", ["TIMEOUT", "ERROR"])
    def test_so_is_one_whose_wait_has_been_ended(self, rig: Rig, reason: str) -> None:
        waiting = rig.direct.client()
        assert waiting.send("XREAD", "BLOCK", 50, "STREAMS", "s", "$") is None
        waiter = waiting.session.waiter
        assert waiter is not None
        waiter.nanoseconds = 20_000_000_000
        rig.ask("CLIENT", "UNBLOCK", waiting.session.id, reason)
        assert [one.microseconds for one in rig.timings.slow_log.entries] == [20_000_000]

    def test_one_that_is_woken_to_fail_counts_both_of_its_runs(self, rig: Rig) -> None:
        rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        waiting = rig.direct.client()
        read = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
        assert waiting.send(*read) is None
        waiter = waiting.session.waiter
        assert waiter is not None
        waiter.nanoseconds = 20_000_000_000
        rig.ask("DEL", "s")
        reply = waiting.reply_when_woken
        assert reply is not None
        assert reply.startswith(b"-NOGROUP")
        assert [one.arguments[0] for one in rig.timings.slow_log.entries] == [b"XREADGROUP"]

    def test_one_that_is_worked_on_in_steps_counts_them_all(self, rig: Rig) -> None:
        ticks = iter(range(0, 10**15, 6_000_000_000))
        rig.direct.server.services.stepped.nanoseconds = lambda: next(ticks)
        for number in range(5000):
            rig.ask("SET", f"key:{number}", "v")
        reply = rig.client.send("KEYS", "*")
        while reply is None:
            rig.direct.server.services.stepped.turn()
            reply = rig.client.reply_when_woken
        assert [one.arguments for one in rig.timings.slow_log.entries] == [[b"KEYS", b"*"]]
        assert rig.timings.slow_log.entries[0].microseconds >= 12_000_000


class TestLimits:
    def test_arguments_after_the_31st_are_counted(self, rig: Rig) -> None:
        rig.ran(b"DEL", *[b"k"] * 31)
        rig.ran(b"DEL", *[b"k"] * 32)
        last, before = rig.timings.slow_log.entries
        assert before.arguments == [b"DEL", *[b"k"] * 31]
        assert last.arguments == [b"DEL", *[b"k"] * 30, b"... (2 more arguments)"]
        assert (before.given, last.given) == (32, 33)

    def test_both_can_be_set(self, rig: Rig) -> None:
        rig.ask("CONFIG", "SET", "slowlog-entry-max-argc", 2, "slowlog-entry-max-string-len", 3)
        rig.ran(b"DEL", b"abcd", b"e")
        rig.ran(b"DEL", b"abcd")
        last, before = rig.timings.slow_log.entries
        assert before.arguments == [b"DEL", b"... (2 more arguments)"]
        assert last.arguments == [b"DEL", b"abc... (1 more bytes)"]

    def test_the_oldest_entries_make_room(self) -> None:
        rig = Rig(slowlog_max_len=2)
        for _ in range(4):
            rig.ran(b"PING")
        assert rig.identities() == [3, 2]

    def test_a_log_of_no_length_takes_nothing_and_keeps_what_it_has(self, rig: Rig) -> None:
        rig.ran(b"PING")
        rig.ask("CONFIG", "SET", "slowlog-max-len", 0)
        rig.ran(b"PING")
        assert rig.identities() == [0]
        rig.ask("CONFIG", "SET", "slowlog-max-len", 1)
        rig.ran(b"PING")
        assert rig.identities() == [1]


class TestCounters:
    def test_info_tells_how_many_there_were_and_how_long_they_took(self) -> None:
        rig = Rig(slower_than=10_000)
        rig.ran(b"PING", microseconds=12_345)
        rig.ran(b"PING", microseconds=10_000)
        rig.ran(b"GET", microseconds=9)
        info = rig.ask("INFO", "stats", "commandstats")
        assert info is not None
        assert (
            b"slowlog_commands_count:2\r\nslowlog_commands_time_ms_sum:22.34\r\n"
            b"slowlog_commands_time_ms_max:12.35\r\n"
        ) in info
        assert (
            b"cmdstat_ping:calls=2,usec=22345,usec_per_call=11172.50,rejected_calls=0,"
            b"failed_calls=0,slowlog_count=2,slowlog_time_ms_sum=22.34,slowlog_time_ms_max=12.35\r\n"
        ) in info
        assert (
            b"cmdstat_get:calls=1,usec=9,usec_per_call=9.00,rejected_calls=0,failed_calls=0\r\n"
            in info
        )

    def test_resetstat_forgets_them_and_not_the_log(self, rig: Rig) -> None:
        rig.ran(b"PING")
        assert rig.ask("CONFIG", "RESETSTAT") == OK
        info = rig.ask("INFO", "stats", "commandstats")
        assert info is not None
        assert b"slowlog_commands_count:0\r\nslowlog_commands_time_ms_sum:0.00\r\n" in info
        assert b"cmdstat_ping" not in info
        assert rig.identities() == [0]

    def test_slowlog_reset_forgets_the_log_and_numbers_go_on(self, rig: Rig) -> None:
        rig.ran(b"PING")
        assert rig.ask("SLOWLOG", "RESET") == OK
        rig.ran(b"PING")
        assert rig.identities() == [1]
