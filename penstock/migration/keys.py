"""Scans the keys of a database of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from penstock.migration.client import End
from penstock.migration.errors import CommandRefused, EndFailed

_PAGE: Final = 1000


class Keys(NamedTuple):
    """The names of keys by what they hold, each list in order."""

    streams: list[bytes]
    strings: list[bytes]
    others: dict[str, list[bytes]]
    """By the name of their type."""
    refused: dict[bytes, CommandRefused]
    """Those that may not be looked at."""


def find_keys(source: End, globs: Iterable[bytes]) -> Keys:
    """The keys whose names match any of the patterns."""
    kinds: dict[bytes, bytes | CommandRefused] = {}
    for glob in globs:
        for page in _scan(source, glob):
            found = source.attempt_all([("TYPE", key) for key in page])
            kinds.update(zip(page, found, strict=True))
    by_kind: dict[str, list[bytes]] = {}
    refused: dict[bytes, CommandRefused] = {}
    for key, kind in sorted(kinds.items()):
        if isinstance(kind, CommandRefused):
            refused[key] = kind
        elif kind != b"none":
            by_kind.setdefault(kind.decode(), []).append(key)
    return Keys(by_kind.pop("stream", []), by_kind.pop("string", []), by_kind, refused)


def _scan(source: End, glob: bytes) -> Iterator[list[bytes]]:
    cursor = b"0"
    while True:
        cursor, page = source.ask("SCAN", cursor, "MATCH", glob, "COUNT", _PAGE)
        yield page
        if cursor == b"0":
            return


def count_entries(source: End, streams: list[bytes]) -> int:
    """How many entries the streams hold; what cannot be counted counts as none."""
    total = 0
    for at in range(0, len(streams), _PAGE):
        lengths = source.attempt_all([("XLEN", key) for key in streams[at : at + _PAGE]])
        total += sum(length for length in lengths if isinstance(length, int))
    return total


def list_databases(source: End) -> list[int]:
    """The numbers of the databases that hold keys."""
    text: bytes = source.ask("INFO", "keyspace")
    lines = (line for line in text.splitlines() if line.startswith(b"db"))
    return sorted(int(line[2 : line.index(b":")]) for line in lines)


def require_different_databases(source: End, target: End) -> None:
    """Raises :class:`EndFailed` if both ends are the same database of the same server."""
    if source.db == target.db and (run := source.run_id()) and run == target.run_id():
        raise EndFailed(f"the {source.name} and the {target.name} are the same database")
