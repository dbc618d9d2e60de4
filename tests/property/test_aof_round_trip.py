"""Whatever was sent, the append-only file gives back the state that it led to."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storage.engine.stream import Stream
from tests.property import key_commands, stream_commands
from tests.property.stream_commands import Words
from tests.support.direct import Direct, DirectClient
from tests.support.examples import scaled
from tests.support.pictures import picture
from tests.support.recording import Recording, load

REWRITE: Words = ["rewrite"]
"""A step that replaces the file by a snapshot."""
FLUSH: Words = ["flush"]
"""A step that writes down when consumers were last seen."""

COMMANDS = st.one_of(
    *stream_commands.EVERYTHING,
    *stream_commands.EVERYTHING,
    stream_commands.NEWER,
    stream_commands.NEWER,
    stream_commands.KEYSPACE,
    *key_commands.EVERYTHING,
    st.sampled_from([["MULTI"], ["EXEC"], ["EXEC"]]),
    stream_commands.POLICIES,
)
TIME = st.sampled_from([["pass", "1"], ["pass", "500"], ["pass", "60000"]])
STEPS = st.one_of(COMMANDS, COMMANDS, COMMANDS, TIME, st.just(FLUSH))
WITH_REWRITES = st.one_of(STEPS, STEPS, STEPS, st.just(REWRITE))

SETTINGS = settings(max_examples=scaled(25), deadline=None, suppress_health_check=list(HealthCheck))


def play(recording: Recording, steps: list[Words]) -> list[bytes]:
    """Sends commands, and does what else the steps say; returns the base files in use."""
    base: list[bytes] = []
    for step in steps:
        if step == REWRITE:
            base = [recording.rewritten()]
            recording.take()
            recording.forms.begin(recording.out)
        elif step == FLUSH:
            recording.forms.flush_seen(recording.out)
        elif step[0] == "pass":
            recording.pass_time(int(step[1]))
        else:
            recording.send(*step)
    if recording.client.session.queue is not None:
        recording.send("DISCARD")
    return base


def visible(direct: Direct, resp3: bool) -> list[Any]:
    """What a client can see of every key."""
    client = direct.client(resp3)
    seen: list[Any] = []
    for database in direct.server.state.keyspace.databases:
        client.send("SELECT", database.index)
        # Whose order is not that of the keys.
        seen.append(b" ".join(sorted((client.send("KEYS", "*") or b"").split(b"\r\n"))))
        for key, value in list(database.values.items()):
            for words in (["TYPE"], ["PEXPIRETIME"], ["OBJECT", "ENCODING"]):
                seen.append(client.send(*words, key))
            if isinstance(value, Stream):
                seen += _stream(client, key, value)
            else:
                seen.append(client.send("GET", key))
    return seen


def _stream(client: DirectClient, key: bytes, stream: Stream) -> list[Any]:
    seen = [
        client.send("XINFO", "STREAM", key),
        client.send("XINFO", "STREAM", key, "FULL", "COUNT", 0),
        client.send("XINFO", "GROUPS", key),
        client.send("XRANGE", key, "-", "+"),
    ]
    for group in sorted(stream.groups):
        seen.append(client.send("XINFO", "CONSUMERS", key, group))
        seen.append(client.send("XPENDING", key, group))
        seen.append(client.send("XPENDING", key, group, "-", "+", 1000))
    return seen


def without_old_records(state: dict[int, Any]) -> dict[int, Any]:
    """Idempotent IDs are forgotten when somebody looks, and files say nothing of looking."""
    for database in state.values():
        for value, _ in database.values():
            if isinstance(value, dict):
                value.pop("records")
    return state


def assert_equal(recording: Recording, *files: bytes) -> None:
    """The files, loaded by another server, give the state that the recording has."""
    loaded = Direct(now_ms=recording.direct.now_ms)
    load(loaded, *files)
    ours, theirs = recording.keyspace, loaded.server.state.keyspace
    theirs.check()
    assert without_old_records(picture(theirs)) == without_old_records(picture(ours))
    for resp3 in (False, True):
        assert visible(loaded, resp3) == visible(recording.direct, resp3)
    assert not theirs.effects


LIMITS = st.one_of(
    stream_commands.LIMITS,
    stream_commands.LIMITS,
    stream_commands.CLAIM_LIMITS,
    stream_commands.STRING_LIMITS,
    stream_commands.GROUP_MANAGEMENT,
    st.just(REWRITE),
    st.just(FLUSH),
    TIME,
)
_INTEGER = re.compile(rb":(-?[0-9]+)\r\n")


@settings(SETTINGS, max_examples=scaled(60))
@given(st.lists(LIMITS, min_size=20, max_size=60))
@example(
    [
        ["XADD", "k", "1-1", "f", "v"],
        ["XSETID", "k", "1-1", "ENTRIESADDED", str(2**63 - 1)],
        ["XGROUP", "CREATE", "k", "g", "1-1", "ENTRIESREAD", str(2**63 - 1)],
        ["XADD", "k", "2-1", "f", "v"],
        ["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "k", ">"],
        REWRITE,
        ["XADD", "k", "3-1", "f", "v"],
    ]
)
def test_counters_at_their_limits_can_be_loaded_and_shown(steps: list[Words]) -> None:
    recording = Recording()
    base = play(recording, steps)
    assert_equal(recording, *base, recording.contents())
    assert_equal(recording, recording.rewritten())
    for reply in visible(recording.direct, resp3=True):
        for number in _INTEGER.findall(reply or b""):
            assert -(2**63) <= int(number) < 2**63


@SETTINGS
@given(st.lists(STEPS, min_size=30, max_size=80))
def test_the_commands_written_give_the_state_back(steps: list[Words]) -> None:
    recording = Recording()
    play(recording, steps)
    assert_equal(recording, recording.contents())


@SETTINGS
@given(st.lists(STEPS, min_size=30, max_size=80))
def test_a_rewrite_gives_the_state_back(steps: list[Words]) -> None:
    recording = Recording()
    play(recording, steps)
    before = picture(recording.keyspace)
    data = recording.rewritten()
    assert picture(recording.keyspace) == before
    assert_equal(recording, data)


@SETTINGS
@given(st.lists(WITH_REWRITES, min_size=30, max_size=80))
def test_a_rewrite_and_what_followed_it_give_the_state_back(steps: list[Words]) -> None:
    recording = Recording()
    base = play(recording, steps)
    assert_equal(recording, *base, recording.contents())
