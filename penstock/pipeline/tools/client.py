"""The client of the commands that work without Spark, and the streams that they are about."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from penstock.client.connection import ClientError
from penstock.client.retrying import RetryingClient
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.file import load
from penstock.pipeline.model import Pipeline
from penstock.pipeline.options import server_options
from penstock.pipeline.toml_file import expand
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.streams import key_of
from pyspark_redis_streams.values import names


def shown(key: bytes) -> str:
    """Return a key as people read it."""
    return key.decode("utf-8", "backslashreplace")


class StreamClient(RetryingClient):
    """The client of a command, and the pipeline that names the server, if one does."""

    def __init__(self, settings: ServerSettings, pipeline: Pipeline | None) -> None:
        super().__init__(settings)
        self._pipeline = pipeline

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
            found += self.scan(pattern)
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
def open_client(
    file: Path | None, url: str | None, options: Sequence[str]
) -> Iterator[StreamClient]:
    """The client of a command line; raises PipelineError, also for what happens within."""
    pipeline = None if file is None else load(file)
    try:
        settings = write_settings(_server_options(pipeline, url, options)).servers
        with closing(StreamClient(settings, pipeline)) as client:
            yield client
    except (ClientError, OptionError) as error:
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
