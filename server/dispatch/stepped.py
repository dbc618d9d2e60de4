"""Work of commands that take long: clients that wait for it, and the turns in which it goes on.

What takes a moment of the :class:`~server.core.outcomes.Steps` that a handler returns is done at
once. For longer work the client is parked, like one that waits for a key, and all such work takes
turns with the event loop. Inside a transaction or a script it is done at once, however long it
takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from server.core.outcomes import PIECE, Pieces, Steps, Work, finish
from server.core.table import Arguments, Command
from server.dispatch.reactions import Reactions
from server.runtime.clockwork import EndOfRound, Slice
from server.state.server_state import ServerState
from server.state.session import Job, Session
from storage.chunks import in_chunks

TURN_NS: Final = 4_000_000
"""How long work goes on before others are answered again."""


def _joined(work: Work) -> Work:
    """Does the work, and joins its pieces, which takes as long where they are very many."""
    pieces: Pieces = []
    for piece in in_chunks((yield from work), PIECE):
        pieces.append(piece)
        yield
    return pieces


class SteppedCommands:
    """All work of a server that is under way. ``nanoseconds`` is a clock that never goes back."""

    def __init__(
        self,
        state: ServerState,
        reactions: Reactions,
        nanoseconds: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._state = state
        self._reactions = reactions
        self.nanoseconds = nanoseconds
        self._jobs: dict[Job, None] = {}
        self._next_turn = EndOfRound(self._run)

    def __len__(self) -> int:
        return len(self._jobs)

    def do(
        self, session: Session, command: Command, args: Arguments, steps: Steps, nanoseconds: int
    ) -> bytes | None:
        """Does the work, or what fits in one turn: then the client is parked (``None``).

        ``nanoseconds`` is how long the command has run already."""
        command.nanoseconds += nanoseconds
        job = Job(session, command, args, nanoseconds, _joined(steps.work))
        if session.executing:
            return self._finish(job, steps)
        if not self._jobs:  # Where others are at work, this waits for its turn.
            pieces = self._work(job)
            if pieces is not None:
                return b"".join(pieces)
        session.parked = job
        self._jobs[job] = None
        self._schedule()
        return None

    def _finish(self, job: Job, steps: Steps) -> bytes:
        """Does all of the work at once."""
        started = self.nanoseconds()
        reply = finish(steps)
        self._apply_effects(job.session)
        self._spend(job, self.nanoseconds() - started)
        self._count(job)
        return reply

    def _spend(self, job: Job, nanoseconds: int) -> None:
        job.nanoseconds += nanoseconds
        job.command.nanoseconds += nanoseconds

    def _count(self, job: Job) -> None:
        """Counts the command, whose work is done."""
        self._state.timings.record(job.session, job.command, job.args, job.nanoseconds)

    def abandon(self, job: Job) -> None:
        """The client is gone: nobody wants the reply."""
        self._jobs.pop(job, None)
        job.session.parked = None
        job.work.close()

    def close(self) -> None:
        """Ends all work, at the end of the server."""
        for job in list(self._jobs):
            self.abandon(job)

    def _schedule(self) -> None:
        if self._jobs:
            self._next_turn.schedule()

    def _run(self) -> None:
        try:
            self.turn()
        finally:
            self._schedule()

    def turn(self) -> None:
        """Lets the work go on that has waited longest, for one turn; none goes on while a script
        takes long, of which nothing is to be seen before its end."""
        if not self._jobs or self._state.busy is not None:
            return
        job = next(iter(self._jobs))
        self._state.keyspace.now_ms = self._state.clock()
        try:
            pieces = self._work(job)
        except Exception:
            job.session.link.close()
            raise
        self._reactions.drain()
        if job not in self._jobs:  # The client was cut off by what the work led to.
            return
        del self._jobs[job]
        if pieces is None:
            self._jobs[job] = None
        else:
            job.session.parked = None
            job.set_result(pieces)

    def _work(self, job: Job) -> Pieces | None:
        """Does one turn of work; returns the reply, if that is done."""
        turn = Slice(TURN_NS, self.nanoseconds)
        pieces: Pieces | None = None
        try:
            while True:
                next(job.work)
                if turn.is_over:
                    break
        except StopIteration as stop:
            pieces = stop.value
        finally:
            self._spend(job, turn.elapsed_ns)
            self._apply_effects(job.session)
        if pieces is not None:
            self._count(job)
        return pieces

    def _apply_effects(self, session: Session) -> None:
        if self._state.keyspace.effects:
            self._reactions.apply(session)
