"""How many functions of its own a server calls for a request: ``python -m benchmarks.calls``.

A server of plain Python runs in this process, and clients speak to it over real sockets. Counted
are the calls of functions of the project from the moment at which a read brings the request to the
end of the round in which its reply has left: all of them, those that go from one module into
another, and those with which others enter :data:`ROOMS`. Neither the machine nor what else it does
changes a count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from protocol.scanner_plain import MADE_AFTER
from server import commands
from server.app import Server
from server.config.registry import Config

ROOT: Final = str(Path(__file__).parents[1])
PACKAGES: Final = tuple(f"{ROOT}/{name}/" for name in ("protocol", "server", "storage"))
ROOMS: Final = ("persistence", "traffic")
"""Rooms of the server for which it is counted how often others enter them."""
CLOCKWORK: Final = f"{ROOT}/server/runtime/clockwork.py"
"""What calls back when it was asked to enters no room, and neither does the event loop."""


class Calls(NamedTuple):
    """Calls of the project's functions, how many of them came from another module, and how many
    from the project's other folders into each of :data:`ROOMS`; and the paths of the modules."""

    all: int
    across: int
    entries: tuple[int, ...]
    modules: frozenset[str]


class Counter:
    """Counts calls while it is on, as a profile function of the interpreter."""

    def __init__(self) -> None:
        self._all = self._across = 0
        self._entries = dict.fromkeys((f"{ROOT}/server/{room}/" for room in ROOMS), 0)
        self._files: set[str] = set()
        self._rounds: list[Calls] = []

    def __enter__(self) -> None:
        self._all = self._across = 0
        self._entries = dict.fromkeys(self._entries, 0)
        self._files.clear()
        sys.setprofile(self._see)

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)
        modules = frozenset(path.removeprefix(f"{ROOT}/") for path in self._files)
        entries = tuple(self._entries.values())
        self._rounds.append(Calls(self._all, self._across, entries, modules))

    @property
    def least(self) -> Calls:
        """What was counted in the round with the fewest calls: what happens for the first time has
        more."""
        return min(self._rounds)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGES):
            self._all += 1
            self._files.add(frame.f_code.co_filename)
            caller = frame.f_back
            if caller is not None and caller.f_code.co_filename != frame.f_code.co_filename:
                self._across += 1
                self._note_entry(caller.f_code.co_filename, frame.f_code.co_filename)

    def _note_entry(self, caller: str, called: str) -> None:
        """Counts a call from one file into another if it enters a room."""
        if caller.startswith(PACKAGES) and caller != CLOCKWORK:
            for room in self._entries:
                self._entries[room] += called.startswith(room) and not caller.startswith(room)


class Client:
    """A client on a socket, in the loop of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Client:
        """Connects to the server."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, *requests: str) -> None:
        """Sends requests, each a line of words, in one write."""
        self._writer.write(b"".join(map(_encoded, requests)))

    async def answer(self) -> bytes:
        """What is there of the replies, once there is any."""
        return await self._reader.read(1 << 16)

    async def ask(self, *requests: str) -> bytes:
        """Sends requests and returns what comes of their replies first."""
        self.send(*requests)
        return await self.answer()

    def close(self) -> None:
        """Closes the connection."""
        self._writer.close()


def _encoded(request: str) -> bytes:
    words = request.encode().split()
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


XADD: Final = "XADD stream * field value other 12345"
READ: Final = "XREADGROUP GROUP group consumer COUNT 2 STREAMS stream >"

ROUNDS: Final = 5

NOW_MS: Final = 1_700_000_000_000
"""The time stands still: how IDs are packed depends on it."""

Way = Callable[[Client, Client, Counter], Awaitable[Calls]]


def _of(prepared: tuple[str, ...], *requests: str) -> Way:
    """What requests in one write cost; others come before them, to make what they need."""

    async def count(client: Client, other: Client, counter: Counter) -> Calls:
        for _ in range(ROUNDS):
            for request in prepared:
                await other.ask(request)
            with counter:
                await client.ask(*requests)
        return counter.least

    return count


def read_many(streams: int) -> Way:
    """What an XREADGROUP of so many streams costs none of which has a new entry."""
    keys = [f"stream:{number}" for number in range(streams)]
    request = ["XREADGROUP GROUP group consumer STREAMS", *keys, *">" * streams]
    return _of(tuple(f"XGROUP CREATE {key} group $ MKSTREAM" for key in keys), " ".join(request))


async def _wake(client: Client, other: Client, counter: Counter) -> Calls:
    """What an XADD costs that ends the wait of a parked reader, both replies included."""
    for _ in range(ROUNDS):
        client.send("XREADGROUP GROUP group consumer BLOCK 0 STREAMS stream >")
        await asyncio.sleep(0.05)
        with counter:
            await other.ask(XADD)
            await client.answer()
    return counter.least


async def _acknowledge(client: Client, other: Client, counter: Counter) -> Calls:
    """What an XACK costs that is synced before its reply."""
    for _ in range(ROUNDS):
        await other.ask(XADD)
        given = await other.ask(READ)
        entry = given.split(b"\r\n$15\r\n")[-1].split(b"\r\n")[0].decode()
        with counter:
            await client.ask(f"XACK stream group {entry}")
    return counter.least


WAYS: Final[dict[str, tuple[Way, dict[str, Any]]]] = {
    "PING": (_of((), "PING"), {}),
    "XADD alone": (_of((), XADD), {}),
    "16 XADD in one read": (_of((), *[XADD] * 16), {}),
    "XREADGROUP of 2 entries": (_of((XADD, XADD), READ), {}),
    "XREADGROUP of 100 streams without a new entry": (read_many(100), {}),
    "XADD that wakes a parked XREADGROUP": (_wake, {}),
    "XACK, appendfsync always": (_acknowledge, {"appendonly": True, "appendfsync": "always"}),
}
"""What is counted, and with which settings."""


async def count(way: Way, **settings: Any) -> Calls:
    """Counts the calls of one way, on a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(bind="127.0.0.1", port=0, dir=folder, **settings)
        server = Server(config, clock=lambda: NOW_MS, periodic=False)
        # What a share of time that is used up, or an unusual duration, costs is not counted.
        server.state.stopwatch._nanoseconds = lambda: 0
        await server.start()
        clients = [await Client.connect(server.state.instance.port) for _ in range(2)]
        await clients[0].ask(*["PING"] * (MADE_AFTER + 1))
        await clients[0].ask("XGROUP CREATE stream group $ MKSTREAM")
        try:
            return await way(clients[0], clients[1], Counter())
        finally:
            for client in clients:
                client.close()
            await server.stop()


def main() -> None:
    """Prints a table of all ways."""
    commands.load()
    print("| what | calls | into another module |", *(f"into {room} |" for room in ROOMS))
    print("|---|---:|---:|" + "---:|" * len(ROOMS))
    for name, (way, settings) in WAYS.items():
        calls = asyncio.run(count(way, **settings))
        print(f"| {name} | {calls.all} | {calls.across} |", *(f"{n} |" for n in calls.entries))


if __name__ == "__main__":
    main()
