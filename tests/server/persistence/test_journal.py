"""The journal: what happens is encoded once, and each reader gets it as whole units, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.persistence.journal import Journal, JournalReader
from storage.aof.encode_effects import EffectEncoder
from storage.aof.snapshot import snapshot
from storage.engine.effects import Effect
from storage.engine.limits import StreamLimits
from tests.support.direct import Direct, DirectClient
from tests.support.recording import load, readable

COMMANDS = (
    "XADD a 1-* f v",
    "XADD b * f v g w",
    "XGROUP CREATE a one 0 MKSTREAM",
    "XGROUP CREATE b one 0 MKSTREAM",
    "XREADGROUP GROUP one alice COUNT 1 STREAMS a >",
    "XREADGROUP GROUP one alice COUNT 1 STREAMS b >",
    "XREADGROUP GROUP one bob STREAMS a >",
    "XACK a one 1-1 1-2",
    "XCLAIM b one bob 0 0-1 1-0 JUSTID",
    "XAUTOCLAIM a one carol 0 0 COUNT 2",
    "XTRIM a MAXLEN 3",
    "SET s v",
    "DEL a b s",
    "RENAME a c",
    "FLUSHALL",
    "SELECT 0",
    "SELECT 5",
    "CONFIG SET stream-node-max-entries 3",
    "CONFIG SET stream-node-max-entries 4",
    "MULTI",
    "EXEC",
)


class Read:
    """A reader of the journal of a server, and what it has taken."""

    def __init__(self, journal: Journal, **options: Any) -> None:
        self.reader = JournalReader(journal, lambda: None, **options)
        self.taken: list[bytes] = []

    def take(self) -> None:
        """Takes what is new."""
        self.taken.append(self.reader.take())

    def begin(self, direct: Direct) -> None:
        """Begins anew with what the data are now."""
        journal_of(direct).split_unit()
        self.take()
        self.taken = [b"".join(snapshot(direct.server.state.keyspace))]
        self.reader.attach()
        self.reader.begin()

    @property
    def all(self) -> bytes:
        """All that there was for it."""
        self.take()
        return b"".join(self.taken)


class Remaining(Read):
    """A reader that only takes what there is where another one begins anew."""

    def begin(self, direct: Direct) -> None:
        journal_of(direct).split_unit()
        self.take()


def journal_of(direct: Direct) -> Journal:
    """The journal that the parts of a server share."""
    return direct.server.services.commit._journal


def said(read: Read) -> list[str]:
    """The commands that a reader gets, but for the settings that blocks depend on."""
    return [line for line in readable(read.all) if not line.startswith("ECHO")]


def contents(direct: Direct) -> list[str]:
    """The data, as the commands that would make them under the settings of a new server."""
    direct.server.state.keyspace.limits.max_entries = StreamLimits().max_entries
    commands = readable(b"".join(snapshot(direct.server.state.keyspace)))
    return [command for command in commands if "\r\nsettings\r\n" not in command]


class Case:
    """A server and one client, and readers that take when the test says so."""

    def __init__(self, **settings: Any) -> None:
        self.direct = Direct(**settings)
        self.client: DirectClient = self.direct.client()
        self.journal = journal_of(self.direct)

    def reader(self, **options: Any) -> Read:
        """Another reader, of what happens from now on."""
        read = Read(self.journal, **options)
        read.reader.attach()
        return read

    def say(self, *lines: str) -> None:
        """Lets the client send commands; what they answer is of no interest."""
        for line in lines:
            self.client.send(*line.split())


STEPS = st.lists(
    st.one_of(
        st.sampled_from(COMMANDS),
        st.sampled_from(["first takes", "second takes", "seen", "first begins"]),
    ),
    max_size=60,
)


def play(case: Case, steps: Sequence[str], first: Read, second: Read) -> None:
    """Does what a list says."""
    for step in steps:
        if step == "first takes":
            first.take()
        elif step == "second takes":
            second.take()
        elif step == "seen":
            case.journal.note_seen()
        elif step == "first begins":
            first.begin(case.direct)
        else:
            case.say(step)
    case.say("EXEC", "XADD last * f v")  # Settings are written before what they concern.
    case.journal.note_seen()


@given(STEPS)
def test_two_readers_get_the_same_bytes_whenever_they_take_them(steps: list[str]) -> None:
    case = Case()
    first, second = case.reader(), case.reader()
    play(case, [step for step in steps if step != "first begins"], first, second)
    assert first.all == second.all


@given(STEPS)
@example([*["XADD a 1-* f v"] * 4, "CONFIG SET stream-node-max-entries 3"])
def test_one_that_begins_anew_and_one_that_does_not_come_to_the_same_data(
    steps: list[str],
) -> None:
    case = Case()
    first, second = case.reader(), case.reader()
    first.begin(case.direct)
    second.begin(case.direct)
    play(case, steps, first, second)
    for read in (first, second):
        loaded = Direct()
        load(loaded, read.all)
        assert contents(loaded) == contents(case.direct)


@given(STEPS)
@example(["SET s v", "first begins", "SET s v"])
@example(["SELECT 5", "SET s v", "SELECT 0", "first begins", "first begins", "SET s v"])
@example([*COMMANDS[:5], "first begins", "first takes", *COMMANDS[4:7]])
@example(["SELECT 5", "SET s v", "first begins", "FLUSHALL"])
def test_whoever_begins_anew_is_told_the_database_and_nobody_else(steps: list[str]) -> None:
    """New settings are written before somebody begins; so there are none here."""
    steps = [step for step in steps if not step.startswith("CONFIG")]
    read: list[bytes] = []
    for kind in (Read, Remaining):
        case = Case()
        first, second = kind(case.journal), Read(case.journal)
        first.reader.attach()
        second.reader.attach()
        play(case, steps, first, second)
        read.append(second.all)
    assert read[0] == read[1]


@given(STEPS)
def test_one_reader_gets_what_an_encoder_of_its_own_would_write(steps: list[str]) -> None:
    case = Case()
    only, own = case.reader(), EffectEncoder(case.direct.server.state.keyspace)
    record, reactions = case.journal.note, case.direct.server.services.reactions
    written: list[bytes] = []

    def both(effects: Sequence[Effect], session: Any) -> None:
        record(effects, session)
        own.append(effects, written)

    reactions.record = both
    for step in steps:
        if step in COMMANDS and step not in ("MULTI", "EXEC"):
            case.say(step)
        elif step == "seen":
            case.journal.note_seen()
            own.flush_seen(written)
        elif step == "first takes":
            only.take()
            own.split()
    assert only.all == b"".join(written)


def test_a_reader_gets_nothing_of_what_happened_before_it_came() -> None:
    case = Case()
    case.say("SET before v")
    first = case.reader()
    case.say("SET between v")
    second = case.reader()
    case.say("SET after v")
    assert said(first) == ["SELECT 0", "SET between v", "SET after v"]
    assert said(second) == ["SET after v"]


def test_nothing_is_recorded_without_a_reader() -> None:
    case = Case()
    reactions = case.direct.server.services.reactions
    assert reactions.record is None
    read, other = case.reader(), case.reader()
    assert reactions.record == case.journal.note
    case.say("SET k v")
    read.reader.detach()
    read.reader.detach()
    assert said(other)[-1] == "SET k v"
    other.reader.detach()
    assert reactions.record is None
    assert (read.all, case.journal.log) == (b"", [])


def test_each_unit_is_encoded_once_for_all() -> None:
    case = Case()
    first, second = case.reader(), case.reader()
    case.say("XADD k * f v", "XADD k * f v")
    case.journal.share()
    assert len(first.reader.pieces) == 4
    both = zip(first.reader.pieces, second.reader.pieces, strict=True)
    assert all(one is other for one, other in both)


def test_units_within_units_are_one() -> None:
    case = Case()
    read, journal = case.reader(), case.journal
    for _ in range(2):
        journal.begin_unit()
    case.say("SET a 1")
    journal.end_unit()
    assert read.all == b""
    case.say("SET b 2")
    assert journal.unit is not None
    assert not read.reader.has_news
    journal.end_unit()
    assert said(read) == ["MULTI", "SELECT 0", "SET a 1", "SET b 2", "EXEC"]


def test_a_unit_that_is_split_is_two() -> None:
    case = Case()
    read, journal = case.reader(), case.journal
    journal.begin_unit()
    case.say("SET a 1")
    journal.split_unit()
    case.say("SET b 2")
    assert said(read) == ["SELECT 0", "SET a 1"]
    journal.end_unit()
    assert said(read)[2:] == ["SET b 2"]


def test_what_is_said_to_one_reader_stands_in_its_place_and_is_not_for_others() -> None:
    case = Case()
    first, second = case.reader(), case.reader()
    case.say("SET a 1")
    first.reader.say(b"*1\r\n$4\r\nPING\r\n")
    case.say("SET b 2")
    assert first.reader.size == len(first.all)
    assert said(first) == ["SELECT 0", "SET a 1", "PING", "SET b 2"]
    assert said(second) == ["SELECT 0", "SET a 1", "SET b 2"]


def test_what_could_not_be_written_comes_first_again() -> None:
    case = Case()
    read = case.reader()
    case.say("SET a 1")
    data = read.reader.take()
    case.say("SET b 2")
    read.reader.give_back(data)
    assert said(read) == ["SELECT 0", "SET a 1", "SET b 2"]


def test_the_time_is_for_those_who_want_it_once_a_second_before_a_whole_unit() -> None:
    case = Case(aof_timestamp_enabled=True)
    dated, other = case.reader(dated=True), case.reader()
    case.say("SET a 1", "SET b 2")
    case.direct.advance(1000)
    case.say("MULTI", "SET c 3", "SET d 4", "EXEC", "SET e 5")
    lines = [line for line in dated.all.split(b"\r\n") if line.startswith(b"#TS")]
    second = case.direct.now_ms // 1000
    assert lines == [b"#TS:%d" % (second - 1), b"#TS:%d" % second]
    assert lines[1] + b"\r\n*1\r\n$5\r\nMULTI" in dated.all
    assert b"#TS" not in other.all
    assert dated.all.replace(lines[0] + b"\r\n", b"").replace(lines[1] + b"\r\n", b"") == other.all


@pytest.mark.parametrize("inside", [False, True])
def test_a_client_is_known_by_the_unit_that_has_its_last_change(inside: bool) -> None:
    case = Case()
    case.reader()
    session = case.client.session
    case.say("SET a 1")
    assert session.noted == case.journal.count == 1
    if inside:
        case.say("MULTI", "SET b 2", "SET c 3", "EXEC")
        assert session.noted == case.journal.count == 2
    other = case.direct.client()
    other.send("SET", "d", "4")
    assert session.noted == case.journal.count - 1
    case.say("GET a")
    assert session.noted == case.journal.count - 1
