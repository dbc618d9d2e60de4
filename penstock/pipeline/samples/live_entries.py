"""The last entries of the streams that a pipeline reads, from its servers."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.client.errors import ClientError
from penstock.client.retrying import RetryingClient
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.live.servers import reached, reading, single
from penstock.pipeline.live.streams import look, matching
from penstock.pipeline.model import Pipeline
from penstock.pipeline.samples.entries import Entry
from pyspark_redis_streams.streams import key_of


def last_entries(pipeline: Pipeline, most: int) -> list[Entry]:
    """The last entries of each stream, at most so many, oldest first; raises PipelineError."""
    wanted = reading(pipeline)
    found: list[Entry] = []
    for settings in single(pipeline.source):
        with reached(settings) as client:
            names = [*wanted.subscribe]
            for pattern in wanted.patterns:
                names += matching(client, pattern)
            for name in dict.fromkeys(names):
                found += entries_of(client, name, most)
    return found


def entries_of(client: RetryingClient, name: str, most: int) -> Iterator[Entry]:
    """The last entries of one stream, none if it is not there; raises PipelineError."""
    problem = look(client, name).problem
    if problem is not None:
        raise PipelineError(problem)
    try:
        reply = client.call("XREVRANGE", key_of(name), "+", "-", "COUNT", most)
    except ClientError as error:
        raise PipelineError(str(error)) from None
    for id, fields in reversed(reply):
        pairs = tuple((fields[i], fields[i + 1]) for i in range(0, len(fields), 2))
        yield Entry(name, id.decode(), pairs)
