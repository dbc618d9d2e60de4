"""A real server loads what Penstock writes, and Penstock what a real server writes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.property import (
    hash_commands,
    hyperloglog_commands,
    key_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
    stream_commands,
)
from tests.property.stream_commands import Words
from tests.property.test_streams_against_redis import comparable
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.recording import Recording, load
from tests.support.redis_files import FileServer
from tests.support.views import views_of_database

SETTINGS = settings(max_examples=scaled(20), deadline=None, suppress_health_check=list(HealthCheck))

NO_TRANSACTIONS = (
    *stream_commands.EVERYTHING[:-1],
    *stream_commands.EVERYTHING[:-1],
    key_commands.STRINGS,
    key_commands.PARTS,
    key_commands.BITMAPS,
    key_commands.KEYSPACE,
    hash_commands.HASHES,
    hyperloglog_commands.HYPERLOGLOGS,
    list_commands.LISTS,
    set_commands.SETS,
    sorted_set_commands.ALL,
    stream_commands.KEYSPACE,
)


def _lasts(command: Words) -> bool:
    """Whether nothing expires because of the command while the test runs."""
    return command[0] != "PEXPIRE" or command[-1] != "400"


COMMANDS = st.lists(st.one_of(*NO_TRANSACTIONS).filter(_lasts), min_size=30, max_size=60)
"""What servers of version 8.0 know."""

_LAYOUT = re.compile(rb"(radix-tree-(?:keys|nodes)\r\n):\d+\r\n")
_WITH_TIMES = (b"$10\r\nlistpackex\r\n", b"$8\r\nlistpack\r\n")
_ZERO_THAT_NO_FILE_HAS = [
    ["ZADD", "a", "0", "a", "0", "y" * 65, "-0", "b"],
]
_TIMES_THAT_NO_FILE_HAS = [
    ["HSET", "b", "f", "0"],
    ["HGETEX", "b", "PERSIST", "FIELDS", "1", "f"],
]
_TEXTS = ("k", "q", "a", "b", "c", "")


@pytest.fixture(scope="module")
def real(real_server: str) -> Iterator[FileServer]:
    with FileServer(real_server) as server:
        yield server


def _written(command: Words, reply: bytes) -> bytes:
    """What a server shows of what it ran, and one that loaded it shows as well.

    A command that may have set a field's time and set none is not in the file, but a hash that
    could have been given times stays one.
    """
    reply = comparable(command, reply)
    return reply.replace(*_WITH_TIMES) if command[0] == "OBJECT" else reply


def _rewritten(command: Words, reply: bytes) -> bytes:
    """What is left after a rewrite, which lays entries out and chooses encodings anew; a small
    sorted set does not know -0 from 0."""
    if command[0] == "OBJECT":
        return b""
    if command[0] == "ZRANGE":
        return reply.replace(b"$2\r\n-0\r\n", b"$1\r\n0\r\n")
    return _LAYOUT.sub(rb"\1:N\r\n", comparable(command, reply))


def assert_alike(
    ours: Direct, theirs: FileServer, shown: Callable[[Words, bytes], bytes] = comparable
) -> None:
    """Both servers show the same, but for times at which consumers were seen."""
    client = ours.client()
    for database in range(2):
        for command in views_of_database(database, _TEXTS, ("g", "h")):
            mine = client.send(*command)
            assert mine is not None
            assert shown(command, mine) == shown(command, theirs.send(*command)), command


def _loaded(*files: bytes) -> Direct:
    direct = Direct(now_ms=time.time_ns() // 1_000_000)
    load(direct, *files)
    direct.server.state.keyspace.check()
    return direct


@SETTINGS
@given(COMMANDS)
@example(_TIMES_THAT_NO_FILE_HAS)
def test_what_penstock_has_written_a_real_server_loads(
    real: FileServer, commands: list[Words]
) -> None:
    recording = Recording(Direct(now_ms=time.time_ns() // 1_000_000))
    for command in commands:
        recording.send(*command)
    data = recording.contents()
    real.load(data)
    assert_alike(recording.direct, real, _written)


@SETTINGS
@given(COMMANDS)
@example(_TIMES_THAT_NO_FILE_HAS)
@example(_ZERO_THAT_NO_FILE_HAS)
def test_what_penstock_has_rewritten_a_real_server_loads(
    real: FileServer, commands: list[Words]
) -> None:
    recording = Recording(Direct(now_ms=time.time_ns() // 1_000_000))
    for command in commands:
        recording.send(*command)
    real.load(recording.rewritten())
    assert_alike(recording.direct, real, _rewritten)


@SETTINGS
@given(COMMANDS)
def test_what_a_real_server_has_written_penstock_loads(
    real: FileServer, commands: list[Words]
) -> None:
    real.begin()
    for command in commands:
        real.send(*command)
    data = real.written()
    real.load(data)
    assert_alike(_loaded(data), real)


@settings(SETTINGS, max_examples=scaled(6))
@given(COMMANDS)
def test_what_a_real_server_has_rewritten_penstock_loads(
    real: FileServer, commands: list[Words]
) -> None:
    real.begin()
    for command in commands:
        real.send(*command)
    data = real.rewritten()
    real.load(data)
    assert_alike(_loaded(data), real)
