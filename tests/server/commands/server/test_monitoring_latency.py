"""LATENCY: what holds up the server, and histograms."""

from __future__ import annotations

import pytest

from tests.support.direct import START_MS, Direct, DirectClient

MS = 1_000_000
SECOND = START_MS // 1000


@pytest.fixture
def direct() -> Direct:
    return Direct(latency_monitor_threshold=10_000)


def note(direct: Direct, event: bytes, *milliseconds: int) -> None:
    """The event has taken so long, a second after the other."""
    for value in milliseconds:
        direct.server.state.timings.latency.note(event, value * MS)
        direct.now_ms += 1000


class TestEvents:
    def test_nothing_has_been_noted(self, client: DirectClient) -> None:
        assert client.send("LATENCY", "LATEST") == b"*0\r\n"
        assert client.send("LATENCY", "HISTORY", "command") == b"*0\r\n"
        assert client.send("LATENCY", "RESET") == b":0\r\n"

    def test_the_latest_and_the_longest_of_each(self, direct: Direct, client: DirectClient) -> None:
        note(direct, b"command", 20_000, 15_000)
        note(direct, b"fork", 30_000)
        assert client.send("LATENCY", "LATEST") == (
            b"*2\r\n*4\r\n$7\r\ncommand\r\n:%d\r\n:15000\r\n:20000\r\n"
            b"*4\r\n$4\r\nfork\r\n:%d\r\n:30000\r\n:30000\r\n" % (SECOND + 1, SECOND + 2)
        )

    def test_the_history_of_one(self, direct: Direct, client: DirectClient) -> None:
        note(direct, b"command", 20_000, 15_000)
        assert client.send("LATENCY", "HISTORY", "command") == (
            b"*2\r\n*2\r\n:%d\r\n:20000\r\n*2\r\n:%d\r\n:15000\r\n" % (SECOND, SECOND + 1)
        )
        assert client.send("LATENCY", "HISTORY", "COMMAND") == b"*0\r\n"

    def test_some_or_all_are_forgotten(self, direct: Direct, client: DirectClient) -> None:
        for event in (b"command", b"fork", b"expire-cycle"):
            note(direct, event, 20_000)
        assert client.send("LATENCY", "RESET", "fork", "nosuch") == b":1\r\n"
        assert client.send("LATENCY", "RESET") == b":2\r\n"

    @pytest.mark.parametrize("words", [["DOCTOR"], ["GRAPH", "command"]])
    def test_there_are_no_reports_in_words(self, client: DirectClient, words: list[str]) -> None:
        error = b"-ERR unknown subcommand '%b'. Try LATENCY HELP.\r\n" % words[0].encode()
        assert client.send("LATENCY", *words) == error


class TestHistograms:
    def count(self, direct: Direct, name: bytes, *microseconds: int) -> None:
        state = direct.server.state
        container, _, part = name.partition(b"|")
        entry = state.table[container]
        entry = entry.subcommands[part] if part else entry
        for duration in microseconds:
            entry.durations.add(duration * 1000)

    def test_calls_are_counted_up_to_each_limit(self, direct: Direct) -> None:
        self.count(direct, b"xadd", 1, 3, 3, 100)
        body = (
            b"$5\r\ncalls\r\n:4\r\n$14\r\nhistogram_usec\r\n%b"
            b":1\r\n:1\r\n:4\r\n:3\r\n:132\r\n:4\r\n"
        )
        two, three = direct.client(), direct.client(resp3=True)
        asked = ("LATENCY", "HISTOGRAM", "XADD")
        assert two.send(*asked) == b"*2\r\n$4\r\nxadd\r\n*4\r\n" + body % b"*6\r\n"
        assert three.send(*asked) == b"%1\r\n$4\r\nxadd\r\n%2\r\n" + body % b"%3\r\n"

    def test_a_container_stands_for_its_subcommands(
        self, direct: Direct, client: DirectClient
    ) -> None:
        for name in (b"xgroup|create", b"xgroup|destroy", b"get"):
            self.count(direct, name, 1)
        reply = client.send("LATENCY", "HISTOGRAM", "xgroup")
        assert reply is not None
        assert reply.startswith(b"*4\r\n$13\r\nxgroup|create\r\n")
        assert b"$14\r\nxgroup|destroy\r\n" in reply
        one = client.send("LATENCY", "HISTOGRAM", "XGROUP|destroy")
        assert one is not None
        assert one.startswith(b"*2\r\n$14\r\nxgroup|destroy\r\n")

    def test_unknown_names_and_commands_never_called_are_left_out(
        self, client: DirectClient
    ) -> None:
        assert client.send("LATENCY", "HISTOGRAM", "nosuch", "get", "get|x") == b"*0\r\n"
        everything = client.send("LATENCY", "HISTOGRAM")
        assert everything is not None
        assert everything.startswith(
            b"*2\r\n$17\r\nlatency|histogram\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"
        )

    def test_without_tracking_nothing_is_counted_and_nothing_forgotten(
        self, client: DirectClient
    ) -> None:
        client.send("GET", "k")
        client.send("CONFIG", "SET", "latency-tracking", "no")
        before = client.send("LATENCY", "HISTOGRAM", "get")
        client.send("GET", "k")
        assert client.send("LATENCY", "HISTOGRAM", "get") == before
        assert client.send("INFO", "latencystats") == b"$16\r\n# Latencystats\r\n\r\n"

    def test_resetstat_forgets_them(self, client: DirectClient) -> None:
        client.send("GET", "k")
        client.send("CONFIG", "RESETSTAT")
        assert client.send("LATENCY", "HISTOGRAM", "get") == b"*0\r\n"

    def test_info_has_the_percentiles_that_are_asked_for(
        self, direct: Direct, client: DirectClient
    ) -> None:
        self.count(direct, b"xadd", *[4] * 99, 17)
        line = b"\r\nlatency_percentiles_usec_xadd:"
        info = client.send("INFO", "latencystats")
        assert info is not None
        assert line + b"p50=4.015,p99=4.015,p99.9=17.023\r\n" in info
        client.send("CONFIG", "SET", "latency-tracking-info-percentiles", "0 12.50 100")
        info = client.send("INFO", "latencystats")
        assert info is not None
        assert line + b"p0=4.000,p12.5=4.015,p100=17.023\r\n" in info
        client.send("CONFIG", "SET", "latency-tracking-info-percentiles", "")
        info = client.send("INFO", "latencystats")
        assert info is not None
        assert line + b"\r\n" in info
