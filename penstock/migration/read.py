"""Reads keys and streams page by page, so that no server has to send a large reply."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from penstock.client.connection import Interval, Reply, ServerConnection, Timed
from penstock.client.errors import CommandRefused, ServerFailed
from penstock.client.nodes import Nodes
from penstock.migration.model import Entry, GroupState, Head, Pending, Settings, entry_id
from storage.engine import ids

PAGE_BYTES: Final = 1 << 20
"""About how many bytes of entries to ask for at once."""

PAGE_ENTRIES: Final = 1000

PAGE_PENDING: Final = 250
"""How many pending entries are asked for at once where their times matter."""

_FIRST_PAGE: Final = 16
_TRIES: Final = 100

RELEASED_IDLE: Final = -1
"""The idle time that XPENDING shows for an entry that XNACK has released."""

PAGE_KEYS: Final = 1000
"""How many keys are asked for at once."""


# --- keys ----------------------------------------------------------------------------------------


class Keys(NamedTuple):
    """The names of keys by what they hold, each list in order."""

    streams: list[bytes]
    others: dict[str, list[bytes]]
    """By the name of their type."""
    refused: dict[bytes, CommandRefused]
    """Those whose type the server does not tell."""


def find_keys(source: Nodes, globs: Iterable[bytes]) -> Keys:
    """The keys whose names match any of the patterns."""
    kinds: dict[bytes, bytes | CommandRefused] = {}
    source.require_settled()
    for node, glob in product(source.all, globs):
        for page in _scan(node, glob):
            found = node.try_all([("TYPE", key) for key in page])
            kinds.update(zip(page, found, strict=True))
    source.require_settled()
    by_kind: dict[str, list[bytes]] = {}
    refused: dict[bytes, CommandRefused] = {}
    for key, kind in sorted(kinds.items()):
        if isinstance(kind, CommandRefused):
            refused[key] = kind
        elif kind != b"none":
            by_kind.setdefault(kind.decode(), []).append(key)
    return Keys(by_kind.pop("stream", []), by_kind, refused)


def _scan(source: ServerConnection, glob: bytes) -> Iterator[list[bytes]]:
    cursor = b"0"
    while True:
        cursor, page = source.call("SCAN", cursor, "MATCH", glob, "COUNT", PAGE_KEYS)
        yield page
        if cursor == b"0":
            return


def count_entries(source: Nodes, streams: list[bytes]) -> int:
    """How many entries the streams hold; what cannot be counted counts as none."""
    by_node: dict[ServerConnection, list[bytes]] = {}
    for key in streams:
        by_node.setdefault(source.of(key), []).append(key)
    return sum(_count_on(node, keys) for node, keys in by_node.items())


def _count_on(node: ServerConnection, streams: list[bytes]) -> int:
    total = 0
    for at in range(0, len(streams), PAGE_KEYS):
        lengths = node.try_all([("XLEN", key) for key in streams[at : at + PAGE_KEYS]])
        total += sum(length for length in lengths if isinstance(length, int))
    return total


def list_databases(source: ServerConnection) -> list[int]:
    """The numbers of the databases that hold keys."""
    text: bytes = source.call("INFO", "keyspace")
    lines = (line for line in text.splitlines() if line.startswith(b"db"))
    return sorted(int(line[2 : line.index(b":")]) for line in lines)


def require_different_databases(source: Nodes, target: Nodes) -> None:
    """Raises :class:`ServerFailed` if both have the same database of the same server."""
    if source.all[0].db != target.all[0].db:
        return
    runs = {node.run_id() for node in source.all} - {None}
    if any(node.run_id() in runs for node in target.all):
        raise ServerFailed(f"the {source.name} and the {target.name} are the same database")


# --- counters --------------------------------------------------------------------------------


def read_head(server: ServerConnection, key: bytes) -> Head | None:
    """The counters of a stream, ``None`` if there is no such key."""
    try:
        fields = _fields(server.call("XINFO", "STREAM", key))
    except CommandRefused:
        if server.call("TYPE", key) == b"none":
            return None
        raise
    length: int = fields[b"length"]
    return Head(
        length,
        ids.parse(fields[b"last-generated-id"]),
        ids.parse(deleted) if (deleted := fields.get(b"max-deleted-entry-id")) else None,
        # Redis 7.0 counts the same way when it loads a stream that an older version has saved.
        fields.get(b"entries-added", length),
        fields[b"first-entry"],
        fields[b"last-entry"],
        _settings(fields),
        fields.get(b"iids-tracked", 0),
    )


def _settings(fields: dict[bytes, Reply]) -> Settings | None:
    if b"idmp-duration" not in fields:
        return None
    return Settings(fields[b"idmp-duration"], fields[b"idmp-maxsize"])


def _fields(reply: list[Reply]) -> dict[bytes, Reply]:
    """A map, which RESP2 writes as names and values in turn."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def read_expiry(server: ServerConnection, key: bytes) -> int | None:
    """When a key expires, in Unix milliseconds; ``None`` for never, or if there is no such key."""
    return read_expiries(server, [key])[0]


def read_expiries(server: ServerConnection, keys: list[bytes]) -> list[int | None]:
    """Return when several keys expire, as :func:`read_expiry` does."""
    if not server.knows("PEXPIRETIME"):
        return [_expiry_by_ttl(server, key) for key in keys]
    times = server.call_all([("PEXPIRETIME", key) for key in keys])
    return [time if time >= 0 else None for time in times]


def _expiry_by_ttl(server: ServerConnection, key: bytes) -> int | None:
    moment: Interval | None = None
    for _ in range(_TRIES):
        left = server.call_timed("PTTL", key)
        if left.reply < 0:
            return None
        moment = left.distant(left.reply).narrowed(moment)
        if moment.exact:
            break
    return moment.latest if moment else None


# --- entries ---------------------------------------------------------------------------------


def read_entries(
    server: ServerConnection, key: bytes, start: int, stop: int
) -> Iterator[list[Entry]]:
    """The entries from ``start`` to ``stop`` in pages of about :data:`PAGE_BYTES`."""
    count = _FIRST_PAGE
    last = ids.text(stop)
    while start <= stop:
        page: list[Entry] = server.call("XRANGE", key, ids.text(start), last, "COUNT", count)
        if page:
            yield page
        if len(page) < count:
            return
        start = entry_id(page[-1]) + 1
        count = max(1, min(2 * count, PAGE_ENTRIES, PAGE_BYTES * count // _size(page)))


def _size(page: list[Entry]) -> int:
    """Bytes of the fields and values of a page, and one, so that it is never zero."""
    return sum(sum(map(len, entry[1])) for entry in page) + 1


# --- groups ----------------------------------------------------------------------------------


def read_groups(server: ServerConnection, key: bytes) -> list[GroupState]:
    """The groups of a stream, in the order of their names."""
    groups = [_fields(reply) for reply in server.call("XINFO", "GROUPS", key)]
    consumers = server.call_all([("XINFO", "CONSUMERS", key, group[b"name"]) for group in groups])
    return [_group(fields, names) for fields, names in zip(groups, consumers, strict=True)]


def read_consumers(server: ServerConnection, key: bytes, group: bytes) -> frozenset[bytes]:
    """The names of the consumers of a group."""
    return _names(server.call("XINFO", "CONSUMERS", key, group))


def _names(consumers: list[Reply]) -> frozenset[bytes]:
    return frozenset(_fields(consumer)[b"name"] for consumer in consumers)


def _group(fields: dict[bytes, Reply], consumers: list[Reply]) -> GroupState:
    return GroupState(
        fields[b"name"],
        ids.parse(fields[b"last-delivered-id"]),
        fields.get(b"entries-read"),
        _names(consumers),
        fields[b"pending"],
    )


# --- pending entries -------------------------------------------------------------------------


def read_pending(
    server: ServerConnection, key: bytes, group: bytes, stop: int
) -> Iterator[Pending]:
    """The pending entries of a group with IDs up to ``stop``, in the order of their IDs.

    Their times are exact to the millisecond. XPENDING only tells how long ago an entry was
    delivered, so a page is requested again until the server's clock before and after the requests
    leaves a single millisecond for each entry. Each retry asks for half as many entries, which
    takes the server half as long.
    """
    start, count, tries = 0, PAGE_PENDING, 0
    last = ids.text(stop)
    moments: dict[int, Interval] = {}
    while start <= stop:
        page = server.call_timed("XPENDING", key, group, ids.text(start), last, count)
        moments = _delivered(page, moments)
        tries += 1
        if tries < _TRIES and not all(moment.exact for moment in moments.values()):
            count = max(1, count // 2)
            continue
        yield from (_pending(line, moments) for line in page.reply)
        if len(page.reply) < count:
            return
        start = ids.parse(page.reply[-1][0]) + 1
        count, tries, moments = min(2 * count, PAGE_PENDING), 0, {}


def _delivered(page: Timed, before: dict[int, Interval]) -> dict[int, Interval]:
    """When the entries of a page were delivered, narrowed by what is known from ``before``."""
    moments = {}
    for text, _, idle, _ in page.reply:
        if idle != RELEASED_IDLE:
            id = ids.parse(text)
            moments[id] = page.distant(-idle).narrowed(before.get(id))
    return moments


def _pending(line: list[Reply], moments: dict[int, Interval]) -> Pending:
    text, owner, _, deliveries = line
    id = ids.parse(text)
    if id not in moments:
        return Pending(id, None, 0, deliveries)
    return Pending(id, owner, moments[id].latest, deliveries)


def read_pending_ids(
    server: ServerConnection, key: bytes, groups: list[GroupState], start: int, stop: int
) -> Iterator[int]:
    """The IDs from ``start`` to ``stop`` that are pending in any of the groups, in order."""
    every = [_group_ids(server, key, group.name, start, stop) for group in groups if group.pending]
    previous = -1
    for id in heapq.merge(*every):
        if id != previous:
            yield id
        previous = id


def _group_ids(
    server: ServerConnection, key: bytes, group: bytes, start: int, stop: int
) -> Iterator[int]:
    while start <= stop:
        page = server.call("XPENDING", key, group, ids.text(start), ids.text(stop), PAGE_ENTRIES)
        yield from (ids.parse(line[0]) for line in page)
        if len(page) < PAGE_ENTRIES:
            return
        start = ids.parse(page[-1][0]) + 1
