"""Rows with the name of the entry that each was made of, so that a sink knows one it has."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.pipeline.model import DEAD_LETTERS, Pipeline
from penstock.pipeline.run import frames
from penstock.pipeline.run.parse_sql import REASON
from penstock.pipeline.sinks.base import Sink
from penstock.pipeline.tools.dead_letters import letter_fields

ORIGIN: Final = ("penstock_origin_stream", "penstock_origin_id")
"""The columns with the stream and the ID of a row's entry."""

MOST_ROWS: Final = 200_000
"""Rows of a batch up to which a stream remembers all names: see the option idempotenceColumns."""

_MULTIPLYING: Final = {"Generate", "Join", "LateralJoin", "AsOfJoin"}
"""Nodes of a plan that make several rows of one entry, and keep the columns with its name."""


def named(rows: DataFrame, pipeline: Pipeline, output: Sink) -> DataFrame | None:
    """The rows for an output with the columns :data:`ORIGIN`, computed from parsed entries.

    None if its SQL does not keep the entry's columns ``stream`` and ``id``, or may make several
    rows of one entry.
    """
    if output.name == DEAD_LETTERS:
        wrong = rows.where(f"{REASON} IS NOT NULL")
        return _with_origin(wrong).select(*ORIGIN, F.expr(letter_fields(pipeline.name)))
    made = frames.table(rows, pipeline, output.origin)
    if frames.nodes(made) & _MULTIPLYING or _names(made) != _names(rows):
        return None
    return _with_origin(made).drop(*output.left_out)


def _with_origin(frame: DataFrame) -> DataFrame:
    return frame.withColumns(
        {ORIGIN[0]: F.col("stream").cast("string"), ORIGIN[1]: F.col("id").cast("string")}
    )


def _names(frame: DataFrame) -> list[int]:
    """What Spark calls the columns ``stream`` and ``id`` of a frame: numbers that go with them
    through a plan, and that no other column has."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    output = plan.output()
    columns = [output.apply(index) for index in range(output.size())]
    wanted = ("stream", "id")
    return [c.exprId().id() for name in wanted for c in columns if c.name().lower() == name]
