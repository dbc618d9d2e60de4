"""Servers that tests borrow: one that is given back serves the next test, which need not wait."""

from __future__ import annotations

from collections.abc import Callable

from penstock.testing.errors import PenstockError
from penstock.testing.server import PenstockServer

Options = tuple[str, ...]


class ServerPool:
    """Servers by their options; ``make`` gives one with these, which was not started yet."""

    def __init__(self, make: Callable[[Options], PenstockServer]) -> None:
        self._make = make
        self._free: dict[Options, list[PenstockServer]] = {}

    def lend(self, options: Options) -> PenstockServer:
        """A server as it is after its start; raises :class:`PenstockError` if it cannot start."""
        free = self._free.get(options, [])
        while free:
            server = free.pop()
            try:
                server.reset()
            except PenstockError:  # A test has ended it.
                server.stop()
            else:
                return server
        server = self._make(options)
        server.start()
        return server

    def take_back(self, options: Options, server: PenstockServer) -> None:
        """The test that has borrowed it has ended."""
        self._free.setdefault(options, []).append(server)

    def close(self) -> None:
        """Ends the servers that were given back."""
        for servers in self._free.values():
            while servers:
                servers.pop().stop()
