"""Reads a pipeline file and reports all errors that can be found without looking at data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from penstock_pipeline.errors import InvalidFile
from penstock_pipeline.file_parse import read_expectation, read_parse
from penstock_pipeline.file_sql import check_statements
from penstock_pipeline.model import (
    DEAD_LETTERS,
    DROP,
    ENTRIES,
    FAIL,
    WARN,
    Deduplicate,
    Pipeline,
    Retry,
    StaticTable,
    Transform,
    Watermark,
)
from penstock_pipeline.options import check, data_source_options, share_server
from penstock_pipeline.sinks.base import Sink, Surroundings
from penstock_pipeline.sinks.consumers import StreamSink, stream_options
from penstock_pipeline.sinks.kinds import read_sinks
from penstock_pipeline.toml_file import (
    Choice,
    File,
    Key,
    Names,
    Parsed,
    Place,
    Raw,
    Table,
    Texts,
    Whole,
    beside,
    duration,
    matching,
    read_toml,
)
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.values import names

LOG_LEVELS: Final = ("OFF", "ERROR", "WARN", "INFO", "DEBUG")

FIXED: Final = frozenset({"spark.sql.adaptive.enabled"})
"""Settings of Spark that the guarantees depend on."""

SQL_NAME: Final = matching(r"[A-Za-z_]\w*", "letters, digits and _, as SQL has it")
TABLE_KINDS: Final = ("parquet", "csv", "delta", "jdbc")

ROOT: Final = (Key("name", check=matching(r"[\w.-]+", "letters, digits, and the signs . _ -")),)
CHECKPOINT: Final = (
    Place("path", "", what="the folder where queries keep their positions and state"),
)
TRIGGER: Final = (Key("every", check=duration),)
METRICS: Final = (Place("file", what="where a line of JSON goes for each batch"),)
RETRY: Final = (
    Whole("attempts", Retry.attempts),
    Parsed("pause", Retry.pause_s, parse=duration),
)
SPARK: Final = (
    Key("master"),
    Choice("log_level", "OFF", allowed=LOG_LEVELS),
    Texts("conf", {}, fractions=True),
)
TRANSFORM: Final = (Key("name", what="the name of the table that is made", check=SQL_NAME),)
STATEMENT: Final = (Raw("sql"), File("file"))
FROM: Final = Choice("from")
WATERMARK: Final = (
    Key("column", what="a column of the type timestamp"),
    Key("delay", what="how late a row may come, as '10 minutes'", check=duration),
    Key("ahead", check=duration),
)
DEDUPLICATE: Final = (Names("keys"),)
OTHERWISE: Final = (WARN, DROP, FAIL)
"""What may become of a row that is not as expected, the default first."""
TABLE: Final = (
    Key("name", what="the name that SQL has for the table", check=SQL_NAME),
    Choice("type", "parquet", allowed=TABLE_KINDS),
    Choice("refresh", "once", allowed=("once", "batch")),
)
TABLE_OF_FILES: Final = (Place("path", what="the file or folder of the table"),)
TABLE_OF_DELTA: Final = (*TABLE_OF_FILES, Texts("storage"))
TABLE_OF_DATABASE: Final = (
    Key("url", what="where the database is, as postgresql://host/database"),
    Key("table", what="the table of the database"),
    Key("user"),
    Key("password"),
)


def load(file: Path, environment: Mapping[str, str] = os.environ) -> Pipeline:
    """The pipeline of a file; raises InvalidFile with all problems, and PipelineError."""
    root = read_toml(file, environment)
    pipeline = _pipeline(root, file)
    if root.findings.problems:
        raise InvalidFile(str(file), root.findings.problems)
    return pipeline


def _pipeline(root: Table, file: Path) -> Pipeline:
    folder = root.findings.folder
    name = root.read(ROOT)["name"] or file.stem
    dead = root.table("dead_letters")
    why = "the stream that gets what does not parse"
    letters = None if dead is None else dead.needed("stream", why)
    source = _source(root, letters, name)
    parse = read_parse(root)
    dead_letters = _dead_letters(dead, letters, source)
    if parse is not None and dead is None:
        root.wrong("parse", "needs [dead_letters]: entries that do not parse have to go somewhere")
    transforms = read_transforms(root)
    tables = (ENTRIES, *(transform.name for transform in transforms))
    spark = _spark(root)
    if not root.has("checkpoint"):
        root.wrong("checkpoint", "is missing: a table with 'path', where queries keep positions")
    pipeline = Pipeline(
        name=name,
        file=file.resolve(),
        source=source,
        parse=parse,
        dead_letters=dead_letters if parse is not None else None,
        transforms=transforms,
        sinks=read_sinks(root, Surroundings(folder, source), tables, DEAD_LETTERS),
        checkpoint=root.part("checkpoint", CHECKPOINT)["path"],
        every=root.part("trigger", TRIGGER)["every"],
        metrics=root.part("metrics", METRICS)["file"],
        retry=Retry(*root.part("retry", RETRY).values()),
        master=spark["master"],
        spark=spark["conf"],
        log_level=spark["log_level"],
        tables=read_tables(root, tables),
    )
    root.end()
    check_modes(root, pipeline)
    if not root.findings.problems:
        check_statements(root, pipeline)
    return pipeline


def _source(root: Table, letters: str | None, name: str) -> dict[str, str]:
    table = root.table("source")
    if table is None:
        root.wrong("source", "is missing: a table with the options of the data source")
        return {}
    keys = table.rest()
    table = Table(keys, table.path, table.findings)
    before = len(table.findings.problems)
    options = data_source_options(table, "read")
    if options.get("mode", "").lower() == "group":
        options.setdefault("consumerName", name)
        if "maxDeliveries" in options and "deadLetterStream" not in options and letters:
            options["deadLetterStream"] = letters
    if len(table.findings.problems) == before:
        check(table, keys, options, lambda given: read_settings(given, streaming=True))
    return options


def _dead_letters(
    table: Table | None, stream: str | None, source: Mapping[str, str]
) -> Sink | None:
    if table is None or stream is None:
        return None
    options = stream_options(table, source, stream)
    return StreamSink(DEAD_LETTERS, ENTRIES, stream, "append", options=options)


def _spark(root: Table) -> dict[str, Any]:
    found = root.part("spark", SPARK)
    for name in FIXED & found["conf"].keys():
        path = ("spark", "conf")
        root.findings.add(path, f"'{name}' can't be changed: a repeated batch would be another one")
    return found


# --- Transforms ----------------------------------------------------------------------------------


def read_transforms(root: Table) -> tuple[Transform, ...]:
    """The transforms in their order; each makes a table that later ones may use."""
    found: list[Transform] = []
    for table in root.tables("transform"):
        found.append(_transform(table, [ENTRIES, *(transform.name for transform in found)]))
    return tuple(found)


def _transform(table: Table, before: list[str]) -> Transform:
    name = table.read(TRANSFORM)["name"]
    if name.lower() in (other.lower() for other in before):
        table.wrong("name", f"is '{name}', but there is a table of this name before")
    origin = replace(FROM, default=before[-1], allowed=before).read(table)
    sql, line = _sql(table, origin)
    mark = table.part("watermark", WATERMARK).values()
    watermark = Watermark(*mark) if table.has("watermark") else None
    deduplicate = _deduplicate(table, watermark)
    expect = read_expectation(table, OTHERWISE)
    table.end()
    return Transform(name, origin, sql, line, watermark, deduplicate, expect)


def _sql(table: Table, origin: str) -> tuple[str, int]:
    """The statement, and the line of the pipeline file where it begins, 0 if it is in another."""
    sql, text = table.read(STATEMENT).values()
    if table.has("file"):
        if sql is not None:
            table.wrong("file", "is given beside 'sql': only one of them")
        if text is not None and not text.strip():
            table.wrong("file", "is an empty file")
        return (text or "").strip().rstrip(";"), 0
    if sql is None:
        if not any(map(table.has, ("watermark", "deduplicate", "expect"))):
            table.wrong(
                "", "does nothing: give 'sql', 'file', 'watermark', 'deduplicate' or 'expect'"
            )
        return f"SELECT * FROM {origin}", 0
    if not sql.strip():
        table.wrong("sql", "is empty")
    return sql.strip().rstrip(";"), table.line("sql")


def _deduplicate(table: Table, watermark: Watermark | None) -> Deduplicate | None:
    given = table.table("deduplicate")
    if given is None:
        return None
    keys = given.section(DEDUPLICATE)["keys"]
    if not keys:
        given.wrong("keys", "is missing: the columns by which rows are the same")
    if watermark is None:
        given.wrong("", "needs 'watermark' beside it, which says for how long keys are remembered")
    return Deduplicate(keys)


# --- Tables that do not stream -------------------------------------------------------------------


def read_tables(root: Table, others: tuple[str, ...]) -> tuple[StaticTable, ...]:
    """The tables that SQL may join with; ``others`` are the names of those that stream."""
    found: list[StaticTable] = []
    for table in root.tables("table"):
        made = _table(table)
        taken = [name.lower() for name in (*others, *(other.name for other in found))]
        if made.name.lower() in taken:
            table.wrong("name", f"is '{made.name}', but there is another table of this name")
        found.append(made)
    return tuple(found)


def _table(table: Table) -> StaticTable:
    of = table.read(TABLE)
    kind = of["type"]
    if kind == "jdbc":
        given = table.section(TABLE_OF_DATABASE)
        place = _database(table, given.pop("url"))
        options = {key: text for key, text in given.items() if text is not None}
    else:
        given = table.section(TABLE_OF_DELTA if kind == "delta" else TABLE_OF_FILES)
        place, options = given["path"], given.get("storage", {})
    return StaticTable(of["name"], kind, place, of["refresh"] == "batch", options)


def _database(table: Table, url: str) -> str:
    """The URL of a database, with the file of SQLite beside the pipeline's."""
    from penstock_pipeline.sinks.databases import KINDS, database

    if url and database(url, None, None) is None:
        table.wrong("url", f"begins with none of {', '.join(KINDS)}")
    return beside(url, table.findings.folder)


# --- Parts that conflict -------------------------------------------------------------------------


def check_modes(root: Table, pipeline: Pipeline) -> None:
    """Reports settings that conflict: state in mode group, and a source that reads its output."""
    if pipeline.mode == "group":
        _check_group(root, pipeline)
    _check_ahead(root, pipeline)
    _check_cycles(root, pipeline)
    _check_folders(root, pipeline)


def _check_group(root: Table, pipeline: Pipeline) -> None:
    """A repeated batch of a group may hold other rows, which would make state wrong."""
    advice = "mode 'group' keeps no state between batches; use mode 'offsets'"
    for number, transform in enumerate(pipeline.transforms):
        for key in ("watermark", "deduplicate"):
            if getattr(transform, key) is not None:
                root.findings.add(("transform", number, key), advice)
        if transform.expect is not None and transform.expect.otherwise == WARN:
            root.findings.add(("transform", number, "expect"), _UNCOUNTED)
    for column in () if pipeline.parse is None else pipeline.parse.columns:
        if column.expect is not None and column.expect.otherwise == WARN:
            root.findings.add(("parse", "columns", column.name), _UNCOUNTED)
    for number, sink in enumerate(pipeline.sinks):
        if sink.output_mode != "append":
            root.findings.add(("sink", number, "output_mode"), advice)


_UNCOUNTED: Final = "mode 'group' counts no rows, so 'otherwise' can't be 'warn' there"


def _check_ahead(root: Table, pipeline: Pipeline) -> None:
    """Only an entry can be a dead letter, so its own times are looked at."""
    columns = () if pipeline.parse is None else pipeline.parse.columns
    times = [column.name.lower() for column in columns if column.type == "timestamp"]
    for number, transform in enumerate(pipeline.transforms):
        mark = transform.watermark
        if mark is None or mark.ahead is None:
            continue
        if transform.origin != ENTRIES or mark.column.lower() not in times:
            root.findings.add(
                ("transform", number, "watermark", "ahead"),
                f"is for a timestamp of [parse.columns] in the table '{ENTRIES}', whose entries "
                f"can be dead letters; this is column '{mark.column}' of '{transform.origin}'",
            )


def _check_cycles(root: Table, pipeline: Pipeline) -> None:
    for number, sink in enumerate(pipeline.sinks):
        if sink.stream is not None and _reads(pipeline, sink.stream, sink.options):
            root.findings.add(("sink", number, "stream"), _cycle(sink.stream))
    dead = pipeline.dead_letters
    if dead is not None and _reads(pipeline, dead.place, dead.options):
        root.findings.add(("dead_letters", "stream"), _cycle(dead.place))


def _cycle(stream: str) -> str:
    return f"is '{stream}', which the source reads: the pipeline would read what it writes"


def _reads(pipeline: Pipeline, stream: str, options: Mapping[str, str]) -> bool:
    if not share_server(options, pipeline.source):
        return False
    given = [pipeline.source.get(name) for name in ("subscribe", "subscribePattern")]
    try:
        named, patterns = (() if text is None else names(text) for text in given)
    except ValueError:
        return False  # It has been reported already.
    # The server's patterns, except for [^...].
    return stream in named or any(fnmatchcase(stream, p.replace("[^", "[!")) for p in patterns)


def _check_folders(root: Table, pipeline: Pipeline) -> None:
    taken: dict[str, str] = {pipeline.checkpoint: "the checkpoint"} if pipeline.checkpoint else {}
    for number, sink in enumerate(pipeline.sinks):
        if sink.folder is None:
            continue
        for folder, whose in taken.items():
            if _within(sink.folder, folder) or _within(folder, sink.folder):
                root.findings.add(("sink", number, "path"), f"shares a folder with {whose}")
        taken[sink.folder] = f"sink '{sink.name}'"


def _within(inner: str, outer: str) -> bool:
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")
