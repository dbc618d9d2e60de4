"""Conversion of decoded values to the types of columns, which names every value that is wrong."""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final
from uuid import UUID

from penstock.pipeline.parse.times import from_epoch, read_date, read_time
from penstock.pipeline.parse.types import Type

Convert = Callable[[Any, str, list[str]], Any]
"""Takes a value, its path, and the list of what is wrong, to which it adds."""

SHOWN: Final = 60
"""Characters of a bad value that a reason quotes."""

_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EXACT: Final = Context(prec=38, traps=[Inexact, InvalidOperation])


def shown(value: Any) -> str:
    """A value as JSON, shortened."""
    text = as_text(value) if not isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def as_text(value: Any) -> str:
    """A value as a text: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(str(k), ensure_ascii=False)}:{_json(v)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{value}"'
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, datetime | date | time):
        return f'"{value.isoformat()}"'
    return json.dumps(str(value), ensure_ascii=False)


def converter(type: Type, format: str | None = None) -> Convert:
    """A function that makes values of the type.

    It returns None for None and for what is wrong, and adds one text for each wrong value, as
    ``member 'inner.x' is "a", not double``, to the list that it is given.
    """
    if type.name == "array":
        return _array(type)
    if type.name == "map":
        return _map(type)
    if type.name == "struct":
        return _struct(type)
    make = _maker(type, format)
    as_format = "" if format is None else f" as {format}"

    def convert(value: Any, path: str, wrong: list[str]) -> Any:
        if value is None:
            return None
        try:
            return make(value)
        except (ValueError, OverflowError, ArithmeticError):
            wrong.append(_not_of(value, path, type) + as_format)
            return None

    return convert


def _not_of(value: Any, path: str, type: Type) -> str:
    return f"member '{path}' is {shown(value)}, not {type}"


def _array(type: Type) -> Convert:
    assert type.element is not None
    inner = converter(type.element)

    def convert(value: Any, path: str, wrong: list[str]) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            wrong.append(_not_of(value, path, type))
            return None
        return [inner(each, f"{path}[{n}]", wrong) for n, each in enumerate(value)]

    return convert


def _map(type: Type) -> Convert:
    assert type.element is not None
    inner = converter(type.element)

    def convert(value: Any, path: str, wrong: list[str]) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            wrong.append(_not_of(value, path, type))
            return None
        return [(str(k), inner(each, f"{path}.{k}", wrong)) for k, each in value.items()]

    return convert


def _struct(type: Type) -> Convert:
    members = [(name, converter(each)) for name, each in type.members]

    def convert(value: Any, path: str, wrong: list[str]) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            wrong.append(_not_of(value, path, type))
            return None
        return {name: each(value.get(name), f"{path}.{name}", wrong) for name, each in members}

    return convert


def _maker(type: Type, format: str | None) -> Callable[[Any], Any]:
    """A function that makes a single value, and raises ValueError or ArithmeticError."""
    if format is not None:
        return lambda value: from_epoch(_number(value), format)
    if type.name in _BITS:
        return _whole(_BITS[type.name])
    if type.name == "decimal":
        return _decimal(type.precision, type.scale)
    return _MAKERS[type.name]


def _whole(bits: int) -> Callable[[Any], int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def make(value: Any) -> int:
        if value.__class__ is not int or not low <= value <= high:
            raise ValueError
        return int(value)

    return make


def _decimal(precision: int, scale: int) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def make(value: Any) -> Decimal:
        number = _number(value)
        if not number.is_finite() or abs(number) >= limit:
            raise ValueError
        return number.quantize(unit, context=_EXACT)

    return make


def _number(value: Any) -> Decimal:
    """A number, or the text of one, exactly."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError
    return Decimal(repr(value) if isinstance(value, float) else value)


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _float(value: Any) -> float:
    number = _double(value)
    struct.pack("<f", number)
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _string(value: Any) -> str:
    text = str(value) if isinstance(value, time | UUID) else as_text(value)
    if isinstance(value, bytes | date):
        text = text.strip('"')
    # Half of a surrogate pair is no text that a table can hold.
    text.encode()
    return text


def _binary(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError
    return read_date(value)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, str):
        value = read_time(value)
    if not isinstance(value, datetime):
        raise ValueError
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _timestamp_ntz(value: Any) -> datetime:
    """The time on the clock of UTC, for a time with a zone."""
    return _timestamp(value).replace(tzinfo=None)


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _string,
    "binary": _binary,
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}
