"""Scripts that take long: after a while others are answered, though only with BUSY.

The client whose script it is is parked meanwhile, like one that waits for a key; the script goes on
in turns with the event loop, on a stack of its own (a greenlet). Short work runs to its end like
any function. Work that takes long calls :meth:`SuspendableStack.give_way` from time to time: its
stack is put aside, whoever waits for it gets :data:`SUSPENDED`, and :meth:`SuspendableStack.resume`
lets it go on. No two pieces of work are under way at a time, and all of it happens in the thread of
the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from greenlet import GreenletExit, getcurrent, greenlet

from protocol.encoder import encode, error_line
from protocol.errors import CommandError
from protocol.replies import Reply
from server.clients.blocking import BlockedClients
from server.core.outcomes import Wait, wait_forever
from server.dispatch.reactions import Reactions
from server.scripting import errors as script_errors
from server.state.server_state import ServerState
from server.state.session import CLIENT, Session

Work = Callable[[], Any]


class _Suspended:
    """Stands for a result that is not there yet."""


SUSPENDED: Final = _Suspended()


class _Raised:
    """Stands for a result that is an exception."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class SuspendableStack:
    """A stack of calls beside that of the event loop: runs one piece of work at a time, which may
    be put aside."""

    def __init__(self) -> None:
        self._outside: greenlet | None = None
        self._stack: greenlet | None = None

    @property
    def inside(self) -> bool:
        """Whether what calls this is work that runs here."""
        return self._outside is not None and getcurrent() is self._stack

    def run(self, work: Work) -> Any:
        """The result of the work, or :data:`SUSPENDED`; raises what the work raises."""
        if self.inside:
            return work()
        if self._stack is None:
            self._stack = greenlet(self._work_on)
        return self._switch(work)

    def resume(self) -> Any:
        """Lets suspended work go on; its result, or :data:`SUSPENDED` once more."""
        return self._switch(None)

    def give_way(self) -> None:
        """Called by the work: returns when its next turn has come."""
        assert self._outside is not None
        self._outside.switch(SUSPENDED)

    def close(self) -> None:
        """Ends the stack on which nothing runs any more."""
        stack, self._stack = self._stack, None
        if stack is not None and not stack.dead:
            stack.throw(GreenletExit)

    def _switch(self, work: Work | None) -> Any:
        assert self._stack is not None
        self._outside = self._stack.parent = getcurrent()
        result = self._stack.switch(work)
        if isinstance(result, _Raised):
            raise result.error
        return result

    def _work_on(self, work: Work) -> None:
        """Does one piece of work after another."""
        while True:
            try:
                result = work()
            except Exception as error:
                result = _Raised(error)
            work = self._hand_over(result)

    def _hand_over(self, result: Any) -> Work:
        outside, self._outside = self._outside, None
        assert outside is not None
        work: Work = outside.switch(result)
        return work


TURN_S: Final = 0.01
"""How long a script runs before others are answered again."""

TICK_S: Final = 0.001
"""About how often a script looks whether others wait."""

FIRST_STEPS: Final = 250
"""After how many steps of the virtual machine it does so first."""

PATIENCE_S: Final = 0.03
"""How long a script that takes much memory runs before it counts as one that takes long."""

MOST_STEPS: Final = 100_000
"""After how many it does so at least."""


class LongRunning:
    """Runs scripts, and knows which one takes long. ``refusal`` is what others are told meanwhile;
    ``seconds`` is a clock that never goes back."""

    def __init__(
        self,
        state: ServerState,
        blocking: BlockedClients,
        reactions: Reactions,
        refusal: Callable[[], str],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._blocking = blocking
        self._reactions = reactions
        self._refusal = refusal
        self.seconds = seconds
        self._turns = SuspendableStack()
        self._session: Session | None = None
        self._started = 0.0
        self._until: float | None = None
        self._ticked = 0.0
        self._steps = FIRST_STEPS
        self._killed = False
        self._caller = CLIENT
        self._now_ms = 0

    @property
    def active(self) -> bool:
        """Whether a script takes long."""
        return self._session is not None

    # --- the script's side ----------------------------------------------------------------

    def begin(self) -> None:
        """A script begins: it has ``busy-reply-threshold`` milliseconds, any time if that is 0."""
        self._killed = False
        self._steps = FIRST_STEPS
        self._ticked = self.seconds()
        if not self.active:
            threshold = self._state.config.busy_reply_threshold
            self._started = self._ticked
            self._until = self._started + threshold / 1000 if threshold else None

    def tick(self, takes_much: bool = False) -> int:
        """Called now and then while a script runs: after how many steps again, 0 if it must end.

        One that ``takes_much`` memory is about to take long, too: others do not wait for it."""
        if not self._turns.inside:
            return MOST_STEPS
        now = self.seconds()
        self._pace(now - self._ticked)
        if takes_much and self._until is not None and not self.active:
            self._until = min(self._until, self._started + PATIENCE_S)
        if self._until is not None and now >= self._until:
            self._turns.give_way()
            now = self.seconds()
            self._until = now + TURN_S
        self._ticked = now
        return 0 if self._killed else self._steps

    def _pace(self, elapsed: float) -> None:
        """Steps can take nanoseconds, or milliseconds when they call into libraries."""
        if elapsed < TICK_S / 2:
            self._steps = min(2 * self._steps, MOST_STEPS)
        elif elapsed > 2 * TICK_S:
            self._steps = max(1, int(self._steps * TICK_S / elapsed))

    # --- the client's side ----------------------------------------------------------------

    def work(self, session: Session, work: Callable[[], Reply]) -> Reply | Wait:
        """Does what the client asked for, which may take long: then the client has to wait."""
        result = self._turns.run(work)
        if result is not SUSPENDED:
            reply: Reply = result
            return reply
        self._state.log.warning(
            "A script takes longer than busy-reply-threshold, or much memory."
            " Other clients can only end it with SCRIPT KILL, or the server with SHUTDOWN NOSAVE"
        )
        self._session = session
        self._put_aside(session)
        return wait_forever()

    def _put_aside(self, session: Session) -> None:
        self._caller, session.caller = session.caller, CLIENT
        self._now_ms = self._state.keyspace.now_ms
        self._state.set_busy(self._refusal())
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._session is None:
            return
        try:
            self._take_turn(self._session)
        except CommandError as error:
            self._finish(error)
        except Exception:
            self._session.link.close()
            self._end()
            raise

    def _take_turn(self, session: Session) -> None:
        """Lets the script go on, at the time at which it began."""
        session.caller = self._caller
        self._state.keyspace.now_ms = self._now_ms
        result: Any = self._turns.resume()
        if result is SUSPENDED:
            self._put_aside(session)
        else:
            self._finish(result)

    def _finish(self, result: Reply | CommandError) -> None:
        session = self._session
        assert session is not None
        self._end()
        waiter, blocking = session.waiter, self._blocking
        if waiter is not None:
            waiter.nanoseconds = int((self.seconds() - self._started) * 1e9)
            blocking.count(waiter)
            if isinstance(result, CommandError):
                waiter.command.failed += 1
                if not result.counted:
                    self._state.stats.count_error(result.text)
                blocking.finish(waiter, error_line(result.text))
            else:
                blocking.finish(waiter, encode(result, session.resp3))
        self._reactions.drain()

    def _end(self) -> None:
        self._session = None
        self._state.set_busy(None)

    # --- ending a script ------------------------------------------------------------------

    def kill(self, wrote: bool) -> None:
        """Ends the script; raises :class:`CommandError` if there is none, or if it ``wrote``."""
        if not self.active:
            raise CommandError(script_errors.NOT_BUSY)
        if wrote:
            raise CommandError(script_errors.UNKILLABLE)
        self._killed = True

    def end(self) -> None:
        """Ends the script that takes long, whatever it has done; its client is told."""
        while self._session is not None:
            self._killed = True
            self._go_on()

    def close(self) -> None:
        """Ends the script that is under way, at the end of the server."""
        if self._session is not None:
            self._killed = True
            session = self._session
            self._end()
            session.caller = self._caller
            try:
                while self._turns.resume() is SUSPENDED:
                    self._killed = True
            except CommandError:
                pass
            session.caller = CLIENT
        self._turns.close()
