"""Finds the line of a key in a TOML file, which the standard library's parser does not keep.

The text has been parsed before, so it is valid: it is enough to follow headers, keys at the
beginning of a line, and values over several lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

Path = tuple[str | int, ...]
"""Keys and, for tables of an array, their numbers from 0: ``("sink", 1, "path")``."""

_PART: Final = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"\s*(\[\[?)\s*({_KEY})\s*\]")
_ASSIGNMENT: Final = re.compile(rf"\s*({_KEY})\s*=")
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*|[\[\]{}\n]|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def locate(text: str) -> dict[Path, int]:
    """The line, from 1, of every key and table that has one of its own.

    Keys within an inline table have none; :func:`line_of` returns that of the table.
    """
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, statement in _statements(text):
        header = _HEADER.match(statement)
        if header:
            table = _table(header, counts)
            for depth in range(1, len(table) + 1):
                lines.setdefault(table[:depth], number)
        elif assignment := _ASSIGNMENT.match(statement):
            keys = _parts(assignment[1])
            for depth in range(1, len(keys) + 1):
                lines.setdefault((*table, *keys[:depth]), number)
    return lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a path, or of the innermost table around it that has one; else 1."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return 1


def _table(header: re.Match[str], counts: dict[Path, int]) -> Path:
    path: Path = ()
    keys = _parts(header[2])
    for depth, key in enumerate(keys):
        path = (*path, key)
        is_new = depth == len(keys) - 1 and header[1] == "[["
        if is_new:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with its first line; line ends within values do not end it."""
    line = begin = 1
    depth = 0
    parts: list[str] = []
    for token in _TOKEN.findall(text.replace("\r\n", "\n")):
        if token == "\n" and not (depth and _is_value(parts)):
            yield begin, "".join(parts)
            parts, depth, begin = [], 0, line + 1
        else:
            parts.append(token)
            depth += (token in ("[", "{")) - (token in ("]", "}"))
        line += token.count("\n")
    yield begin, "".join(parts)


def _is_value(parts: list[str]) -> bool:
    """Whether brackets are open because of a value, and not in a header."""
    return _ASSIGNMENT.match("".join(parts)) is not None
