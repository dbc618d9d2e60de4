"""Copies strings and their expiry."""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.client.connection import Command, Connection
from penstock.client.nodes import Nodes
from penstock.migration.plan import Endpoints
from penstock.migration.read import read_expiries

_BATCH: Final = 50
"""Keys at a time; a value may be large."""


class Value(NamedTuple):
    """What a key holds."""

    kind: bytes
    """As TYPE names it; ``none`` for no key."""
    content: bytes | None
    expiry: int | None
    """In Unix milliseconds, ``None`` for never."""


_MISSING: Final = Value(b"none", None, None)


class StringsCopied(NamedTuple):
    """The keys by what happened to them."""

    copied: list[bytes]
    equal: list[bytes]
    """Those that were on the target already."""
    refused: list[bytes]
    """Those under whose names the target has something else."""
    differing: list[bytes]
    """Those that read back differently after they were written."""


def copy_strings(
    source: Nodes, target: Nodes, keys: list[bytes], replace: bool, dry_run: bool
) -> StringsCopied:
    """Copies the strings; ``replace`` allows to overwrite, ``dry_run`` only says what would be."""
    result = StringsCopied([], [], [], [])
    by_node: dict[Endpoints, list[bytes]] = {}
    for key in keys:
        by_node.setdefault(Endpoints(source.of(key), target.of(key)), []).append(key)
    for endpoints, together in by_node.items():
        for at in range(0, len(together), _BATCH):
            _copy_batch(endpoints, together[at : at + _BATCH], replace, dry_run, result)
    return result


def _copy_batch(
    endpoints: Endpoints, keys: list[bytes], replace: bool, dry_run: bool, result: StringsCopied
) -> None:
    there, here = _read(endpoints.source, keys), _read(endpoints.target, keys)
    due: dict[bytes, Value] = {}
    for key in keys:
        if there[key] == here[key]:
            result.equal.append(key)
        elif there[key].kind == b"string":
            allowed = replace or here[key] == _MISSING
            (result.copied if allowed else result.refused).append(key)
            if allowed:
                due[key] = there[key]
    if dry_run:
        return
    endpoints.target.call_all([_write(key, value) for key, value in due.items()])
    found = _read(endpoints.target, list(due))
    result.differing.extend(key for key, value in due.items() if found[key] != value)


def _write(key: bytes, value: Value) -> Command:
    command = ("SET", key, value.content or b"")
    return command if value.expiry is None else (*command, "PXAT", value.expiry)


def _read(server: Connection, keys: list[bytes]) -> dict[bytes, Value]:
    kinds = dict(zip(keys, server.call_all([("TYPE", key) for key in keys]), strict=True))
    values = {key: Value(kind, None, None) for key, kind in kinds.items()}
    strings = [key for key in keys if kinds[key] == b"string"]
    contents = server.call_all([("GET", key) for key in strings])
    for key, content, expiry in zip(strings, contents, read_expiries(server, strings), strict=True):
        values[key] = _MISSING if content is None else Value(b"string", content, expiry)
    return values
