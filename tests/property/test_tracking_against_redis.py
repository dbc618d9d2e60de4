"""Clients that track, read and write at random: what each of them receives, replies and notices,
must be what it receives from a real server, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy, builds, integers, lists, one_of, sampled_from

from tests.conformance.player import Connection, Server
from tests.conformance.reference import RealServer
from tests.support.examples import scaled
from tests.support.servers import PenstockThread
from tests.support.wire import packed

CLIENTS: Final = 3

KEYS: Final = ["a1", "a2", "ab", "b1", "s"]

READS: Final = """\
GET a1|GET a2|MGET a1 ab b1|MGET s a1|EXISTS a1 s|TYPE b1|TTL a1|STRLEN a2|XLEN s|XRANGE s - +
XREAD STREAMS s ab 0 0|GETEX a1|OBJECT ENCODING a1|TOUCH a1 a2|LCS a1 a2|BITCOUNT a1|GET s
DBSIZE|KEYS no*
"""

WRITES: Final = """\
SET a1 1|SET a2 2|SET ab 3|SET b1 4|SET a1 1 NX|SET a1 1 EX 1000|MSET a1 1 b1 2|DEL a1
DEL a1 a2 s|UNLINK ab|APPEND a1 x|APPEND a1|INCR a2|SETRANGE a2 0 1|RENAME a1 a2|RENAME a1 b1
COPY a1 ab|COPY a1 ab REPLACE|MOVE a1 1|EXPIRE a1 1000|EXPIRE a2 -1|PERSIST a1|GETDEL a1
GETEX a1 EX 1000|SETBIT a1 1 1|BITOP NOT ab a1|SELECT 0|SELECT 1|XADD s N-1 f v|XADD s N-1 f v
XADD s MAXLEN 1 N-1 f v|XTRIM s MAXLEN 0|XDEL s 1-1|XGROUP CREATE s g 0 MKSTREAM
XREADGROUP GROUP g c STREAMS s >|XSETID s N-9|SET s x|GET
"""

TRACKING: Final = """\
CLIENT TRACKING ON|CLIENT TRACKING ON NOLOOP|CLIENT TRACKING ON OPTIN|CLIENT TRACKING ON OPTOUT
CLIENT TRACKING OFF|CLIENT TRACKING ON BCAST|CLIENT TRACKING ON BCAST PREFIX a
CLIENT TRACKING ON BCAST PREFIX a1 PREFIX b NOLOOP|CLIENT TRACKING ON BCAST PREFIX s
CLIENT TRACKING ON REDIRECT D|CLIENT TRACKING ON BCAST NOLOOP REDIRECT D
CLIENT TRACKING ON OPTIN NOLOOP|CLIENT CACHING YES|CLIENT CACHING NO|CLIENT TRACKINGINFO
CLIENT GETREDIR
"""

OTHERS: Final = """\
MULTI|EXEC|DISCARD|PING|CLIENT GETNAME
"""

ALONE: Final = """\
FLUSHALL ASYNC|FLUSHDB ASYNC|SWAPDB 0 1|XREAD BLOCK 0 STREAMS s ab $ $
"""
"""What may take Redis into the next round of its loop, where keys of BCAST are told together. A
flush without ASYNC is answered by another thread of it, nobody knows when."""

SCRIPTS: Final = [
    ["EVAL", "return redis.call('GET', 'a1')", "0"],
    ["EVAL", "redis.call('GET', 'a1') return redis.call('SET', 'a1', '5')", "0"],
    ["EVAL", "redis.call('SET', 'b1', '5') return redis.call('MGET', 'a1', 'b1')", "1", "a2"],
    ["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "ab"],
    ["EVAL", "return redis.call('DEL', 'a1', 's')", "0"],
]

Words = list[str]
Step = tuple[int, list[Words]]


def _of(text: str) -> SearchStrategy[Words]:
    return sampled_from([line.split(" ") for line in text.replace("\n", "|").split("|") if line])


PIPELINED: Final = one_of(
    _of(READS),
    _of(READS),
    _of(WRITES),
    _of(WRITES),
    _of(TRACKING),
    _of(OTHERS),
    sampled_from(SCRIPTS),
)
STEPS: Final = lists(
    builds(
        lambda client, commands: (client, commands),
        integers(0, CLIENTS - 1),
        one_of(
            _of(TRACKING).map(lambda words: [words]),
            lists(PIPELINED, min_size=1, max_size=4),
            lists(PIPELINED, min_size=1, max_size=2),
            _of(ALONE).map(lambda words: [words]),
        ),
    ),
    min_size=5,
    max_size=30,
)


class Party:
    """Some clients of one server, and a listener that others may redirect to."""

    def __init__(self, server: Server, protocol: int, listeners_protocol: int) -> None:
        self._server = server
        server.control.ask(b"FLUSHALL")
        self._clients = [Connection(server.address, protocol) for _ in range(CLIENTS)]
        self._listener = Connection(server.address, listeners_protocol)
        self._number = self._listener.ask(b"CLIENT", b"ID").strip()[1:]
        self._listener.ask(b"SUBSCRIBE", b"__redis__:invalidate")
        self._sent = 0

    def take(self, client: int, commands: list[Words]) -> list[bytes]:
        """What everybody has received when the commands have been sent in one piece."""
        data = packed(*([self._word(word) for word in words] for words in commands))
        self._clients[client].send(data)
        self._server.settle()
        received = [self._received(each) for each in self._clients]
        # Redis writes null as the client that tracks would read it, and not the one that reads it.
        return [*received, self._received(self._listener).replace(b"\n_\r\n", b"\n$-1\r\n")]

    def _word(self, word: str) -> bytes:
        if word == "D":
            return self._number
        if word.startswith("N-"):
            self._sent += 1
            return b"%d-%s" % (100 + self._sent, word[2:].encode())
        return word.encode()

    def _received(self, connection: Connection) -> bytes:
        data = connection.pending()
        connection.buffer = b""
        return data.replace(b":%s\r\n" % self._number, b":listener\r\n")

    def close(self) -> None:
        """Ends all connections."""
        for each in (*self._clients, self._listener):
            each.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[Server]:
    with PenstockThread() as thread:
        # On a slow machine nothing is put off either: a real server does all that a read brought.
        turns = thread.server.services.traffic.turns
        turns.share_ns = turns._full_share_ns = 10**12
        server = Server((thread.host, thread.port))
        yield server
        server.close()


@pytest.fixture(scope="module")
def theirs(real: RealServer) -> Iterator[Server]:
    server = Server(real.address)
    yield server
    server.close()


@pytest.mark.parametrize(("protocol", "listeners_protocol"), [(3, 2), (3, 3), (2, 2), (2, 3)])
def test_notices_are_those_of_a_real_server(
    ours: Server, theirs: Server, protocol: int, listeners_protocol: int
) -> None:
    def play(steps: list[Step]) -> None:
        with (
            closing(Party(ours, protocol, listeners_protocol)) as our_party,
            closing(Party(theirs, protocol, listeners_protocol)) as their_party,
        ):
            parked: set[int] = set()
            for client, commands in steps:
                # What a client sends while it waits is worked off before or after others are told
                # of the keys of BCAST, as it happens.
                if client in parked:
                    continue
                received = our_party.take(client, commands)
                assert received == their_party.take(client, commands), commands
                if commands[0][:2] == ["XREAD", "BLOCK"]:
                    parked.add(client)
                # A notice alone wakes nobody.
                parked = {each for each in parked if received[each][:1] in (b"", b">")}

    settings(
        max_examples=scaled(150), suppress_health_check=[HealthCheck.too_slow], print_blob=False
    )(given(STEPS)(play))()
