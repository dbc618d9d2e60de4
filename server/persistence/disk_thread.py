"""Work on the disk, in threads of its own, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

Work = Callable[[], None]
Then = Callable[[OSError | None], None]


class Jobs:
    """A thread which does one thing at a time, and a second one that writes beside it.

    What comes after a job runs in the event loop's thread, with the :class:`OSError` that ended the
    job, if one did. A job that *shares* the increment, such as a sync, lets the other thread write
    to it meanwhile (:meth:`run_beside`).
    """

    def __init__(self) -> None:
        self._main = _Thread("disk", self._ended)
        self._beside = _Thread("disk-write", self._ended)
        self._shares = False
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
        return max(self._main.running_ms, self._beside.running_ms)

    def run(self, work: Work, then: Then, *, shares: bool = False) -> None:
        """Does ``work`` in the thread and then ``then``. There must be no other job."""
        assert not self.busy
        self._shares = shares
        self._main.run(work, then)

    def run_beside(self, work: Work, then: Then) -> None:
        """Does the same in the second thread, while a job is running that shares the increment."""
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
    """One thread with one job at a time; it is made for the first of them."""

    def __init__(self, name: str, ended: Callable[[], None]) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._ended = ended
        self._future: Future[None] | None = None
        self.busy = False
        self._then: Then
        self._started = 0.0

    @property
    def running_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000) if self.busy else 0

    def run(self, work: Work, then: Then) -> None:
        loop = asyncio.get_running_loop()
        self._then = then
        self._started = time.monotonic()
        self.busy = True
        self._future = self._executor.submit(work)
        self._future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._finish))

    def _finish(self) -> None:
        """Does what comes after the job, unless :meth:`wait` has done it already."""
        future = self._future
        if future is None or not future.done():
            return
        self._future = None
        self.busy = False
        self._ended()
        error = future.exception()
        if error is not None and not isinstance(error, OSError):
            raise error
        self._then(error)

    def wait(self) -> None:
        while self._future is not None:
            self._future.exception()
            self._finish()

    def close(self) -> None:
        self._executor.shutdown()
