"""Which schemas of Avro let a few bytes stand for any number of values.

An array says how many elements follow. If an element takes no bytes (null, or a record of nothing
else), a value of five bytes can make a decoder build a list of billions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Names = Mapping[str, Any]


def has_endless_array(schema: Any, names: Names) -> bool:
    """Whether a parsed schema has an array somewhere whose elements take no bytes."""
    arrays = (s for s in _all(schema) if isinstance(s, Mapping) and s.get("type") == "array")
    return any(_is_empty(array["items"], names, ()) for array in arrays)


def _all(schema: Any) -> Iterator[Any]:
    """A schema and those within it; what is named elsewhere is looked at there."""
    yield schema
    if isinstance(schema, list):
        inner = schema
    elif isinstance(schema, Mapping):
        inner = [schema[key] for key in ("type", "items", "values") if key in schema]
        inner += [field["type"] for field in schema.get("fields", ())]
    else:
        inner = []
    for each in inner:
        yield from _all(each)


def _is_empty(schema: Any, names: Names, within: tuple[str, ...]) -> bool:
    """Whether values of a schema take no bytes; those of a union have their number at least."""
    if isinstance(schema, str):
        found = names.get(schema)
        return schema == "null" if found is None else _is_empty(found, names, within)
    if not isinstance(schema, Mapping):
        return False
    kind = schema["type"]
    if kind == "fixed":
        return bool(schema["size"] == 0)
    if kind in ("record", "error"):
        name = str(schema["name"])
        # A record that holds itself, and nothing else, has no values at all.
        if name in within:
            return True
        return all(_is_empty(f["type"], names, (*within, name)) for f in schema["fields"])
    return kind == "null" if isinstance(kind, str) else _is_empty(kind, names, within)
