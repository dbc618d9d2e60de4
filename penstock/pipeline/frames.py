"""The tables of a pipeline, made from the source as data frames of Spark."""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.pipeline.dead_letters import letter_fields
from penstock.pipeline.decode.frame import parse_frame
from penstock.pipeline.decode.sql import BAD, REASON, name
from penstock.pipeline.errors import PipelineError, reason
from penstock.pipeline.model import DEAD_LETTERS, ENTRIES, Pipeline, Transform
from penstock.pipeline.sinks.base import Sink

STATIC_JOIN = "StaticJoin"
"""What :func:`nodes` calls a join with a table that does not stream: no state, but any order."""

RELATION = "DataSourceV2Relation"
"""What Spark calls a table of a data source; :func:`nodes` adds the name of the source."""

STATEFUL = frozenset(
    (
        STATIC_JOIN,
        *("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Join", "Window"),
        *("EventTimeWatermark", "GlobalLimit", "LocalLimit", "TransformWithState"),
        *("Sort", "Repartition", "RepartitionByExpression"),
    )
)
"""Nodes of a plan whose rows depend on more than one row, or do not keep their order."""


COLLECTED = 500_000
"""The most entries of a batch whose rows go through the driver, unless the file sets a limit."""


def source_options(pipeline: Pipeline, output: str) -> dict[str, str]:
    """The options of the source for one query; mode offsets has a group for each query."""
    options = {**pipeline.source}
    writers = [o for o in pipeline.outputs if pipeline.mode == "group" or o.name == output]
    if any(each.collects for each in writers):
        options.setdefault("maxOffsetsPerTrigger", str(COLLECTED))
    if pipeline.parse is not None:
        options["fieldsFormat"] = "array"
    if pipeline.mode == "offsets" and "groupId" in options:
        options["groupId"] = f"{options['groupId']}.{output}"
    return options


def read(spark: SparkSession, pipeline: Pipeline, output: str) -> DataFrame:
    """The entries of the source, not parsed."""
    reader = spark.readStream.format("redis-streams")
    return reader.options(**source_options(pipeline, output)).load()


def parsed(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The entries with their columns, and :data:`BAD` and :data:`REASON` if something is wrong."""
    return frame if pipeline.parse is None else parse_frame(frame, pipeline.parse)


def letters(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The dead letters of parsed entries."""
    return frame.where(BAD).selectExpr(letter_fields(pipeline.name))


def table(frame: DataFrame, pipeline: Pipeline, wanted: str) -> DataFrame:
    """The table of that name, from parsed entries; raises PipelineError for SQL that fails."""
    if pipeline.parse is not None:
        # Why an entry is bad takes longer to find out than that it is, and is not asked here.
        frame = frame.where(f"NOT {BAD}").drop(REASON, BAD, "fields")
    frame.createOrReplaceTempView(ENTRIES)
    frames = {ENTRIES: frame}
    for transform in pipeline.transforms:
        frames[transform.name] = _transformed(frames[transform.origin], transform)
    return frames[wanted]


def output_frame(rows: DataFrame, pipeline: Pipeline, output: Sink) -> DataFrame:
    """The rows for an output, computed from parsed entries."""
    if output.name == DEAD_LETTERS:
        return letters(rows, pipeline)
    return table(rows, pipeline, output.origin).drop(*output.left_out)


def _transformed(frame: DataFrame, transform: Transform) -> DataFrame:
    spark = frame.sparkSession
    try:
        # Watermark and deduplication affect this statement only; others see the table unchanged.
        prepared = _prepared(frame, transform)
        prepared.createOrReplaceTempView(transform.origin)
        made = spark.sql(transform.sql)
    except AnalysisException as error:
        raise PipelineError(f"transform '{transform.name}': {reason(error)}") from None
    frame.createOrReplaceTempView(transform.origin)
    made.createOrReplaceTempView(transform.name)
    return made


def _prepared(frame: DataFrame, transform: Transform) -> DataFrame:
    if transform.watermark is not None:
        column = transform.watermark.column
        if frame.select(name(column)).schema[0].dataType.simpleString() != "timestamp":
            raise PipelineError(
                f"transform '{transform.name}': the watermark's column '{column}' is no timestamp"
            )
        frame = frame.withWatermark(column, transform.watermark.delay)
    if transform.deduplicate is not None:
        keys = list(transform.deduplicate.keys)
        # Samples are a batch, in which there is no watermark to wait for.
        is_stream = frame.isStreaming
        frame = (frame.dropDuplicatesWithinWatermark if is_stream else frame.dropDuplicates)(keys)
    return frame


def nodes(frame: DataFrame) -> set[str]:
    """The names of the nodes in a frame's plan, as of :data:`STATEFUL`."""
    found: set[str] = set()
    waiting: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        children = _sequence(node.children())
        found.add(_name(node, children))
        # Conditions as `item IN (SELECT ...)` are plans, too, and become joins.
        inner = _sequence(node.subqueries())
        found |= {STATIC_JOIN} if inner else set()
        waiting += children + inner
    return found


def _name(node: Any, children: list[Any]) -> str:
    name = str(node.nodeName())
    if name == "Join" and not all(child.isStreaming() for child in children):
        return STATIC_JOIN
    return f"{name} {node.name()}" if name == RELATION else name


def _sequence(of_scala: Any) -> list[Any]:
    return [of_scala.apply(index) for index in range(of_scala.size())]


# --- Rows with the name of their entry -----------------------------------------------------------

# So that a sink knows a row that it has.

ORIGIN: Final = ("penstock_origin_stream", "penstock_origin_id")
"""The columns with the stream and the ID of a row's entry."""

MOST_ROWS: Final = 200_000
"""Rows of a batch up to which a stream remembers all names: see the option idempotenceColumns."""

_MULTIPLYING: Final = {"Generate", "Join", "LateralJoin", "AsOfJoin"}
"""Nodes of a plan that make several rows of one entry, and keep the columns with its name."""


def named_rows(rows: DataFrame, pipeline: Pipeline, output: Sink) -> DataFrame | None:
    """The rows for an output with the columns :data:`ORIGIN`, computed from parsed entries.

    None if its SQL does not keep the entry's columns ``stream`` and ``id``, or may make several
    rows of one entry.
    """
    if output.name == DEAD_LETTERS:
        wrong = rows.where(f"{REASON} IS NOT NULL")
        return _with_origin(wrong).select(*ORIGIN, F.expr(letter_fields(pipeline.name)))
    made = table(rows, pipeline, output.origin)
    if nodes(made) & _MULTIPLYING or _names(made) != _names(rows):
        return None
    return _with_origin(made).drop(*output.left_out)


def _with_origin(frame: DataFrame) -> DataFrame:
    return frame.withColumns(
        {ORIGIN[0]: F.col("stream").cast("string"), ORIGIN[1]: F.col("id").cast("string")}
    )


def _names(frame: DataFrame) -> list[int]:
    """Return Spark's names of the columns ``stream`` and ``id`` of a frame: numbers that go with
    them through a plan, and that no other column has."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    output = plan.output()
    columns = [output.apply(index) for index in range(output.size())]
    wanted = ("stream", "id")
    return [c.exprId().id() for name in wanted for c in columns if c.name().lower() == name]
