"""The same loads while a replica follows: a real Redis, on the processors of the clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.data import Data
from benchmarks.driver import Address, Client, LoadError
from benchmarks.durability import EACH_EFFECT
from benchmarks.loads import Load, Values
from benchmarks.servers import Running, find_kinds, with_options
from benchmarks.workloads import WORKLOADS, Target, Workload

FOLLOWED: Final = {"xadd": 1.3, "xadd-p16": 2.5, "xreadgroup-100": 0.5, "consumer-loop": 1.2}
"""The loads that are measured with a replica as well, and their targets."""
PATIENCE_S: Final = 20
"""How long the replica may take until it follows."""


@contextmanager
def following(address: Address) -> Iterator[None]:
    """A Redis that follows a server, from when it has everything; raises :class:`LoadError`."""
    kinds, _ = find_kinds(["redis"])
    if not kinds:
        raise LoadError("there is no redis-server that could follow")
    host, port = address
    with Running(with_options(kinds[0], ("--replicaof", f"{host} {port}"))) as replica:
        _await_link(replica.address)
        yield


def _await_link(address: Address) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with Client(address) as client:
        while b"master_link_status:up" not in client.call("INFO", "replication"):
            if time.monotonic() > deadline:
                raise LoadError(f"the replica did not follow within {PATIENCE_S} s")
            time.sleep(0.02)


@dataclass(frozen=True, kw_only=True)
class Followed(Load):
    """Another load, of whose changes a replica is told."""

    load: Load

    def possible(self, data: Data) -> int:
        """As much as without the replica."""
        return self.load.possible(data)

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What it costs the server, the replica's part not counted."""
        with following(server.address):
            return self.load.run(server, data, units)


def _followed(workload: Workload, most: float) -> Workload:
    return replace(
        workload,
        name=f"{workload.name}-replica",
        title=f"{workload.title}, with a replica",
        load=Followed(amount=workload.load.amount, load=workload.load),
        targets=(Target("cpu_us", most, why=EACH_EFFECT),),
        options=("--repl-backlog-size", "1mb"),
        without=workload.name,
    )


REPLICATING: Final = tuple(
    _followed(one, FOLLOWED[one.name]) for one in WORKLOADS if one.name in FOLLOWED
)
"""What is measured of servers that are followed."""
