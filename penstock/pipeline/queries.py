"""The streaming queries of a pipeline: one for each output, or one for all in mode group.

docs/decisions/0023-pipeline-queries.md says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.pipeline import frames, static_tables
from penstock.pipeline.errors import reason
from penstock.pipeline.model import Pipeline
from penstock.pipeline.sinks.base import Batch, Sink
from penstock.pipeline.static_tables import Loaded
from pyspark_redis_streams import RedisStreamsSource

GROUP_QUERY = "all"
"""The name of the one query of mode group."""

Start = Callable[[bool], Any]
"""Starts a query, to the end of present entries or without end; returns Spark's handle."""


@dataclass(frozen=True)
class Query:
    """A query that can be started, and started again from its checkpoint."""

    name: str
    start: Start
    poison_counts: bool = False
    """Whether each attempt counts as a delivery, until entries that fail are dead letters."""


def query_names(pipeline: Pipeline) -> list[str]:
    """The names of the queries of a pipeline."""
    if pipeline.mode == "group":
        return [GROUP_QUERY]
    return [output.name for output in pipeline.outputs]


def queries(spark: SparkSession, pipeline: Pipeline) -> list[Query]:
    """The queries of a pipeline, checked by Spark; raises PipelineError for SQL that fails."""
    loaded = static_tables.load(pipeline.tables)
    if pipeline.mode == "group":
        return [_for_all(spark, pipeline, loaded)]
    return [_for_one(spark, pipeline, output, loaded) for output in pipeline.outputs]


def own_session(spark: SparkSession) -> SparkSession:
    """A session for one query, with its own tables and its own copy of the data source.

    Spark stores Python's environment in a map of the source when a query starts, without a lock:
    queries that share the source and start together corrupt the map, and all their tasks fail.
    """
    session = spark.newSession()
    session.dataSource.register(RedisStreamsSource)
    return session


def _for_one(spark: SparkSession, pipeline: Pipeline, output: Sink, loaded: Loaded) -> Query:
    session = own_session(spark)
    static_tables.register(session, loaded)
    entries = frames.parsed(frames.read(session, pipeline, output.name), pipeline)
    frame = frames.output_frame(entries, pipeline, output)
    check_frame(frame, output)
    if output.stream is not None:
        _need_same_rows(frame, output)
    ordered = not (frames.nodes(frame) & frames.STATEFUL)

    def write_one(rows: DataFrame, batch: int) -> None:
        output.write(rows, Batch(_query_id(rows), batch, ordered))

    return Query(
        output.name,
        lambda once: _started(
            pipeline,
            frame,
            output.name,
            output.output_mode,
            write_one,
            None if once else pipeline.interval(output),
        ),
    )


def _for_all(spark: SparkSession, pipeline: Pipeline, loaded: Loaded) -> Query:
    """All outputs of each batch, one after the other, since an entry is delivered only once."""
    session = own_session(spark)
    static_tables.register(session, loaded)
    frame = frames.read(session, pipeline, GROUP_QUERY)
    entries = frames.parsed(frame, pipeline)
    for output in pipeline.outputs:
        rows = frames.output_frame(entries, pipeline, output)
        check_frame(rows, output)
        _need_rows_alone(rows, output)

    def write_all(rows: DataFrame, batch: int) -> None:
        write_group(rows, pipeline, _query_id(rows), batch)

    return Query(
        GROUP_QUERY,
        lambda once: _started(
            pipeline,
            frame,
            GROUP_QUERY,
            "append",
            write_all,
            None if once else pipeline.interval(),
        ),
        poison_counts="maxDeliveries" in pipeline.source,
    )


def write_group(rows: DataFrame, pipeline: Pipeline, query: str, batch: int) -> None:
    """Writes a batch of mode group to all outputs.

    It is cached meanwhile: reading it again would count as another delivery. A repeated batch may
    hold other rows, so what identifies a row over attempts is the entry that it was made of.
    """
    rows = rows.persist()
    try:
        parsed = frames.parsed(rows, pipeline)
        few = rows.count() <= frames.MOST_ROWS
        for output in pipeline.outputs:
            made = frames.named_rows(parsed, pipeline, output) if few else None
            this = Batch(query, batch, ordered=True)
            if made is None:
                made = frames.output_frame(parsed, pipeline, output)
                output.write_unrepeatable(made, this)
            else:
                output.write_named(made, this, frames.ORIGIN)
    finally:
        rows.unpersist()


def _need_rows_alone(frame: DataFrame, output: Sink) -> None:
    """Raises PipelineError for SQL whose rows depend on more than one entry."""
    found = sorted(frames.nodes(frame) & frames.STATEFUL - {frames.STATIC_JOIN})
    if found:
        raise output.error(
            "mode 'group' makes each row of one entry, and this SQL does not "
            f"({', '.join(found)}); use mode 'offsets'"
        )


def _need_same_rows(frame: DataFrame, output: Sink) -> None:
    """Raises PipelineError for a join with a table that may change before a batch is repeated.

    A stream knows repeated rows by their number, so other rows would be taken for them.
    """
    if f"{frames.RELATION} {static_tables.FORMAT}" in frames.nodes(frame):
        raise output.error(
            "a batch that is repeated must have the same rows for a stream, and a [[table]] with "
            "refresh = 'batch' may have changed; use refresh = 'once'"
        )


def check_frame(frame: DataFrame, output: Sink) -> None:
    """Raises PipelineError for SQL that Spark cannot run on a stream, and for columns that fail."""
    jvm: Any = frame.sparkSession._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output.output_mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), mode)
    except AnalysisException as error:
        raise output.error(reason(error)) from None
    output.check(frame)


def _query_id(rows: DataFrame) -> str:
    """The ID of the query that a batch is of, the same over restarts."""
    id = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert id is not None, "a batch is written within its query"
    return str(id)


def _started(
    pipeline: Pipeline,
    frame: DataFrame,
    name: str,
    mode: str,
    write_batch: Callable[[DataFrame, int], None],
    every: str | None,
) -> Any:
    """Starts a query with a batch so often, or to the end of what is there now (None)."""
    writer = frame.writeStream.foreachBatch(write_batch).outputMode(mode)
    writer = writer.queryName(f"{pipeline.name}.{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoint.rstrip('/')}/{name}")
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every).start()
