"""The proxy that holds commands: what passes it, and when, and what it tells of workers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from penstock.explore.foreign import ForeignServer
from penstock.explore.proxy import HoldingProxy, without_end
from tests.support.servers import PenstockThread
from tests.support.wire import connected


class Held:
    """A worker that comes in by a port of a proxy."""

    def __init__(self, server: ForeignServer) -> None:
        self.server = server
        self.now_ms = 0
        self.proxy = HoldingProxy(server.place, server.ask, lambda: self.now_ms, nullcontext)
        self.ask = self.proxy.answer
        self.address = "127.0.0.1", int(self.ask("PORT", "OPEN", "ann"))

    def rest(self, until: str = "held,parked,gone") -> tuple[str, list[dict[str, Any]]]:
        [worker] = self.ask("FAULT", "REST", "ann", "UNTIL", until)["workers"]
        return worker["state"], worker["clients"]

    def received(self, worker: socket.socket) -> bytes:
        """What a worker receives until it is idle or gone."""
        self.rest("idle,gone")
        return worker.recv(1000)

    def release(self, *action: str) -> bool:
        """Releases the command that is held first, as soon as there is one."""
        assert self.rest("held")[0] == "held"
        return bool(self.ask("FAULT", "RELEASE", self.ask("FAULT", "HELD")[0]["client"], *action))


@pytest.fixture
def held() -> Iterator[Held]:
    with PenstockThread() as server, ForeignServer(server.url) as foreign:
        held = Held(foreign)
        yield held
        held.proxy.close()


SET = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"

BLPOP = b"*3\r\n$5\r\nBLPOP\r\n$4\r\njobs\r\n$1\r\n9\r\n"


def test_a_worker_is_absent_then_held_then_idle_then_gone(held: Held) -> None:
    assert held.rest("absent")[0] == "absent"
    with connected(held.address) as worker:
        assert held.rest("idle")[0] == "idle"
        worker.sendall(SET)
        state, [client] = held.rest()
        assert (state, client["state"], client["words"]) == ("held", "held", ["SET", "a", "1"])
        assert held.server.ask("GET", "a") is None
        assert held.release()
        assert held.received(worker) == b"+OK\r\n"
    assert held.rest() == ("gone", [])
    assert held.server.ask("GET", "a") == "1"


def test_a_command_that_is_held_never_runs_when_its_worker_leaves(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(SET)
        held.rest("held")
    assert held.rest()[0] == "gone"
    assert held.server.ask("DBSIZE") == 0


def test_a_command_that_is_released_runs_though_its_worker_leaves(held: Held) -> None:
    for number in range(20):
        with connected(held.address) as worker:
            worker.sendall(SET.replace(b"\r\na\r\n", b"\r\n%c\r\n" % (97 + number)))
            assert held.release("NOREPLY")
        assert held.rest()[0] == "gone"
    assert held.server.ask("DBSIZE") == 20


def test_what_ends_before_a_command_does_not_run_it(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(2 * SET)
        assert held.release("CLOSE")
        assert held.received(worker) == b""
    assert held.server.ask("DBSIZE") == 0
    assert not held.ask("FAULT", "RELEASE", 1)


def test_who_waits_is_parked_until_others_or_time_end_that(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(2 * BLPOP)
        held.release()
        state, [client] = held.rest()
        assert (state, client["until"], client["words"]) == ("parked", 9000, ["BLPOP", "jobs", "9"])
        held.server.ask("RPUSH", "jobs", "tea")
        assert held.rest()[0] == "held"
        assert worker.recv(1000) == b"*2\r\n$4\r\njobs\r\n$3\r\ntea\r\n"
        held.now_ms = 100
        held.release()
        held.rest("parked")
        held.now_ms = 9099
        held.ask("CLOCK", "ADVANCE", 8999)
        assert held.rest()[0] == "parked"
        held.now_ms = 9100
        held.ask("CLOCK", "ADVANCE", 1)
        assert held.received(worker) == b"*-1\r\n"


def test_who_has_left_takes_nothing_that_comes_later(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(BLPOP)
        held.release()
        held.rest("parked")
    assert held.rest()[0] == "gone"
    held.server.ask("RPUSH", "jobs", "tea")
    assert held.server.ask("LLEN", "jobs") == 1


def test_who_waits_for_replicas_is_busy_until_it_leaves(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(SET + b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n")
        held.release()
        held.release()
        [told] = held.ask("FAULT", "REST", "ann", "UNTIL", "idle", "TIMEOUT", 20)["workers"]
        assert told["state"] == "busy"
    assert held.rest()[0] == "gone"


def test_closing_a_port_ends_what_waits_there(held: Held) -> None:
    with connected(held.address) as worker, connected(held.address) as other:
        worker.sendall(BLPOP)
        other.sendall(SET)
        while held.rest("held,parked")[0] == "held":
            for client in held.ask("FAULT", "HELD"):
                held.ask("FAULT", "RELEASE", client["client"])
        held.ask("PORT", "CLOSE", "ann")
        assert worker.recv(100) == b""
        assert held.rest() == ("gone", [])
        held.server.ask("RPUSH", "jobs", "tea")
        assert held.server.ask("LLEN", "jobs") == 1


def test_a_long_reply_and_pushes_pass_as_they_are(held: Held) -> None:
    text = "x" * 5_000_000
    held.server.ask("SET", "long", text)
    with connected(held.address) as worker:
        worker.sendall(b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
        assert held.received(worker).startswith(b"%")
        worker.sendall(b"*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\non\r\n")
        assert held.received(worker) == b"+OK\r\n"
        worker.sendall(b"*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n")
        held.release()
        expected = f"${len(text)}\r\n{text}\r\n".encode()
        with worker.makefile("rb") as reading, ThreadPoolExecutor(1) as beside:
            read = beside.submit(reading.read, len(expected))
            assert held.rest("idle")[0] == "idle"
            assert read.result() == expected
            held.server.ask("SET", "long", "short")
            push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nlong\r\n"
            read = beside.submit(reading.read, len(push))
            while not read.done():
                assert held.rest("idle")[0] == "idle"
            assert read.result() == push


def test_closing_a_port_waits_for_nobody_who_does_not_read(held: Held) -> None:
    held.server.ask("SET", "long", "x" * 20_000_000)
    with connected(held.address) as worker:
        worker.sendall(b"*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n")
        held.release()
        [told] = held.ask("FAULT", "REST", "ann", "UNTIL", "idle", "TIMEOUT", 20)["workers"]
        assert told["state"] == "busy"
        held.ask("PORT", "CLOSE", "ann")
        assert held.rest() == ("gone", [])


def test_a_subscriber_is_idle(held: Held) -> None:
    with connected(held.address) as worker:
        worker.sendall(b"*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n")
        held.release()
        assert held.rest("idle")[0] == "idle"
        while held.server.ask("PUBLISH", "b", "tea") == 0:
            held.rest("idle")
        with worker.makefile("rb") as reading, ThreadPoolExecutor(1) as beside:
            found = beside.submit(lambda: b"tea\r\n" in iter(reading.readline, b""))
            while not found.done():
                held.rest("idle")
            assert found.result()
    assert held.rest()[0] == "gone"


@pytest.mark.parametrize("sent", [b"PING\r\n", b"*1\r\n:1\r\n", b"*0\r\n"])
def test_what_is_no_array_of_words_is_refused(held: Held, sent: bytes) -> None:
    with connected(held.address) as worker:
        worker.sendall(sent)
        told = b"-ERR Protocol error: a worker behind a proxy "
        assert held.rest("gone")[0] == "gone"
        assert worker.recv(1000).startswith(told)


def test_nobody_comes_in_where_the_server_has_ended(held: Held) -> None:
    held.proxy.server = "127.0.0.1", 1
    with connected(held.address) as worker:
        assert held.rest("gone")[0] == "gone"
        assert worker.recv(1) == b""


@pytest.mark.parametrize(
    ("text", "passes", "ends_in_ms"),
    [
        ("BLPOP a b 2.5", "BLPOP a b 0", 2500),
        ("BLPOP a 0", "BLPOP a 0", -1),
        ("BLPOP a 1e3", "BLPOP a 1e3", -1),
        ("BLPOP a 1_0", "BLPOP a 1_0", -1),
        ("BLMPOP 3 1 a LEFT", "BLMPOP 0 1 a LEFT", 3000),
        ("BLMPOP", "BLMPOP", -1),
        ("XREAD COUNT 1 BLOCK 70 STREAMS a $", "XREAD COUNT 1 BLOCK 0 STREAMS a $", 70),
        ("XREAD BLOCK 1.5 STREAMS a $", "XREAD BLOCK 1.5 STREAMS a $", -1),
        ("XREAD STREAMS BLOCK 5", "XREAD STREAMS BLOCK 5", -1),
        ("XREADGROUP GROUP BLOCK 5 STREAMS a >", "XREADGROUP GROUP BLOCK 5 STREAMS a >", -1),
        ("XREAD BLOCK", "XREAD BLOCK", -1),
        ("SET BLOCK 5", "SET BLOCK 5", -1),
    ],
)
def test_only_the_timeout_of_a_command_that_waits_is_another_one(
    text: str, passes: str, ends_in_ms: int
) -> None:
    request, timeout_ms = without_end(tuple(text.encode().split()), text.split())
    assert (b" ".join(request).decode(), timeout_ms) == (passes, ends_in_ms)
