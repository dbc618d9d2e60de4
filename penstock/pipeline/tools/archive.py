"""``archive``: copies streams to Parquet incrementally, and trims what no group needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.tools.archive_store import Entry, StreamArchive, day_of, locked
from penstock.pipeline.tools.stream_client import StreamClient
from penstock.pipeline.tools.trimming import trim
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.streams import StreamInfo

PAGE: Final = 5000


def archive(
    client: StreamClient,
    streams: Sequence[bytes],
    folder: Path,
    trimming: bool,
    file_rows: int,
    console: Console,
) -> int:
    """Archives streams; returns 1 if entries had been removed before they were archived, else 0.

    Raises PipelineError. After an interruption of any kind, running it again completes it.
    """
    lost = 0
    with locked(folder):
        for key in streams:
            lost += _archive_one(client, key, StreamArchive(folder, key), file_rows, console)
            if trimming:
                removed = trim(client, key, StreamArchive(folder, key))
                console.print(Text(f"{_shown(key)}: {removed:,} trimmed"))
    return 1 if lost else 0


def _archive_one(
    client: StreamClient, key: bytes, store: StreamArchive, file_rows: int, console: Console
) -> int:
    """Archives what is there now; returns how many entries were gone before."""
    info = client.info(key)
    after, added = store.position() or (0, info.removed)
    if info.last < after:
        raise PipelineError(
            f"stream '{_shown(key)}' ends at {format_id(info.last)}, but is archived up to "
            f"{format_id(after)}: it was deleted meanwhile; archive the new one into another folder"
        )
    rows = 0
    for entries in _files(_entries(client, key, after, info.last), file_rows):
        rows += len(entries)
        store.write(entries, _number(entries, added + rows, info))
    console.print(Text(f"{_shown(key)}: {rows:,} entries archived"))
    lost = max(info.added - added - rows, 0) if info.last > after else 0
    if lost:
        console.print(Text(f"{_shown(key)}: {lost:,} entries were removed before being archived"))
    return lost


def _number(entries: list[Entry], count: int, info: StreamInfo) -> int:
    """How many entries had been added up to the last of these: exact at the end of the stream."""
    return info.added if parse_id(entries[-1][0]) == info.last else count


def _entries(client: StreamClient, key: bytes, after: int, last: int) -> Iterator[list[Entry]]:
    while after < last:
        bounds = (f"({format_id(after)}", format_id(last))
        page: list[Entry] = client.call("XRANGE", key, *bounds, "COUNT", PAGE)
        if not page:
            return
        yield page
        after = parse_id(page[-1][0])


def _files(pages: Iterator[list[Entry]], most: int) -> Iterator[list[Entry]]:
    """Entries by day, and no more of them together than a file holds."""
    waiting: list[Entry] = []
    for entry in (entry for page in pages for entry in page):
        if waiting and (len(waiting) >= most or _day(entry) != _day(waiting[0])):
            yield waiting
            waiting = []
        waiting.append(entry)
    if waiting:
        yield waiting


def _day(entry: Entry) -> str:
    return day_of(parse_id(entry[0]))


def _shown(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")
