"""The part ``[parse]`` of a pipeline file: which columns are made of an entry, and how."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from penstock_pipeline.decode.avro import columns_of, read_record
from penstock_pipeline.decode.patterns import check_pattern
from penstock_pipeline.decode.payload import FORMS
from penstock_pipeline.decode.protobuf import columns_of_message, find_message, read_descriptors
from penstock_pipeline.errors import Unavailable
from penstock_pipeline.model import (
    DROP,
    FAIL,
    FORMATS,
    LETTER,
    MAX_BYTES,
    WARN,
    Column,
    Expectation,
    Parse,
    Payload,
    Registry,
)
from penstock_pipeline.toml_file import (
    Bytes,
    Choice,
    File,
    Flag,
    Key,
    Names,
    Parsed,
    Raw,
    Table,
    Whole,
    duration,
)
from penstock_pipeline.values import ALLOWED, EPOCH_DAYS, EPOCHS, SAME, SIMPLE, is_type
from penstock_pipeline.values import NESTED as NESTED_TYPES

RESERVED: Final = ("stream", "id", "timestamp")
"""Columns that every entry has."""

OWN: Final = ("fields", "_reason", "_bad")
"""Names of columns that parsing uses internally."""


NESTED: Final = ("json", "avro", "protobuf", "debezium")
"""Formats whose values may hold others."""

_WITH_NULLS: Final = (None, "csv", "text")
_BY_PYTHON: Final = ("avro", "protobuf", "debezium")
"""Formats whose values Python converts, which knows no patterns of Spark."""

_TIMES: Final = ("timestamp", "timestamp_ntz")

PARSE: Final = (Names("nulls"), Key("unknown"))
COLUMN: Final = (
    Key("type", what="the type of the column"),
    Key("from"),
    Flag("required", False),
    Key("format"),
)
OTHERWISE: Final = (LETTER, DROP, WARN, FAIL)
"""What may become of an entry that is not as expected, the default first."""


def read_parse(root: Table) -> Parse | None:
    """How entries are parsed; None without a table ``[parse]``."""
    table = root.table("parse")
    if table is None:
        return None
    payload = read_payload(table)
    format = None if payload is None else payload.format
    found = table.read(PARSE)
    nulls, unknown, given = found["nulls"], found["unknown"], table.table("columns")
    if nulls and format not in _WITH_NULLS:
        table.wrong("nulls", f"is for plain fields, csv and text; in {format} a value can be null")
    if given is None and format not in ("avro", "protobuf"):
        table.wrong("columns", 'is missing: a table of columns, each as name = "type"')
    table.end()
    columns = _columns(given, format) if given else ()
    if payload is not None and format in ("avro", "protobuf"):
        columns = check_schema(table, payload, columns if given else None, (*RESERVED, *OWN))
    if unknown is not None:
        _check_unknown(table, unknown, columns, format)
    if payload is not None:
        payload, columns = _fitted(table, payload, columns)
    return Parse(columns, payload, nulls, unknown)


def _check_unknown(table: Table, name: str, columns: Sequence[Column], format: str | None) -> None:
    if format == "text":
        table.wrong("unknown", "is not for format 'text', which is one value")
    elif name.lower() in (*RESERVED, *OWN, *(column.name.lower() for column in columns)):
        table.wrong("unknown", f"is '{name}', but there is a column of this name")


def _fitted(
    table: Table, payload: Payload, columns: tuple[Column, ...]
) -> tuple[Payload, tuple[Column, ...]]:
    """The payload with its header, and the columns as the format has them."""
    if payload.format == "text":
        if len(columns) > 1:
            table.wrong("columns", f"are {len(columns)}; format 'text' is one value, so one column")
        return payload, tuple(replace(column, origin=payload.field) for column in columns)
    if payload.format != "csv":
        return payload, columns
    header = payload.header or tuple(dict.fromkeys(column.origin for column in columns))
    for column in columns:
        if column.origin not in header:
            path = (*table.path, "columns", column.name)
            table.findings.add(path, f"is of '{column.origin}', which 'header' lacks")
    return replace(payload, header=header), columns


def _columns(table: Table, format: str | None) -> tuple[Column, ...]:
    found: dict[str, Column] = {}
    given = table.rest()
    if not given:
        table.wrong("", "names no column")
    for name, value in given.items():
        if name.lower() in RESERVED:
            table.wrong(
                name, f"every entry has a column of this name; write other = {{from = '{name}'}}"
            )
        elif name.lower() in OWN:
            table.wrong(name, f"this name is needed for parsing; write other = {{from = '{name}'}}")
        elif name.lower() in found:
            table.wrong(name, f"is the same as '{found[name.lower()].name}': case is ignored")
        else:
            found[name.lower()] = _column(table, name, value, format)
    if format == "json":
        _check_members(table, tuple(found.values()))
    return tuple(found.values())


def _check_members(table: Table, columns: tuple[Column, ...]) -> None:
    """Reports a member of a JSON object that has two types: it is read once."""
    known: dict[str, Column] = {}
    for column in columns:
        other = known.setdefault(column.origin.lower(), column)
        if other.origin != column.origin:
            table.wrong(
                column.name,
                f"is of the member '{column.origin}', but '{other.name}' of '{other.origin}', "
                "and Spark ignores case",
            )
        elif (other.type.lower(), other.format) != (column.type.lower(), column.format):
            table.wrong(
                column.name,
                f"is {column.what}, but '{other.name}' of the same member is {other.what}",
            )


def _column(table: Table, name: str, value: Any, format: str | None) -> Column:
    if not isinstance(value, dict):
        value = {"type": value}
    given = Table(value, (*table.path, name), table.findings)
    if format == "text" and given.has("from"):
        given.wrong("from", "is not for format 'text', which is one value")
    expect = read_expectation(given, OTHERWISE)
    type_, origin, required, form = given.section(COLUMN).values()
    _check_type(given, type_, format)
    if form is not None:
        _check_format(given, form, type_.lower(), format)
    return Column(name, type_, origin or name, required, form, expect)


_VARYING: Final = re.compile(
    r"\b(?:current_(?:date|timestamp|time)\b|localtimestamp\b|(?:curdate|now|rand|randn|random|uuid)\b"
    r"(?=\s*\())",
    re.IGNORECASE,
)
"""What SQL asks the clock or chance with."""


def read_expectation(table: Table, allowed: tuple[str, ...]) -> Expectation | None:
    """What rows are expected to be; None without ``expect``."""
    condition = Raw("expect").read(table)
    otherwise = Choice("otherwise", allowed[0], allowed=allowed)
    if condition is None:
        if table.has("otherwise"):
            otherwise.read(table)
            table.wrong("otherwise", "needs 'expect' beside it: a condition of SQL")
        return None
    if not condition.strip():
        table.wrong("expect", "is empty")
    if found := _VARYING.search(condition):
        table.wrong(
            "expect",
            f"has '{found[0]}', so that queries and repeated batches would judge otherwise; "
            "compare with 'timestamp', the time in the ID of an entry",
        )
    return Expectation(condition.strip(), otherwise.read(table))


def _check_format(table: Table, form: str, type_: str, format: str | None) -> None:
    epochs = ", ".join(EPOCHS)
    if form in EPOCHS:
        wanted = ("date",) if form == EPOCH_DAYS else _TIMES
        if type_ not in wanted:
            kinds = "the type date" if form == EPOCH_DAYS else f"the types {' and '.join(wanted)}"
            table.wrong("format", f"'{form}' is for {kinds}")
    elif type_ not in ("date", *_TIMES):
        table.wrong("format", "is for the types date and timestamp")
    elif form.startswith("epoch"):
        table.wrong("format", f"is '{form}'; allowed: {epochs}, or a pattern of Spark")
    elif format in _BY_PYTHON:
        table.wrong("format", f"is '{form}'; in {format} allowed: {epochs}")
    elif why := check_pattern(form):
        table.wrong("format", f"is '{form}': {why}")


_OTHER_NAMES: Final = {
    **dict.fromkeys(("varchar", "char", "text", "str", "uuid", "json", "enum"), "string"),
    **dict.fromkeys(("datetime", "timestamptz", "timestamp_ltz", "time", "instant"), "timestamp"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("int8", "tiny"), "tinyint"),
    **dict.fromkeys(("int16",), "smallint"),
    **dict.fromkeys(("int32", "integer32", "int4"), "int"),
    **dict.fromkeys(("int64", "integer64", "bigserial"), "bigint"),
    **dict.fromkeys(("float32",), "float"),
    **dict.fromkeys(("float64", "number"), "double"),
    **dict.fromkeys(("numeric", "dec", "money"), "decimal(p,s)"),
    "bool": "boolean",
}
"""What databases and languages call types, and the type that is meant."""


def _meant(type_: str) -> str:
    """A hint to the type that a text may mean, with a sign before it; empty if there is none."""
    name = type_.partition("(")[0].strip().lower()
    if name == "decimal":
        return "; in decimal(p,s) p counts all digits, up to 38, and s those behind the point"
    close = difflib.get_close_matches(name, (*SAME, *SIMPLE), 1)
    meant = _OTHER_NAMES.get(name) or (SAME.get(close[0], close[0]) if close else "")
    return f"; did you mean '{meant}'?" if meant else ""


def _check_type(table: Table, type_: str, format: str | None) -> None:
    is_nested = format in NESTED
    if type_ and not is_type(type_, is_nested):
        allowed = NESTED_TYPES if is_nested else ALLOWED
        table.wrong("", f"type is '{type_}'; allowed: {allowed}{_meant(type_)}")


# --- The payload ---------------------------------------------------------------------------------


class Header(Key):
    """A list of names, none of which comes twice."""

    def read(self, table: Table) -> Any:
        """The names."""
        given = table.take(self.name, list)
        if given is None:
            return ()
        if not given or not all(isinstance(name, str) and name for name in given):
            table.wrong(self.name, "is not a list of names, in the order of the values")
            return ()
        for name in dict.fromkeys(given):
            if given.count(name) > 1:
                table.wrong(self.name, f"names '{name}' twice")
        return tuple(given)


class Sign(Key):
    """A single sign."""

    def read(self, table: Table) -> Any:
        """The sign, with no reference to the environment replaced."""
        value = table.take(self.name, str)
        if value is None:
            return self.default
        if len(value) != 1 or value in "\r\n" or not value.isascii():
            allowed = "one ASCII character, but for line ends"
            table.wrong(self.name, f"is {value!r}; allowed: {allowed}")
            return self.default
        return value


_OR: Final = "' or '"
_SCHEMAS: Final = {"avro": "schema_file", "protobuf": "descriptor_file"}
_URL: Final = "http[s]://[user:password@]host[:port][/path]"

FORMAT: Final = (Key("json"), Choice("format", allowed=FORMATS), Key("field"))
PACKED: Final = (Choice("compression", allowed=FORMS), Whole("max_bytes", MAX_BYTES, lowest=1))
REGISTRY: Final = (
    Key("registry_user"),
    Key("registry_password"),
    Parsed("registry_timeout", Registry.timeout_s, parse=duration),
    File("registry_ca_file"),
)
OF_FORMATS: Final[dict[str, tuple[Key, ...]]] = {
    "csv": (Header("header"), Sign("delimiter", ","), Sign("quote", '"')),
    "avro": (File("schema_file"), Key("registry"), *REGISTRY),
    "protobuf": (Bytes("descriptor_file"), Key("message"), Key("registry"), *REGISTRY),
}
"""Keys that only some formats have."""


def read_payload(table: Table) -> Payload | None:
    """The field that is decoded, and how; None if columns are made of plain fields."""
    format, field = _format(table)
    _refuse_foreign(table, format)
    compression, max_bytes = _compression(table, format)
    if format is None:
        return None
    if format in _SCHEMAS and not (table.has("registry") or table.has(_SCHEMAS[format])):
        table.wrong("", f"format '{format}' needs '{_SCHEMAS[format]}' or 'registry'")
    given = table.read(OF_FORMATS.get(format, ()))
    signs = {key: given[key] for key in ("header", "delimiter", "quote") if key in given}
    return Payload(
        format,
        field,
        compression,
        max_bytes,
        schema=given.get("schema_file"),
        descriptors=given.get("descriptor_file"),
        message=given.get("message"),
        registry=_registry(table, given) if "registry" in given else None,
        **signs,
    )


def _format(table: Table) -> tuple[str | None, str]:
    json, format, field = table.read(FORMAT).values()
    if json is not None:
        for key in ("format", "field"):
            if table.has(key):
                table.wrong(key, "is given beside 'json', which means format 'json' and its field")
        return "json", json
    if not table.has("format"):
        if field is not None:
            table.wrong("field", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
        return None, ""
    if not table.has("field") and format != "debezium":
        table.wrong("", "'field' is missing: the field that holds the payload")
    return format, field or ""


def _refuse_foreign(table: Table, format: str | None) -> None:
    """Reports keys that other formats have, whose values are not looked at."""
    formats: dict[str, list[str]] = {}
    for other, keys in OF_FORMATS.items():
        for key in keys:
            formats.setdefault(key.name, []).append(other)
    for name, found in formats.items():
        if format not in found and table.has(name):
            table.take(name, object)
            table.wrong(name, f"is for format = '{_OR.join(found)}'")


def _compression(table: Table, format: str | None) -> tuple[str | None, int]:
    given = table.has("compression")
    form, max_bytes = table.read(PACKED).values()
    if given and format is None:
        table.wrong("compression", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
    if table.has("max_bytes") and not given:
        table.wrong("max_bytes", "is for 'compression': how long a value may be when unpacked")
    return form, max_bytes


def _registry(table: Table, given: dict[str, Any]) -> Registry | None:
    if not table.has("registry"):
        for key in REGISTRY:
            if table.has(key.name):
                table.wrong(key.name, "needs 'registry' beside it, the URL")
        return None
    user, password = given["registry_user"], given["registry_password"]
    if (user is None) != (password is None):
        table.wrong("registry_user", "and 'registry_password' belong together")
    url = given["registry"] or ""
    parts = _url(url)
    if parts is None:
        if url:
            table.wrong("registry", f"is not of the right form; allowed: {_URL}")
        return None
    if parts.username is not None and user is None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
    return Registry(address, user, password, given["registry_timeout"], given["registry_ca_file"])


def _url(text: str) -> SplitResult | None:
    """The parts of the URL of a registry; None if it is none."""
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_right and not parts.query and not parts.fragment else None


# --- Schemas in files of their own ---------------------------------------------------------------


def check_schema(
    table: Table, payload: Payload, columns: tuple[Column, ...] | None, taken: tuple[str, ...]
) -> tuple[Column, ...]:
    """The columns, proposed from the schema if there are none; reports what is wrong with either.

    ``taken`` are names in lower case that columns can't have.
    """
    try:
        is_avro = payload.format == "avro"
        schema = _avro(table, payload) if is_avro else _message(table, payload, columns)
        if schema is None:
            nothing = payload.schema is None and payload.descriptors is None
            if columns is None and nothing and payload.registry is not None:
                table.wrong(
                    "columns",
                    'is missing: a table of columns, each as name = "type"; they are proposed from '
                    f"a '{_SCHEMAS[payload.format]}', but a registry is not asked before entries "
                    "are there",
                )
            return columns or ()
        if columns is None:
            return _proposed(table, payload, schema, taken)
    except Unavailable as error:
        table.wrong("format", str(error))
        return columns or ()
    _check_schema_members(table, payload, columns, schema)
    return columns


def _avro(table: Table, payload: Payload) -> Any:
    """The record of the file's schema; None if there is none, or a wrong one."""
    if payload.schema is None:
        return None
    try:
        return read_record(payload.schema)
    except ValueError as error:
        table.wrong("schema_file", str(error))
        return None


def _message(table: Table, payload: Payload, columns: tuple[Column, ...] | None) -> Any:
    """The descriptor of the file's message; None if there is none, or a wrong one."""
    if payload.descriptors is None:
        return None
    try:
        pool = read_descriptors(payload.descriptors)
    except ValueError as error:
        table.wrong("descriptor_file", str(error))
        return None
    if payload.message is None:
        if payload.registry is None or columns is None:
            table.wrong("", "'message' is missing: the full name of the message, as shop.Order")
        return None
    try:
        return find_message(pool, payload.message)
    except ValueError as error:
        table.wrong("message", f"is '{payload.message}', which 'descriptor_file' lacks: it {error}")
        return None


def _proposed(
    table: Table, payload: Payload, schema: Any, taken: tuple[str, ...]
) -> tuple[Column, ...]:
    """A column for each member; one whose name an entry's own column has gets a sign behind it."""
    try:
        types = columns_of(payload.schema) if payload.schema else columns_of_message(schema)
    except ValueError as error:
        table.wrong("columns", f"is missing: columns can't be proposed, as the schema {error}")
        return ()
    found: dict[str, Column] = {}
    for member, type in types.items():
        name = f"{member}_" if member.lower() in taken else member
        if name.lower() in found:
            other = found[name.lower()].origin
            table.wrong(
                "columns", f"is missing: '{member}' and '{other}' would be one column, case ignored"
            )
        found[name.lower()] = Column(name, str(type), member)
    return tuple(found.values())


def _check_schema_members(
    table: Table, payload: Payload, columns: tuple[Column, ...], schema: Any
) -> None:
    """Reports columns of members that the schema does not have."""
    if payload.format == "protobuf" and payload.registry is not None:
        return  # Registered messages may have more members than the file's.
    is_avro = payload.format == "avro"
    known = [f["name"] for f in schema["fields"]] if is_avro else [f.name for f in schema.fields]
    for column in columns:
        if column.origin not in known:
            path = (*table.path, "columns", column.name)
            table.findings.add(path, f"is of '{column.origin}'; the schema has {', '.join(known)}")
