"""What a client of the kill tests does, and what can be seen of it afterwards.

Each client has keys of its own, so what they hold depends on nothing but how many of its steps have
been done; and there is one stream to which all of them add. A *step* is a command, or a
transaction, which counts as a whole.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Command = tuple[str | int, ...]
Step = tuple[Command, ...]
Ask = Callable[..., Any]
"""Sends a command and returns its reply, parsed."""

SHARED = "shared"
"""The stream of all clients."""

PENDING_AT_MOST = 1000


class Steps:
    """The steps of one client, made when they are first asked for, the same ones every time."""

    def __init__(self, client: int, seed: int) -> None:
        self.stream = f"stream:{client}"
        self.string = f"string:{client}"
        self._random = random.Random(f"{seed}:{client}")
        self._last = 0
        self._shared = 0
        self._made: list[Step] = [(("XGROUP", "CREATE", self.stream, "g", 0, "MKSTREAM"),)]

    def __getitem__(self, index: int) -> Step:
        while len(self._made) <= index:
            self._made.append(self._make())
        return self._made[index]

    def _make(self) -> Step:
        chance = self._random.random()
        if chance < 0.1:
            self._shared += 1
            return (("XADD", SHARED, "*", "from", self.stream, "number", self._shared),)
        if chance < 0.25:
            commands = [self._command() for _ in range(self._random.randint(2, 4))]
            return (("MULTI",), *commands, ("EXEC",))
        return (self._command(),)

    def _command(self) -> Command:
        weights = (8, 4, 2, 1, 1, 1, 1, 1, 1, 2)
        makers: list[Callable[[], Command]] = [
            self._add,
            self._read,
            self._ack,
            self._claim,
            self._claim_more,
            self._delete,
            self._trim,
            lambda: ("XGROUP", "SETID", self.stream, "g", self._some_id()),
            lambda: ("XGROUP", "DELCONSUMER", self.stream, "g", self._consumer()),
            self._set,
        ]
        return self._random.choices(makers, weights)[0]()

    def _some_id(self) -> str:
        return f"{self._random.randint(max(1, self._last - 30), self._last + 1)}-1"

    def _consumer(self) -> str:
        return self._random.choice(("anna", "bert", "cleo"))

    def _add(self) -> Command:
        """An entry that tells who has added it, and as which of all."""
        self._last += 1
        return ("XADD", self.stream, f"{self._last}-1", "from", self.stream, "number", self._last)

    def _read(self) -> Command:
        count = self._random.randint(1, 5)
        start = self._random.choice((">", ">", ">", "0"))
        consumer = ("GROUP", "g", self._consumer())
        return ("XREADGROUP", *consumer, "COUNT", count, "STREAMS", self.stream, start)

    def _ack(self) -> Command:
        return ("XACK", self.stream, "g", self._some_id(), self._some_id())

    def _claim(self) -> Command:
        wanted = (self._some_id(), self._some_id())
        return ("XCLAIM", self.stream, "g", self._consumer(), 0, *wanted)

    def _claim_more(self) -> Command:
        return ("XAUTOCLAIM", self.stream, "g", self._consumer(), 0, "0", "COUNT", 3)

    def _delete(self) -> Command:
        return ("XDEL", self.stream, self._some_id())

    def _trim(self) -> Command:
        return ("XTRIM", self.stream, "MAXLEN", self._random.randint(20, 40))

    def _set(self) -> Command:
        return ("SET", self.string, f"{self.string} {self._last}")


def observe(steps: Steps, ask: Ask) -> list[Any]:
    """All that can be seen of a client's keys, except times, which differ from run to run."""
    stream = steps.stream
    shared = [fields[3] for _, fields in ask("XRANGE", SHARED, "-", "+") if fields[1] == stream]
    if not ask("EXISTS", stream):
        return [ask("GET", steps.string), shared]
    return [
        ask("GET", steps.string),
        shared,
        ask("XRANGE", stream, "-", "+"),
        ask("XINFO", "STREAM", stream),
        ask("XINFO", "GROUPS", stream),
        # A consumer is its name, how much it has pending, and two times.
        [consumer[:4] for consumer in ask("XINFO", "CONSUMERS", stream, "g")],
        # So is a pending entry: its ID, its owner, its idle time, and how often it was delivered.
        [
            (entry[0], entry[1], entry[3])
            for entry in ask("XPENDING", stream, "g", "-", "+", PENDING_AT_MOST)
        ],
    ]
