"""Policies for long, while workers fail and the server is killed: nothing is lost, the order is
kept, and nobody is kept waiting."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from hiredis import ReplyError

from benchmarks.durability import kept
from benchmarks.servers import PENSTOCK, Running, with_options
from tests.reliability.witness import Witness, found
from tests.soak.clients import Client, Tally
from tests.soak.conftest import ENTRY_EACH_MS, MEGABYTE
from tests.soak.results import Outcome, results_of
from tests.soak.test_soak import SCALE, SECONDS, TIMEOUT_S
from tests.support.direct import Argument

LANES: Final = max(5, int(100 * SCALE))
WORKERS: Final = max(5, int(50 * SCALE))
KILL_EACH_S: Final = 3.0

TITLES: Final = {
    "test_nothing_is_lost_and_the_order_is_kept_though_the_server_is_killed": (
        f"{LANES:,} lanes and {WORKERS:,} workers in each of three groups with policies for"
        f" {SECONDS:,.0f} s, some of which fail, and SIGKILL each {KILL_EACH_S:,.0f} s"
    )
}
"""What the rows of benchmarks/results/reliability.md say of tests."""

KEY: Final = "jobs"
ORDERED: Final = "ordered"
PLAIN: Final = "plain"
RANKED: Final = "ranked"

POLICIES: Final = {
    ORDERED: (
        *("order-by", "lane", "backoff", "20,50,100", "delay-field", "at", "consumer-ttl", 1000),
        *("max-pending", 200, "max-deliveries", 4, "dead-letter", f"{ORDERED}:dead"),
        *("reasons", "yes"),
    ),
    PLAIN: (
        *("ack-wait", 200, "consumer-ttl", 1000, "max-pending-consumer", 20),
        *("max-deliveries", 4, "dead-letter", f"{PLAIN}:dead", "rate-limit", "5000/1s"),
        *("reasons", "yes"),
    ),
    RANKED: (
        *("priority-field", "urgency", "backoff", "20,50,100", "consumer-ttl", 1000),
        *("rate-limit", "5000/1s", "max-deliveries", 4, "dead-letter", f"{RANKED}:dead"),
        *("reasons", "yes"),
    ),
}

FATES: Final = (("ack", 76), ("forget", 8), ("SILENT", 6), ("FAIL", 6), ("FATAL", 1), ("cut", 3))
"""What a worker does with an entry, and how often of a hundred times."""

pytestmark = pytest.mark.slow

Job = tuple[str, int]
"""The lane of an entry, and its number there."""


class Group:
    """What workers of one group have seen of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settled: set[Job] = set()
        """What somebody has acknowledged, whether that was answered or not."""
        self.passed: set[Job] = set()
        """What nobody had acknowledged when a later entry of the lane was delivered."""


class Works:
    """Producers, workers of each group, and who kills the server."""

    def __init__(self, server: Running, tally: Tally) -> None:
        self._server = server
        self._tally = tally
        self._random = Random(1)
        self.added: dict[str, list[int]] = {}
        """The numbers that are in the stream for sure, by lane."""
        self.groups = [Group(name) for name in POLICIES]
        self._ended = False
        self._failing = True

    async def run(self) -> None:
        await self._prepare()
        producers = [asyncio.create_task(self._produce(f"lane{n}")) for n in range(LANES)]
        workers = [
            asyncio.create_task(self._consume(group, f"{number}"))
            for group in self.groups
            for number in range(WORKERS)
        ]
        killer = asyncio.create_task(self._kill())
        await asyncio.sleep(SECONDS)
        self._ended = True
        await asyncio.gather(killer, *producers)
        self._failing = False
        await self._until_all_is_settled()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _prepare(self) -> None:
        admin = Client(self._server.address, self._tally)
        for name, policies in POLICIES.items():
            await admin.ask("XGROUP", "CREATE", KEY, name, 0, "MKSTREAM")
            await admin.ask("PENSTOCK", "POLICY", "SET", KEY, "GROUP", name, *policies)
        admin.close()

    async def _produce(self, lane: str) -> None:
        added = self.added[lane] = []
        numbers = itertools.count(1)

        async def work(client: Client) -> None:
            while not self._ended:
                number = next(numbers)
                urgency = self._random.randrange(3)
                fields: list[Argument] = ["lane", lane, "n", number, "urgency", urgency]
                if self._random.random() < 0.1:
                    fields += ["at", int(time.time() * 1000) + self._random.randrange(200)]
                await client.ask("XADD", KEY, "*", *fields)
                added.append(number)
                await asyncio.sleep(0.05)

        while not self._ended:
            await self._with_client(work)

    async def _consume(self, group: Group, number: str) -> None:
        """A worker; when it is cut off, another one takes its place."""
        for turn in itertools.count(1):
            await self._with_client(partial(self._work, group, f"{number}-{turn}"))

    async def _with_client(self, work: Callable[[Client], Any]) -> None:
        """Works with a client until that is done or the connection is lost."""
        try:
            client = Client(self._server.address, self._tally)
        except OSError:
            await asyncio.sleep(0.02)
            return
        try:
            with contextlib.suppress(OSError):
                await work(client)
        except ReplyError as error:
            if not str(error).startswith("LOADING"):
                raise
            await asyncio.sleep(0.02)
        finally:
            client.close()

    async def _work(self, group: Group, name: str, client: Client) -> None:
        words = ("XREADGROUP", "GROUP", group.name, name, "COUNT", 5, "BLOCK", 50)
        while True:
            read = await client.ask(*words, "STREAMS", KEY, ">")
            for entry_id, fields in read[0][1] if read else ():
                job = (fields[1].decode(), int(fields[3]))
                self._see(group, job)
                if not await self._settle(client, group, entry_id, job):
                    return

    def _see(self, group: Group, job: Job) -> None:
        """Notes which entries of the lane were before this one, and not acknowledged."""
        lane, number = job
        if group.name == ORDERED and job not in group.settled:
            before = ((lane, each) for each in self.added[lane] if each < number)
            group.passed.update(each for each in before if each not in group.settled)

    async def _settle(self, client: Client, group: Group, entry_id: bytes, job: Job) -> bool:
        """Does with an entry what comes by chance; false if the worker ends over it."""
        fates, weights = zip(*FATES, strict=True)
        [fate] = self._random.choices(fates, weights) if self._failing else ["ack"]
        if fate == "ack":
            group.settled.add(job)
            await client.ask("XACK", KEY, group.name, entry_id)
        elif fate == "cut":
            self._tally.faults += 1
            client.cut()
            return False
        elif fate != "forget":
            words = ("NACK", KEY, group.name, fate, "REASON", "by chance", "IDS", 1, entry_id)
            await client.ask("PENSTOCK", *words)
        return True

    async def _kill(self) -> None:
        while not self._ended:
            await asyncio.sleep(min(KILL_EACH_S, SECONDS / 3))
            self._server.kill()
            await asyncio.to_thread(self._server.restart)
            self._tally.faults += 1

    async def _until_all_is_settled(self) -> None:
        admin = Client(self._server.address, self._tally)
        left, since = -1, time.monotonic()
        while now := await self._left(admin):
            if now != left:
                left, since = now, time.monotonic()
            assert time.monotonic() - since < TIMEOUT_S, f"{left} entries are left over"
            await asyncio.sleep(0.05)
        admin.close()

    async def _left(self, admin: Client) -> int:
        left = 0
        for group in self.groups:
            left += (await admin.ask("XPENDING", KEY, group.name))[0]
        rows = await admin.ask("XINFO", "GROUPS", KEY)
        return left + sum(int(row[row.index(b"lag") + 1]) for row in rows)

    async def dead(self, group: Group) -> set[Job]:
        """What is among the dead letters of a group."""
        admin = Client(self._server.address, self._tally)
        letters = await admin.ask("XRANGE", f"{group.name}:dead", "-", "+")
        admin.close()
        found = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in letters]
        return {(each[b"lane"].decode(), int(each[b"n"])) for each in found}


async def test_nothing_is_lost_and_the_order_is_kept_though_the_server_is_killed(
    tally: Tally, request: pytest.FixtureRequest
) -> None:
    with Running(with_options(PENSTOCK, kept("everysec")), patience=0) as server:
        works = Works(server, tally)
        before = server.resident_bytes()
        with Witness(server.address, ENTRY_EACH_MS) as witness:
            await works.run()
        added = {(lane, number) for lane, numbers in works.added.items() for number in numbers}
        assert len(added) > LANES
        for group in works.groups:
            dead = await works.dead(group)
            assert dead
            assert added <= group.settled | dead
            assert group.passed <= dead
        lost = len(set(witness.seen.acknowledged) - found(server.address))
        assert lost == 0
        results = results_of(request.config)
        if results:
            peak = (server.peak_bytes() - before) / MEGABYTE
            outcome = Outcome(tally.answered, tally.faults, witness.seen.longest_ms, peak, lost)
            results.note(request.function.__name__, "penstock", outcome)
