"""Reads a pipeline file and reports all errors that can be found without looking at data."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.config.columns import read_parse
from penstock.pipeline.config.cross_checks import check_modes
from penstock.pipeline.config.durations import duration
from penstock.pipeline.config.options import check, data_source_options
from penstock.pipeline.config.paths import resolve
from penstock.pipeline.config.table import Findings, Table
from penstock.pipeline.config.tables import read_tables
from penstock.pipeline.config.toml_lines import locate
from penstock.pipeline.config.transforms import read_transforms
from penstock.pipeline.errors import InvalidFile, PipelineError, Problem
from penstock.pipeline.model import DEAD_LETTERS, ENTRIES, Pipeline, Retry
from penstock.pipeline.sinks.base import Sink, Surroundings
from penstock.pipeline.sinks.kinds import read_sinks
from penstock.pipeline.sinks.stream import StreamSink, stream_options

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
