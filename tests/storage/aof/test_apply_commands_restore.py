"""RESTORE in a file: streams that were restored or moved to the server that wrote it."""

from __future__ import annotations

import pytest

from storage.aof.apply_commands import Restorer
from storage.aof.framing import LoadError
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from tests.storage.rdb.builders import a_stream, payload
from tests.storage.rdb.test_read_payload import BY_REDIS_7_0, BY_VALKEY_9_1

STRING = payload(b"\x00\x01x")


def restored(*args: bytes) -> tuple[bool, Keyspace]:
    """Whether the engine took the command, which a file had behind a string at ``s``."""
    keyspace = Keyspace()
    keyspace.databases[0].set_string(b"s", b"v")
    keyspace.effects.clear()
    taken = Restorer(keyspace, 5000).apply([b"RESTORE", *args])
    keyspace.databases[0].index_loaded()
    keyspace.check()
    assert keyspace.effects == []
    return taken, keyspace


@pytest.mark.parametrize("data", [BY_REDIS_7_0, BY_VALKEY_9_1], ids=["Redis 7.0", "Valkey 9.1"])
def test_a_stream_is_restored(data: bytes) -> None:
    taken, keyspace = restored(b"k", b"0", data)
    assert taken
    assert isinstance(keyspace.databases[0].values[b"k"], Stream)
    assert keyspace.databases[0].expires == {}


def test_it_may_replace_what_is_there_and_expire() -> None:
    words = (b"replace", b"IDLETIME", b"4", b"FREQ", b"1", b"ABSTTL")
    taken, keyspace = restored(b"s", b"9000", BY_REDIS_7_0, *words)
    assert taken
    assert isinstance(keyspace.databases[0].values[b"s"], Stream)
    assert keyspace.databases[0].expires == {b"s": 9000}


@pytest.mark.parametrize("args", [(b"k", b"0", STRING), (b"k", b"100", BY_REDIS_7_0)])
def test_strings_and_times_to_live_are_left_to_the_command(args: tuple[bytes, ...]) -> None:
    taken, keyspace = restored(*args)
    assert not taken
    assert list(keyspace.databases[0].values) == [b"s"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((b"s", b"0", BY_REDIS_7_0), "the key 's' is there already"),
        ((b"k", b"0", b"junk"), "the version or the checksum of the payload is wrong"),
        (
            (b"k", b"0", payload(b"\x07\x81\x00\x01\x02\x03\x04\x05\x06\x07\x00")),
            "a module, which Penstock does not have",
        ),
        (
            (b"k", b"0", payload(a_stream(entries=5))),
            "the payload is damaged at byte 2: a stream of 5 entries that has 0",
        ),
    ],
)
def test_what_cannot_be_restored_is_told(args: tuple[bytes, ...], text: str) -> None:
    with pytest.raises(LoadError) as caught:
        restored(*args)
    assert str(caught.value) == text


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="an unknown option"):
        restored(b"k", b"0", BY_REDIS_7_0, b"FOO")
