"""Types of columns, and the conversion of decoded values, which names what is wrong."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# --- Types ---------------------------------------------------------------------------------------


SAME: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
}
"""Other names of types, and the one that is used here."""

SIMPLE: Final = frozenset(
    (
        *("string", "binary", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
        *("date", "timestamp", "timestamp_ntz"),
    )
)
MAX_PRECISION: Final = 38

_TOKEN: Final = re.compile(
    r"\s*(decimal\s*\(\s*\d+\s*(?:,\s*-?\d+\s*)?\)|`[^`]+`|\w+|[<>:,])", re.I
)
_DECIMAL: Final = re.compile(r"decimal(?:\s*\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?", re.I)


@dataclass(frozen=True)
class Type:
    """A type; ``element`` is that of an array's elements or a map's values."""

    name: str
    precision: int = 0
    scale: int = 0
    element: Type | None = None
    members: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        """The type as SQL and the pipeline file write it."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "array":
            return f"array<{self.element}>"
        if self.name == "map":
            return f"map<string,{self.element}>"
        if self.name == "struct":
            return f"struct<{','.join(f'{_quoted(name)}:{type}' for name, type in self.members)}>"
        return self.name

    @property
    def is_nested(self) -> bool:
        """Whether values of the type hold others."""
        return self.name in ("array", "map", "struct")


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


def parse_type(text: str) -> Type:
    """The type that a text names; raises ValueError if it names none."""
    tokens = _tokens(text)
    found = _type(tokens)
    if tokens:
        raise ValueError(f"'{text}' goes on behind the type")
    return found


def _tokens(text: str) -> list[str]:
    """The parts of the text, the last first."""
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"'{text}' is no type")
        tokens.append(found[1])
        position = found.end()
    return tokens[::-1]


def _take(tokens: list[str], *wanted: str) -> str:
    token = tokens.pop().lower() if tokens else ""
    if token not in wanted:
        raise ValueError(f"'{token}' is not {' or '.join(wanted)}")
    return token


def _type(tokens: list[str]) -> Type:
    word = tokens.pop() if tokens else ""
    name = SAME.get(word.lower(), word.lower())
    if name == "array":
        _take(tokens, "<")
        element = _type(tokens)
        _take(tokens, ">")
        return Type("array", element=element)
    if name == "map":
        # Members are the keys of objects, which are always texts.
        for sign in ("<", "string", ","):
            _take(tokens, sign)
        element = _type(tokens)
        _take(tokens, ">")
        return Type("map", element=element)
    if name == "struct":
        _take(tokens, "<")
        return Type("struct", members=_members(tokens))
    return _simple(name)


def _simple(name: str) -> Type:
    found = _DECIMAL.fullmatch(name)
    if found:
        precision, scale = int(found[1] or 10), int(found[2] or 0)
        if 0 <= scale <= precision <= MAX_PRECISION and precision > 0:
            return Type("decimal", precision, scale)
    elif name in SIMPLE:
        return Type(name)
    raise ValueError(f"'{name}' is no type")


def _members(tokens: list[str]) -> tuple[tuple[str, Type], ...]:
    found: dict[str, tuple[str, Type]] = {}
    end = ","
    while end == ",":
        name = tokens.pop() if tokens else ""
        if not re.fullmatch(r"\w+|`[^`]+`", name) or name.strip("`").lower() in found:
            raise ValueError(f"'{name}' is no other name of a member")
        _take(tokens, ":")
        found[name.strip("`").lower()] = (name.strip("`"), _type(tokens))
        end = _take(tokens, ",", ">")
    return tuple(found.values())


ALLOWED: Final = (
    "string, binary, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
    "timestamp"
)
NESTED: Final = f"{ALLOWED}, array<T>, map<string,V>, struct<name:T,...>"


def is_type(text: str, nested: bool = True) -> bool:
    """Tell whether the text names a type, which must be a simple one unless it may be nested."""
    try:
        return not parse_type(text).is_nested or nested
    except ValueError:
        return False


# --- Dates and times -----------------------------------------------------------------------------

# As texts (ISO 8601, as Spark casts them) and as numbers since 1970.

EPOCH_DAYS: Final = "epoch_d"
"""The format of dates that are numbers."""

EPOCHS: Final = {
    "epoch_s": 1_000_000,
    "epoch_ms": 1_000,
    "epoch_us": 1,
    EPOCH_DAYS: 86_400_000_000,
}
"""The formats of dates and times that are numbers, and the microseconds of one unit."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_US: Final = -62_135_596_800_000_000
LAST_US: Final = 253_402_300_799_999_999
"""The microseconds of the years 1 to 9999, which every reader of a table knows."""

_DATE: Final = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_WHOLE_DATE: Final = re.compile(_DATE)
_TIME: Final = re.compile(
    rf"{_DATE}(?:[T ](\d{{1,2}})(?::(\d{{1,2}})(?::(\d{{1,2}})(?:\.(\d*))?)?)?\s*(.*))?", re.DOTALL
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?")


def read_date(text: str) -> date:
    """The date of a text ``yyyy-mm-dd``; raises ValueError for any other."""
    found = _WHOLE_DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no date")
    return date(int(found[1]), int(found[2]), int(found[3]))


def read_time(text: str) -> datetime:
    """The time of a text that begins with a date, in its zone, else in UTC.

    Raises ValueError for any other, and for one that is finer than a microsecond.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None or (found[7] or "")[6:].strip("0"):
        raise ValueError(f"'{text}' is no time")
    numbers = [int(part or 0) for part in found.groups()[:6]]
    micros = int((found[7] or "").ljust(6, "0")[:6])
    year, month, day, hour, minute, second = numbers
    return datetime(year, month, day, hour, minute, second, micros, _zone(found[8] or ""))


def _zone(text: str) -> tzinfo:
    if text in ("", "Z", "UTC", "GMT"):
        return UTC
    found = _OFFSET.fullmatch(text)
    if found:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{text}' is no time zone") from None


def from_epoch(number: Decimal | int, format: str) -> datetime:
    """The time of a number since 1970.

    Raises ValueError beyond the years 1 to 9999, and for what is finer than a microsecond.
    """
    micros = number * EPOCHS[format]
    # A date is a number of whole days.
    unit = EPOCHS[format] if format == EPOCH_DAYS else 1
    if not FIRST_US <= micros <= LAST_US or micros % unit:
        raise ValueError(f"{number} is no {format}")
    return EPOCH + timedelta(microseconds=int(micros))


# --- Conversion ----------------------------------------------------------------------------------


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
    if type.is_nested:
        return _nested(type)
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


def _nested(type: Type) -> Convert:
    kind, make = (list | tuple, _list_of(type)) if type.name == "array" else (Mapping, _of(type))

    def convert(value: Any, path: str, wrong: list[str]) -> Any:
        if value is None:
            return None
        if not isinstance(value, kind):
            wrong.append(_not_of(value, path, type))
            return None
        return make(value, path, wrong)

    return convert


def _list_of(type: Type) -> Convert:
    assert type.element is not None
    inner = converter(type.element)
    return lambda value, path, wrong: [
        inner(each, f"{path}[{n}]", wrong) for n, each in enumerate(value)
    ]


def _of(type: Type) -> Convert:
    """Return the function for a mapping: the pairs of a map, or the members of a struct."""
    if type.element is not None:
        inner = converter(type.element)
        return lambda value, path, wrong: [
            (str(k), inner(each, f"{path}.{k}", wrong)) for k, each in value.items()
        ]
    members = [(name, converter(each)) for name, each in type.members]
    return lambda value, path, wrong: {
        name: each(value.get(name), f"{path}.{name}", wrong) for name, each in members
    }


def _maker(type: Type, format: str | None) -> Callable[[Any], Any]:
    """A function that makes a single value, and raises ValueError or ArithmeticError."""
    if format == EPOCH_DAYS:
        return lambda value: from_epoch(_number(value), format).date()
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
