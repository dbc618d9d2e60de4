"""The keys of ``[parse]`` that say which field holds a payload, and in which format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from penstock.pipeline.config.durations import duration
from penstock.pipeline.config.table import Table
from penstock.pipeline.parse.compression import FORMS
from penstock.pipeline.parse.settings import FORMATS, MAX_BYTES, Payload, Registry

_SCHEMAS: Final = {"avro": "schema_file", "protobuf": "descriptor_file"}
_OR: Final = "' or '"
_REGISTRY: Final = ("registry_user", "registry_password", "registry_timeout", "registry_ca_file")
_URL: Final = "http[s]://[user:password@]host[:port][/path]"
_ONLY: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("header", "delimiter", "quote"), ("csv",)),
    "schema_file": ("avro",),
    "descriptor_file": ("protobuf",),
    "message": ("protobuf",),
    **{key: tuple(_SCHEMAS) for key in ("registry", *_REGISTRY)},
}
"""Keys that only some formats have."""


def read_payload(table: Table, folder: Path) -> Payload | None:
    """The field that is decoded, and how; None if columns are made of plain fields."""
    format, field = _format(table)
    _refuse_foreign(table, format)
    compression, max_bytes = _compression(table, format)
    if format is None:
        return None
    if format in _SCHEMAS and not (table.has("registry") or table.has(_SCHEMAS[format])):
        table.wrong("", f"format '{format}' needs '{_SCHEMAS[format]}' or 'registry'")
    schema = _file(table, "schema_file", folder, _text)
    descriptors = _file(table, "descriptor_file", folder, Path.read_bytes)
    registry = _registry(table, folder)
    message = table.text("message")
    return Payload(
        format,
        field,
        compression,
        max_bytes,
        _header(table),
        _sign(table, "delimiter", ","),
        _sign(table, "quote", '"'),
        schema,
        descriptors,
        message,
        registry,
    )


def _format(table: Table) -> tuple[str | None, str]:
    json = table.text("json")
    if json is not None:
        for key in ("format", "field"):
            if table.text(key) is not None:
                table.wrong(key, "is given beside 'json', which means format 'json' and its field")
        return "json", json
    if not table.has("format"):
        if table.text("field") is not None:
            table.wrong("field", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
        return None, ""
    format = table.choice("format", "", *FORMATS)
    return format or None, table.needed("field", "the field that holds the payload")


def _refuse_foreign(table: Table, format: str | None) -> None:
    for key, formats in _ONLY.items():
        if format not in formats and table.has(key):
            table.take(key, object)
            table.wrong(key, f"is for format = '{_OR.join(formats)}'")


def _compression(table: Table, format: str | None) -> tuple[str | None, int]:
    given = table.has("compression")
    form = table.choice("compression", FORMS[0], *FORMS)
    has_limit = table.has("max_bytes")
    max_bytes = table.whole("max_bytes", MAX_BYTES, 1) or MAX_BYTES
    if given and format is None:
        table.wrong("compression", f"needs 'format' beside it; allowed: {', '.join(FORMATS)}")
    if has_limit and not given:
        table.wrong("max_bytes", "is for 'compression': how long a value may be when unpacked")
    return form if given else None, max_bytes


def _header(table: Table) -> tuple[str, ...]:
    given = table.take("header", list)
    if given is None:
        return ()
    if not given or not all(isinstance(name, str) and name for name in given):
        table.wrong("header", "is not a list of names, in the order of the values")
        return ()
    for name in dict.fromkeys(given):
        if given.count(name) > 1:
            table.wrong("header", f"names '{name}' twice")
    return tuple(given)


def _sign(table: Table, key: str, default: str) -> str:
    value = table.take(key, str)
    if value is None:
        return default
    if len(value) != 1 or value in "\r\n" or not value.isascii():
        table.wrong(key, f"is {value!r}; allowed: one ASCII character, but for line ends")
        return default
    return value


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _file(table: Table, key: str, folder: Path, read: Callable[[Path], Any]) -> Any:
    name = table.text(key)
    if name is None:
        return None
    try:
        return read(folder / name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        table.wrong(key, f"can't read '{folder / name}': {why}")
        return None


def _registry(table: Table, folder: Path) -> Registry | None:
    if not table.has("registry"):
        for key in _REGISTRY:
            if table.has(key):
                table.take(key, object)
                table.wrong(key, "needs 'registry' beside it, the URL")
        return None
    url = table.text("registry") or ""
    user, password = table.text("registry_user"), table.text("registry_password")
    timeout = table.parsed("registry_timeout", duration, Registry.timeout_s)
    ca = _file(table, "registry_ca_file", folder, _text)
    if (user is None) != (password is None):
        table.wrong("registry_user", "and 'registry_password' belong together")
    parts = _url(url)
    if parts is None:
        if url:
            table.wrong("registry", f"is not of the right form; allowed: {_URL}")
        return None
    if parts.username is not None and user is None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
    return Registry(address, user, password, timeout, ca)


def _url(text: str) -> SplitResult | None:
    """The parts of the URL of a registry; None if it is none."""
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_right and not parts.query and not parts.fragment else None
