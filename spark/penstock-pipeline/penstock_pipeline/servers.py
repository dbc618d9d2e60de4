"""The servers of a pipeline: whether they can be used, what they hold, and what is missing."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from penstock_pipeline.client import ClientError, CommandRefused, RetryingClient, readable
from penstock_pipeline.errors import PipelineError
from penstock_pipeline.file import load
from penstock_pipeline.model import DEAD_LETTERS, Pipeline
from penstock_pipeline.options import server_options
from penstock_pipeline.terminal import plural, shown
from penstock_pipeline.toml_file import expand
from pyspark_redis_streams.errors import OptionError, ServerError
from pyspark_redis_streams.ids import SEQUENCE_BITS
from pyspark_redis_streams.options import ReadSettings, ServerSettings
from pyspark_redis_streams.settings import read_settings, write_settings
from pyspark_redis_streams.streams import NOTHING, Stream, StreamInfo, info_of, key_of, pairs
from pyspark_redis_streams.values import ServerUrl


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
    with _told():
        settings = read_settings(named, streaming=False).servers
    return [replace(settings, urls=(url,)) for url in settings.urls]


@contextmanager
def reached(settings: ServerSettings) -> Iterator[RetryingClient]:
    """A client of a server that has answered; raises PipelineError, also for what happens within.

    A port that speaks TLS to a client that does not, or the other way round, is told as that.
    """
    if settings.urls[0].tls:
        _need_match(settings.urls[0])
    with _told(), closing(RetryingClient(settings)) as client, readable(client):
        _greet(client, settings)
        yield client


@contextmanager
def _told() -> Iterator[None]:
    """Raises what is wrong with options and servers within as PipelineError."""
    try:
        yield
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
    with _told():
        return read_settings(pipeline.source, streaming=True)


# --- Ports with and without TLS ------------------------------------------------------------------


LIMIT_S: Final = 2.0
"""How long connecting, and an answer, may take."""


def mismatch(url: ServerUrl) -> str | None:
    """Advise if one side speaks TLS and the other does not; None if both agree.

    None as well if the port can't be reached, which connecting will report.
    """
    if url.path is not None or url.cluster or url.service is not None:
        return None
    if url.tls and _answers_plainly(url.nodes[0]):
        return (
            f"{url.label} answers without TLS: write redis:// in place of rediss:// (valkey:// "
            "in place of valkeys://), or give the port that speaks TLS"
        )
    if not url.tls and not _answers_plainly(url.nodes[0]) and _answers_tls(url.nodes[0]):
        return (
            f"{url.label} speaks TLS only: write rediss:// in place of redis:// (valkeys:// in "
            "place of valkey://)"
        )
    return None


def _answers_plainly(address: tuple[str, int]) -> bool:
    """Whether a command as plain text gets a reply, be it a refusal."""
    try:
        with socket.create_connection(address, LIMIT_S) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(1) in (b"+", b"-")
    except OSError:
        return False


def _answers_tls(address: tuple[str, int]) -> bool:
    """Whether a handshake gets an answer; a refused certificate is one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, LIMIT_S) as connection,
            context.wrap_socket(connection, server_hostname=address[0]),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "").upper()
    except OSError:
        return False


# --- Streams -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """A consumer group of a stream; ``lag`` is None where the server does not know it."""

    name: str
    lag: int | None
    pending: int

    def __str__(self) -> str:
        lag = "unknown" if self.lag is None else f"{self.lag:,}"
        return f"{self.name} (lag {lag}, {self.pending:,} pending)"


@dataclass(frozen=True)
class Looked:
    """A stream as it is on the server; ``problem`` says why it can't be read."""

    name: str
    exists: bool
    info: StreamInfo = NOTHING
    groups: tuple[Group, ...] = ()
    problem: str | None = None


def look(client: RetryingClient, name: str) -> Looked:
    """Look at a stream; raises ClientError if the server goes away."""
    key = key_of(name)
    info, groups, sample = client.try_all(
        [("XINFO STREAM", key), ("XINFO GROUPS", key), ("XRANGE", key, "-", "+", "COUNT", "1")]
    )
    for reply in (info, sample):
        if isinstance(reply, CommandRefused) and "no such key" not in str(reply):
            return Looked(name, False, problem=str(reply))
    if isinstance(info, CommandRefused):
        return Looked(name, False)
    try:
        counters = info_of(Stream(0, key), info)
    except ServerError as error:
        return Looked(name, False, problem=str(error))
    known = () if isinstance(groups, CommandRefused) else tuple(map(_group, groups))
    return Looked(name, True, counters, known)


def _group(reply: list[Any]) -> Group:
    found = pairs(reply)
    lag = found.get(b"lag")
    return Group(shown(found[b"name"]), None if lag is None else int(lag), int(found[b"pending"]))


def matching(client: RetryingClient, pattern: str) -> list[str]:
    """The names of the streams that match a pattern; raises ClientError."""
    return [key.decode("utf-8", "surrogateescape") for key in client.scan(pattern)]


# --- Before a run --------------------------------------------------------------------------------


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


FEW: Final = 1_000_000
"""Entries up to which Java's better compiler does not pay."""

MANY_STREAMS: Final = 1_000
"""Streams of which it is not asked how many entries they hold."""


def has_few(pipeline: Pipeline) -> bool:
    """Whether the streams of the source hold few entries, and no other table is read.

    Some of the entries may have been read already. Raises PipelineError.
    """
    if pipeline.tables:
        return False
    wanted = reading(pipeline)
    held = 0
    for settings in single(pipeline.source):
        with reached(settings) as client:
            names = [*wanted.subscribe]
            for pattern in wanted.patterns:
                names += matching(client, pattern)
            if len(names) > MANY_STREAMS:
                return False
            held += sum(client.info(key_of(name)).length for name in names)
    return held <= FEW


# --- For ``validate --connect`` ------------------------------------------------------------------


SHOWN: Final = 50
"""The most streams of a pattern that are shown."""


@dataclass
class Report:
    """Lines for people, and the problems among them; without any, all that is needed is there."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add_problem(self, text: str, indent: str = "  ") -> None:
        """Adds a line about what is missing or can't be used."""
        self.problems.append(text)
        self.lines.append(f"{indent}{text}")


def look_at_servers(pipeline: Pipeline) -> Report:
    """Asks every server of a pipeline; whatever can't be asked is a problem in the report."""
    report = Report()
    for use in uses(pipeline):
        report.lines.append(f"{use.url.label} ({', '.join(use.roles)})")
        try:
            with reached(use.settings) as client:
                report.lines.append(f"  answers: {_version(client)}")
                if "source" in use.roles:
                    _streams(report, client, pipeline)
        except PipelineError as error:
            report.add_problem(str(error))
    return report


def _version(client: RetryingClient) -> str:
    """Return name and version of the server; a user without INFO may still use streams."""
    try:
        known = client.call("INFO", "server")
    except ClientError:
        return "it does not tell its version"
    for name in ("penstock", "valkey", "redis"):
        if f"{name}_version" in known:
            return f"{name.capitalize()} {shown(str(known[f'{name}_version']))}"
    return "it does not tell its version"


def _streams(report: Report, client: RetryingClient, pipeline: Pipeline) -> None:
    settings = reading(pipeline)
    for name in settings.subscribe:
        found = look(client, name)
        _stream(report, found, settings, pipeline)
        if found.problem is None and not found.exists:
            report.add_problem(f"stream '{name}' is not there")
    for pattern in settings.patterns:
        names = matching(client, pattern)
        new = [name for name in names if name not in settings.subscribe]
        count = "1 stream matches" if len(names) == 1 else f"{len(names):,} streams match"
        report.lines.append(f"  {count} '{pattern}'{', so far' if not names else ''}")
        for name in new[:SHOWN]:
            _stream(report, look(client, name), settings, pipeline)
        if len(new) > SHOWN:
            report.lines.append(f"  ... and {len(new) - SHOWN:,} more")


def _stream(report: Report, found: Looked, settings: ReadSettings, pipeline: Pipeline) -> None:
    if found.problem is not None:
        report.add_problem(found.problem)
    if not found.exists:
        return
    report.lines.append(f"  stream '{shown(key_of(found.name))}': {_size(found.info)}")
    groups = "; ".join(map(str, found.groups))
    report.lines.append(f"    groups: {groups or 'none'}")
    for text in _group_problems(found, settings, pipeline):
        report.add_problem(text, "    ")


def _size(info: StreamInfo) -> str:
    if info.first is None:
        return f"empty, {info.added:,} entries were added once"
    return f"{plural(info.length, 'entry')}, from {_time(info.first)} to {_time(info.last)}"


def _time(id: int) -> str:
    """The time in an ID; IDs that are not made of times may be beyond the calendar."""
    milliseconds = id >> SEQUENCE_BITS
    try:
        time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"ID {milliseconds}"
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _group_problems(found: Looked, settings: ReadSettings, pipeline: Pipeline) -> Iterator[str]:
    """The groups from whose position queries want to go on, and that are not there."""
    if settings.starting.otherwise != "group" or settings.group is None:
        return
    wanted = [settings.group]
    if pipeline.mode == "offsets":
        wanted = [f"{settings.group}.{output.name}" for output in pipeline.outputs]
    there = {group.name for group in found.groups}
    for name in wanted:
        if name not in there:
            yield f"group '{name}', from whose position the pipeline is to begin, is not there"


# --- For commands without Spark -----------------------------------------------------------------


class StreamClient(RetryingClient):
    """The client of a command, and the pipeline that names the server, if one does."""

    def __init__(self, settings: ServerSettings, pipeline: Pipeline | None) -> None:
        super().__init__(settings)
        self._pipeline = pipeline

    def dead_letters(self, given: str | None) -> bytes:
        """The key of the dead letters; raises PipelineError if nothing names it.

        Those of a pipeline may have to come yet; a stream that is given has to be there.
        """
        if given is not None:
            return self._there(given)
        if self._pipeline is None or self._pipeline.letters is None:
            raise PipelineError("no dead letters are named: give --dead-letters or --file")
        return key_of(self._pipeline.letters)

    def _there(self, name: str) -> bytes:
        """The key of a stream; raises PipelineError if there is none."""
        if self.call("TYPE", key_of(name)) == b"none":
            raise PipelineError(f"there is no stream '{name}' on {self.name}")
        return key_of(name)


@contextmanager
def open_client(
    file: Path | None, url: str | None, options: Sequence[str]
) -> Iterator[StreamClient]:
    """The client of a command line; raises PipelineError, also for what happens within."""
    pipeline = None if file is None else load(file)
    with _told():
        settings = write_settings(_server_options(pipeline, url, options)).servers
        with closing(StreamClient(settings, pipeline)) as client, readable(client):
            yield client


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
