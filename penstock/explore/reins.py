"""The reins of a worker: it comes in by a port of its own, where the server holds its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
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

    def close(self) -> None:
        """Ends the connections that came by the port; what is held on them never runs."""
        self._ask("DEBUG", "PORT", "CLOSE", self.name)
        self._ask("DEBUG", "FAULT", "CLEAR", self._fault)

    def state(self, until: str, timeout_ms: int) -> dict[str, Any]:
        """Return the state of the worker, as soon as it is one of these, or the time is over."""
        words = ("REST", self.name, "UNTIL", until, "TIMEOUT", timeout_ms)
        return as_map(as_map(self._ask("DEBUG", "FAULT", *words))["workers"][0])

    def held(self) -> list[dict[str, Any]]:
        """Return the clients of the worker whose commands are held, in the order in which they
        came."""
        clients = map(as_map, self._ask("DEBUG", "FAULT", "HELD"))
        return [client for client in clients if client["name"] == self.name]

    def release(self, client: Mapping[str, Any], action: str = "") -> bool:
        """Lets a command run, or something happen to it; returns whether it was still held."""
        words = filter(None, [action])
        return bool(self._ask("DEBUG", "FAULT", "RELEASE", client["client"], *words))

    def lose_connections(self) -> None:
        """Ends the connections of the worker, with what is held on them."""
        for client in map(as_map, self.state("busy,held,parked,idle,gone,absent", 0)["clients"]):
            self._ask("CLIENT", "KILL", "ID", client["client"])
