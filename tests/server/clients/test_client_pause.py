from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.servers import PenstockThread
from tests.support.wire import Client

ALL_DAY = 24 * 3600 * 1000


class Line(Client):
    """A connection whose replies are known."""

    def tell(self, request: str, expected: bytes) -> None:
        self.send(request)
        self.receive(expected)


@pytest.fixture
def lines(penstock: PenstockThread) -> Iterator[list[Line]]:
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Line(penstock.address)) for _ in range(3)]
        for number, line in enumerate(opened, 1):
            line.tell("CLIENT ID", b":%d\r\n" % number)
        yield opened


def held(penstock: PenstockThread) -> int:
    """How many connections a pause holds."""
    return len(penstock.server.services.pauses.held)


def pause(penstock: PenstockThread, mode: str) -> None:
    penstock.call(
        lambda: penstock.server.services.pauses.pause(
            penstock.server.state.clock() + ALL_DAY, mode == "ALL"
        )
    )


def unpause(penstock: PenstockThread) -> None:
    penstock.call(penstock.server.services.pauses.unpause)


def test_publishing_counts_as_writing(penstock: PenstockThread, lines: list[Line]) -> None:
    pause(penstock, "WRITE")
    lines[1].send("PUBLISH c m")
    lines[2].tell("PING", b"+PONG\r\n")
    assert penstock.call(held, penstock) == 1
    unpause(penstock)
    lines[1].receive(b":0\r\n")


def test_every_command_waits_in_a_pause_of_all(penstock: PenstockThread, lines: list[Line]) -> None:
    pause(penstock, "ALL")
    lines[0].send("CLIENT UNPAUSE")
    lines[1].send("PING")
    # What would be refused is answered all the same, so the others have been read by then.
    lines[2].tell("GET", b"-ERR wrong number of arguments for 'get' command\r\n")
    lines[2].tell("XGROUP FOO", b"-ERR unknown subcommand 'FOO'. Try XGROUP HELP.\r\n")
    lines[2].send("FOO")
    lines[2].receive(b"-ERR unknown command 'FOO', with args beginning with: \r\n")
    assert penstock.call(held, penstock) == 2
    unpause(penstock)
    lines[0].receive(b"+OK\r\n")
    lines[1].receive(b"+PONG\r\n")


def test_a_transaction_waits_if_it_writes(penstock: PenstockThread, lines: list[Line]) -> None:
    lines[0].tell("MULTI", b"+OK\r\n")
    lines[0].tell("SET k v", b"+QUEUED\r\n")
    lines[1].tell("MULTI", b"+OK\r\n")
    lines[1].tell("GET k", b"+QUEUED\r\n")
    lines[2].tell("MULTI", b"+OK\r\n")
    pause(penstock, "WRITE")
    lines[0].send("EXEC")
    lines[1].tell("EXEC", b"*1\r\n$-1\r\n")
    lines[1].tell("EXEC", b"-ERR EXEC without MULTI\r\n")
    lines[2].send("SET l w")
    lines[1].tell("PING", b"+PONG\r\n")
    assert penstock.call(held, penstock) == 2
    unpause(penstock)
    lines[0].receive(b"*1\r\n+OK\r\n")
    lines[2].receive(b"+QUEUED\r\n")


def test_a_client_that_leaves_is_not_held(penstock: PenstockThread, lines: list[Line]) -> None:
    pause(penstock, "WRITE")
    lines[1].send("SET k v")
    lines[0].tell("CLIENT KILL ID 2", b":1\r\n")
    assert penstock.call(held, penstock) == 0
    unpause(penstock)
    lines[0].tell("GET k", b"$-1\r\n")


def test_a_second_pause_extends_the_first_and_never_shortens_it(direct: Direct) -> None:
    client, pauses = direct.client(), direct.server.services.pauses
    client.send("CLIENT", "PAUSE", 5000, "ALL")
    client.send("CLIENT", "PAUSE", 100, "WRITE")
    assert (pauses.until_ms, pauses.everything) == (direct.now_ms + 5000, True)
    client.send("CLIENT", "PAUSE", 9000, "write")
    assert (pauses.until_ms, pauses.everything) == (direct.now_ms + 9000, True)
    assert client.send("CLIENT", "UNPAUSE") == b"+OK\r\n"
    assert not direct.server.services.pauses.active
    client.send("CLIENT", "PAUSE", 100, "WRITE")
    assert (pauses.until_ms, pauses.everything) == (direct.now_ms + 100, False)
    direct.server.services.pauses.close()


def test_keys_do_not_expire_by_themselves_in_a_pause(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v", "PX", 10)
    client.send("CLIENT", "PAUSE", 5000, "WRITE")
    direct.now_ms += 20
    direct.cron()
    assert direct.server.state.keyspace.expired == 0
    client.send("CLIENT", "UNPAUSE")
    direct.cron()
    assert direct.server.state.keyspace.expired == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["x"], b"ERR timeout is not an integer or out of range"),
        (["1.5"], b"ERR timeout is not an integer or out of range"),
        (["-1"], b"ERR timeout is negative"),
        (["9223372036854775807"], b"ERR timeout is out of range"),
        (["x", "FOO"], b"ERR CLIENT PAUSE mode must be WRITE or ALL"),
        (
            ["0", "WRITE", "x"],
            b"ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.",
        ),
    ],
)
def test_bad_arguments_pause_nothing(direct: Direct, words: list[str], text: bytes) -> None:
    client: DirectClient = direct.client()
    assert client.send("CLIENT", "PAUSE", *words) == b"-%b\r\n" % text
    assert not direct.server.services.pauses.active
