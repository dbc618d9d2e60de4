"""``penstock pipeline test``: every case of a file, with one Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession
from rich.console import Console
from rich.text import Text

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.model import Pipeline
from penstock.pipeline.samples.cases import LETTER_KEYS, Case
from penstock.pipeline.samples.compare import Difference, compare
from penstock.pipeline.samples.show import show_difference
from penstock.pipeline.samples.tables import Samples


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
    count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
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
