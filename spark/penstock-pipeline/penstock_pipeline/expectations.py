"""What rows are expected to be, and what becomes of those that are not.

A row without a value that a condition needs is as expected, as with CHECK in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock_pipeline.decode.sql import BAD, REASON, concat, name, text
from penstock_pipeline.errors import PipelineError, reason
from penstock_pipeline.model import DROP, ENTRIES, FAIL, LETTER, Expectation, Pipeline
from penstock_pipeline.report import ROWS, UNEXPECTED

SHOWN: Final = 200
"""Characters of a row that ends a run, in what is said of it."""


def with_letters(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Return parsed entries, of which those are bad whose columns are not as expected."""
    for column in () if pipeline.parse is None else pipeline.parse.columns:
        if column.expect is not None and column.expect.otherwise == LETTER:
            fails = _fails(column.expect)
            why = f", not as expected: {column.expect.condition}"
            told = concat(f"column '{column.name}' is '", name(column.name), f"'{why}")
            reasons = f"nullif(concat_ws('; ', {REASON}, IF({fails}, {told}, NULL)), '')"
            bad = f"{BAD} OR {fails}"
            frame = _checked(frame, f"column '{column.name}'", {REASON: reasons, BAD: bad})
    return frame


def of_entries(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Return the table of entries, with what else its columns expect."""
    for column in () if pipeline.parse is None else pipeline.parse.columns:
        if column.expect is not None and column.expect.otherwise != LETTER:
            table = f"{ENTRIES}.{column.name}"
            frame = of_table(frame, table, column.expect, f"column '{column.name}'")
    return frame


def of_table(
    frame: DataFrame, table: str, expect: Expectation | None, whose: str = ""
) -> DataFrame:
    """Return a table of which rows are counted, left out or end the run that are not as expected.

    Raises PipelineError for a condition that is none of its columns.
    """
    if expect is None:
        return frame
    fails = _fails(expect)
    _checked(frame, whose or f"transform '{table}'", {REASON: fails})
    if expect.otherwise == FAIL:
        why = text(f"a row of table '{table}' is not as expected: {expect.condition}: ")
        said = f"raise_error(concat({why}, substr(to_json(struct(*)), 1, {SHOWN})))"
        return frame.where(f"CASE WHEN {fails} THEN {said} ELSE true END")
    counted = F.count_if(F.expr(fails)).alias(ROWS)
    frame = frame.observe(f"{UNEXPECTED}{expect.otherwise} {table}: {expect.condition}", counted)
    return frame.where(f"NOT ({fails})") if expect.otherwise == DROP else frame


def _fails(expect: Expectation) -> str:
    return f"NOT coalesce(({expect.condition}), true)"


def _checked(frame: DataFrame, whose: str, columns: Mapping[str, str]) -> DataFrame:
    made: Any = {column: F.expr(made) for column, made in columns.items()}
    try:
        return frame.withColumns(made)
    except AnalysisException as error:
        raise PipelineError(f"{whose}: expect: {reason(error)}") from None
