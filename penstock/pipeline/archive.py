"""``archive`` and ``replay``: streams copied to Parquet, trimmed, and added again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

from penstock.pipeline.client import CommandRefused
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.servers import StreamClient
from penstock.terminal import shown
from pyspark_redis_streams.ids import MAX_ID, SEQUENCE_BITS, before_millisecond, format_id, parse_id
from pyspark_redis_streams.streams import StreamInfo, key_of
from pyspark_redis_streams.values import timestamp

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
                console.print(Text(f"{shown(key)}: {removed:,} trimmed"))
    return 1 if lost else 0


def _archive_one(
    client: StreamClient, key: bytes, store: StreamArchive, file_rows: int, console: Console
) -> int:
    """Archives what is there now; returns how many entries were gone before."""
    info = client.info(key)
    after, added = store.position() or (0, info.removed)
    if info.last < after:
        raise PipelineError(
            f"stream '{shown(key)}' ends at {format_id(info.last)}, but is archived up to "
            f"{format_id(after)}: it was deleted meanwhile; archive the new one into another folder"
        )
    rows = 0
    for entries in _files(_entries(client, key, after, info.last), file_rows):
        rows += len(entries)
        store.write(entries, _number(entries, added + rows, info))
    console.print(Text(f"{shown(key)}: {rows:,} entries archived"))
    lost = max(info.added - added - rows, 0) if info.last > after else 0
    if lost:
        console.print(Text(f"{shown(key)}: {lost:,} entries were removed before being archived"))
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
    day = ""
    for entry in (entry for page in pages for entry in page):
        if waiting and (len(waiting) >= most or day_of(parse_id(entry[0])) != day):
            yield waiting
            waiting = []
        if not waiting:
            day = day_of(parse_id(entry[0]))
        waiting.append(entry)
    if waiting:
        yield waiting


# --- Files ---------------------------------------------------------------------------------------


SCHEMA: Final = pa.schema(
    [
        ("id", pa.string()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("fields", pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))),
    ]
)
ADDED: Final = b"penstock.entries-added"
"""In a file's metadata: entries-added of the stream as of the file's last entry."""

NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""The day of an ID whose time is after the year 9999; readers take it as null."""

_FILE: Final = re.compile(r"(\d+-\d+)_(\d+-\d+)\.parquet")
_LAST_MS: Final = 253_402_300_799_999

Entry = tuple[bytes, list[bytes]]
"""An entry as the server sends it: its ID, and names and values in turn."""


class File(NamedTuple):
    """A file of an archive, with the IDs of its first and last entry as integers."""

    first: int
    last: int
    path: Path


class StreamArchive:
    """The archive of one stream."""

    def __init__(self, root: Path, key: bytes) -> None:
        self.folder = root / f"stream={escape(key)}"

    def files(self) -> list[File]:
        """All files in the order of their IDs."""
        found = []
        for path in self.folder.glob("day=*/*.parquet"):
            name = _FILE.fullmatch(path.name)
            if name is not None:
                found.append(File(parse_id(name[1]), parse_id(name[2]), path))
        return sorted(found)

    def position(self) -> tuple[int, int] | None:
        """The last archived ID, and entries-added of the stream as of that entry."""
        files = self.files()
        if not files:
            return None
        with _intact(files[-1].path):
            metadata = pq.read_metadata(files[-1].path).metadata or {}
        return files[-1].last, int(metadata.get(ADDED, 0))

    def write(self, entries: list[Entry], added: int) -> File:
        """Writes entries of one day into a file and syncs it to the disk."""
        first, last = parse_id(entries[0][0]), parse_id(entries[-1][0])
        folder = self.folder / f"day={day_of(first)}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{format_id(first)}_{format_id(last)}.parquet"
        unfinished = folder / "_unfinished"
        table = to_table(entries).replace_schema_metadata({ADDED: str(added).encode()})
        with unfinished.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        if pq.read_metadata(unfinished).num_rows != len(entries):
            raise PipelineError(f"'{unfinished}' does not hold what was written to it")
        unfinished.rename(path)
        for each in (folder, self.folder, self.folder.parent):
            _sync(each)
        return File(first, last, path)


def escape(key: bytes) -> str:
    """A key as the name of a folder; letters and digits of all languages stay as they are."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(key, safe="")
    return "".join(
        c if c.isalnum() or c in "-_.~" else quote_from_bytes(c.encode(), safe="") for c in text
    )


def keys(root: Path) -> list[bytes]:
    """The keys of the streams in an archive."""
    return sorted(
        unquote_to_bytes(folder.name.removeprefix("stream=")) for folder in root.glob("stream=*")
    )


def day_of(id: int) -> str:
    """The day, in UTC, of the time in an ID."""
    milliseconds = id >> SEQUENCE_BITS
    if milliseconds > _LAST_MS:
        return NO_DAY
    return datetime.fromtimestamp(milliseconds // 1000, UTC).date().isoformat()


def to_table(entries: list[Entry]) -> Any:
    """A table of :data:`SCHEMA`."""
    ids = [entry[0].decode() for entry in entries]
    times = [int(id.partition("-")[0]) for id in ids]
    fields = [[{"name": f[i], "value": f[i + 1]} for i in range(0, len(f), 2)] for _, f in entries]
    columns = [
        pa.array(ids, pa.string()),
        pa.array([t if t <= _LAST_MS else None for t in times], SCHEMA.field("timestamp").type),
        pa.array(fields, SCHEMA.field("fields").type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def read(file: File) -> Iterator[list[Entry]]:
    """Yield the entries of a file, in batches of some thousands; raises PipelineError."""
    with _intact(file.path), pq.ParquetFile(file.path) as parquet:
        for batch in parquet.iter_batches(10_000, columns=["id", "fields"]):
            ids, fields = batch.column("id").to_pylist(), batch.column("fields").to_pylist()
            yield [
                (id.encode(), [part for f in each for part in (f["name"], f["value"])])
                for id, each in zip(ids, fields, strict=True)
            ]


@contextmanager
def _intact(path: Path) -> Iterator[None]:
    """Raise PipelineError where a file turns out to be damaged."""
    try:
        yield
    except pa.ArrowException as error:
        raise PipelineError(f"can't read '{path}': {error}") from None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Locks the archive for writing; raises PipelineError if another process holds the lock."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / "_lock").open("w")
    except OSError as error:
        raise PipelineError(f"can't write to '{root}': {error.strerror}") from None
    with lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"'{root}' is being written by another process") from None
        yield


# --- Trimming ------------------------------------------------------------------------------------


def trim(client: StreamClient, key: bytes, archive: StreamArchive) -> int:
    """Removes entries that are archived and not needed; returns how many."""
    keep = safe_from(client, key, archive)
    if keep is None:
        return 0
    removed: int = client.call("XTRIM", key, "MINID", "=", format_id(keep))
    return removed


def safe_from(client: StreamClient, key: bytes, archive: StreamArchive) -> int | None:
    """The lowest ID that has to stay; None if nothing is archived or there is no stream.

    That is the first ID that is not archived, that a group has not been delivered, or that is
    pending in a group, whichever is lowest.
    """
    position = archive.position()
    if position is None or not client.info(key).length:
        return None
    return min(
        [position[0] + 1, *(_needed_from(client, key, group) for group in client.groups(key))]
    )


def _needed_from(client: StreamClient, key: bytes, group: dict[bytes, Any]) -> int:
    undelivered = parse_id(group[b"last-delivered-id"]) + 1
    if not group[b"pending"]:
        return undelivered
    lowest = client.call("XPENDING", key, group[b"name"])[1]
    return undelivered if lowest is None else min(undelivered, parse_id(lowest))


# --- Replay --------------------------------------------------------------------------------------


class Window(NamedTuple):
    """The IDs to replay, both ends included."""

    first: int = 0
    last: int = MAX_ID


def window(since: str | None, until: str | None) -> Window:
    """The window between an ID or time and another; raises PipelineError.

    An ID is included; a time is included as the start and excluded as the end.
    """
    first = 0
    if since is not None:
        first = parse_id(since) if _is_id(since) else _time(since, "--since") << SEQUENCE_BITS
    if until is None:
        return Window(first)
    is_id = _is_id(until)
    last = parse_id(until) if is_id else before_millisecond(_time(until, "--until"))
    return Window(first, last)


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
        known = ", ".join(map(shown, keys(folder))) or "nothing"
        raise PipelineError(f"'{folder}' has no such entries of '{stream}'; it holds: {known}")
    key = key_of(target)
    last = client.info(key).last
    there = added = 0
    for page in (page for file in files for page in read(file)):
        entries = [each for each in page if bounds.first <= parse_id(each[0]) <= bounds.last]
        old = [entry for entry in entries if parse_id(entry[0]) <= last]
        _need_equal(client, key, old, target)
        _add(client, key, entries[len(old) :], target)
        there, added = there + len(old), added + len(entries) - len(old)
    console.print(Text(f"{target}: {added:,} entries added, {there:,} were there"))
    return added


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
