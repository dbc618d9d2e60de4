"""Commands that take long, in steps: others are answered between them.

A handler that may have much to do returns :class:`Steps` in place of its reply: work that gives way
from time to time. What takes a moment is done at once. For longer work the client is parked, like
one that waits for a key, and all such work takes turns with the event loop. Inside a transaction or
a script it is done at once, however long it takes.

What the reply tells of has to be one moment: a handler takes hold of that before it returns, and
leaves to the steps what takes time with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from protocol.encoder import encode
from protocol.replies import Reply
from storage.stepwise import result

if TYPE_CHECKING:
    from server.app import Server
    from server.command_table import Command
    from server.session import Session

TURN_NS: Final = 4_000_000
"""How long work goes on before others are answered again."""

PIECE: Final = 256 * 1024
"""About how many bytes of a long reply are put together at a time."""

LONG: Final = 64 * 1024
"""A string of more bytes is gone through in steps."""

Pieces = list[bytes]
"""A reply, encoded, in pieces that follow each other."""

Work = Generator[None, None, Pieces]
"""Work that yields wherever it may be interrupted, and returns the reply. Between two steps
anything may happen to the keyspace."""


class Steps:
    """What a command returns that may take long."""

    __slots__ = ("work",)

    def __init__(self, work: Work) -> None:
        self.work = work


def finish(steps: Steps) -> bytes:
    """Does the work without giving way."""
    return b"".join(result(steps.work))


def reply_of(work: Generator[None, None, Reply], resp3: bool, *, long: bool) -> Reply | Steps:
    """The reply that the work returns: at once, if it is not ``long``. It is then never put behind
    the work of others."""
    return Steps(_encoded(work, resp3)) if long else result(work)


def _encoded(work: Generator[None, None, Reply], resp3: bool) -> Work:
    reply = yield from work
    return [encode(reply, resp3)]


class Job:
    """A client's command that is being worked on; its connection awaits ``future``."""

    __slots__ = ("command", "future", "nanoseconds", "session", "work")

    def __init__(self, session: Session, command: Command, work: Work) -> None:
        self.session = session
        self.command = command
        self.work = work
        self.nanoseconds = 0
        self.future: asyncio.Future[Pieces]


class Working:
    """All work of a server that is under way. ``nanoseconds`` is a clock that never goes back."""

    def __init__(
        self, server: Server, nanoseconds: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._server = server
        self.nanoseconds = nanoseconds
        self._jobs: dict[Job, None] = {}
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._jobs)

    def do(self, session: Session, command: Command, steps: Steps) -> bytes | None:
        """Does the work, or what fits in one turn: then the client is parked (``None``)."""
        if session.executing:
            command.calls += 1
            reply = finish(steps)
            self._settle(session)
            return reply
        job = Job(session, command, steps.work)
        if not self._jobs:  # Where others are at work, this waits for its turn.
            pieces = self._work(job)
            if pieces is not None:
                return b"".join(pieces)
        job.future = asyncio.get_running_loop().create_future()
        session.job = job
        self._jobs[job] = None
        self._schedule()
        return None

    def abandon(self, job: Job) -> None:
        """The client is gone: nobody wants the reply."""
        self._jobs.pop(job, None)
        job.session.job = None
        job.work.close()
        job.future.cancel()

    def close(self) -> None:
        """Ends all work, at the end of the server."""
        for job in list(self._jobs):
            self.abandon(job)

    def _schedule(self) -> None:
        if self._jobs and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        try:
            self.turn()
        finally:
            self._schedule()

    def turn(self) -> None:
        """Lets the work go on that has waited longest, for one turn; none goes on while a script
        takes long, of which nothing is to be seen before its end."""
        if not self._jobs or self._server.scripting.busy:
            return
        job = next(iter(self._jobs))
        self._server.keyspace.now_ms = self._server.clock()
        try:
            pieces = self._work(job)
        except Exception:
            job.session.close()
            raise
        self._server.blocking.serve()
        if job not in self._jobs:  # The client was cut off by what the work led to.
            return
        del self._jobs[job]
        if pieces is None:
            self._jobs[job] = None
        else:
            job.session.job = None
            job.future.set_result(pieces)

    def _work(self, job: Job) -> Pieces | None:
        """One turn of work; the reply, if that is done."""
        started = now = self.nanoseconds()
        try:
            while now - started < TURN_NS:
                next(job.work)
                now = self.nanoseconds()
        except StopIteration as stop:
            job.command.calls += 1
            pieces: Pieces = stop.value
            return pieces
        finally:
            job.command.nanoseconds += self.nanoseconds() - started
            self._settle(job.session)
        return None

    def _settle(self, session: Session) -> None:
        if self._server.keyspace.effects:
            self._server.settle(session)
