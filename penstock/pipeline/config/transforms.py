"""The parts ``[[transform]]`` of a pipeline file: SQL, watermarks and deduplication."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from penstock.pipeline.config.durations import duration
from penstock.pipeline.config.table import Table
from penstock.pipeline.model import ENTRIES, Deduplicate, Transform, Watermark

_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def read_transforms(root: Table, folder: Path) -> tuple[Transform, ...]:
    """The transforms in their order; each makes a table that later ones may use."""
    found: list[Transform] = []
    for table in root.tables("transform"):
        names = [ENTRIES, *(transform.name for transform in found)]
        found.append(_transform(table, names, folder))
    return tuple(found)


def _transform(table: Table, before: list[str], folder: Path) -> Transform:
    name = table.needed("name", "the name of the table that is made")
    if name and not _NAME.fullmatch(name):
        table.wrong("name", f"is '{name}'; allowed: letters, digits and _, as SQL has it")
    if name.lower() in (other.lower() for other in before):
        table.wrong("name", f"is '{name}', but there is a table of this name before")
    origin = table.choice("from", before[-1], *before)
    sql, line = _sql(table, origin, folder)
    watermark = _watermark(table)
    deduplicate = _deduplicate(table, watermark)
    table.end()
    return Transform(name, origin, sql, line, watermark, deduplicate)


def _sql(table: Table, origin: str, folder: Path) -> tuple[str, int]:
    """The statement, and the line of the pipeline file where it begins, 0 if it is in another."""
    sql, file = table.take("sql", str), table.text("file")
    if sql is not None and file is not None:
        table.wrong("file", "is given beside 'sql': only one of them")
    if file is not None:
        return _read(table, folder / file), 0
    if sql is None:
        if not (table.has("watermark") or table.has("deduplicate")):
            table.wrong("", "does nothing: give 'sql', 'file', 'watermark' or 'deduplicate'")
        return f"SELECT * FROM {origin}", 0
    if not sql.strip():
        table.wrong("sql", "is empty")
    return sql.strip().rstrip(";"), table.line("sql")


def _read(table: Table, file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        table.wrong("file", f"can't read '{file}': {why}")
        return ""
    if not text.strip():
        table.wrong("file", f"'{file}' is empty")
    return text.strip().rstrip(";")


def _watermark(table: Table) -> Watermark | None:
    given = table.table("watermark")
    if given is None:
        return None
    column = given.needed("column", "a column of the type timestamp")
    delay = given.needed("delay", "how late a row may come, as '10 minutes'")
    if delay:
        given.note_if_bad("delay", lambda: duration(delay))
    given.end()
    return Watermark(column, delay)


def _deduplicate(table: Table, watermark: Watermark | None) -> Deduplicate | None:
    given = table.table("deduplicate")
    if given is None:
        return None
    keys = given.names("keys")
    if not keys:
        given.wrong("keys", "is missing: the columns by which rows are the same")
    if watermark is None:
        given.wrong("", "needs 'watermark' beside it, which says for how long keys are remembered")
    given.end()
    return Deduplicate(keys)
