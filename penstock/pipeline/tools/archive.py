"""``archive``: copies streams to Parquet, goes on where it was, and trims what is safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.tools.archive_store import Entry, Shelf, day_of, locked
from penstock.pipeline.tools.stream_client import End
from penstock.pipeline.tools.trimming import trim
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.stream_info import StreamInfo

PAGE: Final = 5000


def archive(
    end: End,
    streams: Sequence[bytes],
    folder: Path,
    trimming: bool,
    file_rows: int,
    console: Console,
) -> int:
    """Archives streams; returns 1 if entries had been removed before they were archived, else 0.

    Raises PipelineError. Whatever it is interrupted by, running it again completes it.
    """
    lost = 0
    with locked(folder):
        for key in streams:
            lost += _archive_one(end, key, Shelf(folder, key), file_rows, console)
            if trimming:
                removed = trim(end, key, Shelf(folder, key))
                console.print(Text(f"{_shown(key)}: {removed:,} trimmed"))
    return 1 if lost else 0


def _archive_one(end: End, key: bytes, shelf: Shelf, file_rows: int, console: Console) -> int:
    """Archives what is there now; returns how many entries were gone before."""
    info = end.info(key)
    after, added = shelf.position() or (0, info.removed)
    if info.last < after:
        raise PipelineError(
            f"stream '{_shown(key)}' ends at {format_id(info.last)}, but is archived up to "
            f"{format_id(after)}: it was deleted meanwhile; archive the new one into another folder"
        )
    rows = 0
    for entries in _files(_entries(end, key, after, info.last), file_rows):
        rows += len(entries)
        shelf.write(entries, _number(entries, added + rows, info))
    console.print(Text(f"{_shown(key)}: {rows:,} entries archived"))
    lost = max(info.added - added - rows, 0) if info.last > after else 0
    if lost:
        console.print(Text(f"{_shown(key)}: {lost:,} entries were removed before being archived"))
    return lost


def _number(entries: list[Entry], count: int, info: StreamInfo) -> int:
    """How many entries had been added up to the last of these: known exactly at the end."""
    return info.added if parse_id(entries[-1][0]) == info.last else count


def _entries(end: End, key: bytes, after: int, last: int) -> Iterator[list[Entry]]:
    while after < last:
        bounds = (f"({format_id(after)}", format_id(last))
        page: list[Entry] = end.call("XRANGE", key, *bounds, "COUNT", PAGE)
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
