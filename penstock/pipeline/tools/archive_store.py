"""The files of an archive: ``stream=orders/day=2026-01-31/FIRST_LAST.parquet``.

A file appears atomically, named after the IDs of its first and last entry, and files are written in
the order of IDs. So the names alone say what is archived.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.errors import PipelineError
from pyspark_redis_streams.ids import SEQUENCE_BITS, format_id, parse_id

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
    """The entries of a file, in batches of some thousands."""
    with pq.ParquetFile(file.path) as parquet:
        for batch in parquet.iter_batches(10_000, columns=["id", "fields"]):
            ids, fields = batch.column("id").to_pylist(), batch.column("fields").to_pylist()
            yield [
                (id.encode(), [part for f in each for part in (f["name"], f["value"])])
                for id, each in zip(ids, fields, strict=True)
            ]


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
