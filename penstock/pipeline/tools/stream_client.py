"""The connection of the commands that work without Spark, and the commands they send."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.exceptions import ResponseError

from penstock.pipeline.config.env_vars import expand
from penstock.pipeline.config.load import load
from penstock.pipeline.config.options import server_options
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.model import Pipeline
from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.stream_info import Stream, StreamInfo, info_of, key_of, pairs
from pyspark_redis_streams.values import names


class End:
    """One server, or one cluster, and the pipeline that names it, if one does."""

    def __init__(self, servers: Servers, pipeline: Pipeline | None) -> None:
        self.servers = servers
        self._pipeline = pipeline

    @property
    def name(self) -> str:
        """The address, without credentials."""
        return self.servers.name(0)

    @property
    def is_cluster(self) -> bool:
        """Whether keys may be on different servers, so that no transaction can hold them all."""
        return self.servers.settings.urls[0].cluster

    def call(self, *command: Any) -> Any:
        """The raw reply to a command; raises PipelineError for what the server refuses."""
        try:
            return self.servers.call(0, *command)
        except ResponseError as error:
            raise PipelineError(f"{self.name}: {command[0]}: {error}") from None

    def call_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The raw replies to commands sent at once; an error stands for itself in the list."""
        return self.servers.call_all(0, commands)

    def info(self, key: bytes) -> StreamInfo:
        """The counters of a stream, all 0 if there is none."""
        return info_of(Stream(0, key), self.call_all([("XINFO STREAM", key)])[0])

    def groups(self, key: bytes) -> list[dict[bytes, Any]]:
        """What the server says about each consumer group of a stream."""
        return [pairs(group) for group in self.call("XINFO GROUPS", key)]

    def streams(self, given: Sequence[str], patterns: Sequence[str]) -> list[bytes]:
        """The keys that a command is about; raises PipelineError if it names none.

        Those of the pipeline's source unless others are given.
        """
        if not given and not patterns and self._pipeline is not None:
            source = self._pipeline.source
            given = _split(source, "subscribe")
            patterns = _split(source, "subscribePattern")
        if not given and not patterns:
            raise PipelineError("no stream is named: give --stream, --pattern or --file")
        found = [key_of(name) for name in given]
        for pattern in patterns:
            found += sorted(set(self.servers.scan(0, pattern)))
        return list(dict.fromkeys(found))

    def dead_letters(self, given: str | None) -> bytes:
        """The key of the dead letters; raises PipelineError if nothing names it."""
        if given is not None:
            return key_of(given)
        if self._pipeline is not None:
            dead = self._pipeline.dead_letters
            name = dead.place if dead else self._pipeline.source.get("deadLetterStream")
            if name:
                return key_of(name)
        raise PipelineError("no dead letters are named: give --dead-letters or --file")


def _split(source: Any, option: str) -> Sequence[str]:
    return names(source[option]) if option in source else ()


@contextmanager
def open_end(file: Path | None, url: str | None, options: Sequence[str]) -> Iterator[End]:
    """The server of a command line; raises PipelineError, also for what happens within."""
    pipeline = None if file is None else load(file)
    try:
        servers = Servers(write_settings(_server_options(pipeline, url, options)).servers)
        with servers:
            yield End(servers, pipeline)
    except RedisStreamsError as error:
        raise PipelineError(str(error)) from None


def _server_options(
    pipeline: Pipeline | None, url: str | None, options: Sequence[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    if url is not None:
        found["url"] = _expanded(url)
    elif pipeline is not None:
        found = server_options(pipeline.source)
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise PipelineError(f"--option is '{name}'; allowed: NAME=VALUE")
        found[name] = _expanded(value)
    return found


def _expanded(text: str) -> str:
    try:
        return expand(text, os.environ)
    except ValueError as error:
        raise PipelineError(str(error)) from None
