"""Describes what a pipeline will do, without credentials and without starting Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock_pipeline.model import (
    DEAD_LETTERS,
    ENTRIES,
    Column,
    Expectation,
    Parse,
    Payload,
    Pipeline,
    Transform,
)
from penstock_pipeline.options import address, snake
from penstock_pipeline.sinks.base import Sink

SECRET: Final = ("auth", "password", "user", "redis.username", "url")
"""Options that are not shown; of ``url`` only the address is."""


def describe(pipeline: Pipeline) -> str:
    """The plan of a pipeline, as lines."""
    return "\n".join(_lines(pipeline)) + "\n"


def _lines(pipeline: Pipeline) -> Iterator[str]:
    yield f"Pipeline {pipeline.name} ({pipeline.file})"
    yield ""
    yield "Source"
    yield from _source(pipeline)
    if pipeline.parse is not None:
        yield ""
        yield f"Table {ENTRIES}: {_parse_title(pipeline.parse)}"
        yield from (f"  {_column(column)}" for column in pipeline.parse.columns)
    for transform in pipeline.transforms:
        yield ""
        yield from _transform(transform)
    for output in pipeline.outputs:
        yield ""
        yield from _output(pipeline, output)
    yield ""
    yield from _running(pipeline)


def _source(pipeline: Pipeline) -> Iterator[str]:
    yield f"  {'server':<20} {address(pipeline.source)}"
    for name, value in pipeline.source.items():
        if name.lower() not in SECRET and not name.lower().endswith("password"):
            yield f"  {snake(name):<20} {value}"


def _parse_title(parse: Parse) -> str:
    made = "plain fields" if parse.payload is None else _payload_title(parse.payload)
    nulls = f"; no value: {', '.join(map(repr, parse.nulls))}" if parse.nulls else ""
    unknown = f"; everything else in '{parse.unknown}'" if parse.unknown else ""
    return f"{made}{nulls}{unknown}; also stream, id, timestamp"


def _payload_title(payload: Payload) -> str:
    packed = f", {payload.compression}" if payload.compression else ""
    schemas = f", schemas of {payload.registry.url}" if payload.registry else ""
    form = "JSON" if payload.format == "json" else payload.format
    return f"{form} in {'the ' if payload.field else ''}{payload.source}{packed}{schemas}"


def _column(column: Column) -> str:
    notes = [column.type]
    notes += [f"from '{column.origin}'"] if column.origin != column.name else []
    notes += [f"as {column.format}"] if column.format else []
    notes += ["required"] if column.required else []
    notes += [_expectation(column.expect)] if column.expect else []
    return f"{column.name:<20} {', '.join(notes)}"


def _expectation(expect: Expectation) -> str:
    return f"expected: {expect.condition}, or else {expect.otherwise.replace('_', ' ')}"


def _transform(transform: Transform) -> Iterator[str]:
    yield f"Table {transform.name}"
    if transform.watermark is not None:
        mark = transform.watermark
        yield f"  rows of {transform.origin} may be {mark.delay} late by '{mark.column}'"
        if mark.ahead is not None:
            yield f"  entries that are more than {mark.ahead} ahead by it are dead letters"
    if transform.deduplicate is not None:
        yield f"  rows of {transform.origin} are one by {', '.join(transform.deduplicate.keys)}"
    yield from (f"  {line}" for line in transform.sql.splitlines())
    if transform.expect is not None:
        yield f"  {_expectation(transform.expect)}"


def _output(pipeline: Pipeline, output: Sink) -> Iterator[str]:
    is_dead = output.name == DEAD_LETTERS
    yield "Dead letters" if is_dead else f"Sink {output.name}"
    yield f"  {'rows':<20} {'entries that do not parse' if is_dead else output.origin}"
    yield f"  {'to':<20} {output.destination}"
    if output.partition_by:
        yield f"  {'partitioned by':<20} {', '.join(output.partition_by)}"
    if output.output_mode != "append":
        yield f"  {'output mode':<20} {output.output_mode}"
    yield f"  {'guarantee':<20} {output.guarantees[pipeline.mode]}"


def _running(pipeline: Pipeline) -> Iterator[str]:
    names = [output.name for output in pipeline.outputs]
    if pipeline.mode == "group":
        yield "One query writes all outputs of a batch, and then acknowledges it"
    else:
        yield f"A query for each: {', '.join(names)}"
    yield f"  {'checkpoint':<20} {pipeline.checkpoint}"
    yield f"  {'a batch every':<20} {_intervals(pipeline)}"
    retry = pipeline.retry
    yield f"  {'after a failure':<20} {retry.attempts} attempts, {retry.pause_s:g} s apart"
    if pipeline.metrics is not None:
        yield f"  {'metrics':<20} {pipeline.metrics}"


def _intervals(pipeline: Pipeline) -> str:
    """How often there is a batch, with the outputs where they differ."""
    if pipeline.mode == "group":
        return pipeline.interval()
    names: dict[str, list[str]] = {}
    for output in pipeline.outputs:
        names.setdefault(pipeline.interval(output), []).append(output.name)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{every} ({', '.join(found)})" for every, found in names.items())
