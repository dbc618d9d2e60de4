"""What ``validate --connect`` tells: servers, streams of the source, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from penstock.client.errors import ClientError
from penstock.client.retrying import RetryingClient
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.live.servers import reached, reading, uses
from penstock.pipeline.live.streams import Looked, look, matching
from penstock.pipeline.model import Pipeline
from pyspark_redis_streams.ids import SEQUENCE_BITS
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.streams import StreamInfo

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
    """What the server calls itself; a user without INFO may still use streams."""
    try:
        known = client.call("INFO", "server")
    except ClientError:
        return "it does not tell its version"
    for name in ("penstock", "valkey", "redis"):
        if f"{name}_version" in known:
            return f"{name.capitalize()} {known[f'{name}_version']}"
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
    report.lines.append(f"  stream '{found.name}': {_size(found.info)}")
    groups = "; ".join(map(str, found.groups))
    report.lines.append(f"    groups: {groups or 'none'}")
    for text in _group_problems(found, settings, pipeline):
        report.add_problem(text, "    ")


def _size(info: StreamInfo) -> str:
    if info.first is None:
        return f"empty, {info.added:,} entries were added once"
    count = "1 entry" if info.length == 1 else f"{info.length:,} entries"
    return f"{count}, from {_time(info.first)} to {_time(info.last)}"


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
