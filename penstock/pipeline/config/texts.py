"""Tables of the file whose keys another program knows, as the options of a storage."""

from __future__ import annotations

from penstock.pipeline.config.table import Table


def texts(table: Table | None) -> dict[str, str]:
    """All keys of a table with their values as texts; values of other kinds are problems.

    Tables inside it are names with dots: ``s3.region`` may be written without quotes.
    """
    found: dict[str, str] = {}
    for key, value in (table.rest() if table else {}).items():
        assert table is not None
        if isinstance(value, dict):
            inner = texts(Table(value, (*table.path, key), table.findings))
            found |= {f"{key}.{name}": text for name, text in inner.items()}
        elif isinstance(value, str):
            found[key] = table.expanded(key, value) or ""
        elif isinstance(value, bool | int):
            found[key] = str(value).lower()
        else:
            table.wrong(key, f"is {value!r}; allowed: text in quotes, a whole number, true, false")
    return found
