"""Payloads that are one record of Avro, without the header of a file."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from penstock_pipeline.decode.registry import RegistryClient, Schema, split_id
from penstock_pipeline.errors import Undecodable, need
from penstock_pipeline.model import Payload
from penstock_pipeline.values import MAX_PRECISION, Type

Members = Mapping[str, Any]
Decode = Callable[[bytes], Members]


def read_schema(text: str, names: dict[str, Any] | None = None) -> Any:
    """The record of a schema's text, checked; raises ValueError with what is wrong with it.

    ``names`` are types of other schemas, to which those of this one are added.
    """
    fastavro = need("fastavro")
    try:
        schema = fastavro.parse_schema(json.loads(text), named_schemas=names)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except Exception as error:  # It raises many kinds, KeyError and TypeError among them.
        raise ValueError(f"is no schema of Avro: {_said(error)}") from None
    if has_endless_array(schema, _names(schema)):
        raise ValueError("has an array of values without bytes, of which there may be any number")
    return schema


def read_record(text: str) -> Any:
    """As :func:`read_schema`, but the schema has to be a record."""
    schema = read_schema(text)
    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        raise ValueError("is no record: only a record has members")
    return schema


def _names(schema: Any) -> Mapping[str, Any]:
    found = schema.get("__named_schemas") if isinstance(schema, dict) else None
    return found if isinstance(found, Mapping) else {}


def _said(error: Exception) -> str:
    # Where an object is in the memory of the decoder tells nobody anything.
    return re.sub(r" from <.*>$", "", str(error)) or type(error).__name__


# --- decoding ------------------------------------------------------------------------------------


def avro_decoder(payload: Payload, registry: RegistryClient | None = None) -> Decode:
    """A function that gives the members of a record; it raises Undecodable.

    With a registry the value begins with the ID of the writer's schema, and the schema of the file,
    if there is one, is the reader's: the record is brought to that. Then it also raises
    Unavailable. Without a registry, it is the one schema.
    """
    reader = None if payload.schema is None else read_record(payload.schema)
    if registry is None:
        assert reader is not None
        return lambda data: _decoded(data, reader, None)
    writers: dict[int, Any] = {}
    registered = registry

    def decode(data: bytes) -> Members:
        id, body = split_id(data)
        if id not in writers:
            writers[id] = _writer(id, registered.schema(id))
        return _decoded(body, writers[id], reader)

    return decode


def _writer(id: int, schema: Schema) -> Any:
    """The parsed schema of an ID; raises Undecodable if it is none of Avro."""
    if schema.kind != "AVRO":
        raise Undecodable(f"has the schema {id}, which is {schema.kind}, not AVRO")
    names: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            read_schema(text, names)
        return read_schema(schema.text, names)
    except ValueError as error:
        raise Undecodable(f"has the schema {id}, which {error}") from None


def _decoded(data: bytes, writer: Any, reader: Any) -> Members:
    fastavro = need("fastavro")
    source = io.BytesIO(data)
    try:
        found = fastavro.schemaless_reader(source, writer, reader)
    except MemoryError:
        raise Undecodable("is not such Avro: a length is too large") from None
    except Exception as error:  # What broken bytes raise is not said anywhere.
        raise Undecodable(f"is not such Avro: {_said(error)}") from None
    if source.tell() != len(data):
        raise Undecodable(f"has {len(data) - source.tell()} bytes behind its record of Avro")
    if not isinstance(found, dict):
        raise Undecodable("is no record of Avro")
    return found


# --- columns -------------------------------------------------------------------------------------

_TYPES: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "fixed": "binary",
    "string": "string",
    "enum": "string",
}
_LOGICAL: Final = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "time-millis": "string",
    "time-micros": "string",
    "uuid": "string",
}


def columns_of(text: str) -> dict[str, Type]:
    """The members of a record and the types of columns for them; raises ValueError.

    A union of several types is a text, as JSON if it is none.
    """
    schema = read_record(text)
    names = _names(schema)
    return {field["name"]: _type(field["type"], names, ()) for field in schema["fields"]}


def _type(schema: Any, names: Mapping[str, Any], within: tuple[str, ...]) -> Type:
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind != "null"]
        return _type(kinds[0], names, within) if len(kinds) == 1 else Type("string")
    if isinstance(schema, str):
        found = names.get(schema)
        return Type(_TYPES.get(schema, "string")) if found is None else _type(found, names, within)
    kind = schema["type"]
    if kind == "array":
        return Type("array", element=_type(schema["items"], names, within))
    if kind == "map":
        return Type("map", element=_type(schema["values"], names, within))
    if kind in ("record", "error"):
        return _struct(schema, names, within)
    return _logical(schema, names, within)


def _struct(schema: Any, names: Mapping[str, Any], within: tuple[str, ...]) -> Type:
    name = schema["name"]
    if name in within:
        raise ValueError(f"has a record '{name}' within itself, of which no column can be made")
    inner = (*within, name)
    fields = schema["fields"]
    if not fields:
        return Type("string")
    return Type(
        "struct", members=tuple((f["name"], _type(f["type"], names, inner)) for f in fields)
    )


def _logical(schema: Any, names: Mapping[str, Any], within: tuple[str, ...]) -> Type:
    logical, kind = schema.get("logicalType"), schema["type"]
    if logical == "decimal" and schema["precision"] <= MAX_PRECISION:
        return Type("decimal", schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return Type(_LOGICAL[logical])
    if isinstance(kind, str) and kind in _TYPES:
        return Type("string" if logical == "decimal" else _TYPES[kind])
    return _type(kind, names, within)


# --- Schemas of which a few bytes may stand for any number of values -----------------------------

# An array says how many elements follow. If an element takes no bytes (null, or a record of nothing
# else), a value of five bytes can make a decoder build a list of billions.

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
