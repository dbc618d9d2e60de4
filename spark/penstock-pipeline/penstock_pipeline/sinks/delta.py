"""Sink ``delta``: a table of Delta Lake, written by the driver with the package ``deltalake``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.sinks.changes import REMOVE, read_changes
from penstock_pipeline.sinks.table import LakeSink, first_line, not_above
from penstock_pipeline.toml_file import Names, Parsed, Place, Table, Texts, duration
from pyspark_redis_streams.batches import BatchMark

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

_SIZE_PROPERTY: Final = "delta.targetFileSize"
_END: Final = "/end"
"""What the transaction with the checksum of a batch's end is called behind that of its number."""

_LOOKED_AT: Final = 1000
"""Among how many last commits the one of a batch is looked for."""


def _retention(text: str) -> float:
    """The seconds of a duration; raises ValueError for one that is too short."""
    seconds = duration(text)
    if seconds < 3600:
        raise ValueError(
            f"is '{text}'; allowed: at least 1 hour, so that no reader loses its files"
        )
    return seconds


@dataclass(frozen=True)
class DeltaSink(LakeSink):
    """A table of Delta Lake; ``options`` are those of its storage.

    When small files are merged, those that are older than ``retain_s`` and no longer part of the
    table are removed.
    """

    retain_s: float | None = None

    kind = "delta"
    keys = (
        Place("path", what="the folder of the table, or its URL, as s3://bucket/table"),
        Names("partition_by"),
        *LakeSink.lake_keys,
        Parsed("retain", parse=_retention),
        Texts("storage"),
    )
    packages: ClassVar = ("deltalake",)

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file."""
        changes, given = read_changes(table, common), table.section(cls.keys)
        place, storage, retain = given.pop("path"), given.pop("storage"), given.pop("retain")
        name, origin, mode = common
        return cls(
            *(name, origin, place, mode),
            options=storage,
            changes=changes,
            retain_s=retain,
            **given,
        )

    @property
    def destination(self) -> str:
        """The folder, and how rows change it."""
        return f"delta {self.place}{self.changes.describe()}"

    @property
    def folder(self) -> str | None:
        """The folder."""
        return self.place or None

    def open(self) -> Any:
        """The table, None if it is not there."""
        return self._table()

    def _table(self) -> DeltaTable | None:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.place, self._storage):
            return None
        return DeltaTable(self.place, storage_options=self._storage)

    @property
    def _storage(self) -> dict[str, str] | None:
        return dict(self.options) or None

    def noted(self, opened: Any, batch: Batch) -> BatchMark | None:
        """The last batch that the table holds, by the transactions in its log."""
        application = self._application(batch)
        number = opened and opened.transaction_version(application)
        if number is None:
            return None
        checksum = opened.transaction_version(application + _END)
        if not checksum or number < batch.number:
            return BatchMark(number)
        # The log may have lost the commit since then, and with it only the text for people.
        noted = {"penstock.query": application, "penstock.batch": str(number)}
        commits = [each for each in opened.history(_LOOKED_AT) if noted.items() <= each.items()]
        return BatchMark(number, commits[0]["penstock.end"] if commits else f"{checksum:08x}")

    def _application(self, batch: Batch) -> str:
        return f"{batch.query}/{self.name}"

    def _commit(self, batch: Batch) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        application = self._application(batch)
        noted = {"penstock.query": application, "penstock.batch": str(batch.number)}
        # A transaction holds a number, and stays when the log of commits is cut off.
        checksum = int(batch.mark.checksum or "0", 16)
        return CommitProperties(
            {**noted, "penstock.end": batch.end},
            app_transactions=[
                Transaction(application, batch.number),
                Transaction(application + _END, checksum),
            ],
        )

    def commit(self, opened: Any, rows: pa.Table, removed: pa.Table | None, batch: Batch) -> None:
        """Adds or replaces rows, and removes others, in one commit."""
        from penstock_pipeline.sinks.arrow import fitted

        table, rows = self._prepared(rows)
        if removed is None:
            self._append(table, rows, batch)
            return
        removed = fitted(removed, _schema(table), self.schema, self.name).rows
        self._merge(table, rows, removed, batch)

    def _prepared(self, rows: pa.Table) -> tuple[DeltaTable, pa.Table]:
        """The table, with all columns of the rows, and the rows in its types.

        Making the table and adding columns are commits of their own, which a repetition finds done.
        """
        from deltalake import DeltaTable, Field

        from penstock_pipeline.sinks.arrow import fitted

        table = self._table()
        if table is None:
            table = DeltaTable.create(
                *(self.place, rows.schema),
                mode="ignore",
                partition_by=list(self.partition_by),
                configuration={_SIZE_PROPERTY: str(self.file_size)},
                storage_options=self._storage,
            )
        self._check_partitions(table)
        rows, added = fitted(rows, _schema(table), self.schema, self.name)
        if added:
            table.alter.add_columns([Field.from_arrow(field) for field in added])
            table.update_incremental()
        if table.metadata().configuration.get(_SIZE_PROPERTY) != str(self.file_size):
            table.alter.set_table_properties({_SIZE_PROPERTY: str(self.file_size)})
            table.update_incremental()
        return table, rows

    def _check_partitions(self, table: DeltaTable) -> None:
        found = tuple(name.lower() for name in table.metadata().partition_columns)
        if self.partition_by and found != tuple(name.lower() for name in self.partition_by):
            raise NotWritable(
                f"sink '{self.name}': the table at {self.place} is partitioned by "
                f"{', '.join(found) or 'nothing'}, and partition_by says "
                f"{', '.join(self.partition_by)}"
            )

    def _append(self, table: DeltaTable, rows: pa.Table, batch: Batch) -> None:
        from deltalake import write_deltalake

        from penstock_pipeline.sinks.arrow import completed

        write_deltalake(
            table,
            completed(rows, _schema(table), self.name),
            mode="append",
            target_file_size=self.file_size,
            commit_properties=self._commit(batch),
        )

    def _merge(self, table: DeltaTable, written: pa.Table, removed: pa.Table, batch: Batch) -> None:
        """Replaces, adds and removes rows in one commit."""
        import pyarrow as pa

        from penstock_pipeline.sinks.arrow import named

        written = written.append_column(REMOVE, pa.array([False] * len(written)))
        removed = removed.append_column(REMOVE, pa.array([True] * len(removed)))
        source = pa.concat_tables([written, removed], promote_options="default")
        keys = named(source, self.changes.keys)
        order = map(_quoted, named(source, self.changes.order_by))
        last = not_above([(f"t.{column}", f"s.{column}") for column in order])
        merge = table.merge(
            source,
            " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys),
            source_alias="s",
            target_alias="t",
            commit_properties=self._commit(batch),
        ).when_matched_delete(f"s.{REMOVE} AND {last}")
        if len(written):
            kept = f"NOT s.{REMOVE}"
            merge = merge.when_matched_update_all(f"{kept} AND {last}", except_cols=[REMOVE])
            merge = merge.when_not_matched_insert_all(kept, except_cols=[REMOVE])
        merge.execute()
        self._note(batch)

    def _note(self, batch: Batch) -> None:
        """Notes down a batch that changed no row, for which a merge makes no commit."""
        table = self._table()
        assert table is not None, "it has just been written"
        if table.transaction_version(self._application(batch)) != batch.number:
            table.create_write_transaction(
                *([], "append", table.schema(), list(self.partition_by)),
                commit_properties=self._commit(batch),
            )

    def compact(self, opened: Any) -> None:
        """Merges small files, and removes old ones; leaves it to the next time on a conflict."""
        from deltalake.exceptions import CommitFailedError

        table = self._table()
        if table is None:
            return
        try:
            table.optimize.compact(target_size=self.file_size)
            if self.retain_s is not None:
                table.vacuum(
                    int(self.retain_s / 3600), dry_run=False, enforce_retention_duration=False
                )
        except CommitFailedError:
            return

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Says of what the package raises whether another attempt may help."""
        from deltalake.exceptions import (
            CommitFailedError,
            DeltaError,
            DeltaProtocolError,
            SchemaMismatchError,
        )

        try:
            yield
        except (SchemaMismatchError, DeltaProtocolError) as error:
            raise self.not_writable(error) from None
        except (CommitFailedError, DeltaError) as error:
            raise self.error(first_line(error)) from None
        except OSError as error:
            raise self.error(_refusal(str(error))) from None


_COLOUR: Final = re.compile("\x1b\\[\\d+m|↳")
_SAID: Final = re.compile(r"<Code>(.+?)</Code><Message>(.+?)</Message>")


def _refusal(text: str) -> str:
    """What a storage says, of a text that tells in coloured lines what led to that."""
    lines = [_COLOUR.sub("", line).strip() for line in text.strip().splitlines()]
    said = _SAID.search(text)
    last = ": ".join(said.groups()) if said else lines[-1]
    return f"{lines[0]}: {last}" if last != lines[0] else last


def _schema(table: DeltaTable) -> Any:
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"
