"""Merges small files of an Iceberg table, which pyiceberg has no call for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.table import Table


def compact(table: Table, file_size: int) -> int:
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


def _small(table: Table, file_size: int) -> list[Any]:
    """The files to merge: at least two of a partition."""
    found: dict[Any, list[Any]] = {}
    for task in table.scan().plan_files():
        is_current = task.file.spec_id == table.spec().spec_id
        if task.file.file_size_in_bytes < file_size / 2 and not task.delete_files and is_current:
            found.setdefault(task.file.partition, []).append(task)
    return [task for tasks in found.values() if len(tasks) > 1 for task in tasks]
