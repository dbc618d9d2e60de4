"""MONITOR: what is shown, when, and to whom."""

from __future__ import annotations

import pytest

from server.state.monitors import quoted
from tests.support.direct import Direct, DirectClient, LooseWire

OK = b"+OK\r\n"
STAMP = b"+1700000000.123000"


class Rig:
    """A server with a client that monitors it, and another one."""

    def __init__(self) -> None:
        self.direct = Direct(now_ms=1_700_000_000_123)
        self.client = self.direct.client()
        self.client.session.link.addr = "127.0.0.1:7"
        self.watcher = self.direct.client()
        self.watcher.session.link.addr = "127.0.0.1:8"
        assert self.watcher.send("MONITOR") == OK

    def seen(self, *words: object, client: DirectClient | None = None) -> list[str]:
        """What the watcher is shown of a command, without the time."""
        (client or self.client).send(*map(str, words))
        return self.take()

    def take(self) -> list[str]:
        lines = self.watcher.take_pushed().split(b"\r\n")[:-1]
        assert all(line.startswith(STAMP + b" [") for line in lines)
        return [line.removeprefix(STAMP + b" ").decode() for line in lines]


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        (b"", rb'""'),
        (b"a b'~", rb'''"a b'~"'''),
        (b'"\\', rb'"\"\\"'),
        (b"\n\r\t\a\b", rb'"\n\r\t\a\b"'),
        (b"\x00\x1f\x7f\xff", rb'"\x00\x1f\x7f\xff"'),
        ("é".encode(), rb'"\xc3\xa9"'),
    ],
)
def test_arguments_are_quoted(arg: bytes, text: bytes) -> None:
    assert quoted(arg) == text


class TestWhatIsShown:
    def test_a_line_has_time_database_address_and_words(self, rig: Rig) -> None:
        rig.client.send("SET", "k", "v")
        assert rig.watcher.take_pushed() == STAMP + b' [0 127.0.0.1:7] "SET" "k" "v"\r\n'

    def test_it_is_a_simple_string_in_resp3_too(self, rig: Rig) -> None:
        rig.watcher.send("HELLO", 3)
        rig.watcher.take_pushed()
        rig.client.send("PING")
        assert rig.watcher.take_pushed() == STAMP + b' [0 127.0.0.1:7] "PING"\r\n'

    def test_a_unix_socket_is_named(self, rig: Rig) -> None:
        rig.client.session.link.addr = "/tmp/penstock.sock:0"
        assert rig.seen("PING") == ['[0 unix:/tmp/penstock.sock] "PING"']

    def test_what_would_wait_in_a_transaction_is(self, rig: Rig) -> None:
        rig.seen("MULTI")
        rig.seen("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
        assert len(rig.seen("EXEC")) == 2

    def test_what_takes_long_is_when_it_arrives(self, rig: Rig) -> None:
        assert rig.seen("SCAN", 0) == ['[0 127.0.0.1:7] "SCAN" "0"']

    @pytest.mark.parametrize(
        "words",
        [
            ["EVAL", "return 1", "-1"],
            ["EVAL", "bad(", "0"],
            ["EVALSHA", "nosuch", "0"],
            ["EVAL_RO", "return 1", "x"],
            ["EVALSHA_RO", "nosuch", "0"],
            ["FCALL", "nosuch", "0"],
            ["FCALL_RO", "nosuch", "0"],
        ],
    )
    def test_a_script_that_cannot_run_is(self, rig: Rig, words: list[str]) -> None:
        shown = " ".join(f'"{word}"' for word in words)
        assert rig.seen(*words) == [f"[0 127.0.0.1:7] {shown}"]


class TestWhoMonitors:
    @pytest.mark.parametrize(
        "words",
        [["CLIENT", "ID"], ["SELECT", "1"], ["SUBSCRIBE", "c"], ["ECHO", "x"], ["WATCH", "k"]],
    )
    def test_it_may_do_other_things(self, rig: Rig, words: list[str]) -> None:
        reply = rig.watcher.send(*words)
        assert reply is not None
        assert not reply.startswith(b"-")
        assert len(rig.take()) == 1

    def test_a_second_monitor_is_not_answered(self, rig: Rig) -> None:
        assert rig.watcher.send("MONITOR") == b""
        assert rig.seen("PING") == ['[0 127.0.0.1:7] "PING"']

    def test_reset_ends_it(self, rig: Rig) -> None:
        assert rig.watcher.send("RESET") == b"+RESET\r\n"
        assert rig.seen("PING") == []
        assert rig.watcher.send("GET", "k") == b"$-1\r\n"
        assert rig.direct.server.state.timings.threshold > 0

    def test_whoever_goes_is_shown_nothing(self, rig: Rig) -> None:
        rig.watcher.disconnect()
        assert rig.seen("PING") == []
        assert not rig.direct.server.state.timings.monitors.sessions

    def test_several_may(self, rig: Rig) -> None:
        other = rig.direct.client()
        other.send("MONITOR")
        assert rig.seen("PING") == ['[0 127.0.0.1:7] "PING"']
        assert other.take_pushed() == STAMP + b' [0 127.0.0.1:7] "PING"\r\n'
        rig.watcher.send("RESET")
        other.take_pushed()
        rig.client.send("PING")
        assert other.take_pushed() == STAMP + b' [0 127.0.0.1:7] "PING"\r\n'

    def test_one_that_wants_no_replies_is_shown_nothing(self, rig: Rig) -> None:
        rig.watcher.send("CLIENT", "REPLY", "OFF")
        assert rig.seen("PING") == []
        rig.watcher.send("CLIENT", "REPLY", "ON")
        rig.take()
        assert len(rig.seen("PING")) == 1

    def test_one_that_wants_no_reply_to_its_next_command_is_shown_nothing_until_then(
        self, rig: Rig
    ) -> None:
        rig.watcher.send("CLIENT", "REPLY", "SKIP")
        assert rig.seen("PING") == []
        assert rig.watcher.send("PING") == b""
        assert rig.take() == []
        assert len(rig.seen("PING")) == 1

    def test_its_own_quit_is_not_shown_to_it(self, rig: Rig) -> None:
        other = rig.direct.client()
        other.send("MONITOR")
        assert rig.watcher.send("QUIT") == OK
        assert rig.take() == []
        assert other.take_pushed() == STAMP + b' [0 127.0.0.1:8] "QUIT"\r\n'

    def test_one_that_is_cut_off_meanwhile_does_no_harm(self, rig: Rig) -> None:
        other = rig.direct.client()
        other.send("MONITOR")
        link = rig.watcher.session.link
        wire = rig.watcher.wire
        link.wire = LooseWire(send=lambda data: link.close(), close=wire.close)
        rig.client.send("PING")
        assert rig.watcher.closed
        assert other.take_pushed() == STAMP + b' [0 127.0.0.1:7] "PING"\r\n'

    def test_idleness_does_not_end_it(self, rig: Rig) -> None:
        rig.client.send("CONFIG", "SET", "timeout", 10)
        rig.direct.now_ms += 60_000
        rig.direct.cron()
        assert rig.client.closed
        assert not rig.watcher.closed
