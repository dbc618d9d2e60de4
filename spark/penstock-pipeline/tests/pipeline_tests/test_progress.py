"""What is told about batches, and errors without their traces."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock_pipeline.errors import PipelineError, reason
from penstock_pipeline.report import (
    Bars,
    FinishedBatch,
    ProgressReader,
    Reporter,
    batch_of,
    open_records,
)


def progress(number: int, rows: int = 5, **durations: int) -> dict[str, Any]:
    """A report as Spark writes it."""
    end = {"v": 1, "servers": {"": {"s": {"id": "5-0", "n": 5, "from": "0-0", "n0": 0}}}}
    latest = {"v": 1, "servers": {"": {"s": {"id": "9-0", "n": 9, "from": "0-0", "n0": 0}}}}
    return {
        "batchId": number,
        "timestamp": "2026-01-01T10:20:30.123Z",
        "numInputRows": rows,
        "processedRowsPerSecond": 1234.56,
        "durationMs": durations or {"addBatch": 40, "triggerExecution": 50},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": 1}],
        "sources": [{"endOffset": json.dumps(end), "latestOffset": json.dumps(latest)}],
    }


BATCH = FinishedBatch(
    time="2026-01-01T10:20:30.123Z",
    query="q",
    number=3,
    rows=5,
    rows_per_second=1234.6,
    lag=4,
    lags={"s": 4},
    duration_ms=50,
    watermark="2026-01-01T00:00:00.000Z",
    state_rows=7,
    late_rows=1,
)


def test_a_report_of_spark_becomes_a_batch() -> None:
    assert batch_of("q", progress(3)) == BATCH
    assert batch_of("q", progress(3, latestOffset=2)) is None, "Spark was only waiting"


def test_a_batch_is_a_line_for_people_and_one_for_machines() -> None:
    assert BATCH.line() == "10:20:30 q: batch 3, 5 rows, 1,235 rows/s, lag 4"
    assert json.loads(BATCH.record("p")) == {
        "kind": "batch",
        "pipeline": "p",
        "time": "2026-01-01T10:20:30.123Z",
        "query": "q",
        "batch": 3,
        "rows": 5,
        "rows_per_second": 1234.6,
        "lag": 4,
        "lags": {"s": 4},
        "duration_ms": 50,
        "watermark": "2026-01-01T00:00:00.000Z",
        "state_rows": 7,
        "late_rows": 1,
        "written": None,
        "unexpected": {},
    }


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (5, "5 rows, 1,235 rows/s"),
        (0, "0 rows of 5 entries, 1,235 entries/s"),
        (1, "1 row of 5 entries, 1,235 entries/s"),
        (10, "10 rows of 5 entries, 1,235 entries/s"),
    ],
)
def test_a_batch_tells_its_rows_and_its_entries_if_these_are_not_as_many(
    written: int, line: str
) -> None:
    seen = batch_of("q", {**progress(3), "observedMetrics": {"written": {"rows": written}}})
    assert seen == BATCH._replace(written=written)
    assert BATCH._replace(written=written).line() == f"10:20:30 q: batch 3, {line}, lag 4"


def test_the_last_line_of_a_query_tells_no_rows_that_it_has_not_written() -> None:
    shown = io.StringIO()
    with Reporter(Console(file=shown, width=100), "p", [], ["bad", "group"]) as reporter:
        for query, written in (("bad", 0), ("bad", 1), ("group", None), ("group", 5)):
            reporter.add(BATCH._replace(query=query, written=written, late_rows=0))
    shown.truncate(0)
    reporter.summary()
    assert [line.strip("\0") for line in shown.getvalue().splitlines()] == [
        "bad: 1 row of 10 entries in 2 batches",
        "group: 10 rows in 2 batches",
    ]


class Reports:
    """A query as far as its reports go."""

    def __init__(self, *reports: dict[str, Any]) -> None:
        self.recentProgress = list(reports)

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.recentProgress else None


def test_each_batch_is_handed_out_once() -> None:
    reader = ProgressReader("q")
    query = Reports()
    assert reader.new(query) == []
    query.recentProgress += [progress(0), progress(1), progress(2, latestOffset=1)]
    assert [batch.number for batch in reader.new(query)] == [0, 1]
    assert reader.new(query) == []
    query.recentProgress += [progress(2)]
    assert [batch.number for batch in reader.new(query)] == [2]
    restarted = Reports(progress(2), progress(3))
    assert [batch.number for batch in reader.new(restarted)] == [3]


def test_bars_show_rows_speed_lag_and_batch() -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=100, force_terminal=True, highlight=False, no_color=True)
    with Bars(console, "p", [], ["q", "idle"]) as bars:
        bars.add(BATCH)
        bars.add(BATCH._replace(number=4, rows=4, lag=0))
    last = shown.getvalue()[-300:]
    assert "9 rows, 1,235 rows/s, lag 0, batch 4" in last
    assert "0 rows, 0 rows/s, lag 0, batch -" in last
    shown.truncate(0)
    bars.summary()
    assert [line.strip("\0") for line in shown.getvalue().splitlines()] == [
        "q: 9 rows in 2 batches",
        "idle: 0 rows in 0 batches",
    ]


def test_records_that_can_t_be_written_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match=r"can't write the metrics to '.*/file/m': "):
        open_records(str(tmp_path / "file" / "m"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n"
            "  File x, line 3\n"
            "pyspark_redis_streams.errors.DataLossError: stream 's': 2 entries removed\n\tat Java",
            "stream 's': 2 entries removed",
        ),
        (
            "[STREAM_FAILED] Query x\n[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\nmore",
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
        ),
        ("text\nCaused by: java.io.IOException: No space\n\tat x", "No space"),
        (
            "An error occurred while calling o1.save.\n: java.sql.SQLException: No driver\n\tat x",
            "No driver",
        ),
        ("Traceback\n  File x\nValueError: five\n", "ValueError: five"),
        ("first\nsecond", "first"),
        ("", "Exception('')"),
    ],
)
def test_the_reason_of_an_error_is_one_line(text: str, expected: str) -> None:
    assert reason(Exception(text)) == expected
