"""Work on the disk, in threads of its own, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from errno import EAGAIN
from threading import Lock, Thread
from typing import Final

Work = Callable[[], None]
Then = Callable[[OSError | None], None]

_GO: Final = b"!"
_END: Final = b"."


class DiskThread:
    """A thread which does one thing at a time, and a second one that writes beside it.

    What comes after a job runs in the event loop's thread, with the :class:`OSError` that ended the
    job, if one did. A job that *shares* the increment, such as a sync, lets the other thread write
    to it meanwhile (:meth:`run_beside`).
    """

    def __init__(self) -> None:
        self._main = _Thread("disk", self)
        self._beside = _Thread("disk-write", self)
        self._shares = False
        self.busy = 0
        """How many jobs are running, or what comes after them has not been done yet."""
        self.clock: Callable[[], float] = time.monotonic
        """Tells seconds, by which it is known for how long a job has been running."""
        self.waiting: list[Callable[[], None]] = []
        """What is called once when any job has ended, before what comes after it."""

    @property
    def shares(self) -> bool:
        """Whether :meth:`run_beside` may be called now."""
        return self._shares and self._main.busy and not self._beside.busy

    @property
    def running_ms(self) -> int:
        """For how long a job has been running, 0 if there is none."""
        now = self.clock()
        return max(self._main.running_ms(now), self._beside.running_ms(now))

    def run(self, work: Work, then: Then, *, shares: bool = False) -> None:
        """Does ``work`` in the thread and then ``then``. There must be no other job."""
        assert not self.busy
        self._shares = shares
        self._main.run(work, then)

    def run_beside(self, work: Work, then: Then) -> None:
        """Runs a job in the second thread, while a job is running that shares the increment."""
        assert self.shares
        self._beside.run(work, then)

    def wait(self) -> None:
        """Blocks until there is no job any more, and does what comes after it."""
        while self.busy:
            self._main.wait()
            self._beside.wait()

    def close(self) -> None:
        """Ends the threads."""
        self.wait()
        self._main.close()
        self._beside.close()


class _Thread:
    """A thread with one job at a time; it is made for the first of them.

    It waits for a byte from a pipe. The event loop's thread does not hold the interpreter while it
    writes that, so where both share a processor this one takes it at once, and gives it back when
    the disk works: two switches. Whoever opens a lock, or puts something into a queue, holds the
    interpreter, for which the one that is woken has to wait in turn.
    """

    def __init__(self, name: str, owner: DiskThread) -> None:
        self._name = name
        self._owner = owner
        self._job: tuple[Work, asyncio.AbstractEventLoop]
        self._pipe: tuple[int, int]
        self._worker: Thread | None = None
        self._working = Lock()
        self._answered = False
        self._error: Exception | None = None
        self.busy = False
        self._then: Then
        self._started = 0.0

    def running_ms(self, now: float) -> int:
        return int((now - self._started) * 1000) if self.busy else 0

    def run(self, work: Work, then: Then) -> None:
        self._job = work, asyncio.get_running_loop()
        self._then = then
        self._started = time.monotonic()
        self.busy = True
        self._owner.busy += 1
        self._working.acquire()
        try:
            if self._worker is None:
                self._begin()
            os.write(self._pipe[1], _GO)
        except OSError as error:
            self._answer(error, self._job[1])

    def _begin(self) -> None:
        """Start the thread; raises ``OSError`` where there is no room for a pipe or a thread."""
        self._pipe = os.pipe()
        worker = Thread(target=self._work, name=self._name, daemon=True)
        try:
            worker.start()
        except RuntimeError as error:
            self._close_pipe()
            raise OSError(EAGAIN, str(error)) from error
        self._worker = worker

    def _work(self) -> None:
        """Do one job after another until the thread is closed."""
        while os.read(self._pipe[0], len(_GO)) == _GO:
            work, loop = self._job
            try:
                work()
            except Exception as error:
                self._answer(error, loop)
            else:
                self._answer(None, loop)

    def _answer(self, error: Exception | None, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the event loop how the job has ended."""
        self._error = error
        self._answered = True
        self._working.release()
        try:
            loop.call_soon_threadsafe(self._finish)
        except RuntimeError:  # The loop may have been closed after a wait.
            return

    def _finish(self) -> None:
        """Does what comes after the job, unless :meth:`wait` has done it already."""
        if not self._answered:
            return
        self._answered = False
        self.busy = False
        owner = self._owner
        owner.busy -= 1
        if owner.waiting:
            waiting, owner.waiting = owner.waiting, []
            for act in waiting:
                act()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, OSError):
            raise error
        self._then(error)

    def wait(self) -> None:
        while self.busy:
            with self._working:  # The thread holds it until the job has ended.
                pass
            self._finish()

    def close(self) -> None:
        if self._worker is not None:
            os.write(self._pipe[1], _END)
            self._worker.join()
            self._worker = None
            self._close_pipe()

    def _close_pipe(self) -> None:
        for end in self._pipe:
            os.close(end)
