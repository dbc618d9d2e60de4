"""Work on the disk, in threads of its own, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Work = Callable[[], None]
Then = Callable[[OSError | None], None]


class DiskThread:
    """A thread which does one thing at a time, and a second one that writes beside it.

    What comes after a job runs in the event loop's thread, with the :class:`OSError` that ended the
    job, if one did. A job that *shares* the increment, such as a sync, lets the other thread write
    to it meanwhile (:meth:`run_beside`).
    """

    def __init__(self) -> None:
        self._main = _Thread("disk", self._ended)
        self._beside = _Thread("disk-write", self._ended)
        self._shares = False
        self.clock: Callable[[], float] = time.monotonic
        """Tells seconds, by which it is known for how long a job has been running."""
        self.when_ended: Callable[[], None] = lambda: None
        """Called when any job has ended, before what comes after it."""

    def _ended(self) -> None:
        self.when_ended()

    @property
    def busy(self) -> bool:
        """Whether a job is running, or what comes after one has not been done yet."""
        return self._main.busy or self._beside.busy

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

    An executor of the standard library does the same in a third more time, which every commit of
    ``appendfsync always`` would take.
    """

    def __init__(self, name: str, ended: Callable[[], None]) -> None:
        self._name = name
        self._ended = ended
        self._jobs: SimpleQueue[tuple[Work, asyncio.AbstractEventLoop] | None] = SimpleQueue()
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
        loop = asyncio.get_running_loop()
        if self._worker is None:
            self._worker = Thread(target=self._work, name=self._name, daemon=True)
            self._worker.start()
        self._then = then
        self._started = time.monotonic()
        self.busy = True
        self._working.acquire()
        self._jobs.put((work, loop))

    def _work(self) -> None:
        """Do one job after another until the thread is closed."""
        while (job := self._jobs.get()) is not None:
            work, loop = job
            try:
                work()
                self._error = None
            except Exception as error:
                self._error = error
            self._answered = True
            self._working.release()
            with contextlib.suppress(RuntimeError):  # The loop may have been closed after a wait.
                loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        """Does what comes after the job, unless :meth:`wait` has done it already."""
        if not self._answered:
            return
        self._answered = False
        self.busy = False
        self._ended()
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
            self._jobs.put(None)
            self._worker.join()
