"""Hashes, lists, sets and sorted sets: the commands that services send most, with and without a
pipeline, and what a sorted set costs that has grown."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.data import ELEMENTS, Data
from benchmarks.driver import Client, pack
from benchmarks.loads import Flood, Load, Meter, Values
from benchmarks.measure import quantile
from benchmarks.redis_benchmark import RANDOM
from benchmarks.servers import Running
from benchmarks.workloads import COMPARED, Target, Workload

KEYS: Final = 1000
"""How many keys of each type there are, with :data:`ELEMENTS` elements each."""

PLAIN_MOST: Final = 1.5
PIPELINE_MOST: Final = 2.0
"""How many times the CPU of Redis a command may cost, without a pipeline and with one of 16."""

FLAT: Final = (1000, 1_000_000)
"""How many members a sorted set has that grows."""

COMMANDS: Final = {
    "hset": f"HSET hash:{RANDOM} field:7 value-of-the-field",
    "hget": f"HGET hash:{RANDOM} field:7",
    "hgetall": f"HGETALL hash:{RANDOM}",
    "lpush": f"LPUSH list:{RANDOM} element-of-the-list",
    "lpop": f"LPOP list:{RANDOM}",
    "sadd": f"SADD set:{RANDOM} member-of-the-set",
    "zadd": f"ZADD zset:{RANDOM} 1700000000.5 member:7",
    "zrange": f"ZRANGE zset:{RANDOM} 0 9",
}


@dataclass(frozen=True, kw_only=True)
class DelayQueue(Load):
    """A sorted set by due times: a job is added, the due ones are asked for, and one is removed."""

    unit = "job"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What a job costs, three commands in one round trip."""
        took: list[int] = []
        with Client(server.address) as client, Meter(server) as meter:
            for number in range(units):
                job = f"job:{number}"
                started = time.perf_counter_ns()
                client.send(
                    pack("ZADD", "due", 1_700_000_000 + number, job)
                    + pack("ZRANGEBYSCORE", "due", "-inf", "+inf", "LIMIT", 0, 10)
                    + pack("ZREM", "due", job)
                )
                for _ in range(3):
                    client.read()
                took.append(time.perf_counter_ns() - started)
        return {**meter.values(units), "p50_ms": quantile(took, 0.5) / 1e6}


@dataclass(frozen=True, kw_only=True)
class PopWakeups(Load):
    """An element that is pushed while a client waits for it."""

    unit = "wake-up"
    wait: tuple[str, ...]
    push: tuple[str, ...]

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The wall-clock time from sending the element until the waiting client has it."""
        took: list[int] = []
        with ExitStack() as stack:
            waiting = stack.enter_context(Client(server.address))
            pushing = stack.enter_context(Client(server.address))
            meter = stack.enter_context(Meter(server))
            for _ in range(units):
                waiting.send(pack(*self.wait))
                # What arrived before this is read before the server reads what comes after it.
                pushing.call("PING")
                started = time.perf_counter_ns()
                pushing.send(pack(*self.push))
                waiting.read()
                took.append(time.perf_counter_ns() - started)
                pushing.read()
        return {
            **meter.values(units),
            "p50_ms": quantile(took, 0.5) / 1e6,
            "p99_ms": quantile(took, 0.99) / 1e6,
        }


def _workload(name: str, title: str, load: Load, most: float, data: Data) -> Workload:
    return Workload(name, title, load, (Target("cpu_us", most),), data, servers=COMPARED)


_FILLED: Final = Data(collections=KEYS)

COLLECTIONS: Final = (
    *(
        _workload(
            f"{name}-p{pipeline}" if pipeline > 1 else name,
            f"{command.split()[0]}{' of 20 fields' if name == 'hgetall' else ''}, 1,000 keys,"
            f" {f'pipeline {pipeline}' if pipeline > 1 else 'no pipeline'}",
            Flood(command=command, pipeline=pipeline, numbers=KEYS, amount=amount),
            most,
            _FILLED,
        )
        for name, command in COMMANDS.items()
        for pipeline, amount, most in ((1, 60_000, PLAIN_MOST), (16, 160_000, PIPELINE_MOST))
    ),
    *(
        _workload(
            f"zadd-into-{members}",
            f"ZADD into {members:,} members, pipeline 16",
            Flood(
                command=f"ZADD one {RANDOM} member:{RANDOM}",
                pipeline=16,
                numbers=members,
                amount=160_000,
            ),
            PIPELINE_MOST,
            Data(members=members),
        )
        for members in FLAT
    ),
    _workload(
        "delay-queue",
        "ZADD, ZRANGEBYSCORE of 10 and ZREM in one round trip",
        DelayQueue(amount=20_000),
        PIPELINE_MOST,
        _FILLED,
    ),
    _workload(
        "blpop",
        "wake-up of BLPOP by LPUSH",
        PopWakeups(amount=5_000, wait=("BLPOP", "queue", "0"), push=("LPUSH", "queue", "job")),
        PLAIN_MOST,
        Data(),
    ),
    _workload(
        "bzpopmin",
        "wake-up of BZPOPMIN by ZADD",
        PopWakeups(amount=5_000, wait=("BZPOPMIN", "queue", "0"), push=("ZADD", "queue", "1", "j")),
        PLAIN_MOST,
        Data(),
    ),
)
"""What is compared with Redis."""

assert ELEMENTS == 20, "HGETALL is of 20 fields"
