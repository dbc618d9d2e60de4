"""``penstock import FILE.rdb``: what is in an RDB file, sent to a server with RESTORE.

The whole file is read and verified before anything is sent, so that nothing of a damaged one gets
to the target; then it is read again, as it may be larger than memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from penstock.client.connection import ServerConnection, readable
from penstock.client.errors import ClientError, CommandRefused
from penstock.migration.report import StreamOutcome, SummaryRow, left_out, print_summary
from penstock.migration.runner import MigrationOptions
from penstock.terminal import plural, shown
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.keyspace.glob import matches
from storage.rdb import codes
from storage.rdb.read import Item, Key, LibraryCode, read_rdb
from storage.rdb.source import DamagedRDB, Source
from storage.rdb.write import dump
from storage.types.kinds import STREAM

_CHUNK: Final = 1024 * 1024
_IN_THE_WAY: Final = "the target has something else there; --replace puts the file's in its place"


class _FileFailed(ClientError):
    """The file cannot be read; the text says why."""


class _Contents:
    """The contents of a file, by what becomes of them."""

    def __init__(self) -> None:
        self.others: defaultdict[str, list[bytes]] = defaultdict(list)
        """Keys of types that are left out, by type."""
        self.elsewhere: Counter[int] = Counter()
        """How many keys are in databases that are left out."""
        self.libraries = 0
        self.wanted: Counter[int] = Counter()
        """How many keys are to be copied, by database."""


def run(options: MigrationOptions, console: Console) -> bool:
    """Copies what is wanted; whether all of it is on the target then. Raises
    :class:`ClientError`."""
    contents = _look_through(options)
    _list_left_out(contents, options, console)
    rows: list[SummaryRow] = []
    fine = True
    for db in sorted(contents.wanted):
        number = (options.target.db or 0) if options.databases is None else db
        with ServerConnection("target", options.target, number) as target, readable(target):
            console.print(f"{options.source} -> {target.name}", highlight=False, markup=False)
            copying = _Copying(options, db, target)
            copying.run()
            copying.tell_of_values(console)
            rows += copying.rows
            fine &= copying.values_fine
    print_summary(console, rows)
    return fine and all(row.fine for row in rows)


def _items(path: str) -> Iterator[Item]:
    try:
        with Path(path).open("rb") as file:
            chunks = iter(lambda: file.read(_CHUNK), b"")
            yield from read_rdb(Source(chunks), StreamLimits())
    except DamagedRDB as error:
        raise _FileFailed(f"{path}: damaged {error}; nothing was copied") from None
    except OSError as error:
        raise _FileFailed(f"{path}: {error.strerror}") from None


def _is_in(db: int, options: MigrationOptions) -> bool:
    """Whether a database of the file is to be copied."""
    if options.databases is None:
        return db == 0
    return not options.databases or db in options.databases


def _is_wanted(key: Key, options: MigrationOptions) -> bool:
    """Whether a key is to be copied."""
    return (
        _is_in(key.db, options)
        and any(matches(glob, key.key) for glob in options.globs)
        and key.value is not None
        and (key.kind == STREAM.name or key.kind in options.copied_kinds)
    )


def _look_through(options: MigrationOptions) -> _Contents:
    contents = _Contents()
    for item in _items(str(options.source)):
        if isinstance(item, LibraryCode):
            contents.libraries += 1
        elif not isinstance(item, Key):
            continue
        elif _is_wanted(item, options):
            contents.wanted[item.db] += 1
        elif not _is_in(item.db, options):
            contents.elsewhere[item.db] += 1
        elif any(matches(glob, item.key) for glob in options.globs):
            contents.others[item.kind].append(item.key)
    return contents


def _list_left_out(contents: _Contents, options: MigrationOptions, console: Console) -> None:
    lines = left_out(contents.others)
    lines += [
        f"left out: {plural(count, 'key')} of database {db} (--db {db} copies them)"
        for db, count in sorted(contents.elsewhere.items())
    ]
    if contents.libraries:
        lines.append("left out: libraries of functions (FUNCTION LOAD takes their code)")
    for line in lines:
        console.print(line, highlight=False, markup=False)


class _Copying:
    """The work on one database of the file."""

    def __init__(self, options: MigrationOptions, db: int, target: ServerConnection) -> None:
        self.rows: list[SummaryRow] = []
        """The rows of streams in the summary."""
        self._options = options
        self._db = db
        self._target = target
        self._values: Counter[StreamOutcome] = Counter()
        self._remarks: list[str] = []

    def run(self) -> None:
        """Copies what is wanted of the database."""
        for item in _items(str(self._options.source)):
            if isinstance(item, Key) and item.db == self._db and _is_wanted(item, self._options):
                self._take(item)

    @property
    def values_fine(self) -> bool:
        """Whether all values but streams are there."""
        return not self._remarks

    def tell_of_values(self, console: Console) -> None:
        """Prints what became of them, if there were any."""
        if not self._values:
            return
        done = "to be copied" if self._options.dry_run else "there"
        count = self._values[StreamOutcome.EQUAL] + self._values[StreamOutcome.PLANNED]
        only_strings = self._options.strings and not self._options.values
        total = plural(self._values.total(), "string" if only_strings else "value")
        console.print(f"{total}: {count:,} {done}", highlight=False, markup=False)
        for remark in self._remarks:
            console.print(remark, highlight=False, markup=False)

    def _take(self, key: Key) -> None:
        outcome, remark = self._restore(key)
        if not isinstance(key.value, Stream):
            self._values[outcome] += 1
            if outcome in (StreamOutcome.REFUSED, StreamOutcome.FAILED):
                self._remarks.append(f"{shown(key.key)}: {remark}")
            return
        groups = key.value.groups.values()
        prefix = "" if self._options.databases is None else f"{self._db}: "
        length = key.value.log.length
        self.rows.append(
            SummaryRow(
                prefix + shown(key.key),
                outcome,
                remark,
                length,
                len(groups),
                sum(len(group.pending) for group in groups),
                length if outcome is StreamOutcome.EQUAL and not remark else 0,
            )
        )

    def _restore(self, key: Key) -> tuple[StreamOutcome, str]:
        """Sends a key; what came of it, and what there is to say of that."""
        assert key.value is not None
        payload = dump(key.value)
        try:
            if not self._options.replace and self._target.call("EXISTS", key.key):
                if self._target.call("DUMP", key.key) == payload:
                    return StreamOutcome.EQUAL, "there already"
                return StreamOutcome.REFUSED, _IN_THE_WAY
            if self._options.dry_run:
                return StreamOutcome.PLANNED, "would be copied"
            self._send(key, payload)
        except CommandRefused as error:
            return StreamOutcome.FAILED, str(error)
        return StreamOutcome.EQUAL, ""

    def _send(self, key: Key, payload: bytes) -> None:
        """Restores a key; a server that knows no active-times of consumers gets none."""
        words = (str(key.expires_at or 0).encode(), payload)
        options = (b"ABSTTL", b"REPLACE") if self._options.replace else (b"ABSTTL",)
        try:
            self._target.call(b"RESTORE", key.key, *words, *options)
        except CommandRefused as error:
            if "version or checksum" not in str(error):
                raise
            assert key.value is not None
            older = dump(key.value, codes.REDIS_7_0)
            self._target.call(b"RESTORE", key.key, words[0], older, *options)
