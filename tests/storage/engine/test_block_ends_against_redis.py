"""Where blocks end and how large they are, as a real server has it (XINFO STREAM tells)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.engine import ids
from storage.engine.limits import StreamLimits
from storage.engine.log import Block, encode_entry
from storage.engine.stream import Stream
from storage.engine.trimming import KEEPREF, Trim, trim
from tests.conformance.reference import RealServer
from tests.storage.strategies import items
from tests.support.examples import scaled

KEY = b"k"
Items = list[bytes]
Client = redis.Redis


@pytest.fixture(scope="module")
def real(real_server: str) -> Iterator[Client]:
    """A client of a real server, where there is one."""
    with RealServer(real_server) as server, redis.Redis(*server.address) as client:
        yield client


# --- random histories ------------------------------------------------------------------------


class Add(NamedTuple):
    """An entry is added so far above the last one."""

    ms: int
    seq: int
    pairs: Items


class Delete(NamedTuple):
    """The entry at this place, counted from the oldest, is deleted."""

    place: int


class Approximately(NamedTuple):
    """An approximate trimming; by ID it is to the ID of the entry at this place."""

    by_length: bool
    place: int
    limit: int


class Configure(NamedTuple):
    """Nodes have these limits from now on."""

    max_bytes: int
    max_entries: int


Step = Add | Delete | Approximately | Configure

GAPS = st.one_of(
    st.integers(0, 3), st.sampled_from([127, 128, 4095, 4096, 2**16, 2**24, 2**32, 2**40, 2**55])
)
SEQUENCES = st.one_of(st.integers(0, 300), st.integers(0, ids.HALF))
ADDING = st.builds(Add, GAPS, SEQUENCES, items())
STEPS = st.one_of(
    ADDING,
    ADDING,
    ADDING,
    ADDING,
    st.builds(Delete, st.integers(0, 20)),
    st.builds(Approximately, st.booleans(), st.integers(0, 20), st.sampled_from([0, 3, 10])),
    st.builds(
        Configure,
        st.one_of(st.integers(0, 300), st.sampled_from([0, 1000, 4096, 5000, 20_000])),
        st.one_of(st.integers(0, 6), st.sampled_from([0, 0, 100])),
    ),
)


class Twins:
    """The same history in a stream of the engine and, as a list of commands, for a real server."""

    def __init__(self) -> None:
        self.limits = StreamLimits()
        self.stream = Stream(self.limits)
        self.commands: list[tuple[Any, ...]] = [("DEL", KEY)]
        self.take(Configure(4096, 100))

    def take(self, step: Step) -> None:
        """Does the step here, and notes the command that does it there."""
        match step:
            case Add(ms, seq, pairs):
                self._add(ms, seq, pairs)
            case Delete(place):
                entry_id = self._at(place)
                self.stream.delete([entry_id])
                self.commands.append(("XDEL", KEY, ids.text(entry_id)))
            case Approximately(by_length, place, limit):
                self._trim(by_length, place, limit)
            case Configure(max_bytes, max_entries):
                self._configure(max_bytes, max_entries)

    def _add(self, ms: int, seq: int, pairs: Items) -> None:
        entry_id = min(self.stream.last_id + ids.join(ms, seq) + 1, ids.MAX)
        if entry_id > self.stream.last_id:
            self.stream.add(entry_id, pairs)
            self.commands.append(("XADD", KEY, ids.text(entry_id), *pairs))

    def _at(self, place: int) -> int:
        live = list(self.stream.log)
        return live[place] if place < len(live) else self.stream.last_id

    def _trim(self, by_length: bool, place: int, limit: int) -> None:
        threshold = place if by_length else self._at(place)
        text = threshold if by_length else ids.text(threshold)
        trim(self.stream, Trim(by_length, threshold, True, limit, KEEPREF))
        how = "MAXLEN" if by_length else "MINID"
        self.commands.append(("XTRIM", KEY, how, "~", text, "LIMIT", limit))

    def _configure(self, max_bytes: int, max_entries: int) -> None:
        self.limits.max_bytes, self.limits.max_entries = max_bytes, max_entries
        self.commands.append(
            (
                *("CONFIG", "SET", "stream-node-max-bytes", max_bytes),
                *("stream-node-max-entries", max_entries),
            )
        )


def _shape_there(real: Client, commands: list[tuple[Any, ...]]) -> tuple[int, int, int]:
    """Length, nodes and tree nodes of the stream that the commands leave on a real server."""
    pipeline = real.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    pipeline.execute_command(
        "XGROUP", "CREATE", KEY, "makes sure that the stream is there", 0, "MKSTREAM"
    )
    pipeline.xinfo_stream(KEY)
    info = pipeline.execute()[-1]
    return info["length"], info["radix-tree-keys"], info["radix-tree-nodes"]


def _shape_here(stream: Stream) -> tuple[int, int, int]:
    return stream.log.length, stream.log.block_count, stream.tree_nodes


@settings(
    max_examples=scaled(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(steps=st.lists(STEPS, min_size=10, max_size=80))
def test_blocks_end_where_the_nodes_of_a_real_server_end(real: Client, steps: list[Step]) -> None:
    twins = Twins()
    for step in steps:
        twins.take(step)
    twins.stream.check()
    assert _shape_here(twins.stream) == _shape_there(real, twins.commands)


# --- exact sizes -----------------------------------------------------------------------------


def _fits(real: Client, entries: list[Items], most: int) -> bool:
    """Whether, with this limit, an entry without any bytes joins a node with these entries."""
    pipeline = real.pipeline(transaction=False)
    pipeline.config_set("stream-node-max-bytes", 0)
    pipeline.delete(KEY)
    for at, pairs in enumerate(entries, 1):
        pipeline.execute_command("XADD", KEY, f"{at}-0", *pairs)
    pipeline.config_set("stream-node-max-bytes", most)
    pipeline.execute_command("XADD", KEY, "1000-0", b"", b"")
    pipeline.xinfo_stream(KEY)
    keys: int = pipeline.execute()[-1]["radix-tree-keys"]
    return keys == 1


def _measured(real: Client, entries: list[Items]) -> int:
    """How large a node with these entries is on a real server: the highest limit that it fills."""
    low, high = 0, sum(len(part) + 32 for pairs in entries for part in pairs) + 100
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(real, entries, middle) else (middle, high)
    return low


@pytest.mark.parametrize(
    "pairs",
    [
        *([b"f", b"x" * length] for length in (0, 1, 63, 64, 125, 126, 127, 4095, 4096)),
        *([b"f", b"x" * length] for length in (16376, 16377, 16378, 16379, 16380)),
        *([b"f", b"x" * (2**21 + more)] for more in (-8, -7, -6, -5, -4)),
        *([b"f", b"%d" % (sign * 2**bits)] for bits in (7, 12, 15, 23, 31, 62) for sign in (1, -1)),
        *([b"f", b"%d" % (2**bits - 1)] for bits in (7, 12, 15, 23, 31, 63)),
        *(
            [b"f", text]
            for text in (b"9223372036854775808", b"-9223372036854775808", b"-0", b"007")
        ),
        [b"x" * 5000, b"1"],
        [b"f", b"v"] * 3000,
    ],
    ids=lambda pairs: f"{len(pairs)} of {len(pairs[0])} and {len(pairs[1])} bytes",
)
def test_a_node_is_as_large_as_on_a_real_server(real: Client, pairs: Items) -> None:
    entries = [pairs, pairs, [b"other", *pairs[1:]]]
    block = Block(1 << 64, pairs[::2])
    real.config_set("stream-node-max-entries", 100)
    for at, entry in enumerate(entries, 1):
        entry_id = at << 64
        payload = encode_entry(entry_id, entry)
        size = len(payload) - payload.index(b"*", 4)
        block.append(entry_id, at, 0, payload, size, entry[::2] == block.names)
    assert block.node_size() == _measured(real, entries)
