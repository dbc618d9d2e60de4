"""The arguments of a command, out of its syntax as command pages write it.

``key [NX | XX] [EX seconds | PX milliseconds] value [value ...]`` reads: words in capitals and
signs are tokens, other words stand for values, ``[...]`` may be left out, ``<...>`` keeps together,
``|`` separates alternatives, and ``x [x ...]`` says that ``x`` may be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_PIECES: Final = re.compile(r"\.\.\.|[\[\]<>|]|[^\s\[\]<>|]+")
_TOKEN: Final = re.compile(r"[A-Z][A-Z0-9-]*|[=~*$+-]")

SIGNS: Final = {
    "=": "equal",
    "~": "approximately",
    "*": "auto",
    "$": "last",
    "+": "highest",
    "-": "lowest",
}
"""The names of signs that stand as tokens."""

KEYS: Final = frozenset({"key", "newkey", "source", "destination"})

INTEGERS: Final = frozenset(
    {
        "bytes",
        "client-id",
        "count",
        "cursor",
        "db",
        "decrement",
        "destination-db",
        "entries-added",
        "entries-read",
        "increment",
        "index",
        "index1",
        "index2",
        "maxage",
        "maxcount",
        "milliseconds",
        "min-idle-time",
        "ms",
        "numids",
        "numreplicas",
        "protover",
        "seconds",
        "timeout",
    }
)
"""Placeholders that stand for whole numbers."""

DOUBLES: Final = frozenset({"float-increment"})


class Argument(NamedTuple):
    """An argument as COMMAND DOCS describes it; blocks and choices have ``arguments`` too."""

    name: str
    type: str
    token: str = ""
    optional: bool = False
    multiple: bool = False
    multiple_token: bool = False
    arguments: tuple[Argument, ...] = ()


class _Group(NamedTuple):
    """The alternatives between brackets, each a sequence of items."""

    alternatives: tuple[tuple[_Item, ...], ...]
    optional: bool


class _Repeated(NamedTuple):
    """Items that may be repeated."""

    items: tuple[_Item, ...]


_Item = str | _Group | _Repeated

_ELLIPSIS: Final = "..."


def parse(syntax: str) -> list[Argument]:
    """The arguments that ``syntax`` describes; raises :class:`ValueError` for nonsense."""
    pieces = iter(_PIECES.findall(syntax))
    alternatives = _alternatives(pieces, "")
    if len(alternatives) > 1:
        return [_one(alternatives)]
    return _sequence(alternatives[0])


# --- brackets --------------------------------------------------------------------------------


def _alternatives(pieces: Iterator[str], end: str) -> tuple[tuple[_Item, ...], ...]:
    """Return what stands before the closing bracket ``end``, cut at its bars."""
    found: list[list[_Item]] = [[]]
    for piece in pieces:
        if piece == end:
            break
        if piece == "|":
            found.append([])
        elif piece == "[":
            _append_optional(found[-1], _alternatives(pieces, "]"))
        elif piece == "<":
            found[-1].append(_Group(_alternatives(pieces, ">"), optional=False))
        elif piece in ("]", ">"):
            raise ValueError(f"{piece} closes nothing")
        else:
            found[-1].append(piece)
    else:
        if end:
            raise ValueError(f"{end} is missing")
    return tuple(tuple(items) for items in found)


def _append_optional(items: list[_Item], alternatives: tuple[tuple[_Item, ...], ...]) -> None:
    """Adds what may be left out; if it repeats the items before it, these become repeated."""
    inner = alternatives[0]
    if inner[-1:] != (_ELLIPSIS,):
        items.append(_Group(alternatives, optional=True))
        return
    repeated = inner[:-1]
    if not repeated or tuple(items[-len(repeated) :]) != repeated:
        raise ValueError("an ellipsis repeats nothing")
    items[-len(repeated) :] = [_Repeated(repeated)]


# --- arguments -------------------------------------------------------------------------------


def _is_token(item: _Item) -> bool:
    return isinstance(item, str) and _TOKEN.fullmatch(item) is not None


def _is_plain(item: _Item) -> bool:
    """Whether a token in front of the item belongs to it."""
    if isinstance(item, _Repeated):
        return _is_plain(item.items[0])
    return not _is_token(item) and not (isinstance(item, _Group) and item.optional)


def _sequence(items: tuple[_Item, ...]) -> list[Argument]:
    """The arguments of items in a row: a token takes the plain items behind it."""
    arguments: list[Argument] = []
    at = 0
    while at < len(items):
        item = items[at]
        at += 1
        if not isinstance(item, str) or not _is_token(item):
            arguments.append(_argument(item))
            continue
        first = at
        while at < len(items) and _is_plain(items[at]):
            at += 1
        arguments.append(_with_token(item, [_argument(taken) for taken in items[first:at]]))
    return arguments


def _with_token(token: str, taken: list[Argument]) -> Argument:
    if not taken:
        return Argument(SIGNS.get(token, token.lower()), "pure-token", token)
    if len(taken) == 1 and not taken[0].token:
        return taken[0]._replace(token=token)
    return Argument(token.lower(), "block", token, arguments=tuple(taken))


def _argument(item: _Item) -> Argument:
    if isinstance(item, str):
        return Argument(item, _type(item))
    if isinstance(item, _Group):
        return _one(item.alternatives)._replace(optional=item.optional)
    repeats_token = _is_token(item.items[0])
    return _one((item.items,))._replace(multiple=True, multiple_token=repeats_token)


def _one(alternatives: tuple[tuple[_Item, ...], ...]) -> Argument:
    """Alternatives as a single argument: a choice, or a block if there is nothing to choose."""
    choices = [_block(_sequence(items)) for items in alternatives]
    if len(choices) == 1:
        return choices[0]
    name = "-or-".join(choice.name for choice in choices)
    return Argument(name, "oneof", arguments=tuple(choices))


def _block(arguments: list[Argument]) -> Argument:
    if len(arguments) == 1:
        return arguments[0]
    return Argument("-".join(one.name for one in arguments), "block", arguments=tuple(arguments))


def _type(placeholder: str) -> str:
    if placeholder in KEYS:
        return "key"
    if placeholder in INTEGERS:
        return "integer"
    if placeholder in DOUBLES:
        return "double"
    if placeholder.startswith("unix-time"):
        return "unix-time"
    return "pattern" if placeholder == "pattern" else "string"
