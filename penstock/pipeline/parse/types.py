"""The types of columns as a tree: ``array<struct<name:string,qty:int>>``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
