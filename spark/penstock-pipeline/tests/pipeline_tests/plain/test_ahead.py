"""Times from the future: what the file may say of them, and what is said of rows that come late."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock_pipeline.errors import InvalidFile
from penstock_pipeline.report import FinishedBatch, Reporter
from pipeline_tests.plain.files import Command, pipeline, text, write

PARSE = '[parse.columns]\nat = "timestamp"\nday = "date"\n[dead_letters]\nstream = "dead"\n'


def transform(column: str = "at", ahead: str = "1 day", origin: str = "entries") -> str:
    return f"""\
{PARSE}
[[transform]]
name = "first"
sql = "SELECT at FROM entries"
[[transform]]
name = "second"
from = "{origin}"
watermark = {{ column = "{column}", delay = "1 hour", ahead = "{ahead}" }}
"""


def test_how_far_ahead_a_time_may_be_is_read_and_planned(tmp_path: Path, command: Command) -> None:
    found = pipeline(tmp_path, "redis://h", more=transform(ahead="1 day 2 hours"))
    mark = found.transforms[1].watermark
    assert mark is not None
    assert mark.ahead == "1 day 2 hours"
    _, out, _ = command("plan", write(tmp_path, text("redis://h", more=transform())))
    lines = out.splitlines()
    place = lines.index("  rows of entries may be 1 hour late by 'at'")
    assert lines[place + 1] == "  entries that are more than 1 day ahead by it are dead letters"


def test_no_limit_is_set_unless_the_file_sets_one(tmp_path: Path) -> None:
    more = transform().replace(', ahead = "1 day"', "")
    mark = pipeline(tmp_path, "redis://h", more=more).transforms[1].watermark
    assert mark is not None
    assert mark.ahead is None


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (transform(ahead="far"), "is 'far'; allowed: a number with millisecond, second, "),
        (transform("day"), "whose entries can be dead letters; this is column 'day' of 'entries'"),
        (transform("timestamp"), "this is column 'timestamp' of 'entries'"),
        (transform(origin="first"), "this is column 'at' of 'first'"),
        (transform().replace(PARSE, ""), "is for a timestamp of [parse.columns] in the table 'en"),
    ],
)
def test_only_times_of_entries_have_a_limit(tmp_path: Path, more: str, problem: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        pipeline(tmp_path, "redis://h", more=more)
    assert "transform[2].watermark.ahead: " in str(caught.value)
    assert problem in str(caught.value)


def test_rows_that_are_dropped_as_they_come_late_are_warned_of() -> None:
    shown, records = io.StringIO(), io.StringIO()
    batch = FinishedBatch(
        time="2026-01-01T10:20:30.123Z",
        query="hours",
        number=7,
        rows=5,
        rows_per_second=10.0,
        lag=0,
        lags={},
        duration_ms=20,
        watermark="2026-01-01T00:00:00.000Z",
        state_rows=3,
        late_rows=2,
    )
    with Reporter(Console(file=shown, width=400), "p", [records], ["hours"]) as reporter:
        reporter.add(batch._replace(late_rows=0))
        reporter.add(batch)
    message = (
        "hours: 2 rows of batch 7 came after the watermark (2026-01-01T00:00:00.000Z) and were "
        "dropped: a longer 'delay' of the watermark waits for such rows, and 'ahead' keeps entries "
        "with times of the future from moving it on"
    )
    assert shown.getvalue().splitlines()[2:] == [f"warning: {message}"]
    warning = json.loads(records.getvalue().splitlines()[-1])
    assert (warning["kind"], warning["message"]) == ("warning", message)
