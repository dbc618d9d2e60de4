"""The tables of a pipeline as data frames of Spark, and its streaming queries.

There is a query for each output, or one for all in mode group.

docs/decisions/0023-pipeline-queries.md says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock_pipeline import expectations, static_tables
from penstock_pipeline.dead_letters import letter_fields
from penstock_pipeline.decode.frame import fields_taken, parse_frame, raw_schema, without_nul
from penstock_pipeline.decode.sql import BAD, REASON, concat, name
from penstock_pipeline.errors import NotStarted, PipelineError, reason
from penstock_pipeline.model import DEAD_LETTERS, ENTRIES, Pipeline, Transform
from penstock_pipeline.report import ROWS, WRITTEN
from penstock_pipeline.sinks.base import Batch, Sink
from penstock_pipeline.static_tables import Loaded
from penstock_pipeline.toml_file import duration
from pyspark_redis_streams import RedisStreamsSource
from pyspark_redis_streams.batches import batch_end

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


IDS_OF_CLOCKS: Final = "2000-01-01"
"""Since when the time in an ID is taken for that at which its entry was added."""

COLLECTED = 500_000
"""The most entries of a batch whose rows go through the driver, unless the file sets a limit."""

COLLECTED_BYTES = "64m"
"""The most bytes of such a batch: names and values of the entries."""


def source_options(pipeline: Pipeline, output: str) -> dict[str, str]:
    """The options of the source for one query; mode offsets has a group for each query."""
    options = {**pipeline.source}
    writers = [o for o in pipeline.outputs if pipeline.mode == "group" or o.name == output]
    if any(each.collects for each in writers):
        options.setdefault("maxOffsetsPerTrigger", str(COLLECTED))
        options.setdefault("maxBytesPerTrigger", COLLECTED_BYTES)
    if pipeline.parse is not None:
        options["fieldsFormat"] = "array"
    if pipeline.mode == "offsets" and "groupId" in options:
        options["groupId"] = f"{options['groupId']}.{output}"
    return options


def read(spark: SparkSession, pipeline: Pipeline, output: str) -> DataFrame:
    """The entries of the source, not parsed."""
    reader = spark.readStream.format("redis-streams")
    reader = reader.options(**source_options(pipeline, output))
    if taken := _raw_columns(pipeline, output):
        reader = reader.schema(raw_schema(taken, whole=output == DEAD_LETTERS))
    return reader.load()


def _raw_columns(pipeline: Pipeline, output: str) -> tuple[str, ...]:
    """The fields that the source makes a column of, where that is less work for a query."""
    parse = pipeline.parse
    # In mode group all outputs share a batch, which is kept in memory: there it has to be small.
    if parse is None or pipeline.mode == "group":
        return ()
    # A dead letter is a whole entry; with its payload beside it all bytes would come twice.
    return () if output == DEAD_LETTERS and parse.payload else fields_taken(parse)


def parsed(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The entries with their columns, and :data:`BAD` and :data:`REASON` if something is wrong."""
    if pipeline.parse is None:
        return frame
    frame = expectations.with_letters(parse_frame(frame, pipeline.parse), pipeline)
    for transform in pipeline.transforms:
        if transform.watermark is not None and transform.watermark.ahead is not None:
            frame = _not_ahead(frame, transform.watermark.column, transform.watermark.ahead)
    if any(sink.refuses_nul for sink in pipeline.sinks):
        return without_nul(frame, pipeline.parse)
    return frame


def _not_ahead(frame: DataFrame, column: str, ahead: str) -> DataFrame:
    """Return the entries, of which those are wrong that have a time of the future in a column.

    The future begins when the entry was added, by its ID: that is the same time in all queries. An
    ID of the last century, or itself so far ahead, is none of a clock, and the time of the batch
    has to do. That is in the checkpoint, and the same when the batch is run again.
    """
    allowed = f"make_dt_interval(0, 0, 0, {duration(ahead):.3f})"
    of_clocks = f"BETWEEN TIMESTAMP '{IDS_OF_CLOCKS}' AND current_timestamp() + {allowed}"
    added = f"IF(timestamp {of_clocks}, timestamp, current_timestamp())"
    is_ahead = f"coalesce({name(column)} > {added} + {allowed}, false)"
    why = concat(f"column '{column}' is '", name(column), f"', not at most {ahead} ahead")
    reasons = f"nullif(concat_ws('; ', {REASON}, IF({is_ahead}, {why}, NULL)), '')"
    return frame.withColumns({REASON: F.expr(reasons), BAD: F.expr(f"{BAD} OR {is_ahead}")})


def letters(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The dead letters of parsed entries."""
    return frame.where(BAD).selectExpr(letter_fields(pipeline.name))


def table(frame: DataFrame, pipeline: Pipeline, wanted: str) -> DataFrame:
    """The table of that name, from parsed entries; raises PipelineError for SQL that fails."""
    if pipeline.parse is not None:
        # Why an entry is bad takes longer to find out than that it is, and is not asked here.
        frame = frame.where(f"NOT {BAD}").drop(REASON, BAD, "fields")
        frame = expectations.of_entries(frame, pipeline)
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
    made = expectations.of_table(made, transform.name, transform.expect)
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
    entries = parsed(read(session, pipeline, output.name), pipeline)
    frame = output_frame(entries, pipeline, output)
    check_frame(frame, output)
    if output.stream is not None:
        _need_same_rows(frame, output)
    ordered = not (nodes(frame) & STATEFUL)
    if output.takes_all:
        frame = frame.observe(WRITTEN, F.count(F.lit(1)).alias(ROWS))

    def write_one(rows: DataFrame, batch: int) -> None:
        query = _query_id(rows)
        output.write(rows, Batch(query, batch, ordered, _end(session, query, batch)))

    every = pipeline.interval(output)
    return Query(
        output.name,
        partial(_started, pipeline, frame, output.name, output.output_mode, write_one, every),
    )


def _for_all(spark: SparkSession, pipeline: Pipeline, loaded: Loaded) -> Query:
    """All outputs of each batch, one after the other, since an entry is delivered only once."""
    session = own_session(spark)
    static_tables.register(session, loaded)
    frame = read(session, pipeline, GROUP_QUERY)
    entries = parsed(frame, pipeline)
    for output in pipeline.outputs:
        rows = output_frame(entries, pipeline, output)
        check_frame(rows, output)
        _need_rows_alone(rows, output)

    def write_all(rows: DataFrame, number: int) -> None:
        query = _query_id(rows)
        batch = Batch(query, number, ordered=True, end=_end(session, query, number))
        write_group(rows, pipeline, batch)

    every = pipeline.interval()
    return Query(
        GROUP_QUERY,
        partial(_started, pipeline, frame, GROUP_QUERY, "append", write_all, every),
        poison_counts="maxDeliveries" in pipeline.source,
    )


def write_group(rows: DataFrame, pipeline: Pipeline, batch: Batch) -> None:
    """Writes a batch of mode group to all outputs.

    It is cached meanwhile: reading it again would count as another delivery. A repeated batch may
    hold other rows, so what identifies a row over attempts is the entry that it was made of.
    """
    rows = rows.persist()
    try:
        entries = parsed(rows, pipeline)
        few = rows.count() <= MOST_ROWS
        for output in pipeline.outputs:
            made = named_rows(entries, pipeline, output) if few else None
            if made is None:
                made = output_frame(entries, pipeline, output)
                output.write_unrepeatable(made, batch)
            else:
                output.write_named(made, batch, ORIGIN)
    finally:
        rows.unpersist()


def _need_rows_alone(frame: DataFrame, output: Sink) -> None:
    """Raises PipelineError for SQL whose rows depend on more than one entry."""
    found = sorted(nodes(frame) & STATEFUL - {STATIC_JOIN})
    if found:
        raise output.error(
            "mode 'group' makes each row of one entry, and this SQL does not "
            f"({', '.join(found)}); use mode 'offsets'"
        )


def _need_same_rows(frame: DataFrame, output: Sink) -> None:
    """Raises PipelineError for a join with a table that may change before a batch is repeated.

    A stream knows repeated rows by their number, so other rows would be taken for them.
    """
    if f"{RELATION} {static_tables.FORMAT}" in nodes(frame):
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


def _end(session: SparkSession, query: str, batch: int) -> str:
    """The end of a batch that is being written, by the checkpoint of its query."""
    running: Any = session.streams.get(query)
    offsets = running._jsq.streamingQuery().offsetLog().get(batch).get().offsets()
    return batch_end(each.get().json() for each in _sequence(offsets) if each.isDefined())


def _started(
    pipeline: Pipeline,
    frame: DataFrame,
    name: str,
    mode: str,
    write_batch: Callable[[DataFrame, int], None],
    every: str,
    once: bool,
) -> Any:
    """Starts a query with a batch so often, or, ``once``, to the end of what is there now.

    Raises NotStarted if Spark refuses.
    """
    writer = frame.writeStream.foreachBatch(write_batch).outputMode(mode)
    writer = writer.queryName(f"{pipeline.name}.{name}")
    writer = writer.option("checkpointLocation", f"{pipeline.checkpoint.rstrip('/')}/{name}")
    trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": every}
    try:
        return writer.trigger(**trigger).start()
    except (PySparkException, Py4JJavaError) as error:
        raise NotStarted(error) from None
