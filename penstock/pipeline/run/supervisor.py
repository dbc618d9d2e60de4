"""Runs a pipeline: starts its queries, monitors them, restarts failed ones, and stops them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.pipeline.errors import PipelineError, reason
from penstock.pipeline.model import Pipeline, Retry
from penstock.pipeline.run.progress import Follower
from penstock.pipeline.run.queries import Query, queries
from penstock.pipeline.run.report import Reporter
from penstock.pipeline.run.session import start

POLL_S: Final = 0.1

HOPELESS: Final = (
    *("OptionError", "SchemaError", "NotWritable"),
    *("AnalysisException", "ParseException"),
)
"""Errors that a restart cannot fix."""


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
    """A running query, including its restarts."""

    def __init__(self, query: Query, retry: Retry, once: bool, reporter: Reporter) -> None:
        self.name = query.name
        self._query = query
        self._retry = retry
        self._once = once
        self._reporter = reporter
        self._follower = Follower(query.name)
        self._failures = 0
        self._failed_after = -1
        self._again_at: float | None = None
        self._finishing_after: int | None = None
        self._handle = self._started()

    def _started(self) -> Any:
        try:
            return self._query.start(self._once)
        except (PySparkException, Py4JError) as error:
            raise PipelineError(f"{self.name}: {reason(error)}") from None

    def step(self, clock: Callable[[], float] = time.monotonic) -> bool:
        """Reports new batches and restarts the query after a failure; whether it still runs.

        Raises PipelineError when the restarts are used up.
        """
        if self._again_at is not None:
            if clock() >= self._again_at:
                self._again_at = None
                self._handle = self._started()
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

    def _report(self) -> None:
        for batch in self._follower.new(self._handle):
            self._reporter.add(batch)

    def _fail(self, error: Exception, now: float) -> None:
        if self._follower.last > self._failed_after:
            self._failures, self._failed_after = 0, self._follower.last
        self._failures += 1
        why = f"{self.name}: {reason(error)}"
        if self._failures > self._retry.attempts or any(word in str(error) for word in HOPELESS):
            raise PipelineError(why)
        self._again_at = now + self._retry.pause_s
        self._reporter.say(f"{why}; attempt {self._failures} of {self._retry.attempts} follows")

    def finish(self) -> bool:
        """Stops the query if no batch is being processed; whether it has stopped."""
        if self._again_at is not None:
            return True
        if self._finishing_after is None:
            self._finishing_after = self._follower.last
        self._report()
        is_done = self._follower.last > self._finishing_after or not self._is_busy()
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
        self._handle.stop()


def run(
    pipeline: Pipeline,
    make_reporter: Callable[[Sequence[str]], Reporter],
    once: bool,
    master: str | None,
) -> None:
    """Runs a pipeline until it is done (``once``) or a signal comes; raises PipelineError."""
    stopping = Stopping()
    stopping.install()
    for output in pipeline.outputs:
        output.require()
    spark = start(pipeline, master)
    # Spark installs a handler for SIGINT, which is replaced here.
    stopping.install()
    with ExitStack() as stack:
        stack.callback(spark.stop)
        for output in pipeline.outputs:
            output.require_of(spark)
        found = queries(spark, pipeline)
        reporter = stack.enter_context(make_reporter([query.name for query in found]))
        runs: list[Run] = []
        stack.callback(_stop_all, runs)
        for query in found:
            runs.append(Run(query, pipeline.retry, once, reporter))
        follow(runs, stopping)
    reporter.summary()


def follow(runs: Sequence[Run], stopping: Stopping) -> None:
    """Returns when all queries have ended, by themselves or because of a signal."""
    waiting = list(runs)
    while waiting and not stopping.asked:
        waiting = [each for each in waiting if each.step()]
        if waiting:
            time.sleep(POLL_S)
    while waiting := [each for each in waiting if not each.finish()]:
        time.sleep(POLL_S / 5)


def _stop_all(runs: Sequence[Run]) -> None:
    for each in runs:
        each.stop()
