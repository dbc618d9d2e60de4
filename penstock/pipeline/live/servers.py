"""The servers of a pipeline: each once, what it is used for, and whether it can be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from penstock.client.errors import ClientError, CommandRefused
from penstock.client.retrying import RetryingClient
from penstock.pipeline.config.options import server_options
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.live.tls_probe import mismatch
from penstock.pipeline.model import DEAD_LETTERS, Pipeline
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.settings import ReadSettings, ServerSettings, read_settings
from pyspark_redis_streams.urls import ServerUrl


@dataclass(frozen=True)
class Use:
    """A server and what the pipeline uses it for, in words."""

    settings: ServerSettings
    roles: tuple[str, ...]

    @property
    def url(self) -> ServerUrl:
        """The one server, or the one cluster."""
        return self.settings.urls[0]


def uses(pipeline: Pipeline) -> list[Use]:
    """Every server of the pipeline's source, sinks and dead letters, the source's first."""
    wanted = [("source", pipeline.source)]
    for output in pipeline.outputs:
        if output.stream is not None or output.name == DEAD_LETTERS:
            role = "dead letters" if output.name == DEAD_LETTERS else f"sink {output.name}"
            wanted.append((role, output.options))
    found: dict[tuple[object, ...], Use] = {}
    for role, options in wanted:
        for settings in single(options):
            key = (settings.urls, tuple(sorted(settings.client.items())))
            known = found.get(key, Use(settings, ()))
            found[key] = Use(settings, (*known.roles, role))
    return list(found.values())


def single(options: Mapping[str, str]) -> list[ServerSettings]:
    """The settings of each server of options, which may name several."""
    named = {**server_options(options), "subscribe": "any"}
    try:
        settings = read_settings(named, streaming=False).servers
    except OptionError as error:
        raise PipelineError(str(error)) from None
    return [replace(settings, urls=(url,)) for url in settings.urls]


@contextmanager
def reached(settings: ServerSettings) -> Iterator[RetryingClient]:
    """A client of a server that has answered; raises PipelineError, also for what happens within.

    A port that speaks TLS to a client that does not, or the other way round, is told as that.
    """
    if settings.urls[0].tls:
        _need_match(settings.urls[0])
    try:
        with closing(RetryingClient(settings)) as client:
            _greet(client, settings)
            yield client
    except (ClientError, OptionError) as error:
        raise PipelineError(str(error)) from None


def _greet(client: RetryingClient, settings: ServerSettings) -> None:
    try:
        client.call("PING")
    except CommandRefused as error:
        # A user who may not even PING has been let in, which is all that is asked here.
        if "NOPERM" not in str(error):
            raise
    except ClientError as error:
        if "can't be reached" in str(error):
            _need_match(settings.urls[0])
        if "NOPERM" not in str(error):
            raise


def _need_match(url: ServerUrl) -> None:
    text = mismatch(url)
    if text is not None:
        raise PipelineError(text)


def reading(pipeline: Pipeline) -> ReadSettings:
    """The settings of the source; raises PipelineError."""
    try:
        return read_settings(pipeline.source, streaming=True)
    except OptionError as error:
        raise PipelineError(str(error)) from None
