"""DEBUG TRACE over connections, pipelined requests and the fast path for XADD included."""

from __future__ import annotations

import pytest

from tests.support.direct import START_MS, Direct
from tests.support.wire import Wire, bulk, pack, packed

OK = b"+OK\r\n"


@pytest.fixture
def tester(direct: Direct) -> Wire:
    return Wire(direct)


def ask(wire: Wire, line: str) -> bytes:
    """The reply to an inline command."""
    wire.take()
    wire.read(line.encode() + b"\r\n")
    return wire.take()


def traced(client: int, name: str, db: int, *words: str) -> bytes:
    head = b"*5\r\n:%d\r\n:%d\r\n%b:%d\r\n" % (START_MS, client, bulk(name), db)
    return head + pack(*words)


def test_a_trace_shows_what_other_clients_have_sent(direct: Direct, tester: Wire) -> None:
    other = Wire(direct)
    assert ask(other, "SET before 1") == OK
    assert ask(tester, "DEBUG TRACE START") == OK
    ask(tester, "SET mine 1")
    ask(other, "CLIENT SETNAME worker")
    ask(other, "SELECT 3")
    assert ask(other, "SET k v") == OK
    ask(other, "DEBUG LOG x")
    assert ask(other, "NOSUCH x").startswith(b"-ERR unknown command")
    assert ask(other, "GET").startswith(b"-ERR wrong number")
    assert ask(tester, "DEBUG TRACE GET") == b"*5\r\n" + b"".join(
        [
            traced(2, "", 0, "CLIENT", "SETNAME", "worker"),
            traced(2, "worker", 0, "SELECT", "3"),
            traced(2, "worker", 3, "SET", "k", "v"),
            traced(2, "worker", 3, "NOSUCH", "x"),
            traced(2, "worker", 3, "GET"),
        ]
    )
    assert ask(tester, "DEBUG TRACE GET") == b"*0\r\n"


def test_only_the_asking_connection_is_left_out_and_passwords_are(
    direct: Direct, tester: Wire
) -> None:
    other = Wire(direct)
    ask(tester, "DEBUG TRACE START")
    ask(other, "AUTH somebody secret")
    ask(other, "HELLO 3 AUTH somebody secret")
    reply = ask(tester, "DEBUG TRACE GET")
    assert b"secret" not in reply
    assert reply == b"*2\r\n" + traced(2, "", 0, "AUTH", "(redacted)", "(redacted)") + traced(
        2, "", 0, "HELLO", "3", "AUTH", "(redacted)", "(redacted)"
    )


def test_count_takes_the_oldest(direct: Direct, tester: Wire) -> None:
    other = Wire(direct)
    ask(tester, "DEBUG TRACE START")
    for number in range(3):
        ask(other, f"ECHO {number}")
    assert ask(tester, "DEBUG TRACE GET COUNT 2") == b"*2\r\n" + traced(
        2, "", 0, "ECHO", "0"
    ) + traced(2, "", 0, "ECHO", "1")
    assert ask(tester, "DEBUG TRACE GET COUNT 2") == b"*1\r\n" + traced(2, "", 0, "ECHO", "2")


def test_a_pattern_chooses_connections_by_their_name(direct: Direct, tester: Wire) -> None:
    one, two, nameless = Wire(direct), Wire(direct), Wire(direct)
    ask(one, "CLIENT SETNAME worker-1")
    ask(two, "CLIENT SETNAME other")
    ask(tester, "DEBUG TRACE START client worker-*")
    for wire in (one, two, nameless):
        ask(wire, "ECHO x")
    assert ask(tester, "DEBUG TRACE GET") == b"*1\r\n" + traced(2, "worker-1", 0, "ECHO", "x")


def test_pipelined_xadds_are_seen_one_by_one_and_take_the_fast_path_when_the_trace_stops(
    direct: Direct, tester: Wire
) -> None:
    other = Wire(direct)
    ask(other, "XADD k * a 0")
    ask(tester, "DEBUG TRACE START")
    other.read(packed("XADD k * a 1") * 3)
    assert ask(tester, "DEBUG TRACE GET") == b"*3\r\n" + 3 * traced(
        2, "", 0, "XADD", "k", "*", "a", "1"
    )
    assert ask(tester, "DEBUG TRACE STOP") == OK
    assert not direct.server.services.interception.active
    other.read(packed("XADD k * a 1") * 3)
    assert ask(tester, "DEBUG TRACE GET") == b"*0\r\n"


def test_queued_commands_are_seen_when_they_are_sent(direct: Direct, tester: Wire) -> None:
    other = Wire(direct)
    ask(tester, "DEBUG TRACE START")
    for line in ("MULTI", "SET k v", "EXEC"):
        ask(other, line)
    assert ask(tester, "DEBUG TRACE GET") == b"*3\r\n" + b"".join(
        [traced(2, "", 0, "MULTI"), traced(2, "", 0, "SET", "k", "v"), traced(2, "", 0, "EXEC")]
    )


def test_the_status_tells_how_many_are_kept_and_lost(direct: Direct, tester: Wire) -> None:
    off = b"*8\r\n$7\r\nrunning\r\n:0\r\n$6\r\nclient\r\n$-1\r\n$4\r\nkept\r\n:0\r\n"
    assert ask(tester, "DEBUG TRACE STATUS") == off + b"$4\r\nlost\r\n:0\r\n"
    other = Wire(direct)
    ask(other, "CLIENT SETNAME a")
    ask(tester, "DEBUG TRACE START CLIENT a*")
    ask(other, "ECHO x")
    ask(tester, "HELLO 3")
    assert ask(tester, "DEBUG TRACE STATUS") == (
        b"%4\r\n$7\r\nrunning\r\n:1\r\n$6\r\nclient\r\n$2\r\na*\r\n"
        b"$4\r\nkept\r\n:1\r\n$4\r\nlost\r\n:0\r\n"
    )


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("", b"unknown"),
        ("BEGIN", b"unknown"),
        ("START CLIENT", b"unknown"),
        ("STOP now", b"unknown"),
        ("GET COUNT 1 2", b"unknown"),
        ("START NAME x", b"-ERR syntax error\r\n"),
        ("GET MOST 1", b"-ERR syntax error\r\n"),
        ("GET COUNT x", b"-ERR value is not an integer or out of range\r\n"),
        (
            "GET COUNT 0",
            b"-ERR value is out of range, value must between 1 and 9223372036854775807\r\n",
        ),
    ],
)
def test_other_shapes_are_errors(direct: Direct, tester: Wire, words: str, reply: bytes) -> None:
    unknown = b"-ERR unknown subcommand or wrong number of arguments for 'TRACE'. Try DEBUG HELP."
    expected = unknown + b"\r\n" if reply == b"unknown" else reply
    assert ask(tester, f"DEBUG TRACE {words}") == expected
    assert not direct.server.services.interception.active
