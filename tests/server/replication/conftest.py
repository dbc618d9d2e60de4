"""A server to follow, and clients and replicas of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import redis

from tests.support.following import Follower
from tests.support.servers import ONCE, PenstockThread

Follow = Callable[..., Follower]


@pytest.fixture
def client(penstock: PenstockThread) -> Iterator[redis.Redis]:
    """A client with one connection."""
    with redis.Redis(
        port=penstock.port, single_connection_client=True, protocol=2, retry=ONCE
    ) as client:
        yield client


@pytest.fixture
def connect(penstock: PenstockThread) -> Iterator[Callable[[], Follower]]:
    """Makes connections for replicas, which are closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(Follower(penstock.address))


@pytest.fixture
def follow(connect: Callable[[], Follower]) -> Follow:
    """Makes replicas that have synchronised; the arguments are for REPLCONF."""

    def make(*options: str | int) -> Follower:
        follower = connect()
        follower.introduce("listening-port", 7000, "capa", "eof", "capa", "psync2", *options)
        follower.synchronise()
        follower.acknowledge()
        return follower

    return make
