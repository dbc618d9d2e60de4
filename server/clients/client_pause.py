"""CLIENT PAUSE and a disk that lags: requests that wait until that is over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from protocol.requests import Request
    from server.app import Server
    from server.command_table import Command
    from server.net.connection import Connection
    from server.session import Session

REPLICATED: Final = frozenset({"publish", "spublish", "eval", "evalsha"})
"""Commands without the write flag that a pause of writes holds back all the same."""


class Pausing:
    """The pause in force, and the connections that it holds."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.held: dict[Session, Connection] = {}
        """Who waits."""
        self.until_ms = 0
        self.everything = False
        self._stalled = False
        self._timer: asyncio.TimerHandle | None = None

    def pause(self, until_ms: int, everything: bool) -> None:
        """Holds back writes, or every command, until then; a longer pause is never cut short."""
        if self._server.pausing:
            until_ms = max(until_ms, self.until_ms)
            everything = everything or self.everything
        self.until_ms = until_ms
        self.everything = everything
        self._server.pausing = True
        self._arm()

    def _arm(self) -> None:
        self.close()
        delay = max(0, self.until_ms - self._server.clock()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay, self.unpause)

    def turn_clock(self, by_ms: int) -> None:
        """The clock has been moved: the pause ends if its time is up, and never lasts longer."""
        if self._timer is None:
            return
        self.until_ms += min(by_ms, 0)
        if self.until_ms <= self._server.clock():
            self.unpause()
        else:
            self._arm()

    def unpause(self) -> None:
        """Lets every request that was held back go on, unless commands that write are stalled."""
        self.close()
        self.everything = False
        self.until_ms = 0
        self._server.pausing = self._stalled
        held, self.held = self.held, {}
        for connection in held.values():
            # Not at once: the command that ends the pause has not been answered yet.
            asyncio.get_running_loop().call_soon(connection.resume)

    def stall(self) -> None:
        """Holds back writes until :meth:`unstall`: the disk cannot take them."""
        self._stalled = self._server.pausing = True

    def unstall(self) -> None:
        """Lets writes go on, unless there is a pause that holds them back as well."""
        self._stalled = False
        if self._timer is None:
            self.unpause()

    def hold(self, connection: Connection, session: Session, request: Request) -> bool:
        """Whether the request must wait; its connection is then resumed after the pause.

        One that would be refused is not held: the client hears of its mistake at once.
        """
        command, refusal = self._server.dispatcher.resolve(session, request)
        if command is None or refusal is not None:
            return False
        if self.everything or _writes(session, command, request):
            self.held[session] = connection
            session.command = command
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


def _writes(session: Session, command: Command, args: Request) -> bool:
    """Whether the command changes data or is one that replicas would have to hear of."""
    if command.name == "exec":
        return any(_writes(session, queued, given) for queued, given in session.queue or ())
    if command.name == "fcall":
        return session.server.scripting.functions.may_write(args[1])
    return command.writes or command.fullname in REPLICATED
