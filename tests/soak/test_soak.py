"""What many clients do for long: nothing is lost, nothing grows, and nobody is kept waiting."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.soak.clients import Client, Tally
from tests.soak.conftest import MEGABYTE, RedisProcess, memory_of
from tests.support import wire
from tests.support.process import PenstockProcess
from tests.support.wire import AsyncClient, connected, pack, packed

SCALE: Final = float(os.environ.get("PENSTOCK_SOAK", "0.01"))

PRODUCERS: Final = max(5, int(1000 * SCALE))
CONSUMERS: Final = max(5, int(1000 * SCALE))
SECONDS: Final = max(2.0, 600 * SCALE)
CONNECTIONS: Final = max(200, int(10_000 * SCALE))
CONNECTS: Final = max(3000, int(1_000_000 * SCALE))
STRANGERS: Final = max(20, int(200 * SCALE))
HALVES: Final = max(100, int(5000 * SCALE))
TRICKLES: Final = max(50, int(1000 * SCALE))
BYTES: Final = max(1_000_000, int(50_000_000 * SCALE))

IDLE_MS: Final = 200
"""After so long an entry that a consumer has not acknowledged may be claimed."""

TIMEOUT_S: Final = 30.0

TITLES: Final = {
    "test_every_entry_is_acknowledged_though_consumers_are_cut_off": (
        f"{PRODUCERS:,} producers and {CONSUMERS:,} consumers for {SECONDS:,.0f} s, fifty of which"
        " are cut off each second"
    ),
    "test_many_connections_are_served_at_once": (
        f"{CONNECTIONS:,} connections that ask at once, and wait for the same entry"
    ),
    "test_connections_that_come_and_go_leave_nothing_behind": (
        f"{CONNECTS:,} connections in a row, each with a request"
    ),
    "test_a_server_without_descriptors_goes_on_when_it_has_some_again": (
        f"{STRANGERS:,} connections while the server has no descriptor left"
    ),
    "test_silent_connections_are_closed_after_the_timeout": (
        f"{HALVES:,} connections that are silent, every other one after half a request"
    ),
    "test_requests_may_come_byte_by_byte_and_others_go_on": (
        f"{TRICKLES:,} connections that send one byte at a time"
    ),
    "test_a_slow_reader_gets_everything_and_takes_no_memory": (
        f"{BYTES // 100_000 * 1_000_000:,} bytes asked for and read slowly"
    ),
}
"""What the rows of benchmarks/results/reliability.md say of tests."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").exists(), reason="needs Linux's /proc"),
]


# --- producers and consumers ------------------------------------------------------------------


class Workshop:
    """Producers, and consumers that are cut off at random and come again under other names."""

    def __init__(self, address: tuple[str, int], tally: Tally) -> None:
        self.address = address
        self.tally = tally
        self.produced: set[bytes] = set()
        self.delivered: set[bytes] = set()
        self.acknowledged = 0
        self.unsure = 0
        self.consumers: list[Client] = []
        self._ended = False

    async def run(self) -> None:
        admin = Client(self.address, self.tally)
        await admin.ask("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        tasks = [asyncio.create_task(self._produce(number)) for number in range(PRODUCERS)]
        workers = [asyncio.create_task(self._consume(number)) for number in range(CONSUMERS)]
        killer = asyncio.create_task(self._kill())
        await asyncio.sleep(SECONDS)
        self._ended = True
        await asyncio.gather(*tasks)
        await killer
        await self._until_all_are_acknowledged(admin)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert await admin.ask("XLEN", "s") == len(self.produced)
        admin.close()

    async def _until_all_are_acknowledged(self, admin: Client) -> None:
        left, since = -1, time.monotonic()
        while now := (await admin.ask("XPENDING", "s", "g"))[0] + await self._lag(admin):
            if now != left:
                left, since = now, time.monotonic()
            assert time.monotonic() - since < TIMEOUT_S, f"{left} entries are left over"
            await asyncio.sleep(0.05)

    async def _lag(self, admin: Client) -> int:
        fields = (await admin.ask("XINFO", "GROUPS", "s"))[0]
        return int(fields[fields.index(b"lag") + 1])

    async def _produce(self, number: int) -> None:
        client = Client(self.address, self.tally)
        count = 0
        while not self._ended:
            count += 1
            self.produced.add(await client.ask("XADD", "s", "*", "n", f"{number}-{count}"))
            await asyncio.sleep(0.01)
        client.close()

    async def _consume(self, number: int) -> None:
        """A consumer; when it is cut off, another takes its place."""
        turn = 0
        while True:
            turn += 1
            client = Client(self.address, self.tally)
            self.consumers.append(client)
            try:
                with contextlib.suppress(OSError):
                    await self._work(client, f"{number}-{turn}")
            finally:
                self.consumers.remove(client)
                client.close()

    async def _work(self, client: Client, name: str) -> None:
        group = ("XREADGROUP", "GROUP", "g", name, "COUNT", 5, "BLOCK", 50, "STREAMS", "s", ">")
        claim = ("XAUTOCLAIM", "s", "g", name, IDLE_MS, "0", "COUNT", 5, "JUSTID")
        while True:
            read = await client.ask(*group)
            found = [identity for identity, _ in read[0][1]] if read else []
            found += (await client.ask(*claim))[1]
            if found:
                await self._acknowledge(client, found)

    async def _acknowledge(self, client: Client, found: list[bytes]) -> None:
        self.delivered.update(found)
        self.unsure += len(found)
        count = await client.ask("XACK", "s", "g", *found)
        self.acknowledged += count
        self.unsure -= len(found)

    async def _kill(self) -> None:
        random = Random(1)
        while not self._ended:
            await asyncio.sleep(0.02)
            if self.consumers:
                random.choice(self.consumers).cut()
                self.tally.faults += 1


async def test_every_entry_is_acknowledged_though_consumers_are_cut_off(
    server: PenstockProcess, tally: Tally
) -> None:
    workshop = Workshop(server.address, tally)
    await workshop.run()
    assert tally.faults > 10
    assert len(workshop.produced) > PRODUCERS
    assert workshop.delivered == workshop.produced
    # An XACK counts an entry only once, whoever else has it; of one whose reply was lost nobody
    # knows here whether it counted.
    assert workshop.acknowledged <= len(workshop.produced)
    assert len(workshop.produced) <= workshop.acknowledged + workshop.unsure


# --- connections ------------------------------------------------------------------------------


async def test_many_connections_are_served_at_once(server: PenstockProcess, tally: Tally) -> None:
    clients = [Client(server.address, tally) for _ in range(CONNECTIONS)]
    replies = await asyncio.gather(*(client.ask("INCR", "n") for client in clients))
    assert sorted(replies) == list(range(1, CONNECTIONS + 1))
    parked = [
        asyncio.create_task(client.ask("XREAD", "BLOCK", 0, "STREAMS", "s", "$"))
        for client in clients[1:]
    ]
    blocked = b"blocked_clients:%d\r" % len(parked)
    while blocked not in await clients[0].ask("INFO", "clients"):
        await asyncio.sleep(0.01)
    await clients[0].ask("XADD", "s", "1-1", "f", "v")
    assert await asyncio.gather(*parked) == len(parked) * [[[b"s", [[b"1-1", [b"f", b"v"]]]]]]
    for client in clients:
        client.close()


async def test_connections_that_come_and_go_leave_nothing_behind(
    server: PenstockProcess, tally: Tally
) -> None:
    def storm(count: int) -> None:
        for _ in range(count // 50):
            with contextlib.ExitStack() as stack:
                batch = [stack.enter_context(connected(server.address)) for _ in range(50)]
                for one in batch:
                    one.sendall(b"PING\r\n")
                assert [one.recv(64) for one in batch] == 50 * [b"+PONG\r\n"]
            tally.answered += len(batch)

    async def count() -> int:
        text = (await admin.ask("INFO", "clients")).decode()
        return int(text.partition("connected_clients:")[2].split("\r")[0])

    admin = Client(server.address, tally)
    others = await count()
    storm(min(50_000, CONNECTS // 3))
    before = memory_of(server, "VmRSS")
    storm(CONNECTS)
    while await count() != others:
        await asyncio.sleep(0.01)
    assert memory_of(server, "VmRSS") - before < 4 * MEGABYTE
    admin.close()


def test_a_server_without_descriptors_goes_on_when_it_has_some_again(
    server: PenstockProcess, tally: Tally
) -> None:
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    with wire.Client(server.address) as first:
        assert first.ask("PING") == b"PONG"
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        for _ in range(STRANGERS):
            tally.faults += 1
            with connected(server.address) as refused:
                refused.settimeout(0.2)
                with contextlib.suppress(OSError):
                    refused.sendall(b"PING\r\n")
                    assert refused.recv(64) == b""
        assert first.ask("PING") == b"PONG", "those who are there are served"
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        with wire.Client(server.address) as again:
            assert again.ask("PING") == b"PONG"
    tally.answered += 3


def test_silent_connections_are_closed_after_the_timeout(
    server: PenstockProcess, tally: Tally
) -> None:
    assert server.ask(b"CONFIG SET timeout 1\r\n") == b"+OK\r\n"
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(server.address)) for _ in range(HALVES)]
        for one in silent[::2]:
            with contextlib.suppress(OSError):
                one.sendall(b"*2\r\n$4\r\nECHO\r\n$5\r\nhal")
        assert [one.recv(1) for one in silent] == HALVES * [b""]
        tally.faults += HALVES


# --- slow clients -----------------------------------------------------------------------------


async def test_requests_may_come_byte_by_byte_and_others_go_on(
    server: PenstockProcess, tally: Tally
) -> None:
    data = pack("SET", "k", "v" * 200)

    async def trickle() -> object:
        with AsyncClient(server.address) as client:
            for byte in data:
                client.write(bytes([byte]))
                await asyncio.sleep(0)
            tally.faults += len(data)
            tally.answered += 1
            return await client.reply()

    async def bystander() -> int:
        client = Client(server.address, tally)
        for turn in range(200):
            assert await client.ask("ECHO", turn) == b"%d" % turn
        client.close()
        return 200

    replies = await asyncio.gather(bystander(), *(trickle() for _ in range(TRICKLES)))
    assert replies == [200, *(TRICKLES * [b"OK"])]


async def test_a_slow_reader_gets_everything_and_takes_no_memory(
    server: PenstockProcess, tally: Tally
) -> None:
    client = Client(server.address, tally)
    value = b"x" * 100_000
    await client.ask("SET", "k", value)
    before = memory_of(server, "VmRSS")
    count = BYTES // len(value) * 10
    peak = 0
    with connected(server.address) as slow:
        slow.sendall(packed("GET k") * count)
        wanted = count * (len(value) + len(b"$100000\r\n\r\n"))
        while wanted:
            data = slow.recv(min(wanted, 1 << 20))
            assert data
            wanted -= len(data)
            peak = max(peak, memory_of(server, "VmRSS") - before)
    tally.answered += count
    # Redis keeps in memory what is not read.
    assert peak < 16 * MEGABYTE or isinstance(server, RedisProcess)
    client.close()
