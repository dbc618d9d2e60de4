"""Work that may take long, in turns with the event loop.

The work runs on a stack of its own (a greenlet). Short work runs to its end like any function. Work
that takes long calls :meth:`Turns.give_way` from time to time: its stack is put aside, whoever
waits for it gets :data:`SUSPENDED`, and :meth:`Turns.resume` lets it go on. No two pieces of work
are under way at a time, and all of it happens in the thread of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from greenlet import GreenletExit, getcurrent, greenlet

Work = Callable[[], Any]


class _Suspended:
    """Stands for a result that is not there yet."""


SUSPENDED: Final = _Suspended()


class _Raised:
    """Stands for a result that is an exception."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Turns:
    """Runs one piece of work at a time."""

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
