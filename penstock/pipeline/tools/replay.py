"""``replay``: adds archived entries to a stream again, under their original IDs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from penstock.client.errors import CommandRefused
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.tools.archive_store import Entry, StreamArchive, keys, read
from penstock.pipeline.tools.stream_client import StreamClient
from pyspark_redis_streams.ids import MAX_ID, before_millisecond, format_id, parse_id
from pyspark_redis_streams.streams import key_of
from pyspark_redis_streams.values import timestamp


class Window(NamedTuple):
    """The IDs to replay, both ends included."""

    first: int = 0
    last: int = MAX_ID


def window(since: str | None, until: str | None) -> Window:
    """The window between an ID or time and another; raises PipelineError.

    An ID is included; a time is included as the start and excluded as the end.
    """
    first = 0 if since is None else _bound(since, "--since")
    if until is None:
        return Window(first)
    is_id = _is_id(until)
    last = parse_id(until) if is_id else before_millisecond(_time(until, "--until"))
    return Window(first, last)


def _bound(text: str, option: str) -> int:
    return parse_id(text) if _is_id(text) else _time(text, option) << 64


def _is_id(text: str) -> bool:
    """Whether it is ``milliseconds-sequence``; dates contain several dashes."""
    try:
        parse_id(text)
    except ValueError:
        return False
    return "-" in text


def _time(text: str, option: str) -> int:
    try:
        return timestamp(text)
    except ValueError:
        raise PipelineError(
            f"{option} is '{text}'; allowed: an ID as 1700000000000-0, Unix milliseconds, or an "
            "ISO 8601 time with its offset from UTC"
        ) from None


def replay(
    client: StreamClient, folder: Path, stream: str, target: str, bounds: Window, console: Console
) -> int:
    """Adds the archived entries of a stream to a target; returns how many were not there yet.

    It continues where it was interrupted. Raises PipelineError if the target holds other entries in
    the range: IDs only rise, so entries cannot be added between others.
    """
    archive = StreamArchive(folder, key_of(stream))
    files = [f for f in archive.files() if f.last >= bounds.first and f.first <= bounds.last]
    if not files:
        known = ", ".join(k.decode("utf-8", "backslashreplace") for k in keys(folder)) or "nothing"
        raise PipelineError(f"'{folder}' has no such entries of '{stream}'; it holds: {known}")
    key = key_of(target)
    last = client.info(key).last
    there = added = 0
    for entries in (page for file in files for page in _within(read(file), bounds)):
        old = [entry for entry in entries if parse_id(entry[0]) <= last]
        _need_equal(client, key, old, target)
        _add(client, key, entries[len(old) :], target)
        there, added = there + len(old), added + len(entries) - len(old)
    console.print(Text(f"{target}: {added:,} entries added, {there:,} were there"))
    return added


def _within(pages: Iterator[list[Entry]], bounds: Window) -> Iterator[list[Entry]]:
    for page in pages:
        yield [entry for entry in page if bounds.first <= parse_id(entry[0]) <= bounds.last]


def _need_equal(client: StreamClient, key: bytes, entries: list[Entry], target: str) -> None:
    if not entries:
        return
    first, last = entries[0][0], entries[-1][0]
    found = client.call("XRANGE", key, first, last, "COUNT", len(entries) + 1)
    if [(id, list(fields)) for id, fields in found] != entries:
        raise PipelineError(
            f"stream '{target}' ends at {format_id(client.info(key).last)} and does not hold the "
            f"archived entries from {first.decode()} to {last.decode()}: replay into a stream "
            "that is not there yet (--to)"
        )


def _add(client: StreamClient, key: bytes, entries: list[Entry], target: str) -> None:
    for begin in range(0, len(entries), 1000):
        part = entries[begin : begin + 1000]
        replies = client.try_all([("XADD", key, id, *fields) for id, fields in part])
        for (id, _), reply in zip(part, replies, strict=True):
            if isinstance(reply, CommandRefused):
                raise PipelineError(f"stream '{target}', entry {id.decode()}: {reply}")
