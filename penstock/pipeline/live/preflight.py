"""Asks the servers of a pipeline before Spark is started, so that what is wrong is told at once."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.client.retrying import RetryingClient
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.live.servers import reached, reading, uses
from penstock.pipeline.live.streams import look, matching
from penstock.pipeline.model import Pipeline
from pyspark_redis_streams.settings import ReadSettings


def preflight(pipeline: Pipeline) -> list[str]:
    """Warnings about streams that are not there; raises PipelineError for what can't be used.

    A server that can't be reached now has been asked as often as its option ``retries`` says.
    """
    warnings: list[str] = []
    for use in uses(pipeline):
        with reached(use.settings) as client:
            if "source" in use.roles:
                warnings += _missing(client, reading(pipeline))
    return warnings


def _missing(client: RetryingClient, settings: ReadSettings) -> Iterator[str]:
    for name in settings.subscribe:
        found = look(client, name)
        if found.problem is not None:
            raise PipelineError(found.problem)
        if not found.exists:
            yield f"stream '{name}' is not on {client.name}: nothing is read until it is created"
    for pattern in settings.patterns:
        if not matching(client, pattern):
            yield f"no stream on {client.name} matches '{pattern}' yet"
