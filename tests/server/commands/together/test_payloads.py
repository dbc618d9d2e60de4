"""DUMP and RESTORE: what they say to the append-only file, and what real servers make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hiredis import Reader

from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.rdb import codes
from storage.rdb.read import Key, read_rdb, restore
from storage.rdb.source import Source
from storage.rdb.write import write_rdb
from tests.conformance.reference import find_server
from tests.storage.rdb.builders import a_stream, node, payload
from tests.storage.rdb.test_read_payload import BY_REDIS_7_0, BY_VALKEY_9_1
from tests.support.direct import Argument, Direct, DirectClient, parsed
from tests.support.lines import sent
from tests.support.listening import Listener
from tests.support.recording import Recording, commands_of, load, readable
from tests.support.redis_files import FileServer, find_old_server, find_valkey
from tests.support.servers import PenstockThread
from tests.support.steps import reply_in_the_end, sent_at_once, work_in_single_steps
from tests.support.wire import Client

OK = b"+OK\r\n"
STREAM = (
    *("XADD k 1-1 a 1 b 2", "XADD k 2-1 a x b y", "XADD k 3-1 a z b z", "XDEL k 2-1"),
    *("XGROUP CREATE k g 0", "XREADGROUP GROUP g ann COUNT 1 STREAMS k >"),
    "XGROUP CREATECONSUMER k g bob",
)


# --- what it is worth ------------------------------------------------------------------------


def test_a_stream_is_restored_with_all_that_belongs_to_it(client: DirectClient) -> None:
    sent(client, *STREAM)
    data = client.ask("DUMP", "k")
    assert client.send("RESTORE", "k2", 0, data) == OK
    assert client.ask("XINFO", "STREAM", "k2", "FULL") == client.ask("XINFO", "STREAM", "k", "FULL")


def test_a_payload_is_in_the_oldest_version_that_holds_all_of_it(client: DirectClient) -> None:
    sent(client, *STREAM, "SET s v")
    assert client.ask("DUMP", "k")[-10:-8] == b"\x0b\0"
    sent(client, "XGROUP DELCONSUMER k g bob")
    assert client.ask("DUMP", "k")[-10:-8] == b"\x0a\0"
    assert client.ask("DUMP", "s")[-10:-8] == b"\x0a\0"


@pytest.mark.parametrize("change", ["", "LPOP l", "DEL l", "SET l text"])
def test_a_long_collection_is_dumped_in_steps_as_it_is_at_the_end(
    direct: Direct, client: DirectClient, change: str
) -> None:
    for first in range(0, 20_000, 1000):
        client.send("RPUSH", "l", *[f"element:{n}" for n in range(first, first + 1000)])
    work_in_single_steps(direct)
    assert client.send("DUMP", "l") is None
    other = direct.client()
    other.send(*change.split()) if change else None
    payload = reply_in_the_end(direct, client)
    assert payload == sent_at_once(other, "DUMP l")


def filled(client: DirectClient, kind: str) -> None:
    """Makes a key of 20,000 elements, or entries."""
    for first in range(0, 20_000, 1000):
        names = [f"element:{n}" for n in range(first, first + 1000)]
        if kind == "stream":
            for name in names:
                client.send("XADD", kind, "*", "field", name)
        elif kind == "list":
            client.send("RPUSH", kind, *names)
        elif kind == "set":
            client.send("SADD", kind, *names)
        elif kind == "zset":
            client.send("ZADD", kind, *[word for name in names for word in (name[8:], name)])
        else:
            client.send("HSET", kind, *[word for name in names for word in (name, "value")])


@pytest.mark.parametrize("kind", ["hash", "list", "set", "zset", "stream"])
def test_a_long_value_is_restored_in_steps(direct: Direct, client: DirectClient, kind: str) -> None:
    filled(client, kind)
    dumped = sent_at_once(client, f"DUMP {kind}")
    data = parsed(dumped)
    work_in_single_steps(direct)
    assert client.send("RESTORE", "k", 60_000, data) is None
    other = direct.client()
    assert other.send("EXISTS", "k") == b":0\r\n"
    assert reply_in_the_end(direct, client) == OK
    assert other.send("PTTL", "k") == b":60000\r\n"
    assert sent_at_once(other, "DUMP k") == dumped


def test_a_key_that_appears_while_a_value_is_restored_stays(
    direct: Direct, client: DirectClient
) -> None:
    filled(client, "set")
    data = parsed(sent_at_once(client, "DUMP set"))
    work_in_single_steps(direct)
    client.send("RESTORE", "k", 0, data)
    direct.client().send("SET", "k", "text")
    assert reply_in_the_end(direct, client) == b"-BUSYKEY Target key name already exists.\r\n"
    assert direct.client().send("GET", "k") == b"$4\r\ntext\r\n"


def test_a_long_payload_that_is_damaged_at_its_end_makes_no_key(
    direct: Direct, client: DirectClient
) -> None:
    data = b"\x02\x80\0\0\x75\x30" + b"".join(b"\x06%06d" % n for n in range(29_999)) + b"\x01"
    work_in_single_steps(direct)
    assert client.send("RESTORE", "k", 0, payload(data)) is None
    assert reply_in_the_end(direct, client) == b"-ERR Bad data format\r\n"
    assert direct.client().send("EXISTS", "k") == b":0\r\n"


@pytest.mark.parametrize(
    ("data", "version", "kind"),
    [(b"\x07\x81\x00\x01\x02\x03\x04\x05\x06\x07\x00", 12, b"module")],
)
def test_a_value_of_a_type_that_is_not_here_is_named(
    client: DirectClient, data: bytes, version: int, kind: bytes
) -> None:
    refusal = b"-ERR Bad data format: a %b, which is no type that this server has\r\n"
    assert client.send("RESTORE", "k", 0, payload(data, version)) == refusal % kind
    assert client.send("EXISTS", "k") == b":0\r\n"


def test_a_damaged_payload_leaves_what_is_there(client: DirectClient) -> None:
    client.send("SET", "k", "v")
    damaged = payload(a_stream(entries=5))
    assert client.send("RESTORE", "k", 0, damaged, "REPLACE") == b"-ERR Bad data format\r\n"
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


def test_a_time_to_live_beyond_64_bits_is_refused(client: DirectClient) -> None:
    data = payload(b"\x00\x01x")
    refusal = b"-ERR Invalid TTL value, must be >= 0\r\n"
    assert client.send("RESTORE", "k", 2**63 - 1, data) == refusal


def test_restoring_in_place_of_something_else_is_announced_as_such(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v")
    listener = Listener(direct)
    client.send("CONFIG", "SET", "notify-keyspace-events", "AEnoc")
    client.send("RESTORE", "k", 0, BY_REDIS_7_0, "REPLACE")
    client.send("RESTORE", "new", 0, BY_REDIS_7_0)
    client.send("RESTORE", "k", 0, payload(b"\x00\x01x"), "REPLACE")
    assert listener.heard() == [
        *("overwritten k", "type_changed k", "restore k", "new new", "restore new"),
        *("overwritten k", "type_changed k", "restore k"),
    ]


def test_a_cached_key_is_no_longer_valid(direct: Direct) -> None:
    client, other = direct.client(), direct.client(resp3=True)
    other.send("CLIENT", "TRACKING", "ON")
    other.send("GET", "k")
    client.send("RESTORE", "k", 0, BY_REDIS_7_0)
    assert other.take_pushed() == b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"


# --- the append-only file --------------------------------------------------------------------


def test_a_stream_is_in_the_file_as_a_payload_for_any_server() -> None:
    recording = Recording()
    recording.send("RESTORE", "k", 0, BY_VALKEY_9_1)
    recording.send("RESTORE", "k", 4102444800000, BY_REDIS_7_0, "REPLACE", "ABSTTL")
    commands = commands_of(recording.take())
    restores = [command for command in commands if command[0] == b"RESTORE"]
    assert [command[1:3] + command[4:] for command in restores] == [
        [b"k", b"0", b"REPLACE"],
        [b"k", b"4102444800000", b"REPLACE", b"ABSTTL"],
    ]
    for command in restores:
        assert command[3][-10:-8] == codes.REDIS_7_0.to_bytes(2, "little")


def test_a_string_is_in_the_file_as_what_sets_it() -> None:
    recording = Recording()
    recording.take()
    recording.send("RESTORE", "k", 5000, payload(b"\x00\x01x"))
    at = recording.keyspace.databases[0].expires[b"k"]
    recording.send("RESTORE", "k", 1, payload(b"\x00\x01x"), "REPLACE", "ABSTTL")
    recording.send("RESTORE", "k", 1, payload(b"\x00\x01x"), "ABSTTL")
    assert readable(recording.take()) == ["SELECT 0", f"SET k x PXAT {at}", "DEL k"]


def test_an_empty_stream_is_in_the_file_as_a_restore_alone() -> None:
    recording = Recording()
    recording.send("XGROUP", "CREATE", "k", "g", "0", "MKSTREAM")
    data = Reader()
    data.feed(recording.client.send("DUMP", "k") or b"")
    dumped = data.gets()
    recording.take()
    recording.send("RESTORE", "other", 0, dumped)
    [restored] = [words for words in commands_of(recording.take()) if words[0] != b"SELECT"]
    assert restored == [b"RESTORE", b"other", b"0", dumped, b"REPLACE"]


@pytest.mark.parametrize("data", [BY_REDIS_7_0, BY_VALKEY_9_1], ids=["Redis 7.0", "Valkey 9.1"])
def test_what_is_loaded_is_what_was_restored(data: bytes) -> None:
    recording = Recording()
    recording.send("SET", "k", "v")
    recording.send("RESTORE", "k", 10**9, data, "REPLACE")
    recording.send("XADD", "k", "9-9", "a", "b")
    again = Direct()
    load(again, recording.contents())
    client = again.client()
    assert client.send("PEXPIRETIME", "k") == recording.client.send("PEXPIRETIME", "k")
    shown = recording.client.send("XINFO", "STREAM", "k", "FULL")
    assert client.send("XINFO", "STREAM", "k", "FULL") == shown
    again.server.state.keyspace.check()
    assert blocks_of(again) == blocks_of(recording.direct)


ONE_ENTRY = ((5 << 64) + 5, node(1, 0, 1, b"f", 0, 2, 0, 0, b"v", 4))
ODD = {
    "an entry was deleted above the last one": a_stream(ONE_ENTRY, last=(5, 5), deleted=(8, 0)),
    "fewer entries were added than there are": a_stream(ONE_ENTRY, last=(5, 5), added=0),
    "as many as there can be were added": a_stream(ONE_ENTRY, last=(5, 5), added=2**64 - 1),
    "a node begins with an entry that is gone": a_stream(
        ((1 << 64) + 1, node(1, 0, 1, b"f", 0, 2, 4, 4, b"v", 4)), last=(5, 5)
    ),
}


@pytest.mark.parametrize("data", ODD.values(), ids=list(ODD))
def test_whatever_is_restored_every_file_holds(data: bytes) -> None:
    recording = Recording()
    assert recording.send("RESTORE", "k", 0, payload(data)) == OK
    assert_every_file_holds(recording)
    assert recording.send("XADD", "k", "9-9", "f", "v") == b"$3\r\n9-9\r\n"
    assert recording.send("XGROUP", "CREATE", "k", "g", "5-5") == OK
    assert_every_file_holds(recording)


def assert_every_file_holds(recording: Recording) -> None:
    wanted = recording.client.send("XINFO", "STREAM", "k", "FULL")
    increment, base = Direct(), Direct()
    load(increment, recording.contents())
    load(base, recording.rewritten())
    assert blocks_of(increment) == blocks_of(base) == blocks_of(recording.direct)
    snapshot = Direct()
    file = b"".join(write_rdb(recording.keyspace, version=codes.REDIS_7_2))
    *_, key = read_rdb(Source([file]), StreamLimits())
    assert isinstance(key, Key)
    assert key.value is not None
    snapshot.server.state.keyspace.databases[0].attach(b"k", key.value)
    for direct in (increment, base, snapshot):
        direct.server.state.keyspace.check()
        assert direct.client().send("XINFO", "STREAM", "k", "FULL") == wanted


def blocks_of(direct: Direct) -> list[tuple[int, int, int]]:
    """Where the blocks of the stream at ``k`` begin, what they have had in them, and their size."""
    stream = direct.server.state.keyspace.databases[0].values[b"k"]
    assert isinstance(stream, Stream)
    return [(block.first, block.taken, block.node_size()) for block in stream.log.blocks]


# --- real servers ----------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[find_old_server, find_server, find_valkey],
    ids=["Redis 7.0", "Redis 8.0", "Valkey 9.1"],
)
def real(request: pytest.FixtureRequest) -> Iterator[FileServer]:
    with FileServer(request.param()) as server:
        yield server


@pytest.fixture
def here(penstock: PenstockThread) -> Iterator[Client]:
    with Client(penstock.address) as client:
        yield client


@pytest.mark.reference
@pytest.mark.parametrize("options", [(), ("COPY",), ("REPLACE",)])
def test_migrate_moves_keys_here(
    real: FileServer, penstock: PenstockThread, here: Client, options: tuple[str, ...]
) -> None:
    real.send("FLUSHALL")
    for line in STREAM:
        real.send(*line.split())
    real.send("SET", "s", "text", "PX", 10**9)
    shown = real.ask("XINFO", "STREAM", "k", "FULL")
    target: list[Argument] = [penstock.host, penstock.port, "", 2, 5000]
    assert real.send("MIGRATE", *target, *options, "KEYS", "k", "s") == OK
    assert real.send("EXISTS", "k", "s") == (b":2\r\n" if options == ("COPY",) else b":0\r\n")
    here.ask("SELECT", 2)
    assert here.ask("GET", "s") == b"text"
    assert 0 < here.ask("PTTL", "s") <= 10**9
    assert comparable(here.ask("XINFO", "STREAM", "k", "FULL")) == comparable(shown)


@pytest.mark.reference
def test_migrate_is_told_what_is_in_the_way(
    real: FileServer, penstock: PenstockThread, here: Client
) -> None:
    here.ask("SET", "k", "here")
    real.send("FLUSHALL")
    real.send("SET", "k", "there")
    words = ("MIGRATE", penstock.host, penstock.port)
    assert real.send(*words, "k", 0, 5000) == (
        b"-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n"
    )
    assert here.ask("GET", "k") == b"here"
    assert real.send("EXISTS", "k") == b":1\r\n"


@pytest.mark.reference
def test_migrate_logs_in(real: FileServer) -> None:
    with PenstockThread(requirepass="secret") as penstock:
        words = ("MIGRATE", penstock.host, penstock.port, "s", 0, 5000)
        real.send("SET", "s", "text")
        assert b"NOAUTH" in real.send(*words)
        assert real.send(*words, "AUTH", "secret") == OK
        real.send("SET", "s", "text")
        assert real.send(*words, "REPLACE", "AUTH2", "default", "secret") == OK


@pytest.mark.reference
def test_a_payload_of_here_is_the_same_stream_there(real: FileServer, client: DirectClient) -> None:
    sent(client, *STREAM, "XGROUP DELCONSUMER k g bob", "CONFIG SET stream-node-max-entries 2")
    sent(client, "XADD k 9-1 a 1 b 2", "XADD k 9-2 c 3")
    real.send("FLUSHALL")
    assert real.send("RESTORE", "k", 0, client.ask("DUMP", "k")) == OK
    shown = client.ask("XINFO", "STREAM", "k", "FULL")
    assert comparable(real.ask("XINFO", "STREAM", "k", "FULL")) == comparable(shown)
    stream = restore(real.ask("DUMP", "k"), StreamLimits())
    assert isinstance(stream, Stream)
    stream.check()


IDMP = {
    *(b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked"),
    *(b"iids-added", b"iids-duplicates"),
}


def comparable(shown: list[Any]) -> dict[bytes, Any]:
    """XINFO STREAM FULL without what only some versions know: fields of idempotent producing, and
    when a consumer was active, which Redis 7.0 has no field for."""
    stream = _map(shown)
    stream = {name: value for name, value in stream.items() if name not in IDMP}
    stream[b"groups"] = [_group(group) for group in stream[b"groups"]]
    return stream


def _map(pairs: list[Any]) -> dict[bytes, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _group(shown: list[Any]) -> dict[bytes, Any]:
    group = _map(shown)
    group.pop(b"nacked-count", None)
    group[b"consumers"] = [_map(consumer) for consumer in group[b"consumers"]]
    for consumer in group[b"consumers"]:
        consumer.pop(b"active-time", None)
    return group
