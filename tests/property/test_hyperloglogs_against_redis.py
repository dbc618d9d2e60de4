"""Random HyperLogLogs under each limit: their bytes and counts must be those of a real server."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conformance.reference import RealServer
from tests.property.test_streams_against_redis import RealClient
from tests.support.direct import Direct
from tests.support.examples import scaled

LIMIT = "hll-sparse-max-bytes"
KEYS = ["a", "b", "c"]


def histories(seed: int) -> Iterator[list[str]]:
    """Commands that add elements, few at first and then more, and merge and count."""
    chance = random.Random(seed)
    for step in range(40):
        most = 10 ** chance.randint(1, 6)
        count = chance.choice([1, 3, 20, 100 if step > 10 else 1])
        yield ["PFADD", chance.choice(KEYS), *(f"e{chance.randrange(most)}" for _ in range(count))]
        if not step % 5:
            yield ["PFMERGE", *chance.sample(KEYS, 2)]
        yield ["PFCOUNT", *chance.choices(KEYS, k=chance.randint(1, 2))]


@pytest.mark.parametrize("limit", [0, 21, 22, 60, 500, 3000, 20_000])
def test_bytes_and_counts_are_those_of_the_real_server(real: RealServer, limit: int) -> None:
    with RealClient(real.address, resp3=False) as theirs:
        ours = Direct().client()
        for client_send in (ours.send, theirs.raw):
            client_send("CONFIG", "SET", LIMIT, limit)
        try:
            for seed in range(scaled(3)):
                for each in (ours.send, theirs.raw):
                    each("FLUSHALL")
                for command in histories(seed):
                    assert ours.send(*command) == theirs.raw(*command), command
                    for key in KEYS:
                        assert ours.send("GET", key) == theirs.raw("GET", key), command
        finally:
            theirs.raw("CONFIG", "SET", LIMIT, 3000)
