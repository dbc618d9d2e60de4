"""The fast path for XADD: whatever is sent, wherever a read ends, nobody sees which way it went.

The same reads go to five servers: one that parses every request, one with the loop that is made
for the compiler, which may add requests that stand alone at once, one with the form for plain
Python, and one where nobody wants to know of effects.
Replies, data, counters and, where there is one, the append-only file are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol import additions, additions_plain, requests
from server.core.table import every
from server.net import adding
from server.net.adding import Adder, Cut, FormAt
from storage.aof.encode_effects import EffectEncoder
from storage.engine.effects import Effect
from storage.engine.stream import Stream
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.pictures import picture
from tests.support.wire import Wire, pack

Cutting = tuple[FormAt, Cut] | tuple[()]
ROADS: dict[str, Callable[[], Cutting | None]] = {
    "parsed": lambda: None,
    "loop": lambda: (additions.form_at, additions.cut),
    "alone": lambda: (),
    "expression": lambda: (additions_plain.Forms().form_at, additions_plain.cut),
    "unheeded": lambda: (additions.form_at, additions.cut),
}
KEYS = [b"s", b"t", b"", b"$1\r\n*\r\n", b"k" * 600]


class Road:
    """A server that goes one way, with a client on it, one that waits and one that watches."""

    def __init__(self, cutting: Cutting | None, loops: bool = False, recorded: bool = True) -> None:
        self.loops = loops
        self.direct = Direct()
        server = self.direct.server
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adding, "IS_COMPILED", True)
            adder = None if cutting is None else Adder(server.services, *cutting)
        server.listening.connections.adder = adder
        self.file: list[bytes] = []
        self._forms = EffectEncoder(server.state.keyspace)
        if recorded:
            server.services.reactions.record = self._record
        self.wire = Wire(self.direct)
        self.reader = self.direct.client()
        self.watcher = self.direct.client()

    def _record(self, effects: Sequence[Effect], session: object) -> None:
        self._forms.append(effects, self.file)

    def read(self, data: bytes | int) -> list[Any]:
        """What a read leads to, or the passing of so many milliseconds."""
        if isinstance(data, int):
            self.direct.advance(data)
            self.direct.cron()
        elif not self.wire.closed:
            with pytest.MonkeyPatch.context() as patch:
                if self.loops:
                    patch.setattr(requests, "IS_COMPILED", True)
                self.wire.read(data)
        state = self.direct.server.state
        woken = None
        if self.reader.parked:
            woken = self.reader.reply_when_woken
        return [
            self.wire.take(),
            self.wire.closed,
            self.wire.connection.waiting_bytes(),
            woken,
            self.watcher.session.watching is not None and self.watcher.session.watching.dirty,
            state.changes,
            dict(state.stats.errors),
            {c.fullname: (c.calls, c.failed, c.rejected) for c in every(state.table)},
            b"".join(self.file),
        ]

    def look(self) -> list[Any]:
        """The data, as it is and as it is shown."""
        keyspace = self.direct.server.state.keyspace
        keyspace.check()
        client = self.direct.client()
        streams = [
            key for key, value in keyspace.databases[0].values.items() if type(value) is Stream
        ]
        shown = [client.send("XINFO", "STREAM", key, "FULL") for key in sorted(streams)]
        return [picture(keyspace), shown]


VALUES = st.one_of(
    st.sampled_from([b"", b"1", b"19.8", b"-7", b"x" * 64, b"x" * 65, b"y" * 100, b"z" * 5000]),
    st.sampled_from(
        [b"\r\n", b"$1\r\n*\r\n", pack(b"XADD", b"s", b"*", b"f", b"1"), b"*2", b"~>+"]
    ),
    st.binary(max_size=20),
)
NAMES = st.sampled_from([[b"f"], [b"f"], [b"g"], [b"f", b"g"], [b"g", b"f"], [b""], [b"f", b"f"]])
MANY_NAMES = st.just([b"n%d" % n for n in range(10)])
THRESHOLD = st.sampled_from([b"0", b"1", b"2", b"3", b"5", b"10", b"40", b"-1", b"x"])
LOW_IDS = st.sampled_from([b"0", b"1700000000000", b"1700000000000-7", b"1700000000001", b"x"])
POLICY = st.sampled_from([[], [], [], [b"KEEPREF"], [b"DELREF"], [b"ACKED"]])
LIMIT = st.sampled_from([[], [], [b"LIMIT", b"0"], [b"LIMIT", b"1"], [b"limit", b"4"]])
SIGN = st.sampled_from([[], [b"="], [b"~"], [b"~"], [b"~"]])


@st.composite
def options(draw: st.DrawFn) -> list[bytes]:
    kind = draw(
        st.sampled_from(["", "", "", "nomk", "maxlen", "maxlen", "minid", "idmp", "policy"])
    )
    if kind in ("maxlen", "minid"):
        threshold = draw(THRESHOLD if kind == "maxlen" else LOW_IDS)
        return [kind.upper().encode(), *draw(SIGN), threshold, *draw(LIMIT), *draw(POLICY)]
    if kind == "idmp":
        return draw(st.sampled_from([[b"IDMP", b"p", b"i"], [b"IDMPAUTO", b"p"]]))
    return [b"NOMKSTREAM"] if kind == "nomk" else draw(POLICY)


IDENTITIES = st.sampled_from([*[b"*"] * 12, b"1-*", b"0-0", b"1700000000000-*", b"9999999999999-5"])


@st.composite
def additions_of_one_kind(draw: st.DrawFn) -> list[bytes]:
    """XADDs that begin alike, most of them with the same field names."""
    key = draw(st.sampled_from([*KEYS, b"s", b"s", b"s"]))
    name = draw(st.sampled_from([b"XADD", b"XADD", b"xadd", b"xAdD"]))
    head = [name, key, *draw(options())]
    entry_id = draw(st.one_of(IDENTITIES, st.just(b"rising")))
    shapes = draw(st.lists(st.one_of(NAMES, NAMES, NAMES, MANY_NAMES), min_size=1, max_size=3))
    requests: list[bytes] = []
    for _ in range(draw(st.sampled_from([1, 2, 3, 20, 60]))):
        shape = shapes[0] if len(requests) % 7 else draw(st.sampled_from(shapes))
        value = draw(VALUES) if len(requests) % 5 == 0 else b"%d" % len(requests)
        at = len(requests)
        given = b"%d-%d" % (1700000000000 + at // 3, at) if entry_id == b"rising" else entry_id
        requests.append(pack(*head, given, *(word for field in shape for word in (field, value))))
    return requests


def words(*lines: str) -> st.SearchStrategy[list[bytes]]:
    return st.sampled_from([[pack(*line.encode().split(b" "))] for line in lines])


OTHERS = words(
    "PING",
    "MULTI",
    "EXEC",
    "DISCARD",
    "SET s v",
    "DEL s",
    "PEXPIRE s 1",
    "PEXPIRE t 100000",
    "XGROUP CREATE s g 0 MKSTREAM",
    "XREADGROUP GROUP g c COUNT 2 STREAMS s >",
    "XACK s g 1700000000000-0",
    "XTRIM s MAXLEN 0",
    "XSETID s 18446744073709551615-18446744073709551614",
    "XSETID s 1800000000000-995",
    "XSETID s 1800000000000-18446744073709551613",
    "XLEN s",
    "SELECT 1",
    "SELECT 0",
    "CLIENT REPLY SKIP",
    "CLIENT REPLY OFF",
    "CLIENT REPLY ON",
    "CONFIG SET stream-node-max-entries 3",
    "CONFIG SET stream-node-max-entries 0",
    "CONFIG SET stream-node-max-bytes 90",
    "CONFIG SET notify-keyspace-events KEA",
    "CONFIG SET notify-keyspace-events -",
    "SUBSCRIBE c",
    "UNSUBSCRIBE c",
    "HELLO 3",
    "XADD s *",
    "XADD s * f",
    "XADD * * f v",
    "XADD s MAXLEN * * f v",
    "EVAL return{redis.call('XADD',KEYS[1],'*','f','v')} 1 s",
)
MALFORMED = st.sampled_from(
    [
        [b"XADD s * f v\r\n"],
        [b"\r\n"],
        [b"*0\r\n"],
        [b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$01\r\nf\r\n$1\r\nv\r\n"],
        [b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$-1\r\nv\r\n"],
        [b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nvab"],
        [b"*05\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n"],
        [b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n:1\r\n"],
    ]
)
PIECES = st.one_of(*[additions_of_one_kind()] * 6, OTHERS, OTHERS, MALFORMED)


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes | int]:
    """Reads, and what time passes between them: requests, cut anywhere."""
    pieces = draw(st.lists(PIECES, min_size=1, max_size=6))
    data = b"".join(pack(b"XADD", key, b"*", b"f", b"0") for key in KEYS[:4])
    data += b"".join(b"".join(piece) for piece in pieces)
    places = draw(st.lists(st.integers(0, len(data)), max_size=12))
    cuts = sorted({0, len(data), *places})
    reads: list[bytes | int] = []
    for start, end in pairwise(cuts):
        reads.append(data[start:end])
        if draw(st.integers(0, 3)) == 0:
            reads.append(draw(st.sampled_from([1, 5])))
    return reads


@pytest.fixture
def learning_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets expressions for requests that are alike be made after few of them."""
    monkeypatch.setattr(additions_plain, "LEARNED_AFTER", 20)


Setup = Callable[[Road], object]


def nothing(road: Road) -> object:
    return None


def reader_of_the_key(road: Road) -> object:
    road.direct.client().send("XADD", "s", "1-1", "f", "v")
    return road.reader.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")


def reader_of_another_key(road: Road) -> object:
    return road.reader.send("XREAD", "BLOCK", 0, "STREAMS", "other", "$")


def reader_of_a_group(road: Road) -> object:
    road.direct.client().send("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    return road.reader.send("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">")


def transaction(road: Road) -> object:
    return road.watcher.send("WATCH", "s")


SETUPS: list[Setup] = [
    nothing,
    reader_of_the_key,
    reader_of_another_key,
    reader_of_a_group,
    transaction,
]


@settings(
    max_examples=scaled(150),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(reads=conversations(), setup=st.sampled_from(SETUPS))
@pytest.mark.usefixtures("learning_soon")
async def test_the_fast_path_is_seen_by_nobody(reads: list[bytes | int], setup: Setup) -> None:
    roads = {
        name: Road(made(), name in ("loop", "alone", "unheeded"), name != "unheeded")
        for name, made in ROADS.items()
    }
    for road in roads.values():
        setup(road)
    for read in reads:
        seen = {name: road.read(read) for name, road in roads.items()}
        assert seen["loop"] == seen["parsed"]
        assert seen["expression"] == seen["parsed"]
        assert seen["unheeded"][:-1] == seen["parsed"][:-1]
    pictures = {name: road.look() for name, road in roads.items()}
    assert pictures["loop"] == pictures["parsed"]
    assert pictures["expression"] == pictures["parsed"]
    assert pictures["unheeded"] == pictures["parsed"]
