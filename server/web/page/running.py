"""Runs commands for whoever looks at the page, the way a client's go: through the dispatcher, with
a session of the user, so whatever is checked, noted and written of a client's is of these.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from protocol.encoder import bulk
from server.net.admission import farewell
from server.runtime.quantities import number
from server.services import Services
from server.state.session import Session, SilentWire
from server.web.page.page_request import PageRequest, Refused
from server.web.page.wording import counted, shown

SHOWN: Final = 12
"""How many commands, and how many words of each, are shown."""

_FAILED: Final = re.compile(rb"(?:^|\r\n)-([A-Z][^\r]*)")

Command = list[bytes]


_NUMBERS: Final = re.compile(rb"(?:^|\n):([0-9]+)(?=\r)")


class PageAction(NamedTuple):
    """Commands that are to run in a database, each batch all or none; what they do; and where that
    is seen. ``state`` is what they are about, as it was when they were shown; ``grave`` is what
    cannot be undone. ``noun`` says of what, one or more, the integers that they reply are numbers,
    and ``total`` how many these should be."""

    title: str
    about: str
    db: int
    batches: list[list[Command]]
    back: str
    state: bytes = b""
    grave: bool = False
    noun: tuple[str, str] | None = None
    total: int = 0

    def told(self, done: int) -> str:
        """Return what was done, in words; empty where that is not counted."""
        return "" if self.noun is None else f" {counted(done, *self.noun)}."

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


class Input(NamedTuple):
    """What is asked for before there is a command: a line, which may be a ``time``, an area, or a
    choice; ``note`` stands in place of a field that stays as it is, ``help`` is a sentence below
    it, and a field with a ``part`` begins a part of the form."""

    name: str
    label: str
    value: str = ""
    area: bool = False
    options: tuple[str, ...] = ()
    note: str = ""
    hint: str = ""
    time: bool = False
    help: str = ""
    part: str = ""


class Asked(Exception):
    """Something has to be said first."""

    def __init__(self, title: str, about: str, back: str, inputs: list[Input]) -> None:
        super().__init__(title)
        self.title = title
        self.about = about
        self.back = back
        self.inputs = inputs


Maker = Callable[[PageRequest], Awaitable[PageAction]]
"""Makes the action that a form asks for; raises :class:`Asked`, or :class:`Refused`."""


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


class _Safety:
    """Waits until what was done is as safe as the settings promise: true if it is, false if nobody
    can say."""

    ended = False

    def __init__(self) -> None:
        self.safe: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def release(self, data: bytes | None) -> None:
        """Ends the wait, as it is safe."""
        self._settle(True)

    def abandon(self) -> None:
        """Ends the wait, as nobody will ever say."""
        self._settle(False)

    @property
    def is_debugging(self) -> bool:
        """Whether it goes on where all is frozen: the page does not."""
        return False

    def check_output(self, more: int = 0) -> bool:
        """Whether too much waits to be sent: never for a browser."""
        return False

    def _settle(self, safe: bool) -> None:
        if not self.safe.done():
            self.safe.set_result(safe)


async def run(server: Services, user: bytes, peer: str, action: PageAction) -> AsyncIterator[int]:
    """Runs the commands as a client does who is that user; yields after each batch what the
    commands so far have replied in sum. Raises :class:`Refused` with the error of the first that
    fails: the batches before that one have run then."""
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
    safety = _Safety()
    session.link.wire = SilentWire(safety.abandon)
    state.sessions[session.id] = session
    done = 0
    try:
        for at, batch in enumerate(action.batches):
            if at:
                await asyncio.sleep(0)
            # No other client comes between these: nothing is awaited.
            try:
                done += sum([_run_one(server, session, command) for command in _whole(batch)])
            except Refused as refused:
                if at:
                    refused.text += f" Before that:{action.told(done)}"
                raise
            yield done
        server.commit.hold(safety, b"")
        if not await safety.safe:
            raise Refused("It may or may not be on the disk: writing has failed.", 500)
    finally:
        farewell(server, session)


def _run_one(server: Services, session: Session, command: list[bytes]) -> int:
    """Runs a command; returns the sum of the integers in its reply."""
    reply = server.dispatcher.execute(session, command)
    if reply is None:
        raise Refused("The command takes too long to be run from here.", 500)
    failed = _FAILED.search(reply)
    if failed is not None:
        raise Refused(f"{shown(command[0])}: {shown(failed[1])}", 409)
    return sum(map(int, _NUMBERS.findall(reply)))
