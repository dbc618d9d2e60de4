"""Sink ``iceberg``: a table of Apache Iceberg, written by the driver with ``pyiceberg``."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.sinks.changes import FREEZE, UPSERT, read_changes
from penstock_pipeline.sinks.table import LakeSink, first_line
from penstock_pipeline.toml_file import Key, Names, Table, Texts, matching, resolve
from pyspark_redis_streams.batches import BatchMark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table as IcebergTable


_SIZE_PROPERTY: Final = "write.target-file-size-bytes"
_PROPERTIES: Final = {
    # Each batch adds a manifest and a file of metadata: without these they are never fewer.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


@dataclass(frozen=True)
class IcebergSink(LakeSink):
    """A table of a catalog, whose properties are ``options``; ``place`` is its name in it."""

    transforms: tuple[Partition, ...] = ()

    kind = "iceberg"
    keys = (
        Key(
            "table",
            what="the table in the catalog, as 'shop.customers'",
            check=matching(r"[^.\s]+(\.[^.\s]+)+", "names with dots, as 'shop.customers'"),
        ),
        Names("partition_by"),
        *LakeSink.lake_keys,
        Texts("catalog"),
    )
    packages: ClassVar = ("pyiceberg", "sqlalchemy")
    refused_types = ("interval", "void")

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file."""
        changes, given = read_changes(table, common), table.section(cls.keys)
        transforms = _partitions(table, given.pop("partition_by"))
        place, catalog = given.pop("table"), _catalog(table, given.pop("catalog"))
        return cls(
            *(common.name, common.origin, place, common.output_mode),
            partition_by=tuple(each.column for each in transforms),
            transforms=transforms,
            options=catalog,
            changes=changes,
            **given,
        )

    @property
    def destination(self) -> str:
        """The table, its catalog, and how rows change it."""
        catalog = self.options.get("name", "default")
        return f"iceberg {self.place} of the catalog '{catalog}'{self.changes.describe()}"

    @property
    def writes_files(self) -> bool:
        """True: the files are in the warehouse of the catalog."""
        return True

    def open(self) -> Any:
        """The catalog."""
        from pyiceberg.catalog import load_catalog

        properties = dict(self.options)
        file = properties.get("uri", "").partition("sqlite:///")[2]
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        return load_catalog(properties.pop("name", "default"), **properties)

    def _properties(self, batch: Batch) -> tuple[str, str]:
        query = f"{batch.query}.{self.name}"
        return f"penstock.batch.{query}", f"penstock.end.{query}"

    def noted(self, opened: Any, batch: Batch) -> BatchMark | None:
        """The last batch that the table holds.

        Its properties say so, and not its snapshots, which may be removed as they age.
        """
        if not opened.table_exists(self.place):
            return None
        properties = opened.load_table(self.place).properties
        number, end = map(properties.get, self._properties(batch))
        return None if number is None else BatchMark(int(number), end or "")

    def commit(self, opened: Any, rows: pa.Table, removed: pa.Table | None, batch: Batch) -> None:
        """Removes the rows of all keys, adds the new ones, and notes the batch, all in one."""
        from penstock_pipeline.sinks.arrow import completed

        table, rows = self._prepared(opened, rows)
        noted = {"penstock.query": f"{batch.query}/{self.name}"}
        noted["penstock.batch"] = str(batch.number)
        with table.transaction() as transaction:
            if removed is not None:
                rows, keys = self._last(table, rows, removed)
                # Nothing to remove is nothing to be warned of: most rows of an upsert are new.
                warnings.filterwarnings("ignore", "Delete operation did not match any records")
                if len(keys):
                    transaction.delete(has_keys(keys), snapshot_properties=noted)
            if len(rows):
                whole = completed(rows, table.schema().as_arrow(), self.name)
                transaction.append(whole, snapshot_properties=noted)
            marks = (str(batch.number), batch.end)
            transaction.set_properties(dict(zip(self._properties(batch), marks, strict=True)))

    def _last(self, table: IcebergTable, rows: pa.Table, removed: pa.Table) -> list[pa.Table]:
        """The rows of which the table has no higher one, and their keys with those to remove."""
        import pyarrow as pa

        from penstock_pipeline.sinks.arrow import fitted, named, not_below

        removed = fitted(removed, table.schema().as_arrow(), self.schema, self.name).rows
        both = pa.concat_tables([removed, rows.select(removed.column_names).cast(removed.schema)])
        keys = both.select(named(both, self.changes.keys))
        if keys.num_columns < both.num_columns:
            stored = table.scan(has_keys(keys), selected_fields=tuple(both.column_names)).to_arrow()
            is_last = not_below(both, stored, self.changes, self.name)
            rows, keys = rows.filter(is_last[len(removed) :]), keys.filter(is_last)
        return [rows, keys]

    def _prepared(self, catalog: Catalog, rows: pa.Table) -> tuple[IcebergTable, pa.Table]:
        """The table, with all columns of the rows, and the rows in its types.

        Making the table and adding columns are commits of their own, which a repetition finds done.
        """
        import pyarrow as pa

        from penstock_pipeline.sinks.arrow import fitted

        if not catalog.table_exists(self.place):
            self._create(catalog, rows.schema)
        table = catalog.load_table(self.place)
        self._check_partitions(table)
        rows, added = fitted(rows, table.schema().as_arrow(), self.schema, self.name)
        if added:
            with table.update_schema() as update:
                update.union_by_name(pa.schema(added))
        if table.properties.get(_SIZE_PROPERTY) != str(self.file_size):
            with table.transaction() as transaction:
                transaction.set_properties({_SIZE_PROPERTY: str(self.file_size)})
        target = table.schema().as_arrow()
        if self.changes.mode == UPSERT:
            self._check_whole(rows, target)
        # Types that Iceberg does not have, as smallint, are wider in the table.
        return table, fitted(rows, target, FREEZE, self.name).rows

    def _create(self, catalog: Catalog, schema: pa.Schema) -> None:
        catalog.create_namespace_if_not_exists(self.place.rpartition(".")[0])
        with catalog.create_table_transaction(
            self.place, schema, properties={**_PROPERTIES, _SIZE_PROPERTY: str(self.file_size)}
        ) as transaction:
            if self.transforms:
                names = {name.lower(): name for name in schema.names}
                with transaction.update_spec() as spec:
                    for each in self.transforms:
                        spec.add_field(names[each.column.lower()], each.make())

    def _check_partitions(self, table: IcebergTable) -> None:
        found = [each.of_iceberg + " of " + each.column for each in partitions_of(table)]
        wanted = [each.of_iceberg + " of " + each.column for each in self.transforms]
        if wanted and [text.lower() for text in found] != [text.lower() for text in wanted]:
            raise NotWritable(
                f"sink '{self.name}': table {self.place} is partitioned by "
                f"{', '.join(found) or 'nothing'}, and partition_by says {', '.join(wanted)}"
            )

    def _check_whole(self, rows: pa.Table, target: pa.Schema) -> None:
        """An upsert replaces whole rows: a column that they lack would lose its values."""
        lacking = [name for name in target.names if name not in rows.column_names]
        if lacking:
            raise NotWritable(
                f"sink '{self.name}': table '{self.origin}' lacks columns of the Iceberg table, "
                f"which an upsert would empty: {', '.join(lacking)}; select them, too"
            )

    def compact(self, opened: Any) -> None:
        """Merges small files; leaves it to the next time on a conflict."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        try:
            if opened.table_exists(self.place):
                compact(opened.load_table(self.place), self.file_size)
        except (CommitFailedException, ValidationException):
            return

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Names the sink in what the package raises."""
        from pyiceberg import exceptions
        from sqlalchemy.exc import SQLAlchemyError

        own = [e for e in vars(exceptions).values() if isinstance(e, type)]
        try:
            yield
        except exceptions.NotInstalledError as error:
            raise self.not_writable(error) from None
        except (*own, SQLAlchemyError, OSError) as error:
            raise self.error(first_line(error)) from None


def _partitions(table: Table, given: Sequence[str]) -> tuple[Partition, ...]:
    found = []
    for text in given:
        try:
            found.append(partition(text))
        except ValueError as error:
            table.wrong("partition_by", str(error))
    return tuple(found)


def _catalog(table: Table, properties: dict[str, str]) -> dict[str, str]:
    """The properties of the catalog, with its own files beside the pipeline's file."""
    if not table.has("catalog"):
        table.wrong(
            "",
            "'catalog' is missing: a table with the properties of the catalog, as { type = 'sql', "
            "uri = 'sqlite:///lake/catalog.db', warehouse = 'lake' }",
        )
    for key, prefix in (("uri", "sqlite:///"), ("warehouse", "")):
        value = properties.get(key, "")
        if value.startswith(prefix) and value != prefix:
            properties[key] = prefix + resolve(value.removeprefix(prefix), table.findings.folder)
    return properties


# --- Partitions ----------------------------------------------------------------------------------


PLAIN: Final = ("year", "month", "day", "hour")
NUMBERED: Final = ("bucket", "truncate")
ALLOWED: Final = "a column, year(c), month(c), day(c), hour(c), bucket(n, c), truncate(n, c)"


class Partition(NamedTuple):
    """A column, and what is made of its values: nothing (``identity``) or a transform."""

    column: str
    transform: str = "identity"
    number: int = 0

    @property
    def of_iceberg(self) -> str:
        """The transform as Iceberg writes it: ``day``, ``bucket[16]``."""
        return f"{self.transform}[{self.number}]" if self.number else self.transform

    def make(self) -> Any:
        """The transform of pyiceberg."""
        from pyiceberg import transforms

        kind = getattr(transforms, f"{self.transform.capitalize()}Transform")
        return kind(self.number) if self.number else kind()


def partition(text: str) -> Partition:
    """A partition of the file; raises ValueError with what is allowed."""
    found = re.fullmatch(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,()]+?)\s*\)\s*", text)
    if found is None:
        if re.search(r"[(),]", text):
            raise ValueError(f"is '{text}'; allowed: {ALLOWED}")
        return Partition(text.strip())
    name, number, column = found[1].lower(), int(found[2] or 0), found[3]
    if name not in (NUMBERED if number else PLAIN):
        raise ValueError(f"is '{text}'; allowed: {ALLOWED}")
    return Partition(column, name, number)


def partitions_of(table: IcebergTable) -> list[Partition]:
    """How a table is partitioned; the transforms are Iceberg's, with their numbers."""
    names = {field.field_id: field.name for field in table.schema().fields}
    return [
        Partition(names.get(field.source_id, field.name), str(field.transform))
        for field in table.spec().fields
    ]


# --- Rows of keys --------------------------------------------------------------------------------


def has_keys(keys: pa.Table) -> BooleanExpression:
    """The condition for the rows whose values are one of the rows of ``keys``, which has some.

    The column with most values is asked for as a set, so the condition is as short as can be. The
    parts are paired like a tree, because deep conditions end Python's recursion.
    """
    from pyiceberg.expressions import And, EqualTo, In

    names = sorted(keys.column_names, key=lambda name: len(keys[name].unique()))
    *outer, inner = names
    groups: dict[tuple[Any, ...], set[Any]] = {}
    values = zip(*(keys[name].to_pylist() for name in names), strict=True)
    for *before, last in values:
        groups.setdefault(tuple(before), set()).add(last)
    parts = []
    for values_before, last_values in groups.items():
        part: BooleanExpression = In(inner, last_values)
        for name, value in zip(outer, values_before, strict=True):
            part = And(EqualTo(name, value), part)
        parts.append(part)
    return _any(parts)


def _any(parts: list[BooleanExpression]) -> BooleanExpression:
    from pyiceberg.expressions import Or

    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [Or(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


# --- Compaction ----------------------------------------------------------------------------------


def compact(table: IcebergTable, file_size: int) -> int:
    """Merges files of less than half the size, in each partition; how many there were.

    One commit exchanges the files; the rows stay the same. Files with deletions of other programs
    are left alone. Raises CommitFailedException or ValidationException if another program has
    changed one of the files meanwhile.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files

    tasks = _small(table, file_size)
    if not tasks:
        return 0
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    rows = scan.to_table(tasks)
    properties = {"penstock.compacted": str(len(tasks))}
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties=properties).overwrite() as snapshot,
    ):
        for task in tasks:
            snapshot.delete_data_file(task.file)
        for file in _dataframe_to_data_files(table.metadata, rows, table.io):
            snapshot.append_data_file(file)
    return len(tasks)


def _small(table: IcebergTable, file_size: int) -> list[Any]:
    """The files to merge: at least two of a partition."""
    found: dict[Any, list[Any]] = {}
    for task in table.scan().plan_files():
        is_current = task.file.spec_id == table.spec().spec_id
        if task.file.file_size_in_bytes < file_size / 2 and not task.delete_files and is_current:
            found.setdefault(task.file.partition, []).append(task)
    return [task for tasks in found.values() if len(tasks) > 1 for task in tasks]
