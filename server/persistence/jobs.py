"""Work on the disk, in a thread of its own, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

Work = Callable[[], None]
Then = Callable[[OSError | None], None]


class Jobs:
    """One thread, which does one thing at a time.

    What comes after a job runs in the event loop's thread, with the :class:`OSError` that ended the
    job, if one did.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._future: Future[None] | None = None
        self._then: Then
        self.when_ended: Callable[[], None] = lambda: None
        """Called when any job has ended, before what comes after it."""
        self._started = 0.0

    @property
    def busy(self) -> bool:
        """Whether a job is running, or what comes after one has not been done yet."""
        return self._future is not None

    @property
    def running_ms(self) -> int:
        """For how long the job has been running, 0 if there is none."""
        return int((time.monotonic() - self._started) * 1000) if self.busy else 0

    def run(self, work: Work, then: Then) -> None:
        """Does ``work`` in the thread and then ``then``. There must be no other job."""
        assert self._future is None
        loop = asyncio.get_running_loop()
        self._then = then
        self._started = time.monotonic()
        self._future = self._executor.submit(work)
        self._future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._finish))

    def _finish(self) -> None:
        """Does what comes after the job, unless :meth:`wait` has done it already."""
        future = self._future
        if future is None or not future.done():
            return
        self._future = None
        self.when_ended()
        error = future.exception()
        if error is not None and not isinstance(error, OSError):
            raise error
        self._then(error)

    def wait(self) -> None:
        """Blocks until there is no job any more, and does what comes after it."""
        while self._future is not None:
            self._future.exception()
            self._finish()

    def close(self) -> None:
        """Ends the thread."""
        self.wait()
        self._executor.shutdown()
