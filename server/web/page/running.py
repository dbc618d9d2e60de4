"""Runs commands for whoever looks at the page, the way a client's go: through the dispatcher, with
a session of the user, so whatever is checked, noted and written of a client's is of these.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import Final, NamedTuple

from protocol.encoder import bulk
from server.net.admission import farewell
from server.road.session import Session
from server.services import Services
from server.web.page.page_request import Refused
from server.web.page.wording import counted, number, shown

SHOWN: Final = 12
"""How many commands, and how many words of each, are shown."""

_FAILED: Final = re.compile(rb"(?:^|\r\n)-([A-Z][^\r]*)")

Command = list[bytes]


class Action(NamedTuple):
    """Commands that are to run in a database, each batch all or none; what they do; and where that
    is seen. ``state`` is what they are about, as it was when they were shown; ``grave`` is what
    cannot be undone."""

    title: str
    about: str
    db: int
    batches: list[list[Command]]
    back: str
    state: bytes = b""
    grave: bool = False

    def digest(self) -> str:
        """What distinguishes the commands, and what they are about, from all others."""
        summed = hashlib.sha256(b"%d " % self.db + bulk(self.state))
        for batch in self.batches:
            summed.update(b"*%d\r\n" % len(batch))
            for command in batch:
                summed.update(b"*%d\r\n" % len(command) + b"".join(map(bulk, command)))
        return summed.hexdigest()

    def lines(self) -> list[str]:
        """The commands as they will run, those cut that are long."""
        whole = [command for batch in self.batches for command in _whole(batch)]
        lines = [_line(command) for command in whole[:SHOWN]]
        more = len(whole) - len(lines)
        return [*lines, f"… {counted(more, 'more command')}"] if more else lines


def _whole(batch: list[Command]) -> list[Command]:
    """The commands with those around them that make it all or none."""
    return batch if len(batch) == 1 else [[b"MULTI"], *batch, [b"EXEC"]]


def _line(command: Command) -> str:
    """A command with its first words, the others counted."""
    words = [_argument(word) for word in command[:SHOWN]]
    more = len(command) - len(words)
    return " ".join([*words, f"… {number(more)} more"] if more else words)


def _argument(word: bytes) -> str:
    text = shown(word)
    return f'"{text}"' if " " in text else text


class _Answer:
    """Waits until what was done is as safe as the settings promise."""

    ended = False

    def __init__(self) -> None:
        self.safe: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def release(self, data: bytes | None) -> None:
        """It is."""
        self._settle(True)

    def abandon(self) -> None:
        """Nobody knows."""
        self._settle(False)

    def close(self) -> None:
        """The connection of a client would end."""
        self.abandon()

    def send(self, data: bytes) -> None:
        """A browser is sent nothing that it has not asked for."""

    def traffic(self) -> dict[str, int]:
        """Return that there are no buffers."""
        return {}

    def waiting_bytes(self) -> tuple[int, int]:
        """Return that nothing waits."""
        return 0, 0

    @property
    def is_debugging(self) -> bool:
        """The page is frozen with everything else."""
        return False

    def check_output(self, more: int = 0) -> bool:
        """Little waits for a browser."""
        return False

    def _settle(self, safe: bool) -> None:
        if not self.safe.done():
            self.safe.set_result(safe)


async def run(server: Services, user: bytes, peer: str, action: Action) -> None:
    """Runs the commands as a client does who is that user; raises :class:`Refused` with the error
    of the first that fails."""
    state = server.state
    if server.pauses.active:
        raise Refused("Writes are held back at present (CLIENT PAUSE): nothing was done.", 503)
    account = state.users.get(user)
    if account is None:
        raise Refused("The user is gone.", 403)
    state.last_id += 1
    session = state.new_session(state.last_id, peer, "page")
    session.name = b"page"
    session.log_in(account)
    session.db = state.keyspace.databases[action.db]
    answer = _Answer()
    session.link.wire = answer
    state.sessions[session.id] = session
    try:
        for at, batch in enumerate(action.batches):
            if at:
                await asyncio.sleep(0)
            # No other client comes between these: nothing is awaited.
            for command in _whole(batch):
                _run_one(server, session, command)
        if server.traffic.gate.holding:
            server.traffic.gate.hold(answer, b"")
            if not await answer.safe:
                raise Refused("It may or may not be on the disk: writing has failed.", 500)
    finally:
        farewell(server, session)


def _run_one(server: Services, session: Session, command: list[bytes]) -> None:
    reply = server.dispatcher.execute(session, command)
    if reply is None:
        raise Refused("The command takes too long to be run from here.", 500)
    failed = _FAILED.search(reply)
    if failed is not None:
        raise Refused(f"{shown(command[0])}: {shown(failed[1])}", 409)
