"""Many clients that write until their server is killed, and that know then what must be there."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

from hiredis import ReplyError

from tests.durability.servers import AofProcess
from tests.durability.steps import SHARED, Ask, Command, Step, Steps, observe
from tests.durability.talking import AsyncTalker, Talker, ask_directly
from tests.support.direct import Direct

CLIENTS = 6
LONGEST_PIPELINE = 4


class Answered(NamedTuple):
    """A step whose replies have all come."""

    at: float
    replies: list[Any]


class Writer:
    """One client, over any number of kills."""

    def __init__(self, number: int, seed: int) -> None:
        self._steps = Steps(number, seed)
        self._random = random.Random(f"{seed}/{number}")
        self._model = Direct().client()
        """Has done what is known to have been done."""
        self._done = 0
        self._sent = 0
        self._answered: list[Answered] = []

    async def work(self, port: int, pause: float) -> None:
        """Does one step after the other, some of them in pipelines, until the server ends; after
        each pipeline there is a pause."""
        with contextlib.suppress(ConnectionError), AsyncTalker(port) as talker:
            while True:
                await self._work_in_pipeline(talker)
                await asyncio.sleep(pause)

    async def _work_in_pipeline(self, talker: AsyncTalker) -> None:
        first = self._sent
        self._sent += self._random.randint(1, LONGEST_PIPELINE)
        steps = [self._steps[index] for index in range(first, self._sent)]
        talker.send(*(command for step in steps for command in step))
        for step in steps:
            replies = [await talker.reply() for _ in step]
            self._answered.append(Answered(time.monotonic(), replies))

    def check(self, ask: Ask, safe_until: float) -> int:
        """Sees that the server holds a beginning of this client's steps, with all that were
        answered by a time; returns how many that were answered later are lost."""
        found = observe(self._steps, ask)
        entries = {tuple(fields): entry_id for entry_id, fields in ask("XRANGE", SHARED, "-", "+")}
        safe = self._done + sum(answered.at <= safe_until for answered in self._answered)
        first, last = self._done, self._done + len(self._answered)
        while self._done < safe or observe(self._steps, self._ask_model) != found:
            assert self._done < self._sent, f"{self._steps.stream}: no beginning of the steps"
            replies = self._answered[self._done - first].replies if self._done < last else None
            self._do(self._steps[self._done], replies, entries)
            self._done += 1
        self._sent = self._done
        self._answered.clear()
        return max(0, last - self._done)

    def _ask_model(self, *words: str | int) -> Any:
        return ask_directly(self._model, *words)

    def _do(
        self, step: Step, replies: list[Any] | None, entries: dict[tuple[str, ...], str]
    ) -> None:
        """Lets the model do a step, and compares its replies with those of the server."""
        expected = [self._ask_model(*command) for command in step]
        assert not any(isinstance(reply, ReplyError) for reply in expected), (step, expected)
        if replies is None:
            return
        if step[0][1:3] == (SHARED, "*"):
            expected = [entries.get(_fields(step[0]), "no entry")]
        assert (step, replies) == (step, expected)


def _fields(command: Command) -> tuple[str, ...]:
    """The fields and values of an XADD."""
    return tuple(map(str, command[3:]))


async def _rewrite_now_and_then(port: int, chance: random.Random) -> None:
    with contextlib.suppress(ConnectionError), AsyncTalker(port) as talker:
        while True:
            await asyncio.sleep(chance.uniform(0.01, 0.3))
            await talker.ask("BGREWRITEAOF")


class Crowd:
    """Several clients of a server that is killed again and again; ``pause`` is how many seconds
    each of them waits before it goes on."""

    def __init__(
        self, folder: Path, seed: int, *options: str, disk: str = "", pause: float = 0
    ) -> None:
        self._folder = folder
        self._options = options
        self._disk = disk
        self._pause = pause
        self._chance = random.Random(seed)
        self._writers = [Writer(number, seed) for number in range(CLIENTS)]
        self.lost = 0
        """How many steps were lost that had been answered, but not long enough before."""

    def write_until_killed(self, seconds: float, safe_until: float = math.inf) -> float:
        """Starts the server and sees that it holds everything that was answered by a time; lets all
        clients write for so long, and kills it. Returns when that was."""
        return asyncio.run(self._live(seconds, safe_until))

    async def _live(self, seconds: float, safe_until: float) -> float:
        with AofProcess(self._folder, *self._options, disk=self._disk) as server:
            port = server.address[1]
            self._check(port, safe_until)
            tasks = [
                asyncio.ensure_future(writer.work(port, self._pause)) for writer in self._writers
            ]
            tasks.append(asyncio.ensure_future(_rewrite_now_and_then(port, self._chance)))
            await asyncio.sleep(seconds)
            killed = time.monotonic()
            server.stop(signal.SIGKILL)
            await asyncio.gather(*tasks)
            return killed

    def check(self, safe_until: float = math.inf) -> None:
        """Starts the server once more, only to see what it holds."""
        with AofProcess(self._folder, *self._options, disk=self._disk) as server:
            self._check(server.address[1], safe_until)

    def _check(self, port: int, safe_until: float) -> None:
        with Talker(port) as talker:
            for writer in self._writers:
                self.lost += writer.check(talker.ask, safe_until)
