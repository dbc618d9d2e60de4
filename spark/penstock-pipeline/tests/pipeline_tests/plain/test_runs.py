"""Queries are started one after the other, and again after failures."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from penstock_pipeline.errors import LATE_WORKER, NotStarted
from penstock_pipeline.model import Retry
from penstock_pipeline.report import Reporter
from penstock_pipeline.runs import Ended, Run, Stopping, follow

LATE = Exception(f"org.apache.spark.SparkException: {LATE_WORKER}.\n\tat org.apache.spark.X")
AWAY = Exception("h:6379/0 can't be reached: Connection refused")


class Handle:
    """What Spark gives of a query, which is a list of states: one for each round."""

    def __init__(self, states: list[Any]) -> None:
        self._states = states
        self.lastProgress = None
        self.recentProgress: list[Any] = []
        self.stopped = False

    @property
    def isActive(self) -> bool:
        return isinstance(self._states[0], str)

    @property
    def status(self) -> dict[str, Any]:
        return {"message": self._states[0], "isTriggerActive": False, "isDataAvailable": False}

    def exception(self) -> Exception | None:
        error: Exception | None = self._states[0]
        return error

    def stop(self) -> None:
        self.stopped = True

    def pass_on(self) -> None:
        if len(self._states) > 1:
            self._states.pop(0)


class Spark:
    """Queries whose attempts have the states of a script, in rounds of a tenth of a second."""

    def __init__(self, **scripts: list[list[Any] | Exception]) -> None:
        self.now = 1000.0
        self.started: list[tuple[str, float]] = []
        self._handles: list[Handle] = []
        self._records = io.StringIO()
        self._shown = io.StringIO()
        console = Console(file=self._shown, width=300)
        self.reporter = Reporter(console, "p", [self._records], list(scripts))
        self.runs = [self._run(name, script) for name, script in scripts.items()]

    def _run(self, name: str, script: list[list[Any] | Exception]) -> Run:
        attempts = iter(script)

        def start(once: bool) -> Handle:
            self.started.append((name, round(self.now - 1000, 1)))
            states = next(attempts)
            if isinstance(states, Exception):
                raise NotStarted(states)
            self._handles.append(Handle(states))
            return self._handles[-1]

        query: Any = SimpleNamespace(name=name, start=start, poison_counts=False)
        return Run(query, Retry(attempts=1, pause_s=5.0), True, self.reporter)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for handle in self._handles:
            handle.pass_on()

    def follow(self) -> None:
        follow(self.runs, Stopping(), self.sleep, lambda: self.now)

    @property
    def failures(self) -> list[tuple[Any, ...]]:
        names = ("query", "attempt", "attempts", "retry", "pause_s")
        records = map(json.loads, self._records.getvalue().splitlines())
        return [tuple(record[name] for name in names) for record in records]

    @property
    def lines(self) -> list[str]:
        return self._shown.getvalue().splitlines()


INIT = ["Initializing StreamExecution", "Initializing sources", "Initializing sources"]
RUNS = [*INIT, "Getting offsets from RedisStreamsSource", "Waiting for next trigger", None]


def test_a_query_starts_when_the_one_before_has_its_source() -> None:
    spark = Spark(a=[[*RUNS]], b=[[*RUNS]], c=[[*RUNS]])
    spark.follow()
    assert spark.started == [("a", 0.0), ("b", 0.3), ("c", 0.6)]


def test_queries_that_failed_together_start_one_after_the_other_again() -> None:
    ends = [INIT[0], "Waiting", "Waiting", "Waiting", AWAY]
    spark = Spark(a=[[*ends], [*RUNS]], b=[[ends[0], *ends[2:]], [*RUNS]])
    spark.follow()
    assert spark.started == [("a", 0.0), ("b", 0.1), ("a", 5.4), ("b", 5.7)]


def test_a_source_that_answers_too_late_is_started_again_with_growing_pauses() -> None:
    late = [INIT[0], LATE]
    spark = Spark(a=[[*late], [*late], [*late], [*RUNS]], b=[[*RUNS]])
    spark.follow()
    starts = [at for name, at in spark.started if name == "a"]
    assert starts == [0.0, 1.1, 3.2, 7.3]
    assert spark.started[1] == ("b", 0.1), "nobody waits for the pause of another"
    assert spark.failures == [("a", 0, 1, True, pause) for pause in (1.0, 2.0, 4.0)]
    assert spark.lines[0] == (
        "a: a Python process that Spark has started did not answer within ten seconds, which is "
        "all that Spark gives it: the machine has too much to do; it is tried again in 1 s, and "
        "does not count"
    )


def test_such_starts_never_count_and_the_pause_grows_up_to_a_minute() -> None:
    spark = Spark(a=[*(LATE for _ in range(9)), [INIT[0], AWAY], [*RUNS]])
    spark.follow()
    pauses = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    late = [("a", 0, 1, True, pause) for pause in pauses]
    assert spark.failures == [*late, ("a", 1, 1, True, 5.0)]


def test_a_process_that_is_late_when_spark_starts_the_query_is_waited_for_too() -> None:
    spark = Spark(a=[LATE, [*RUNS]])
    spark.follow()
    assert spark.started == [("a", 0.0), ("a", 1.0)]


def test_what_spark_refuses_ends_the_run_at_once() -> None:
    spark = Spark(a=[Exception("[UNSUPPORTED] no such query")], b=[[*RUNS]])
    with pytest.raises(Ended, match=r"a: \[UNSUPPORTED\] no such query"):
        spark.follow()
    assert spark.failures == [("a", 1, 0, False, 0.0)]
    assert spark.started == [("a", 0.0)]


def test_a_query_that_was_never_started_ends_with_the_run() -> None:
    spark = Spark(a=[[*RUNS]])
    stopping = Stopping()
    stopping.asked = True
    follow(spark.runs, stopping, spark.sleep, lambda: spark.now)
    for run in spark.runs:
        run.stop()
    assert spark.started == []
