"""Commands for HyperLogLogs: what follows from them, and what is written of it.

Replies are compared with a real server in tests/conformance/scripts/hyperloglogs.txt, bytes in
tests/property/test_hyperloglogs_against_redis.py.
"""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.lines import sent
from tests.support.listening import Listener
from tests.support.recording import Recording, load

SPARSE = b"HYLL\1" + bytes(11)
DAMAGED = b"-INVALIDOBJ Corrupted HLL object detected\r\n"


def test_events_tell_of_each_change(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    sent(client, "PFADD h", "PFADD h", "PFADD h a b", "PFADD h b a", "PFCOUNT h", "PFCOUNT h")
    assert listener.heard() == ["new h", "pfadd h", "pfadd h"]
    sent(client, "PFMERGE d h", "PFMERGE d h", "PFMERGE e")
    assert listener.heard() == [
        *("keymiss d", "new d", "pfadd d", "pfadd d"),
        *("keymiss e", "new e", "pfadd e"),
    ]


def test_a_key_keeps_its_expiry(client: DirectClient) -> None:
    sent(client, "PFADD h a", "EXPIRE h 100", "PFADD h b c", "PFCOUNT h", "PFMERGE h h")
    assert client.ask("TTL", "h") == 100


def test_what_is_written_is_each_change_as_it_was_asked_for(direct: Direct) -> None:
    recording = Recording(direct)
    for line in (
        "pfadd h a b",
        "PFADD h a",
        "PFCOUNT h",
        "PFCOUNT h",
        "pfmerge d h",
        "PFCOUNT d h",
    ):
        recording.send(*line.split())
    written = recording.contents()
    assert [written.count(name) for name in (b"PFADD", b"PFCOUNT", b"PFMERGE")] == [1, 1, 1]
    other = Direct()
    load(other, written)
    for key in ("h", "d"):
        ours, theirs = direct.client(), other.client()
        assert ours.send("GET", key) == theirs.send("GET", key)
        assert ours.send("OBJECT", "ENCODING", key) == theirs.send("OBJECT", "ENCODING", key)


def test_a_kept_count_is_a_change_for_those_who_watch(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    sent(client, "PFADD h a", "WATCH h")
    assert other.send("PFCOUNT", "h") == b":1\r\n"
    sent(client, "MULTI", "PING")
    assert client.send("EXEC") == b"*-1\r\n"
    sent(client, "WATCH h")
    assert other.send("PFCOUNT", "h") == b":1\r\n"
    sent(client, "MULTI", "PING")
    assert client.send("EXEC") == b"*1\r\n+PONG\r\n"


@pytest.mark.parametrize("runs", [b"\x10", b"\x7f\xff\x00", b"\x7f"])
def test_a_damaged_one_is_refused_and_stays_as_it_is(client: DirectClient, runs: bytes) -> None:
    elements = [f"e{number}" for number in range(50)]
    client.send("SET", "h", SPARSE[:-1] + b"\x80" + runs)
    if runs != b"\x7f\xff\x00":
        assert client.send("PFADD", "h", *elements) == DAMAGED
    assert client.send("PFCOUNT", "h") == DAMAGED
    assert client.send("PFCOUNT", "h", "none") == DAMAGED
    assert client.send("PFMERGE", "d", "h") == DAMAGED
    assert client.send("PFMERGE", "h") == DAMAGED
    assert client.ask("GET", "h") == SPARSE[:-1] + b"\x80" + runs
    assert client.ask("EXISTS", "d") == 0


def test_one_that_is_read_in_steps_is_not_changed_meanwhile(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    sent(client, "PFADD h " + " ".join(map(str, range(3000))))
    before = client.ask("GET", "h")
    keyspace = direct.server.state.keyspace
    value = keyspace.databases[0].buffer(b"h")
    assert value is not None
    loan = keyspace.lending.lend(value)
    sent(other, "PFADD h more and more of them")
    assert bytes(loan) == before
    assert client.ask("GET", "h") != before


@pytest.mark.parametrize("command", ["EVAL_RO", "FCALL_RO"])
def test_a_script_that_only_reads_may_not_count(client: DirectClient, command: str) -> None:
    sent(client, "PFADD h a")
    code = "return redis.call('pfcount', 'h')"
    if command == "FCALL_RO":
        library = "#!lua name=l\nredis.register_function{function_name='f', callback=function()"
        library += f" {code} end, flags={{'no-writes'}}}}"
        client.send("FUNCTION", "LOAD", library)
        code = "f"
    reply = client.send(command, code, 0)
    assert reply is not None
    assert reply.startswith(b"-ERR Write commands are not allowed from read-only scripts.")
