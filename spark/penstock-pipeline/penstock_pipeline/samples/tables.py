"""Makes the tables of a pipeline of sample entries, with Spark in batch mode, and runs cases.

Entries go through the same expressions and SQL as in a run. What depends on time passing is taken
to its end: windows are there as if all later entries had come, and deduplication has no limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.text import Text

from penstock_pipeline.decode.sql import REASON
from penstock_pipeline.errors import PipelineError, reason
from penstock_pipeline.java import Launch
from penstock_pipeline.model import ENTRIES, Pipeline
from penstock_pipeline.queries import parsed, table
from penstock_pipeline.samples.cases import LETTER_KEYS, Case, Entry
from penstock_pipeline.samples.compare import Difference, Rows, compare, show_difference
from penstock_pipeline.supervise import start
from penstock_pipeline.terminal import plural
from pyspark_redis_streams.ids import SEQUENCE_BITS, parse_id
from pyspark_redis_streams.read.columns import default_schema

SMALL: Final = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
"""Settings for a handful of rows: compiling a plan takes longer than running it."""


@contextmanager
def small_session(pipeline: Pipeline) -> Iterator[SparkSession]:
    """A session for samples, with one core; raises PipelineError if it can't be started."""
    launch = Launch(brief=True, quick=True)
    small = replace(pipeline, spark={**pipeline.spark, **SMALL})
    spark = start(small, "local[1]", launch=launch)
    try:
        yield spark
    finally:
        spark.stop()
    launch.keep()


class Samples:
    """Entries, and the tables that the pipeline makes of them."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, entries: Sequence[Entry]) -> None:
        self._pipeline = pipeline
        # Views of another case are not seen in a session of its own.
        self._session = spark.newSession()
        form = "array" if pipeline.parse else pipeline.source.get("fieldsFormat", "map")
        schema = default_schema(form)
        rows = [_row(entry, form == "array") for entry in entries]
        self._parsed = parsed(self._session.createDataFrame(rows, schema), pipeline)

    def table(self, name: str, most: int | None = None) -> Rows:
        """The rows of a table, at most so many; raises PipelineError for SQL that fails."""
        with _told():
            return self._rows(name, table(self._parsed, self._pipeline, name), most)

    def dead_letters(self, most: int | None = None) -> Rows:
        """The entries that do not parse: ``stream``, ``id`` and ``reason``."""
        with _told():
            bad = self._parsed.where(f"{REASON} IS NOT NULL")
            return self._rows(
                "dead letters", bad.selectExpr("stream", "id", f"{REASON} AS reason"), most
            )

    def _rows(self, name: str, frame: DataFrame, most: int | None) -> Rows:
        limited = frame if most is None else frame.limit(most + 1)
        # Spark hands out times in the zone of this machine, and without it.
        rows = [_in_utc(row.asDict(recursive=True)) for row in limited.collect()]
        return Rows(
            name, tuple(frame.columns), tuple(rows[:most]), most is not None and len(rows) > most
        )


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(reason(error)) from None


def _row(entry: Entry, as_array: bool) -> tuple[Any, ...]:
    milliseconds = parse_id(entry.id) >> SEQUENCE_BITS
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    if as_array:
        return entry.stream, entry.id, at, list(entry.fields)
    named = {name.decode("utf-8", "backslashreplace"): value for name, value in entry.fields}
    return entry.stream, entry.id, at, named


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {name: _in_utc(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_utc(each) for each in value]
    return value


def table_names(pipeline: Pipeline) -> list[str]:
    """The tables of a pipeline in their order."""
    return [ENTRIES, *(transform.name for transform in pipeline.transforms)]


# --- Cases ---------------------------------------------------------------------------------------


def run_cases(
    spark: SparkSession, pipeline: Pipeline, cases: Sequence[Case], console: Console
) -> bool:
    """Runs the cases and shows how each ends; whether all are as expected."""
    bad = 0
    for case in cases:
        try:
            found = list(differences(spark, pipeline, case))
        except PipelineError as error:
            console.print(Text(f"{case.name}: failed", style="red"))
            console.print(Text(f"    {error}"))
            bad += 1
            continue
        console.print(Text(f"{case.name}: {'differs' if found else 'ok'}"))
        for difference in found:
            show_difference(console, difference)
        bad += bool(found)
    count = plural(len(cases), "case")
    console.print(Text(f"{count}, {f'{bad} not as expected' if bad else 'all as expected'}"))
    return not bad


def differences(spark: SparkSession, pipeline: Pipeline, case: Case) -> Iterator[Difference]:
    """Every table that is not as a case expects it; raises PipelineError for SQL that fails."""
    samples = Samples(spark, pipeline, case.entries)
    for name, expected in case.expected.items():
        table = samples.table(name)
        if found := compare(name, expected, table.rows, table.columns):
            yield found
    if pipeline.parse is None:
        return
    letters = samples.dead_letters()
    if case.dead_letters is not None:
        if found := compare("dead letters", case.dead_letters, letters.rows, LETTER_KEYS):
            yield found
    elif letters.rows:
        yield compare("dead letters", (), letters.rows, LETTER_KEYS)
