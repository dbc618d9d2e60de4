"""CLIENT PAUSE: requests that wait until the pause is over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from protocol.requests import Request
    from server.app import Server
    from server.commands.spec import Command
    from server.connection import Connection
    from server.session import Session

REPLICATED: Final = frozenset({"publish", "spublish"})
"""Commands without the write flag that a pause of writes holds back all the same."""


class Pausing:
    """The pause in force, and the connections that it holds."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.held: dict[Session, Connection] = {}
        """Who waits."""
        self.until_ms = 0
        self.everything = False
        self._timer: asyncio.TimerHandle | None = None

    def pause(self, until_ms: int, everything: bool) -> None:
        """Holds back writes, or every command, until then; a longer pause is never cut short."""
        if self._server.pausing:
            until_ms = max(until_ms, self.until_ms)
            everything = everything or self.everything
        self.until_ms = until_ms
        self.everything = everything
        self._server.pausing = True
        self.close()
        delay = max(0, until_ms - self._server.clock()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay, self.unpause)

    def unpause(self) -> None:
        """Lets every request that was held back go on."""
        self.close()
        self._server.pausing = False
        held, self.held = self.held, {}
        for connection in held.values():
            # Not at once: the command that ends the pause has not been answered yet.
            asyncio.get_running_loop().call_soon(connection.resume)

    def hold(self, connection: Connection, session: Session, request: Request) -> bool:
        """Whether the request must wait; its connection is then resumed after the pause.

        One that would be refused is not held: the client hears of its mistake at once.
        """
        command, refusal = self._server.dispatcher.resolve(session, request)
        if command is None or refusal is not None:
            return False
        if self.everything or _writes(session, command):
            self.held[session] = connection
            return True
        return False

    def release(self, session: Session) -> None:
        """The client is gone."""
        self.held.pop(session, None)

    def close(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _writes(session: Session, command: Command) -> bool:
    """Whether the command changes data or is one that replicas would have to hear of."""
    if command.name == "exec":
        return any(_writes(session, queued) for queued, _ in session.queue or ())
    return command.writes or command.fullname in REPLICATED
