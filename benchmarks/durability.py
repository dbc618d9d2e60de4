"""The same loads with an append-only file, its rewriting, and its loading."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.data import FIELDS, KEY, Data
from benchmarks.driver import Client, LoadError
from benchmarks.loads import Load, Meter, Values
from benchmarks.servers import Running
from benchmarks.workloads import WORKLOADS, Target, Workload

POLICIES: Final = ("everysec", "always")
REPEATED: Final = ("xadd", "xadd-p16", "xreadgroup-100", "consumer-loop")
"""The loads that are measured with an append-only file as well."""
EACH_EFFECT: Final = (
    "what a command did is written as commands, which is two fifths of the loop's instructions:"
    " encoding them, a checksum, which is called by way of a buffer object, and a write; it would"
    " take texts of IDs that entries, replies and the file share, and a checksum of plain bytes"
)
EACH_COMMIT: Final = (
    "a thread syncs, and each commit hands the interpreter over to it and back, which switches"
    " threads three times; it would take a thread that never needs the interpreter"
)
TARGETS: Final = {
    "xadd-p16-everysec": Target("cpu_us", 0.8, why=EACH_EFFECT),
    "xreadgroup-100-everysec": Target("cpu_us", 0.25, why=EACH_EFFECT),
    "consumer-loop-everysec": Target("cpu_us", 1.0, why=EACH_EFFECT),
    "xadd-always": Target("cpu_us", 1.2, why=EACH_COMMIT),
}
"""Those of them that have a target."""
OF_ALWAYS: Final = 0.1
"""The part of the commands that is enough where each round of them waits for the disk."""
LIMIT_S: Final = 120
"""How long a rewrite may take."""


def kept(policy: str) -> tuple[str, ...]:
    """The options of a server that keeps its data in commands, as all of them can."""
    return (
        *("--appendonly", "yes", "--appendfsync", policy),
        *("--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0"),
    )


@dataclass(frozen=True, kw_only=True)
class Rewrite(Load):
    """BGREWRITEAOF, while a client goes on adding entries."""

    amount: int = 1

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What it cost, and how long it took until the new base was in its place."""
        with Client(server.address) as client, Meter(server) as meter:
            client.call("BGREWRITEAOF")
            for _ in self._while_it_lasts(client):
                client.call("XADD", KEY, "*", *FIELDS)
        return {**meter.values(1), "p50_ms": meter.wall_ns / 1e6, "p99_ms": meter.wall_ns / 1e6}

    def _while_it_lasts(self, client: Client) -> Iterator[None]:
        deadline = time.monotonic() + LIMIT_S
        for number in itertools.count():
            if number % 50 == 0 and b"rewrite_in_progress:0" in client.call("INFO", "persistence"):
                return
            if time.monotonic() > deadline:
                raise LoadError(f"the rewrite took longer than {LIMIT_S} s")
            yield


@dataclass(frozen=True, kw_only=True)
class Loading(Load):
    """A server is ended and started again, and has to load everything it held."""

    unit = "entry"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of an entry. The start of the process counts, too, which is little of it."""
        started = time.perf_counter_ns()
        server.restart()
        seconds = (time.perf_counter_ns() - started) / 1e9
        with Client(server.address) as client:
            if client.call("XLEN", KEY) != data.entries:
                raise LoadError("the server has not loaded every entry")
        cost = server.cpu_ns() / 1000 / data.entries
        return {"units": data.entries, "cpu_us": cost, "per_second": data.entries / seconds}


@dataclass(frozen=True, kw_only=True)
class LoadingSnapshot(Loading):
    """The same from an RDB file, and nothing else."""

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of an entry."""
        with Client(server.address) as client:
            client.call("SAVE")
        # Penstock makes a base of its append-only file as well, and would load that.
        shutil.rmtree(server.folder / "appendonlydir", ignore_errors=True)
        return super().run(server, data, units)


def _kept(workload: Workload, policy: str) -> Workload:
    load = workload.load
    if policy == "always":
        load = replace(load, amount=int(load.amount * OF_ALWAYS))
    name = f"{workload.name}-{policy}"
    return replace(
        workload,
        name=name,
        title=f"{workload.title}, appendfsync {policy}",
        load=load,
        targets=(TARGETS[name],) if name in TARGETS else (),
        options=kept(policy),
        without=workload.name,
    )


KEEPING: Final = (
    *(_kept(one, policy) for policy in POLICIES for one in WORKLOADS if one.name in REPEATED),
    Workload(
        "load",
        "loading 1,000,000 entries from the append-only file",
        Loading(amount=1_000_000),
        (Target("cpu_us", 1.0),),
        Data(entries=1_000_000),
        rounds=1,
        options=kept("everysec"),
    ),
    Workload(
        "load-rdb",
        "loading 1,000,000 entries from an RDB file",
        LoadingSnapshot(amount=1_000_000),
        (Target("cpu_us", 10.0),),
        Data(entries=1_000_000),
        rounds=1,
        options=("--dbfilename", "dump.rdb"),
    ),
)
"""What is measured of servers that keep their data."""
