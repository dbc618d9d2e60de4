"""The queries of a run: started one after the other, restarted after failures, and ended.

Each query that starts makes Spark start a Python process, which has ten seconds to answer. So that
they do not take the processor from each other, the next query starts when that of the one before
has answered.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock_pipeline.errors import (
    Failure,
    NotStarted,
    PipelineError,
    failure_of,
    is_late_worker,
)
from penstock_pipeline.model import Retry
from penstock_pipeline.report import ProgressReader, Reporter, now_text

if TYPE_CHECKING:
    from penstock_pipeline.queries import Query

POLL_S: Final = 0.1

LATE_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Pauses after a Python process that did not answer in time: the first, and the longest."""

STARTING: Final = "Initializing"
"""How Spark's status of a query begins until the Python process of its source has answered."""


class Ended(PipelineError):
    """The end of a run by a failure that has been reported already."""


class Stopping:
    """Records SIGTERM and SIGINT; a second signal ends the process at once."""

    def __init__(self) -> None:
        self.asked = False

    def install(self) -> None:
        """Installs the handlers in place of the present ones."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Run:
    """A query that runs or is going to, including its restarts."""

    def __init__(self, query: Query, retry: Retry, once: bool, reporter: Reporter) -> None:
        self.name = query.name
        self._query = query
        self._retry = retry
        self._once = once
        self._reporter = reporter
        self._progress = ProgressReader(query.name)
        self._failures = 0
        self._late = 0
        self._failed_after = -1
        self._due: float | None = 0.0
        self._finishing_after: int | None = None
        self._handle: Any = None
        self._has_begun = False

    @property
    def is_starting(self) -> bool:
        """Whether it has been started and the Python process of its source has not answered."""
        if self._due is None and not self._has_begun:
            handle = self._handle
            is_new = bool(handle.isActive) and handle.status["message"].startswith(STARTING)
            self._has_begun = not is_new
        return self._due is None and not self._has_begun

    def step(self, may_start: bool, clock: Callable[[], float]) -> bool:
        """Starts the query if it is due, reports new batches and failures; whether it goes on.

        Raises PipelineError when the restarts are used up.
        """
        if self._due is not None:
            if may_start and clock() >= self._due:
                self._start(clock)
            return True
        active = bool(self._handle.isActive)
        self._report()
        if active:
            return True
        error = self._handle.exception()
        if error is None:
            return False
        self._fail(error, clock())
        return True

    def _start(self, clock: Callable[[], float]) -> None:
        try:
            self._handle = self._query.start(self._once)
        except NotStarted as error:
            if not is_late_worker(error.cause):
                self._failures += 1
                raise self._ended(self._failure(error.cause, 0, 0.0)) from None
            self._fail(error.cause, clock())
            return
        self._due, self._has_begun = None, False

    def _ended(self, found: Failure) -> Ended:
        """Reports that there is no other attempt."""
        self._reporter.fail(found)
        return Ended(found.line())

    def _report(self) -> None:
        for batch in self._progress.new(self._handle):
            self._reporter.add(batch)

    def _fail(self, error: BaseException, now: float) -> None:
        if self._progress.last > self._failed_after:
            self._failures, self._late, self._failed_after = 0, 0, self._progress.last
        if is_late_worker(error):
            pause_s = min(LATE_PAUSE_S * 2**self._late, LONGEST_PAUSE_S)
            self._late += 1
            found = self._failure(error, self._retry.attempts, pause_s, is_counted=False)
        else:
            self._failures += 1
            found = self._failure(error, self._retry.attempts, self._retry.pause_s)
        if not found.retry:
            raise self._ended(found)
        self._reporter.fail(found)
        self._due = now + found.pause_s

    def _failure(
        self, error: BaseException, attempts: int, pause_s: float, is_counted: bool = True
    ) -> Failure:
        number = self._failures if is_counted else 0
        poison = self._query.poison_counts
        return failure_of(now_text(), self.name, error, number, attempts, pause_s, poison)

    def finish(self) -> bool:
        """Stops the query if no batch is being processed; whether it has stopped."""
        if self._due is not None:
            return True
        if self._finishing_after is None:
            self._finishing_after = self._progress.last
        self._report()
        is_done = self._progress.last > self._finishing_after or not self._is_busy()
        if is_done or not self._handle.isActive:
            self._handle.stop()
            self._report()
            return True
        return False

    def _is_busy(self) -> bool:
        status = self._handle.status
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    def stop(self) -> None:
        """Stops the query at once; the batch is repeated when the query is started again."""
        if self._handle is not None:
            self._handle.stop()


def follow(
    runs: Sequence[Run],
    stopping: Stopping,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Returns when all queries have ended, by themselves or because of a signal.

    One at a time is started, at the beginning and after failures.
    """
    waiting = list(runs)
    while waiting and not stopping.asked:
        for each in list(waiting):
            if not each.step(not any(other.is_starting for other in waiting), clock):
                waiting.remove(each)
        if waiting:
            sleep(POLL_S)
    while waiting := [each for each in waiting if not each.finish()]:
        sleep(POLL_S / 5)
