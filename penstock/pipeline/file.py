"""Reads a pipeline file and reports all errors that can be found without looking at data."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.errors import InvalidFile, PipelineError, Problem
from penstock.pipeline.file_parse import read_parse
from penstock.pipeline.model import (
    DEAD_LETTERS,
    ENTRIES,
    Deduplicate,
    Pipeline,
    Retry,
    StaticTable,
    Transform,
    Watermark,
)
from penstock.pipeline.options import check, data_source_options
from penstock.pipeline.sinks.base import Sink, Surroundings
from penstock.pipeline.sinks.kinds import read_sinks
from penstock.pipeline.sinks.stream import StreamSink, stream_options
from penstock.pipeline.toml_file import Findings, Table, duration, locate, resolve, texts

LOG_LEVELS: Final = ("OFF", "ERROR", "WARN", "INFO", "DEBUG")

FIXED: Final = frozenset({"spark.sql.adaptive.enabled"})
"""Settings of Spark that the guarantees depend on."""

_TOML_ERROR: Final = re.compile(r"(.+) \(at (?:line (\d+), column \d+|end of document)\)")


def load(file: Path, environment: Mapping[str, str] = os.environ) -> Pipeline:
    """The pipeline of a file; raises InvalidFile with all problems, and PipelineError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"can't read '{file}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise PipelineError(f"'{file}' is not text in UTF-8") from None
    findings = Findings(locate(text), environment)
    root = Table(parse_toml(str(file), text), (), findings)
    pipeline = _pipeline(root, file)
    if findings.problems:
        raise InvalidFile(str(file), findings.problems)
    return pipeline


def parse_toml(file: str, text: str) -> dict[str, Any]:
    """The tables of the text; raises InvalidFile with the line of a syntax error."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_ERROR.fullmatch(str(error))
        last = len(text.splitlines())
        line = int(found[2] or last) if found else 1
        reason = found[1] if found else str(error)
        raise InvalidFile(file, [Problem(line, "", f"not TOML: {reason}")]) from None


def _pipeline(root: Table, file: Path) -> Pipeline:
    folder = file.resolve().parent
    name = _name(root, file)
    dead = root.table("dead_letters")
    why = "the stream that gets what does not parse"
    letters = None if dead is None else dead.needed("stream", why)
    source = _source(root, letters, name)
    parse = read_parse(root, folder)
    dead_letters = _dead_letters(dead, letters, source)
    if parse is not None and dead is None:
        root.wrong("parse", "needs [dead_letters]: entries that do not parse have to go somewhere")
    transforms = read_transforms(root, folder)
    tables = (ENTRIES, *(transform.name for transform in transforms))
    retry = _retry(root)
    master, spark, level = _spark(root)
    pipeline = Pipeline(
        name=name,
        file=file.resolve(),
        source=source,
        parse=parse,
        dead_letters=dead_letters if parse is not None else None,
        transforms=transforms,
        sinks=read_sinks(root, Surroundings(folder, source), tables, DEAD_LETTERS),
        checkpoint=_checkpoint(root, folder),
        every=_every(root),
        metrics=_metrics(root, folder),
        retry=retry,
        master=master,
        spark=spark,
        log_level=level,
        tables=read_tables(root, folder, tables),
    )
    root.end()
    check_modes(root, pipeline)
    return pipeline


def _name(root: Table, file: Path) -> str:
    name = root.text("name", file.stem) or file.stem
    if not re.fullmatch(r"[\w.-]+", name):
        root.wrong("name", f"is '{name}'; allowed: letters, digits, and the signs . _ -")
    return name


def _source(root: Table, letters: str | None, name: str) -> dict[str, str]:
    from pyspark_redis_streams.settings import read_settings

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


def _checkpoint(root: Table, folder: Path) -> str:
    table = root.table("checkpoint")
    if table is None:
        root.wrong("checkpoint", "is missing: a table with 'path', where queries keep positions")
        return ""
    path = table.needed("path", "the folder where queries keep their positions and state")
    table.end()
    return resolve(path, folder)


def _every(root: Table) -> str | None:
    table = root.table("trigger")
    if table is None:
        return None
    every = table.text("every")
    if every is not None:
        table.note_if_bad("every", lambda: duration(every))
    table.end()
    return every


def _metrics(root: Table, folder: Path) -> str | None:
    table = root.table("metrics")
    if table is None:
        return None
    file = table.needed("file", "where a line of JSON goes for each batch")
    table.end()
    return resolve(file, folder)


def _retry(root: Table) -> Retry:
    table = root.table("retry")
    if table is None:
        return Retry()
    attempts = table.whole("attempts", Retry.attempts, 0)
    pause = table.parsed("pause", duration, Retry.pause_s)
    table.end()
    return Retry(Retry.attempts if attempts is None else attempts, pause)


def _spark(root: Table) -> tuple[str | None, dict[str, str], str]:
    table = root.table("spark")
    if table is None:
        return None, {}, "OFF"
    master = table.text("master")
    level = table.choice("log_level", "OFF", *LOG_LEVELS)
    conf = table.table("conf")
    table.end()
    settings = settings_of(conf)
    for name in FIXED & settings.keys():
        table.wrong("conf", f"'{name}' can't be changed: a repeated batch would be another one")
    return master, settings, level


def settings_of(table: Table | None) -> dict[str, str]:
    """The keys of a table as the texts that Spark takes; nested tables are names with dots."""
    found: dict[str, str] = {}
    for key, value in (table.rest() if table else {}).items():
        assert table is not None
        if isinstance(value, dict):
            inner = settings_of(Table(value, (*table.path, key), table.findings))
            found |= {f"{key}.{name}": each for name, each in inner.items()}
        elif isinstance(value, str):
            found[key] = table.expanded(key, value) or ""
        elif isinstance(value, bool | int | float):
            found[key] = str(value).lower()
        else:
            table.wrong(key, "has a value of a kind that no option takes")
    return found


# --- Transforms ----------------------------------------------------------------------------------


_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def read_transforms(root: Table, folder: Path) -> tuple[Transform, ...]:
    """The transforms in their order; each makes a table that later ones may use."""
    found: list[Transform] = []
    for table in root.tables("transform"):
        names = [ENTRIES, *(transform.name for transform in found)]
        found.append(_transform(table, names, folder))
    return tuple(found)


def _transform(table: Table, before: list[str], folder: Path) -> Transform:
    name = table.needed("name", "the name of the table that is made")
    if name and not _NAME.fullmatch(name):
        table.wrong("name", f"is '{name}'; allowed: letters, digits and _, as SQL has it")
    if name.lower() in (other.lower() for other in before):
        table.wrong("name", f"is '{name}', but there is a table of this name before")
    origin = table.choice("from", before[-1], *before)
    sql, line = _sql(table, origin, folder)
    watermark = _watermark(table)
    deduplicate = _deduplicate(table, watermark)
    table.end()
    return Transform(name, origin, sql, line, watermark, deduplicate)


def _sql(table: Table, origin: str, folder: Path) -> tuple[str, int]:
    """The statement, and the line of the pipeline file where it begins, 0 if it is in another."""
    sql, file = table.take("sql", str), table.text("file")
    if sql is not None and file is not None:
        table.wrong("file", "is given beside 'sql': only one of them")
    if file is not None:
        return _read(table, folder / file), 0
    if sql is None:
        if not (table.has("watermark") or table.has("deduplicate")):
            table.wrong("", "does nothing: give 'sql', 'file', 'watermark' or 'deduplicate'")
        return f"SELECT * FROM {origin}", 0
    if not sql.strip():
        table.wrong("sql", "is empty")
    return sql.strip().rstrip(";"), table.line("sql")


def _read(table: Table, file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        table.wrong("file", f"can't read '{file}': {why}")
        return ""
    if not text.strip():
        table.wrong("file", f"'{file}' is empty")
    return text.strip().rstrip(";")


def _watermark(table: Table) -> Watermark | None:
    given = table.table("watermark")
    if given is None:
        return None
    column = given.needed("column", "a column of the type timestamp")
    delay = given.needed("delay", "how late a row may come, as '10 minutes'")
    if delay:
        given.note_if_bad("delay", lambda: duration(delay))
    given.end()
    return Watermark(column, delay)


def _deduplicate(table: Table, watermark: Watermark | None) -> Deduplicate | None:
    given = table.table("deduplicate")
    if given is None:
        return None
    keys = given.names("keys")
    if not keys:
        given.wrong("keys", "is missing: the columns by which rows are the same")
    if watermark is None:
        given.wrong("", "needs 'watermark' beside it, which says for how long keys are remembered")
    given.end()
    return Deduplicate(keys)


# --- Tables that do not stream -------------------------------------------------------------------


KINDS = ("parquet", "csv", "delta", "jdbc")


def read_tables(root: Table, folder: Path, others: tuple[str, ...]) -> tuple[StaticTable, ...]:
    """The tables that SQL may join with; ``others`` are the names of those that stream."""
    found: list[StaticTable] = []
    for table in root.tables("table"):
        made = _table(table, folder)
        taken = [name.lower() for name in (*others, *(other.name for other in found))]
        if made.name.lower() in taken:
            table.wrong("name", f"is '{made.name}', but there is another table of this name")
        found.append(made)
    return tuple(found)


def _table(table: Table, folder: Path) -> StaticTable:
    name = table.needed("name", "the name that SQL has for the table")
    if name and not re.fullmatch(r"[A-Za-z_]\w*", name):
        table.wrong("name", f"is '{name}'; allowed: letters, digits and _, as SQL has it")
    kind = table.choice("type", "parquet", *KINDS)
    refresh = table.choice("refresh", "once", "once", "batch")
    options: dict[str, str] = {}
    if kind == "jdbc":
        place = _url(table, folder)
        options["table"] = table.needed("table", "the table of the database")
        given = {key: table.text(key) for key in ("user", "password")}
        options |= {key: text for key, text in given.items() if text is not None}
    else:
        place = resolve(table.needed("path", "the file or folder of the table"), folder)
    if kind == "delta":
        options |= texts(table.table("storage"))
    table.end()
    return StaticTable(name, kind, place, refresh == "batch", options)


def _url(table: Table, folder: Path) -> str:
    from penstock.pipeline.sinks.databases import KINDS as DATABASES
    from penstock.pipeline.sinks.databases import database

    url = table.needed("url", "where the database is, as postgresql://host/database")
    if url and database(url, None, None) is None:
        table.wrong("url", f"begins with none of {', '.join(DATABASES)}")
    prefix, found, file = url.partition("sqlite:")
    return prefix + found + resolve(file, folder) if found else url


# --- Parts that conflict -------------------------------------------------------------------------


def check_modes(root: Table, pipeline: Pipeline) -> None:
    """Reports settings that conflict: state in mode group, and a source that reads its output."""
    if pipeline.mode == "group":
        _check_group(root, pipeline)
    _check_cycles(root, pipeline)
    _check_folders(root, pipeline)


def _check_group(root: Table, pipeline: Pipeline) -> None:
    """A repeated batch of a group may hold other rows, which would make state wrong."""
    advice = "mode 'group' keeps no state between batches; use mode 'offsets'"
    for number, transform in enumerate(pipeline.transforms):
        for key in ("watermark", "deduplicate"):
            if getattr(transform, key) is not None:
                root.findings.add(("transform", number, key), advice)
    for number, sink in enumerate(pipeline.sinks):
        if sink.output_mode != "append":
            root.findings.add(("sink", number, "output_mode"), advice)


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
    from penstock.pipeline.options import share_server
    from pyspark_redis_streams.values import names

    if not share_server(options, pipeline.source):
        return False
    given = [pipeline.source.get(name) for name in ("subscribe", "subscribePattern")]
    named, patterns = (() if text is None else _try(names, text) for text in given)
    # The server's patterns, except for [^...].
    return stream in named or any(fnmatchcase(stream, p.replace("[^", "[!")) for p in patterns)


def _try(parse: Callable[[str], tuple[str, ...]], text: str) -> tuple[str, ...]:
    try:
        return parse(text)
    except ValueError:
        # It has been reported already.
        return ()


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
