"""Libraries of functions: what keeps them, and what other servers make of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from server.net.intercepted import hold_back
from storage.aof.framing import parse
from storage.checksums import crc64
from storage.rdb.read import restore_libraries
from storage.rdb.write import dump_libraries
from tests.conformance.reference import RealServer
from tests.support.direct import Direct, DirectClient
from tests.support.servers import PenstockThread

COUNTER = b"#!lua name=counter\nredis.register_function('add', function(keys, args)\n" + (
    b"  return redis.call('incrby', keys[1], args[1])\nend)"
)
OTHER = b"#!lua name=other\nredis.register_function{function_name='say', callback=function()" + (
    b" return 'hello' end, description='says it', flags={'no-writes'}}"
)
LONG = (
    b"#!lua name=long\nredis.register_function('long', function() return 1 end) -- " + b"ab" * 400
)


@contextmanager
def penstock_at(folder: Path) -> Iterator[Redis]:
    """A client of a server whose append-only file is in the folder."""
    with (
        PenstockThread(dir=folder, appendonly="yes", appendfsync="always") as penstock,
        Redis(penstock.host, penstock.port) as client,
    ):
        yield client


@pytest.fixture
def redis(real_server: str) -> Iterator[Redis]:
    """A client of Redis 8.0."""
    with RealServer(real_server) as server, Redis(*server.address) as client:
        yield client


@pytest.mark.parametrize("resp3", [False, True])
def test_flags_are_listed_in_one_order_whatever_the_library_says(
    direct: Direct, resp3: bool
) -> None:
    client = direct.client(resp3=resp3)
    given = ("allow-cross-slot-keys", "no-cluster", "no-writes", "allow-oom", "allow-stale")
    flags = ", ".join(f"'{flag}'" for flag in (*given, "no-writes"))
    client.send(
        "FUNCTION", "LOAD",
        "#!lua name=l\nredis.register_function{function_name='f',"
        f" callback=function() end, flags={{{flags}}}}}",
    )  # fmt: skip
    reply = client.send("FUNCTION", "LIST")
    assert reply is not None
    assert reply.endswith(
        (b"~5" if resp3 else b"*5") + b"\r\n+no-writes\r\n+allow-oom\r\n+allow-stale\r\n+no-cluster"
        b"\r\n+allow-cross-slot-keys\r\n"
    )


def memory_fields(client: DirectClient) -> dict[str, str]:
    reply = client.send("INFO", "memory")
    assert reply is not None
    lines = reply.decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


# --- keeping ---------------------------------------------------------------------------------


def test_functions_outlive_a_restart(tmp_path: Path) -> None:
    with penstock_at(tmp_path) as client:
        client.function_load(COUNTER.decode())
        client.function_load(OTHER.decode())
        assert client.fcall("add", 1, "n", "2") == 2
    with penstock_at(tmp_path) as client:
        assert client.fcall("add", 1, "n", "3") == 5
        assert client.fcall_ro("say", 0) == b"hello"


def test_functions_outlive_a_rewrite_of_the_file(tmp_path: Path) -> None:
    with penstock_at(tmp_path) as client:
        client.function_load(OTHER.decode())
        client.save()
    with penstock_at(tmp_path) as client:
        assert client.fcall("say", 0) == b"hello"


def test_the_file_says_what_happened_to_libraries(tmp_path: Path) -> None:
    with penstock_at(tmp_path) as client:
        client.function_load(OTHER.decode())
        dump = client.execute_command("FUNCTION", "DUMP")
        client.function_load(COUNTER.decode())
        client.function_load(COUNTER.decode(), replace=True)
        client.function_delete("counter")
        client.execute_command("FUNCTION", "RESTORE", dump, "REPLACE")
        client.execute_command("FUNCTION", "RESTORE", dump, "FLUSH")
        client.function_flush()
    (increment,) = tmp_path.glob("appendonlydir/*.incr.aof")
    commands = [
        command[1:]
        for command in parse(increment.read_bytes()).commands
        if command[0] == b"FUNCTION"
    ]
    assert commands == [
        [b"LOAD", b"REPLACE", OTHER],
        [b"LOAD", b"REPLACE", COUNTER],
        [b"LOAD", b"REPLACE", COUNTER],
        [b"DELETE", b"counter"],
        [b"DELETE", b"other"],
        [b"LOAD", b"REPLACE", OTHER],
        [b"DELETE", b"other"],
        [b"LOAD", b"REPLACE", OTHER],
        [b"FLUSH"],
    ]


def test_functions_are_there_after_a_reload() -> None:
    with (
        PenstockThread(enable_debug_command="yes") as penstock,
        Redis(penstock.host, penstock.port) as client,
    ):
        client.function_load(OTHER.decode())
        assert client.execute_command("DEBUG", "RELOAD")
        assert client.fcall("say", 0) == b"hello"


def test_what_a_function_changes_is_a_transaction(tmp_path: Path) -> None:
    code = (
        "#!lua name=two\nredis.register_function('two', function(keys)"
        " redis.call('set', keys[1], 1) redis.call('set', keys[2], 2) end)"
    )
    with penstock_at(tmp_path) as client:
        client.function_load(code)
        client.fcall("two", 2, "a", "b")
    (increment,) = tmp_path.glob("appendonlydir/*.incr.aof")
    commands = [b" ".join(command) for command in parse(increment.read_bytes()).commands]
    assert commands[-4:] == [b"MULTI", b"SET a 1", b"SET b 2", b"EXEC"]


# --- other servers ---------------------------------------------------------------------------


def test_redis_restores_what_penstock_dumps(client: DirectClient, redis: Redis) -> None:
    for code in (COUNTER, OTHER, LONG):
        client.send("FUNCTION", "LOAD", code)
    dump = client.send("FUNCTION", "DUMP")
    assert dump is not None
    assert redis.execute_command("FUNCTION", "RESTORE", dump.split(b"\r\n", 1)[1][:-2])
    assert redis.fcall("add", 1, "n", "2") == 2
    assert redis.fcall("long", 0) == 1


def test_penstock_restores_what_redis_dumps(client: DirectClient, redis: Redis) -> None:
    for code in (COUNTER, OTHER, LONG):
        redis.function_load(code.decode())
    dump: bytes = redis.execute_command("FUNCTION", "DUMP")
    assert client.send("FUNCTION", "RESTORE", dump) == b"+OK\r\n"
    assert client.send("FCALL", "add", 1, "n", "2") == b":2\r\n"
    assert sorted(restore_libraries(dump)) == sorted([COUNTER, OTHER, LONG])


def test_redis_loads_the_file_with_functions(real_server: str, tmp_path: Path) -> None:
    with penstock_at(tmp_path) as client:
        client.function_load(OTHER.decode())
        client.save()
        client.function_load(COUNTER.decode())
    with RealServer(real_server) as server, Redis(*server.address) as redis:
        for file in sorted((tmp_path / "appendonlydir").glob("*.aof")):
            for command in parse(file.read_bytes()).commands:
                if command[0] == b"FUNCTION":
                    redis.execute_command(*command)
        assert redis.fcall("say", 0) == b"hello"
        assert redis.fcall("add", 1, "n", "2") == 2


# --- details ---------------------------------------------------------------------------------


def test_info_tells_of_functions(client: DirectClient) -> None:
    fields = memory_fields(client)
    assert (fields["number_of_functions"], fields["number_of_libraries"]) == ("0", "0")
    assert fields["used_memory_vm_functions"] == "0"
    client.send("FUNCTION", "LOAD", OTHER)
    fields = memory_fields(client)
    assert (fields["number_of_functions"], fields["number_of_libraries"]) == ("1", "1")
    assert fields["used_memory_functions"] == str(200 + len(OTHER))
    assert fields["used_memory_scripts"] == fields["used_memory_functions"]
    assert int(fields["used_memory_vm_functions"]) > 10_000
    client.send("FUNCTION", "FLUSH")
    assert memory_fields(client)["used_memory_vm_functions"] == "0"


def test_names_that_differ_in_case_only_are_the_same(client: DirectClient) -> None:
    """Redis takes both, and ends when the library is removed."""
    code = "".join(f" redis.register_function('{name}', function() end)" for name in "aA")
    assert client.send("FUNCTION", "LOAD", f"#!lua name=x\n{code}") == (
        b"-ERR Error registering functions: ERR Function already exists in the library\r\n"
    )


def test_a_failed_restore_changes_nothing(client: DirectClient) -> None:
    client.send("FUNCTION", "LOAD", COUNTER)
    broken = dump_libraries([OTHER, b"#!lua name=broken\nreturn"])
    for policy in ("FLUSH", "APPEND", "REPLACE"):
        reply = client.send("FUNCTION", "RESTORE", broken, policy)
        assert reply == b"-ERR No functions registered\r\n"
    assert client.send("FCALL", "add", 1, "n", "2") == b":2\r\n"
    assert client.send("FCALL", "say", 0) == b"-ERR Function not found\r\n"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xf6", b"given type is not a function"),
        (b"\xf5\x05abc", b"failed loading functions"),
        (b"\xf5\xc3\x02\x05\x40\x00", b"failed loading functions"),
        (b"\xf5\xc3\x03\x05\xe0\x00\x00", b"failed loading functions"),
        (b"\xf5\xc4", b"failed loading functions"),
        (b"\xf5\x80\x00\x00\x00\xff", b"failed loading functions"),
        (b"\xf5\x81\x00\x00\x00\x00\x00\x00\x00\xff", b"failed loading functions"),
        (b"\xf5\xc0\x07", b"Missing library metadata"),
        (b"\xf5\xc1\x07\x07", b"Missing library metadata"),
    ],
)
def test_damaged_payloads_are_refused(client: DirectClient, body: bytes, text: bytes) -> None:
    data = body + b"\x0c\x00"
    data += crc64(data).to_bytes(8, "little")
    assert client.send("FUNCTION", "RESTORE", data) == b"-ERR " + text + b"\r\n"


@pytest.mark.parametrize("version", [b"\x0d\x00", b"\x50\x00"])
def test_a_payload_of_a_later_version_is_refused(client: DirectClient, version: bytes) -> None:
    data = version
    data += crc64(data).to_bytes(8, "little")
    reply = client.send("FUNCTION", "RESTORE", data)
    assert reply == b"-ERR DUMP payload version or checksum are wrong\r\n"


def test_long_lengths_are_read_as_they_are_written() -> None:
    codes = [b"x" * size for size in (0, 63, 64, 16383, 16384)]
    assert restore_libraries(dump_libraries(codes)) == codes


def test_a_pause_of_writes_holds_a_function_that_may_write(client: DirectClient) -> None:
    client.send("FUNCTION", "LOAD", COUNTER)
    client.send("FUNCTION", "LOAD", OTHER)
    client.send("CLIENT", "PAUSE", "100000", "WRITE")
    server = client.server.services
    held = [
        hold_back(server, client.session, request, lambda: None)
        for request in (
            [b"FCALL", b"add", b"1", b"k", b"1"],
            [b"FCALL", b"say", b"0"],
            [b"FCALL_RO", b"say", b"0"],
            [b"FCALL", b"unknown", b"0"],
        )
    ]
    client.send("CLIENT", "UNPAUSE")
    assert held == [True, False, False, True]


def test_a_pause_of_writes_holds_a_script_that_may_write(client: DirectClient) -> None:
    sources = (b"#!lua flags=no-writes\nreturn 1", b"return 1")
    for source in sources:
        client.send("SCRIPT", "LOAD", source)
    harmless, free = (hashlib.sha1(source).hexdigest().encode() for source in sources)
    client.send("CLIENT", "PAUSE", "100000", "WRITE")
    server = client.server.services
    held = [
        hold_back(server, client.session, request, lambda: None)
        for request in (
            [b"EVAL", b"return 1", b"0"],
            [b"EVAL", b"#!lua\nreturn 1", b"0"],
            [b"EVAL", b"#!lua flags=wrong\nreturn 1", b"0"],
            [b"EVAL", b"#!lua flags=no-writes\nreturn 1", b"0"],
            [b"EVAL_RO", b"return 1", b"0"],
            [b"EVALSHA", free, b"0"],
            [b"EVALSHA", b"f" * 40, b"0"],
            [b"EVALSHA", harmless.upper(), b"0"],
        )
    ]
    client.send("CLIENT", "UNPAUSE")
    assert held == [True, True, True, False, False, True, True, False]
