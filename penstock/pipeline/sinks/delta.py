"""Sink ``delta``: a table of Delta Lake, written by the driver with the package ``deltalake``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.pipeline.errors import NotWritable
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.sinks.table import (
    EVOLVE,
    FREEZE,
    Changes,
    check_changes,
    collect,
    read_changes,
    run_only,
)
from penstock.pipeline.toml_file import Table, duration, resolve, size, texts

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable
    from pyspark.sql import DataFrame

FILE_SIZE: Final = 128 << 20
COMPACT_EVERY: Final = 50
_SIZE_PROPERTY: Final = "delta.targetFileSize"


@dataclass(frozen=True)
class DeltaSink(Sink):
    """A table of Delta Lake; ``options`` are those of its storage.

    ``schema`` says whether the table may get columns. After ``compact_every`` batches small files
    are merged into ones of ``file_size`` bytes, and files that are older than ``retain_s`` and no
    longer part of the table are removed.
    """

    changes: Changes = field(default_factory=Changes)
    schema: str = "evolve"
    file_size: int = FILE_SIZE
    compact_every: int = COMPACT_EVERY
    retain_s: float | None = None

    kind = "delta"
    output_modes = ("append", "update")
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once, if no other consumer claims entries of a batch",
    }
    packages: ClassVar = ("deltalake",)
    collects = True

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The table's folder, how rows change it, and how its files are kept."""
        path = table.needed("path", "the folder of the table, or its URL, as s3://bucket/table")
        sink = cls(
            *(common.name, common.origin, resolve(path, around.folder), common.output_mode),
            partition_by=table.names("partition_by"),
            changes=read_changes(table, common),
            schema=table.choice("schema", EVOLVE, EVOLVE, FREEZE),
            file_size=table.parsed("file_size", size, FILE_SIZE),
            compact_every=table.whole("compact_every", COMPACT_EVERY, 0) or 0,
            retain_s=table.parsed("retain", _seconds, None),
            options=texts(table.table("storage")),
        )
        table.end()
        return sink

    @property
    def destination(self) -> str:
        """The folder, and how rows change it."""
        return f"delta {self.place}{self.changes.describe()}"

    @property
    def folder(self) -> str | None:
        """The folder."""
        return self.place or None

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for columns that don't exist or can't be written."""
        super().check(frame)
        check_changes(frame, self, self.changes)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Writes a batch in one commit, which carries query and batch.

        A batch that the table has is not written again.
        """
        with self._errors():
            if self._has(self._table(), batch):
                if not batch.ordered:
                    run_only(frame)
            else:
                self._write(collect(frame, self, self.changes), batch)
            if self.compact_every and (batch.number + 1) % self.compact_every == 0:
                self._compact()

    def _table(self) -> DeltaTable | None:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.place, self._storage):
            return None
        return DeltaTable(self.place, storage_options=self._storage)

    @property
    def _storage(self) -> dict[str, str] | None:
        return dict(self.options) or None

    def _has(self, table: DeltaTable | None, batch: Batch) -> bool:
        """Whether the table holds the batch, by the transactions in its log."""
        if table is None:
            return False
        last = table.transaction_version(self._application(batch))
        return last is not None and last >= batch.number

    def _application(self, batch: Batch) -> str:
        return f"{batch.query}/{self.name}"

    def _commit(self, batch: Batch) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        return CommitProperties(
            {"penstock.query": self._application(batch), "penstock.batch": str(batch.number)},
            app_transactions=[Transaction(self._application(batch), batch.number)],
        )

    def _write(self, rows: pa.Table, batch: Batch) -> None:
        from penstock.pipeline.sinks.arrow import fitted, plain, split

        if not len(rows):
            return
        rows = plain(rows)
        if not self.changes.is_keyed:
            table, rows = self._prepared(rows)
            self._append(table, rows, batch)
            return
        written, removed = split(rows, self.changes, self.name)
        table, written = self._prepared(written)
        removed = fitted(removed, _schema(table), self.schema, self.name).rows
        self._merge(table, written, removed, batch)

    def _prepared(self, rows: pa.Table) -> tuple[DeltaTable, pa.Table]:
        """The table, with all columns of the rows, and the rows in its types.

        Making the table and adding columns are commits of their own, which a repetition finds done.
        """
        from deltalake import DeltaTable, Field

        from penstock.pipeline.sinks.arrow import fitted

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

        from penstock.pipeline.sinks.arrow import completed

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

        from penstock.pipeline.sinks.arrow import named
        from penstock.pipeline.sinks.table import REMOVE

        written = written.append_column(REMOVE, pa.array([False] * len(written)))
        removed = removed.append_column(REMOVE, pa.array([True] * len(removed)))
        source = pa.concat_tables([written, removed], promote_options="default")
        keys = named(source, self.changes.keys)
        merge = table.merge(
            source,
            " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys),
            source_alias="s",
            target_alias="t",
            commit_properties=self._commit(batch),
        ).when_matched_delete(f"s.{REMOVE}")
        if len(written):
            condition = f"NOT s.{REMOVE}"
            merge = merge.when_matched_update_all(condition, except_cols=[REMOVE])
            merge = merge.when_not_matched_insert_all(condition, except_cols=[REMOVE])
        merge.execute()
        self._note(batch)

    def _note(self, batch: Batch) -> None:
        """Notes down a batch that changed no row, for which a merge makes no commit."""
        table = self._table()
        assert table is not None, "it has just been written"
        if not self._has(table, batch):
            table.create_write_transaction(
                *([], "append", table.schema(), list(self.partition_by)),
                commit_properties=self._commit(batch),
            )

    def _compact(self) -> None:
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
    def _errors(self) -> Iterator[None]:
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
            raise NotWritable(f"sink '{self.name}': {_line(error)}") from None
        except (CommitFailedError, DeltaError) as error:
            raise self.error(_line(error)) from None


def _schema(table: DeltaTable) -> Any:
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)


def _seconds(text: str) -> float:
    seconds = duration(text)
    if seconds < 3600:
        raise ValueError(
            f"is '{text}'; allowed: at least 1 hour, so that no reader loses its files"
        )
    return seconds
