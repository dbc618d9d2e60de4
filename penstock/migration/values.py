"""Copying values that are no streams: strings by SET, others by their payloads.

What was written is read back and compared by its contents, as payloads of servers differ.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.client.connection import Command, ServerConnection
from penstock.client.nodes import Nodes
from penstock.migration.plan import Endpoints
from penstock.migration.read import read_expiries

_BATCH: Final = 50
"""Keys at a time; a value may be large."""

STRING: Final = b"string"

READING: Final[dict[bytes, tuple[str | int, ...]]] = {
    STRING: ("GET",),
    b"hash": ("HGETALL",),
    b"list": ("LRANGE", 0, -1),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
}
"""What reads all of a value, by what TYPE says; the key stands behind the name."""


class Value(NamedTuple):
    """The value of a key."""

    kind: bytes
    """As TYPE names it; ``none`` for no key."""
    content: object
    """In a form that does not depend on the order that a server gives."""
    expiry: int | None
    """In Unix milliseconds, ``None`` for never."""


_MISSING: Final = Value(b"none", None, None)


class ValuesCopied(NamedTuple):
    """The keys by what happened to them."""

    copied: list[bytes]
    equal: list[bytes]
    """Those that were on the target already."""
    refused: list[bytes]
    """Those under whose names the target has something else."""
    differing: list[bytes]
    """Those that read back differently after they were written."""


class _Copy:
    """The copying of values of these types; ``replace`` allows to overwrite, ``dry_run`` only says
    what would be."""

    def __init__(self, kinds: frozenset[bytes], replace: bool, dry_run: bool) -> None:
        self._kinds = kinds
        self._replace = replace
        self._dry_run = dry_run
        self.result = ValuesCopied([], [], [], [])

    def copy(self, endpoints: Endpoints, keys: list[bytes]) -> None:
        """Copies some keys."""
        there, here = self._read(endpoints.source, keys), self._read(endpoints.target, keys)
        due: dict[bytes, Value] = {}
        for key in keys:
            if there[key] == here[key]:
                self.result.equal.append(key)
            elif there[key].kind in self._kinds:
                allowed = self._replace or here[key] == _MISSING
                (self.result.copied if allowed else self.result.refused).append(key)
                if allowed:
                    due[key] = there[key]
        if self._dry_run:
            return
        endpoints.target.call_all(_writes(endpoints.source, due))
        found = self._read(endpoints.target, list(due))
        self.result.differing.extend(key for key, value in due.items() if found[key] != value)

    def _read(self, server: ServerConnection, keys: list[bytes]) -> dict[bytes, Value]:
        """Return what is at the keys; of values of other types no more than the type."""
        kinds = dict(zip(keys, server.call_all([("TYPE", key) for key in keys]), strict=True))
        values = {key: Value(kind, None, None) for key, kind in kinds.items()}
        known = [key for key in keys if kinds[key] in self._kinds]
        contents = server.call_all([_reading(key, READING[kinds[key]]) for key in known])
        expiries = read_expiries(server, known)
        for key, content, expiry in zip(known, contents, expiries, strict=True):
            kind = kinds[key]
            gone = content is None or content == []
            values[key] = _MISSING if gone else Value(kind, _unordered(kind, content), expiry)
        return values


def copy_values(
    source: Nodes,
    target: Nodes,
    keys: list[bytes],
    kinds: frozenset[bytes],
    replace: bool,
    dry_run: bool,
) -> ValuesCopied:
    """Copies the values of these types; ``replace`` allows to overwrite, ``dry_run`` only says
    what would be."""
    copy = _Copy(kinds, replace, dry_run)
    by_node: dict[Endpoints, list[bytes]] = {}
    for key in keys:
        by_node.setdefault(Endpoints(source.of(key), target.of(key)), []).append(key)
    for endpoints, together in by_node.items():
        for at in range(0, len(together), _BATCH):
            copy.copy(endpoints, together[at : at + _BATCH])
    return copy.result


def _writes(source: ServerConnection, due: dict[bytes, Value]) -> list[Command]:
    others = [key for key, value in due.items() if value.kind != STRING]
    payloads = dict(zip(others, source.call_all([("DUMP", key) for key in others]), strict=True))
    commands: list[Command] = []
    for key, value in due.items():
        if value.kind == STRING:
            command: Command = ("SET", key, value.content or b"")  # type: ignore[assignment]
            commands.append(command if value.expiry is None else (*command, "PXAT", value.expiry))
        elif payloads[key] is not None:
            time = value.expiry or 0
            commands.append(("RESTORE", key, time, payloads[key], "REPLACE", "ABSTTL"))
    return commands


def _reading(key: bytes, words: tuple[str | int, ...]) -> Command:
    return (words[0], key, *words[1:])


def _unordered(kind: bytes, content: object) -> object:
    """What is in a value; hashes and sets are in no order."""
    if kind == b"set" and isinstance(content, list):
        return frozenset(content)
    if kind == b"hash" and isinstance(content, list):
        return dict(zip(content[::2], content[1::2], strict=True))
    return content
