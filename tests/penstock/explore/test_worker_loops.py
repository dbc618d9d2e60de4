"""The event loop of a worker: its time, what is due, and its end."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.explore.worker_loops import SPINS, WorkerLoop


class Stand:
    """Moves the time of a loop to its next timer, or ends it."""

    def __init__(self) -> None:
        self.ms = 0
        self.spun = 0
        self.loop = WorkerLoop(lambda: self.ms / 1000, self.stand)

    def stand(self, spinning: bool) -> None:
        if spinning:
            self.spun += 1
            self.loop.stop()
        elif self.loop.jobs:
            assert self.loop.has_events(60)
        elif (in_ms := self.loop.next_timer_ms) is None:
            self.loop.stop()
        elif in_ms <= 0:
            self.loop.run_timer()
        else:
            self.ms += in_ms

    def run(self, coroutine: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task: asyncio.Task[object] = self.loop.create_task(coroutine)
        task.add_done_callback(lambda task: self.loop.stop())
        self.loop.run_forever()
        return task


@pytest.fixture
def stand() -> Iterator[Stand]:
    stand = Stand()
    yield stand
    stand.loop.close()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_sleeps_end_in_turn_and_after_whole_milliseconds(sleeps: list[float]) -> None:
    stand, ended = Stand(), []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append((seconds, stand.ms))

    async def all_of_them() -> None:
        await asyncio.gather(*map(sleep, sleeps))

    assert stand.run(all_of_them()).done()
    stand.loop.close()
    assert ended == sorted(ended, key=lambda pair: pair[1])
    for seconds, ms in ended:
        assert seconds * 1000 - 0.001 <= ms <= max(seconds * 1000 + 1, 1 if seconds else 0)


@given(st.floats(0, 1e6), st.integers(0, 10**9))
def test_who_waits_for_a_point_in_time_comes_to_it(seconds: float, begin: int) -> None:
    stand = Stand()
    stand.ms = begin

    async def wait() -> None:
        deadline = stand.loop.time() + seconds
        while stand.loop.time() < deadline:
            await asyncio.sleep(deadline - stand.loop.time())

    assert stand.run(wait()).done()
    stand.loop.close()


def test_who_sleeps_for_ever_has_no_timer(stand: Stand) -> None:
    assert not stand.run(asyncio.sleep(math.inf)).done()
    stand.loop.kill()
    assert stand.loop.is_closed()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        stand.loop.call_later(1, print)


def test_timers_that_are_due_together_are_due_one_after_the_other(stand: Stand) -> None:
    async def in_time() -> str:
        stand.loop.call_soon(setattr, stand, "ms", 60_000)
        async with asyncio.timeout(10):
            await asyncio.sleep(5)
            await asyncio.sleep(0)
        return "in time"

    assert stand.run(in_time()).result() == "in time"


def test_events_come_in_the_order_in_which_their_files_were_registered(stand: Stand) -> None:
    pairs = [socket.socketpair() for _ in range(5)]
    seen: list[int] = []

    def read(number: int) -> None:
        assert pairs[number][0].recv(1) == b"1"
        seen.append(number)

    for number, (reader, _) in enumerate(pairs):
        stand.loop.add_reader(reader, read, number)
    for _, writer in reversed(pairs):
        writer.send(b"1")
    stand.loop.run_forever()
    assert seen == [0, 1, 2, 3, 4]
    for each in (each for pair in pairs for each in pair):
        stand.loop.remove_reader(each)
        each.close()


def test_tasks_are_told_in_the_order_in_which_they_were_created(stand: Stand) -> None:
    tasks = [stand.loop.create_task(asyncio.sleep(math.inf)) for _ in range(50)]
    assert stand.loop.tasks() == tasks
    stand.loop.kill()
    assert all(task.cancelled() for task in tasks)


def test_connections_end_with_the_loop(stand: Stand) -> None:
    sockets: list[socket.socket] = []

    async def connect(address: tuple[str, int]) -> None:
        _, writer = await asyncio.open_connection(*address)
        sockets.append(writer.get_extra_info("socket"))
        await asyncio.sleep(math.inf)

    with socket.create_server(("127.0.0.1", 0)) as server:
        stand.run(connect(server.getsockname()))
        stand.loop.kill()
    assert [each.fileno() for each in sockets] == [-1]


def test_one_that_goes_round_is_asked_now_and_then(stand: Stand) -> None:
    rounds: list[int] = []

    async def spin() -> None:
        while True:
            rounds.append(1)
            await asyncio.sleep(0)

    assert not stand.run(spin()).done()
    assert (stand.spun, len(rounds)) == (1, SPINS)
    stand.loop.kill()


def test_a_thread_is_waited_for(stand: Stand) -> None:
    async def in_a_thread() -> object:
        job = stand.loop.run_in_executor(None, lambda: 7)
        assert stand.loop.jobs == 1
        found = await job
        await asyncio.sleep(0)  # What is done before it is waited for is counted in the next round.
        assert stand.loop.jobs == 0
        await stand.loop.shutdown_default_executor()
        return found

    assert stand.run(in_a_thread()).result() == 7
