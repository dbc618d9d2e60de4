"""The reins of a worker: it comes in by a port of its own, where the server holds its commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from penstock.explore.bench import Bench, as_map


class Reins:
    """A port for one life of a worker, and a fault that holds all that comes in by it."""

    def __init__(self, bench: Bench, name: str) -> None:
        self._ask = bench.ask
        self.name = name
        self._port = int(bench.ask("DEBUG", "PORT", "OPEN", name))
        self._fault = bench.ask("DEBUG", "FAULT", "ADD", "*", "CLIENT", name, "HOLD")
        parts = urlsplit(bench.url)
        login, at, _ = parts.netloc.rpartition("@")
        self.url = f"redis://{login}{at}127.0.0.1:{self._port}{parts.path}"
        self.clients: list[dict[str, Any]] = []
        """Its clients, as they were found to be for the last time."""
        self.steps: dict[int, int] = {}
        """When each client was released for the last time, by its number."""

    def cut(self) -> None:
        """Ends the connections that came by the port, and lets no other come; what is held on them
        never runs."""
        self._ask("DEBUG", "PORT", "CLOSE", self.name)

    def close(self) -> None:
        """Ends the connections, and the fault."""
        self.cut()
        self._ask("DEBUG", "FAULT", "CLEAR", self._fault)

    def state(self, until: str, timeout_ms: int) -> str:
        """Return the state of the worker, as soon as it is one of these, or the time is over."""
        words = ("REST", self.name, "UNTIL", until, "TIMEOUT", timeout_ms)
        worker = as_map(as_map(self._ask("DEBUG", "FAULT", *words))["workers"][0])
        self.clients = [as_map(client) for client in worker["clients"]]
        return str(worker["state"])

    def found(self, state: str) -> list[dict[str, Any]]:
        """Return its clients that were found to be in a state."""
        return [client for client in self.clients if client["state"] == state]

    def held(self) -> list[dict[str, Any]]:
        """Return the clients of the worker whose commands are held, in the order in which they
        came."""
        clients = map(as_map, self._ask("DEBUG", "FAULT", "HELD"))
        return [client for client in clients if client["name"] == self.name]

    def release(self, client: Mapping[str, Any], action: str = "") -> bool:
        """Lets a command run, or something happen to it; returns whether it was still held."""
        self.steps[client["client"]] = max(self.steps.values(), default=0) + 1
        words = filter(None, [action])
        return bool(self._ask("DEBUG", "FAULT", "RELEASE", client["client"], *words))

    def lose_connections(self) -> None:
        """Ends the connections of the worker, with what is held on them."""
        self.state("busy,held,parked,idle,gone,absent", 0)
        for client in self.clients:
            self._ask("CLIENT", "KILL", "ID", client["client"])


class ReinedWorker(Protocol):
    """A worker that runs, each of whose commands is held, in one life or in one order."""

    reins: Reins
    wakes_in_ms: int
    """How long it sleeps, when it was seen to be asleep."""

    def look(self) -> str:
        """Return ``held``, ``parked`` or ``asleep`` when it is that, ``idle`` if it waits for
        nothing that comes by itself, or ``ended``; empty if nothing of that is known yet."""

    def held(self) -> list[dict[str, Any]]:
        """Return the clients whose commands are held; that of the first one is to run next."""

    def is_woken(self) -> bool:
        """Whether it was parked, asleep or idle, and that is over."""

    @property
    def last_words(self) -> str:
        """How it ended, if it ended badly by itself."""

    def overdue(self, sent: int) -> str:
        """Return what is told of it if it should have ended; it has sent so many commands."""

    def crash(self, client: Mapping[str, Any], executed: bool) -> None:
        """Ends it where it is, before this command was executed, or after that."""

    def kill(self) -> None:
        """Ends it where it is."""

    def close(self) -> None:
        """Ends it, if it has not ended, and its connections."""


Start = Callable[[Bench, str], ReinedWorker]
"""Starts a worker whose connections have this name."""
