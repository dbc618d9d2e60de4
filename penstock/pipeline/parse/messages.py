"""The members of messages of Protobuf as plain values, and the types of columns for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from penstock.pipeline.parse.times import EPOCH
from penstock.pipeline.parse.types import Type

Members = Mapping[str, Any]
Get = Callable[[Any], Any]

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in (
        *("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"),
    )
)
_JSON: Final = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")

_MESSAGES: Final = (10, 11)
_ENUM: Final = 14
_TYPES: Final = {
    **dict.fromkeys((1,), "double"),
    **dict.fromkeys((2,), "float"),
    **dict.fromkeys((3, 16, 18), "bigint"),
    **dict.fromkeys((5, 15, 17), "int"),
    **dict.fromkeys((7, 13), "bigint"),
    8: "boolean",
    **dict.fromkeys((9, _ENUM), "string"),
    12: "binary",
}
"""Types of columns by the number of a field's type; unsigned numbers need one that is larger."""

_UNSIGNED_64: Final = (4, 6)


def members_of(message: Any) -> Callable[[Any], Members]:
    """A function that gives the members of a message of that kind by their names.

    What is not there is None, or the default of Protobuf where it can't tell the two apart.
    """
    getters: list[tuple[str, Get]] = []
    for field in message.fields:
        getters.append((field.name, _getter(field)))

    def members(value: Any) -> Members:
        return {name: get(value) for name, get in getters}

    return members


def _getter(field: Any) -> Get:
    name = field.name
    if is_map(field):
        value = _plain(field.message_type.fields_by_name["value"])
        return lambda m: {_key(k): value(v) for k, v in getattr(m, name).items()}
    plain = _plain(field)
    if is_repeated(field):
        return lambda m: [plain(each) for each in getattr(m, name)]
    if field.has_presence:
        return lambda m: plain(getattr(m, name)) if m.HasField(name) else None
    return lambda m: plain(getattr(m, name))


def is_repeated(field: Any) -> bool:
    """Whether a field holds several values."""
    return bool(field.is_repeated)


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return field.type == 11 and bool(field.message_type.GetOptions().map_entry)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _plain(field: Any) -> Get:
    """A function that makes a plain value of one value of a field."""
    if field.type == _ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    if field.type not in _MESSAGES:
        return lambda value: value
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        return _time
    if name in _WRAPPERS:
        return lambda message: message.value
    if name in _JSON:
        return _json
    return _Nested(field.message_type)


class _Nested:
    """Members of a message within another; made when they are needed, as it may hold itself."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._members: Callable[[Any], Members] | None = None

    def __call__(self, value: Any) -> Members:
        if self._members is None:
            self._members = members_of(self._message)
        return self._members(value)


def _time(message: Any) -> Any:
    """The time, or the numbers of one that no calendar has, which no column takes for a time."""
    try:
        return EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        return {"seconds": message.seconds, "nanos": message.nanos}


def _json(message: Any) -> Any:
    """The value of a message that stands for JSON."""
    kind = message.DESCRIPTOR.full_name
    if kind.endswith("Struct"):
        return {key: _json(value) for key, value in message.fields.items()}
    if kind.endswith("ListValue"):
        return [_json(value) for value in message.values]
    which = message.WhichOneof("kind")
    if which in (None, "null_value"):
        return None
    value = getattr(message, which)
    return _json(value) if which in ("struct_value", "list_value") else value


def columns_of_message(message: Any) -> dict[str, Type]:
    """The members of a message and the types of columns for them; raises ValueError."""
    return {field.name: _type(field, (message.full_name,)) for field in message.fields}


def _type(field: Any, within: tuple[str, ...]) -> Type:
    if is_map(field):
        return Type("map", element=_single(field.message_type.fields_by_name["value"], within))
    single = _single(field, within)
    return Type("array", element=single) if is_repeated(field) else single


def _single(field: Any, within: tuple[str, ...]) -> Type:
    if field.type in _UNSIGNED_64:
        return Type("decimal", 20, 0)
    if field.type not in _MESSAGES:
        return Type(_TYPES[field.type])
    message = field.message_type
    name = message.full_name
    if name == _TIMESTAMP:
        return Type("timestamp")
    if name in _WRAPPERS:
        return _single(message.fields_by_name["value"], within)
    if name in _JSON or not message.fields:
        return Type("string")
    if name in within:
        raise ValueError(f"has a message '{name}' within itself, of which no column can be made")
    inner = (*within, name)
    return Type("struct", members=tuple((each.name, _type(each, inner)) for each in message.fields))
