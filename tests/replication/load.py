"""The load of a history: clients that change everything there is, until they are told to pause."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from hiredis import ReplyError

from tests.durability.steps import Command
from tests.durability.talking import AsyncTalker
from tests.property.stream_commands import Words
from tests.replication.contents import NEWER
from tests.replication.nodes import POLL_S

RUN_ALL: Final = """
local at = 1
while at <= #ARGV do
    local size = tonumber(ARGV[at])
    redis.pcall(unpack(ARGV, at + 1, at + size))
    at = at + size + 1
end
"""
"""A script that runs commands, each of which follows the number of its words."""

RESTORE: Final = """
local value = redis.call('DUMP', KEYS[1])
return value and redis.call('RESTORE', KEYS[2], 0, value, 'REPLACE')
"""
"""A script that makes a copy of a key by way of its payload."""
_RESTORED: Final = [("k", "q"), ("q", "k"), ("a", "b"), (f"{NEWER}k", f"{NEWER}q")]

LIBRARY: Final = """#!lua name={0}
redis.register_function('{0}', function(keys, args) return '{1}' end)
"""

STREAM, GROUP = "work", "crew"
"""What consumers work on, in a database that is seldom flushed."""
DATABASE: Final = 2
CONSUMERS: Final = 3


class Load:
    """Several clients of the server on a port, which may be killed and come back."""

    def __init__(self, port: int, number: int, pool: Sequence[Words], counts: Counter[str]) -> None:
        self._port = port
        self._pool = pool
        self._counts = counts
        self._going = asyncio.Event()
        self._busy = 0
        self._tasks: list[asyncio.Task[None]] = []
        works = [*[self._anything] * 3, self._produce, self._expire]
        works += [self._consume] * CONSUMERS
        for index, work in enumerate(works):
            chance = random.Random(f"{number}/{index}")
            self._tasks.append(asyncio.ensure_future(self._client(work, chance)))

    def go_on(self) -> None:
        """Lets the clients work."""
        self._going.set()

    async def pause(self) -> None:
        """Returns when no client works."""
        self._going.clear()
        while self._busy:
            await asyncio.sleep(POLL_S)

    async def stop(self) -> None:
        """Ends the clients; raises what ended one of them before."""
        await self.pause()
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    # --- clients --------------------------------------------------------------------------

    async def _client(
        self, work: Callable[[AsyncTalker, random.Random], Awaitable[None]], chance: random.Random
    ) -> None:
        """Connects, and works while all do; connects again when the server is back."""
        while True:
            await self._going.wait()
            self._busy += 1
            try:
                with AsyncTalker(self._port) as talker:
                    while self._going.is_set():
                        await work(talker, chance)
            except ConnectionError:
                await asyncio.sleep(POLL_S)
            finally:
                self._busy -= 1

    async def _ask(self, talker: AsyncTalker, *commands: Command) -> list[Any]:
        """The replies to a pipeline."""
        talker.send(*commands)
        replies = [await talker.reply() for _ in commands]
        self._counts["commands"] += len(commands)
        return replies

    async def _anything(self, talker: AsyncTalker, chance: random.Random) -> None:
        """Some commands: as they are, as a transaction, as a script, and more like that."""
        some: list[Command] = [
            tuple(chance.choice(self._pool)) for _ in range(chance.randint(1, 8))
        ]
        kinds = [*_KINDS]
        kind = chance.choices(kinds, [_KINDS[each] for each in kinds])[0]
        self._counts[kind] += 1
        await self._ask(talker, *_as_kind(kind, some, chance))

    async def _expire(self, talker: AsyncTalker, chance: random.Random) -> None:
        """Keys that live for a short time, and a long value now and then."""
        key = f"passing:{chance.randint(0, 200)}"
        size = 100_000 if chance.random() < 0.01 else chance.randint(0, 300)
        life = chance.randint(1, 1500)
        await self._ask(talker, ("SET", key, "v" * size, "PX", life), ("GET", key))
        if chance.random() < 0.3:
            await self._ask(talker, ("XADD", f"{key}:stream", "*", "f", size))
            await self._ask(talker, ("PEXPIRE", f"{key}:stream", life))
        await asyncio.sleep(POLL_S)

    async def _produce(self, talker: AsyncTalker, chance: random.Random) -> None:
        """Entries of all sizes, and trimmings."""
        trim = chance.choice(
            [
                (),
                (),
                ("MAXLEN", "~", 300),
                ("MAXLEN", 400),
                ("MINID", "~", "1-0"),
                ("MAXLEN", 350, "ACKED"),
            ]
        )
        fields = ("n", chance.randint(0, 10**9), "text", "x" * chance.randint(0, 500))
        adding = [("XADD", STREAM, *trim, "*", *fields) for _ in range(chance.randint(1, 10))]
        await self._ask(talker, ("SELECT", DATABASE), *adding)
        await asyncio.sleep(POLL_S)

    async def _consume(self, talker: AsyncTalker, chance: random.Random) -> None:
        """Reads, acknowledges most of it, and claims what others have left."""
        me = f"consumer-{chance.randint(1, 4)}"
        taken = ("COUNT", chance.randint(1, 20))
        read: Command = (
            "XREADGROUP",
            "GROUP",
            GROUP,
            me,
            *taken,
            "BLOCK",
            20,
            "STREAMS",
            STREAM,
            ">",
        )
        if chance.random() < 0.2:
            read = ("XREADGROUP", "GROUP", GROUP, me, *taken, "STREAMS", STREAM, "0")
        _, reply = await self._ask(talker, ("SELECT", DATABASE), read)
        if isinstance(reply, ReplyError):
            await self._ask(talker, ("XGROUP", "CREATE", STREAM, GROUP, 0, "MKSTREAM"))
            return
        for entry_id, _ in reply[0][1] if reply else ():
            if chance.random() < 0.8:
                how = chance.choice(["XACK", "XACK", "XACK", "XACKDEL"])
                tail = (entry_id,) if how == "XACK" else ("DELREF", "IDS", 1, entry_id)
                await self._ask(talker, (how, STREAM, GROUP, *tail))
        if chance.random() < 0.3:
            await self._claim(talker, chance, me)

    async def _claim(self, talker: AsyncTalker, chance: random.Random, me: str) -> None:
        """Claims what has been pending for a while, and acknowledges some of it."""
        claim = ("XAUTOCLAIM", STREAM, GROUP, me, chance.choice([0, 100, 1000]), "0", "COUNT", 15)
        (reply,) = await self._ask(talker, claim)
        if isinstance(reply, ReplyError):
            return
        entry_ids = [each[0] for each in reply[1]]
        if entry_ids and chance.random() < 0.7:
            await self._ask(talker, ("XACK", STREAM, GROUP, *entry_ids))
        elif entry_ids and chance.random() < 0.5:
            await self._ask(talker, ("XCLAIM", STREAM, GROUP, "other", 0, *entry_ids, "JUSTID"))


_KINDS: Final = {
    "pipelines": 60,
    "transactions": 18,
    "scripts": 18,
    "changes of libraries": 2,
    "values dumped and restored": 4,
    "waits for a replica": 2,
}
"""What clients send, by how often they do."""


def _as_kind(kind: str, some: list[Command], chance: random.Random) -> list[Command]:
    """What is sent of a kind, which holds some commands unless it is of another sort."""
    if kind == "transactions":
        return [("MULTI",), *some, ("EXEC",)]
    if kind == "scripts":
        words: list[str | int] = []
        for command in some:
            words += (len(command), *command)
        return [("EVAL", RUN_ALL, 0, *words)]
    if kind == "changes of libraries":
        return [_library(chance)]
    if kind == "values dumped and restored":
        return [("EVAL", RESTORE, 2, *chance.choice(_RESTORED))]
    if kind == "waits for a replica":
        return [*some, ("WAIT", "1", "20")]
    return some


def _library(chance: random.Random) -> Command:
    """A command that changes the libraries of functions."""
    name = chance.choice(["one", "two"])
    if chance.random() < 0.3:
        return ("FUNCTION", chance.choice(["DELETE", "DELETE", "FLUSH"]), name)[
            : chance.randint(2, 3)
        ]
    return ("FUNCTION", "LOAD", "REPLACE", LIBRARY.format(name, chance.randint(0, 9)))
