"""The fast path for XADD: when it is taken, and that it is taken again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest

from protocol import requests
from server.net.adding import MOST_OPTIONS, Options
from server.traffic.turns import SHARE_NS, Turns
from storage.engine import effects as e
from storage.engine.limits import StreamLimits
from tests.support.direct import START_MS, Direct
from tests.support.wire import Wire, packed

XADD = packed("XADD s * f v")
PREFIX = XADD[: -len(b"$1\r\nf\r\n$1\r\nv\r\n")]


class Parties:
    """A server with a stream at ``s``, a client of it, and how many requests were parsed."""

    def __init__(self) -> None:
        self.direct = Direct()
        self.services = self.direct.server.services
        self.wire = Wire(self.direct)
        self.effects: list[e.Effect] = []
        self.services.reactions.record = self._record
        self.read(XADD)
        self.effects.clear()

    def _record(self, effects: Sequence[e.Effect], session: object) -> None:
        self.effects += effects

    def read(self, *reads: bytes) -> bytes:
        """What is answered to some reads."""
        for data in reads:
            self.wire.read(data)
        return self.wire.take()

    @property
    def added(self) -> list[int]:
        """How many entries each effect has added since; 0 if it was the parser's way."""
        return [
            len(effect.run) if isinstance(effect, e.EntriesAdded) else 1
            for effect in self.effects
            if isinstance(effect, e.EntryAdded | e.EntriesAdded)
        ]


@pytest.fixture
def parties(monkeypatch: pytest.MonkeyPatch) -> Parties:
    monkeypatch.setattr(requests, "IS_COMPILED", True)  # Else others are parsed with the first.
    return Parties()


def test_the_xadds_of_a_read_are_one_run(parties: Parties) -> None:
    reply = parties.read(XADD * 3)
    assert reply == b"".join(b"$15\r\n%d-%d\r\n" % (START_MS, n) for n in (1, 2, 3))
    assert parties.added == [3]


def test_xadds_behind_other_requests_of_a_read_are_runs_too(parties: Parties) -> None:
    cut = packed("XLEN s")
    parties.read(packed("PING", "XLEN s") + XADD * 3 + packed("PING") * 2 + XADD * 2 + cut[:-3])
    assert parties.added == [3, 2]
    assert parties.read(cut[-3:]) == b":6\r\n"


def test_xadds_that_a_request_before_them_queues_or_mutes_are_parsed(parties: Parties) -> None:
    assert parties.read(packed("MULTI") + XADD * 2 + packed("DISCARD")).count(b"+QUEUED\r\n") == 2
    assert parties.read(packed("CLIENT REPLY OFF") + XADD * 2) == b""
    assert parties.added == [1, 1]


def test_entries_of_other_field_names_are_of_the_same_run(parties: Parties) -> None:
    other = packed("XADD s * g v")
    parties.read(XADD * 2 + other * 2 + XADD)
    assert parties.added == [5]


def test_another_number_of_fields_begins_another_run(parties: Parties) -> None:
    parties.read(XADD * 2 + packed("XADD s * f v g w") * 2 + XADD)
    assert parties.added == [2, 2, 1]


def test_other_keys_and_options_begin_another_run(parties: Parties) -> None:
    parties.read(packed("XADD t * f v"))
    other = [packed(f"XADD {words} * f v") for words in ("t", "s MAXLEN ~ 5", "s NOMKSTREAM")]
    everything = b"".join(request * 2 for request in (XADD, *other))
    parties.read(everything)
    parties.effects.clear()
    parties.read(everything)
    assert parties.added == [2, 2, 2, 2]


def test_a_trimming_that_removes_something_is_done_where_it_is_due(parties: Parties) -> None:
    parties.read(packed("CONFIG SET stream-node-max-entries 5"), packed("XADD s MAXLEN ~ 10 * f v"))
    parties.effects.clear()
    parties.read(packed("XADD s MAXLEN ~ 10 * f v") * 20)
    kinds = [type(effect).__name__ for effect in parties.effects]
    # Only the entry that lets a block go is added by itself.
    assert kinds[-3:] == ["EntryAdded", "StreamTrimmed", "EntriesAdded"]
    assert kinds.count("EntryAdded") == kinds.count("StreamTrimmed") == 2


def test_what_a_trimming_removes_at_most_follows_the_settings(parties: Parties) -> None:
    request = packed("XADD s MAXLEN ~ 0 * f v")
    parties.read(request)
    parties.read(packed("CONFIG SET stream-node-max-entries 1"))
    assert parties.read(request * 2)
    db = parties.direct.server.state.keyspace.databases[0]
    assert db.stream(b"s").log.length == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("at", range(1, len(XADD)))
def test_a_request_that_is_cut_goes_on_with_the_next_read(parties: Parties, at: int) -> None:
    parties.read(XADD * 2)
    parties.effects.clear()
    for _ in range(3):
        parties.read(XADD * 2 + XADD[:at], XADD[at:] + XADD)
    assert parties.added == [2, 2] * 3


def test_a_long_request_that_is_cut_twice_is_parsed(parties: Parties) -> None:
    long = packed("XADD s * f " + "v" * 1000)
    parties.read(XADD + long[:300], long[300:600], long[600:] + XADD * 2)
    parties.read(XADD * 2)
    assert parties.added == [1, 1, 1, 1, 2]


def test_clients_that_wait_for_other_keys_change_nothing(parties: Parties) -> None:
    reader = parties.direct.client()
    reader.send("XREAD", "BLOCK", 0, "STREAMS", "other", "$")
    parties.read(XADD * 3)
    assert parties.added == [3]


def test_a_client_that_waits_for_the_key_is_given_the_first_entry_alone(parties: Parties) -> None:
    reader = parties.direct.client()
    reader.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    parties.read(XADD * 3)
    assert parties.added == [1, 2]
    entry = b"*2\r\n$15\r\n%d-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n" % START_MS
    assert reader.reply_when_woken == b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n" + entry


def test_keys_that_expire_are_looked_at_one_by_one(parties: Parties) -> None:
    client = parties.direct.client()
    client.send("SET", "other", "v", "PX", 1)
    client.send("PEXPIRE", "s", 5)
    parties.direct.now_ms += 4
    parties.effects.clear()
    parties.read(XADD * 3)
    assert parties.added == [3]
    parties.direct.now_ms += 1
    parties.effects.clear()
    parties.read(XADD * 3)
    assert [type(effect).__name__ for effect in parties.effects] == [
        *("Changed", "EntryAdded", "EntriesAdded")  # The first one makes the stream again.
    ]


@pytest.mark.parametrize(
    "state",
    [
        "MULTI",
        "CLIENT REPLY OFF",
        "CLIENT REPLY SKIP",
        "CLIENT PAUSE 1000000 WRITE",
        "CONFIG SET notify-keyspace-events KEA",
        "SUBSCRIBE c",
    ],
)
async def test_in_some_states_requests_are_parsed(parties: Parties, state: str) -> None:
    parties.read(packed(state))
    parties.effects.clear()
    parties.read(XADD * 3)
    assert set(parties.added) <= {1}
    parties.services.pauses.close()


@pytest.mark.parametrize("value", ["", "STRING", "LAST"])
def test_without_a_stream_that_has_ids_left_requests_are_parsed(
    parties: Parties, value: str
) -> None:
    client = parties.direct.client()
    if value == "LAST":
        client.send("XSETID", "s", "18446744073709551615-18446744073709551614")
    else:
        client.send("DEL", "s")
        if value:
            client.send("SET", "s", "v")
    parties.effects.clear()
    reply = parties.read(XADD * 3)
    assert reply.count(b"-ERR") == (2 if value == "LAST" else 0)
    assert reply.count(b"-WRONGTYPE") == (3 if value == "STRING" else 0)
    assert parties.added == {"": [1, 2], "STRING": [], "LAST": [1]}[value]


async def test_a_turn_that_is_over_goes_on_the_same_way() -> None:
    parties = Parties()
    parties.services.traffic.turns = Turns(0)
    reads = [XADD * 3 + XADD[:5], XADD[5:] * 1 + XADD * 2000]
    replies = parties.read(*reads).count(b"$")
    assert replies < 2004
    while replies < 2004:
        await asyncio.sleep(0)
        replies += parties.read().count(b"$")
    assert sum(parties.added) == 2004
    assert len(parties.added) < 10


@pytest.mark.parametrize(
    "wait",
    [
        "XREAD BLOCK 0 STREAMS s 9999999999999-0",
        "XREADGROUP GROUP g {name} BLOCK 0 STREAMS s >",
    ],
)
async def test_a_turn_ends_between_xadds_while_readers_wait(wait: str) -> None:
    parties = Parties()
    parties.services.traffic.turns = Turns()
    client = parties.direct.client()
    client.send("XGROUP", "CREATE", "s", "g", "$")
    for name in range(60):
        parties.direct.client().send(*wait.format(name=name).split())
    looks = count(0, SHARE_NS // 10)
    parties.direct.server.state.stopwatch._nanoseconds = lambda: next(looks)
    answered = [parties.read(XADD * 50).count(b"$")]
    assert 0 < answered[0] < 10
    assert client.send("XLEN", "s") == b":%d\r\n" % (1 + answered[0])
    while sum(answered) < 50:
        await asyncio.sleep(0)
        answered.append(parties.read().count(b"$"))
        assert 0 < answered[-1] < 10
    assert parties.added == [1] * 50


def test_options_that_are_left_to_the_parser_are_so_each_time(parties: Parties) -> None:
    request = packed("XADD s IDMPAUTO p * f v") + packed("XADD s IDMPAUTO p * f w")
    reply = parties.read(request)
    assert reply.count(b"$") == 2
    parties.direct.now_ms += 1
    assert parties.read(request) == reply
    assert parties.added == [1, 1]


def test_keys_and_fields_that_were_never_seen_are_added_from_the_bytes(parties: Parties) -> None:
    keys = [f"k{number}" for number in range(50)]
    parties.read(packed(*(f"XADD {key} * f v" for key in keys)))
    parties.effects.clear()
    parties.read(packed(*(f"XADD {key} * {key} v" for key in keys)))
    assert parties.added == [1] * 50
    assert all(isinstance(effect, e.EntryAdded) for effect in parties.effects)


def test_only_so_many_spellings_of_options_are_remembered(parties: Parties) -> None:
    for number in range(MOST_OPTIONS + 1):
        parties.read(packed(f"XADD s MAXLEN {number + 10} * f v") * 2)
    adder = parties.direct.server.listening.connections.adder
    assert adder is not None
    assert 0 < len(adder._options) <= MOST_OPTIONS


def test_trimmings_are_understood() -> None:
    text = packed("NOMKSTREAM MAXLEN ~ 100 LIMIT 7")[len(b"*6\r\n") :]
    options = Options(text, StreamLimits())
    assert options.plain
    assert options.trim is not None
    assert (options.trim.threshold, options.trim.limit) == (100, 7)


@pytest.mark.parametrize("words", ["MAXLEN x", "MAXLEN", "1-1", "IDMP p i", "IDMPAUTO p", "* a"])
def test_whatever_is_no_trimming_is_left_to_the_parser(words: str) -> None:
    text = packed(words)[len(b"*1\r\n") :]
    assert not Options(text, StreamLimits()).plain


def test_a_user_that_may_add_takes_the_fast_path_too(parties: Parties) -> None:
    parties.read(packed("ACL SETUSER t on nopass +xadd +acl|setuser ~s"), packed("AUTH t x"))
    assert parties.read(XADD * 3).startswith(b"$15\r\n")
    assert parties.added == [3]
    other = packed("XADD u * f v")
    assert parties.read(XADD * 2 + other * 2 + XADD * 2).count(b"-NOPERM No permissions") == 2
    parties.read(XADD * 4)
    assert parties.added == [3, 2, 2, 4]
    assert len(parties.direct.server.services.access.log.entries) == 1


def test_a_user_that_lost_its_right_adds_nothing_more(parties: Parties) -> None:
    parties.read(packed("ACL SETUSER t on nopass +@all ~s"), packed("AUTH t x"))
    parties.read(XADD * 2)
    parties.read(packed("ACL SETUSER t -xadd"))
    refusal = b"-NOPERM User t has no permissions to run the 'xadd' command\r\n"
    assert parties.read(XADD * 3) == refusal * 3
    assert parties.added == [2]


def test_the_user_that_may_do_everything_is_not_checked(parties: Parties) -> None:
    session = parties.wire.connection.session
    assert session is not None
    assert not session.reasons


def test_a_stranger_does_not_take_it(parties: Parties) -> None:
    parties.read(packed("CONFIG SET requirepass x"), packed("RESET"))
    assert parties.read(XADD * 2) == b"-NOAUTH Authentication required.\r\n" * 2
    assert parties.added == []


class TestTimings:
    def test_a_run_counts_each_request_with_the_mean(self, parties: Parties) -> None:
        parties.read(packed("CONFIG RESETSTAT"), XADD * 3)
        command = parties.direct.server.state.table[b"xadd"]
        assert parties.added == [3]
        assert (command.calls, command.durations.total) == (3, 3)
        assert sum(count > 0 for count in command.durations.counts) == 1

    def test_without_tracking_no_durations_are_kept(self, parties: Parties) -> None:
        parties.read(packed("CONFIG SET latency-tracking no"), packed("CONFIG RESETSTAT"), XADD * 3)
        command = parties.direct.server.state.table[b"xadd"]
        assert parties.added == [3]
        assert (command.calls, command.durations.total) == (3, 0)

    def test_a_client_and_the_server_count_what_came_together(self, parties: Parties) -> None:
        parties.read(packed("CONFIG RESETSTAT"))
        session, stats = parties.wire.connection.session, parties.direct.server.state.stats
        assert session is not None
        assert stats.batches == 1, "the read of the command that resets has ended after it"
        link, commands = session.link, session.commands
        batches, batched = link.batches, link.batched
        parties.read(XADD * 3)
        found = session.commands - commands, link.batches - batches, link.batched - batched
        assert found == (3, 1, 3)
        assert (stats.batches, stats.batched) == (2, 4)

    def test_requests_run_one_by_one_while_somebody_monitors(self, parties: Parties) -> None:
        watcher = parties.direct.client()
        watcher.send("MONITOR")
        parties.read(XADD * 3)
        assert parties.added == [1, 1, 1]
        assert watcher.take_pushed().count(b'"XADD" "s" "*" "f" "v"\r\n') == 3

    @pytest.mark.parametrize(("microseconds", "added"), [(-1, [3]), (1000, [3]), (999, [1, 1, 1])])
    def test_requests_run_one_by_one_where_little_is_slow(
        self, parties: Parties, microseconds: int, added: list[int]
    ) -> None:
        parties.read(packed(f"CONFIG SET slowlog-log-slower-than {microseconds}"), XADD * 3)
        assert parties.added == added

    @pytest.mark.parametrize("behind", [b"", b"PING\r\n", b"*1\r\n$4\r\nPI"])
    def test_each_of_a_slow_run_is_logged(self, parties: Parties, behind: bytes) -> None:
        state = parties.direct.server.state
        looks = count(0, 60_000_000)
        state.stopwatch._nanoseconds = lambda: next(looks)
        state.timings.slow_log.entries.clear()  # A busy machine may be slow with what came before.
        parties.read(packed("XADD s * f v1") * 2, behind)
        assert parties.added == [2]
        entries = list(state.timings.slow_log.entries)
        found = [(one.microseconds, one.arguments) for one in entries if one.arguments != [b"PING"]]
        assert found == [(30_000, [b"XADD", b"s", b"*", b"f", b"v1"])] * 2
