"""Checks the SQL of a pipeline with Spark, without running it and without asking a server."""

from __future__ import annotations

from dataclasses import replace

from penstock.pipeline.errors import InvalidFile, PipelineError, Problem
from penstock.pipeline.model import Pipeline
from penstock.pipeline.run.queries import queries
from penstock.pipeline.run.session import start


def check_sql(pipeline: Pipeline) -> None:
    """Has Spark analyse every query; raises InvalidFile with the line of what it refuses."""
    spark = start(replace(pipeline, spark={}), "local[1]")
    try:
        queries(spark, pipeline)
    except PipelineError as error:
        raise InvalidFile(str(pipeline.file), [_problem(pipeline, str(error))]) from None
    finally:
        spark.stop()


def _problem(pipeline: Pipeline, text: str) -> Problem:
    for number, transform in enumerate(pipeline.transforms):
        if text.startswith(f"transform '{transform.name}'"):
            return Problem(transform.sql_line, f"transform[{number + 1}]", text)
    return Problem(0, "", text)
