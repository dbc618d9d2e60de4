"""Reads a stream page by page, so that no server has to send a large reply."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

from penstock.migration.client import End, Moment, Reply, Timed
from penstock.migration.errors import CommandRefused
from penstock.migration.values import Entry, Group, Head, Pending, Settings, entry_id
from storage import ids

PAGE_BYTES: Final = 1 << 20
"""About how much an answer with entries should hold."""

PAGE_ENTRIES: Final = 1000

PAGE_PENDING: Final = 250
"""How many pending entries are asked for at once where their times matter."""

_FIRST_PAGE: Final = 16
_TRIES: Final = 100

RELEASED_IDLE: Final = -1
"""The idle time that XPENDING shows for an entry whose owner XNACK took away."""


# --- counters --------------------------------------------------------------------------------


def read_head(end: End, key: bytes) -> Head | None:
    """The counters of a stream, ``None`` if there is no such key."""
    try:
        fields = _fields(end.ask("XINFO", "STREAM", key))
    except CommandRefused:
        if end.ask("TYPE", key) == b"none":
            return None
        raise
    length: int = fields[b"length"]
    return Head(
        length,
        ids.parse(fields[b"last-generated-id"]),
        _optional_id(fields.get(b"max-deleted-entry-id")),
        # Redis 7.0 counts the same way when it loads a stream that an older version has saved.
        fields.get(b"entries-added", length),
        fields[b"first-entry"],
        fields[b"last-entry"],
        _settings(fields),
        fields.get(b"iids-tracked", 0),
    )


def _optional_id(text: bytes | None) -> int | None:
    return None if text is None else ids.parse(text)


def _settings(fields: dict[bytes, Reply]) -> Settings | None:
    if b"idmp-duration" not in fields:
        return None
    return Settings(fields[b"idmp-duration"], fields[b"idmp-maxsize"])


def _fields(reply: list[Reply]) -> dict[bytes, Reply]:
    """A map, which RESP2 writes as names and values in turn."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def read_expiry(end: End, key: bytes) -> int | None:
    """When a key expires, in Unix milliseconds; ``None`` for never, or if there is no such key."""
    return read_expiries(end, [key])[0]


def read_expiries(end: End, keys: list[bytes]) -> list[int | None]:
    """The same for several keys."""
    if not end.knows("PEXPIRETIME"):
        return [_expiry_by_ttl(end, key) for key in keys]
    times = end.ask_all([("PEXPIRETIME", key) for key in keys])
    return [time if time >= 0 else None for time in times]


def _expiry_by_ttl(end: End, key: bytes) -> int | None:
    moment: Moment | None = None
    for _ in range(_TRIES):
        left = end.ask_timed("PTTL", key)
        if left.reply < 0:
            return None
        moment = left.distant(left.reply).narrowed(moment)
        if moment.exact:
            break
    return moment.latest if moment else None


# --- entries ---------------------------------------------------------------------------------


def read_entries(end: End, key: bytes, start: int, stop: int) -> Iterator[list[Entry]]:
    """The entries from ``start`` to ``stop`` in pages of about :data:`PAGE_BYTES`."""
    count = _FIRST_PAGE
    last = ids.text(stop)
    while start <= stop:
        page: list[Entry] = end.ask("XRANGE", key, ids.text(start), last, "COUNT", count)
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


def read_groups(end: End, key: bytes) -> list[Group]:
    """The groups of a stream, in the order of their names."""
    groups = [_fields(reply) for reply in end.ask("XINFO", "GROUPS", key)]
    consumers = end.ask_all([("XINFO", "CONSUMERS", key, group[b"name"]) for group in groups])
    return [_group(fields, names) for fields, names in zip(groups, consumers, strict=True)]


def read_consumers(end: End, key: bytes, group: bytes) -> frozenset[bytes]:
    """The names of the consumers of a group."""
    return _names(end.ask("XINFO", "CONSUMERS", key, group))


def _names(consumers: list[Reply]) -> frozenset[bytes]:
    return frozenset(_fields(consumer)[b"name"] for consumer in consumers)


def _group(fields: dict[bytes, Reply], consumers: list[Reply]) -> Group:
    return Group(
        fields[b"name"],
        ids.parse(fields[b"last-delivered-id"]),
        fields.get(b"entries-read"),
        _names(consumers),
        fields[b"pending"],
    )


# --- pending entries -------------------------------------------------------------------------


def read_pending(end: End, key: bytes, group: bytes, stop: int) -> Iterator[Pending]:
    """The pending entries of a group with IDs up to ``stop``, in the order of their IDs.

    Their times are exact to the millisecond. XPENDING tells only how long ago an entry was
    delivered, so a page is asked for until what the server's clock showed before and after each
    try leaves one millisecond for each of its entries. The next try asks for half as many, which
    takes the server half as long.
    """
    start, count, tries = 0, PAGE_PENDING, 0
    last = ids.text(stop)
    moments: dict[int, Moment] = {}
    while start <= stop:
        page = end.ask_timed("XPENDING", key, group, ids.text(start), last, count)
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


def _delivered(page: Timed, before: dict[int, Moment]) -> dict[int, Moment]:
    """When the entries of a page were delivered, with what is known from ``before``."""
    moments = {}
    for text, _, idle, _ in page.reply:
        if idle != RELEASED_IDLE:
            identity = ids.parse(text)
            moments[identity] = page.distant(-idle).narrowed(before.get(identity))
    return moments


def _pending(line: list[Reply], moments: dict[int, Moment]) -> Pending:
    text, owner, _, deliveries = line
    identity = ids.parse(text)
    if identity not in moments:
        return Pending(identity, None, 0, deliveries)
    return Pending(identity, owner, moments[identity].latest, deliveries)


def read_pending_ids(
    end: End, key: bytes, groups: list[Group], start: int, stop: int
) -> Iterator[int]:
    """The IDs from ``start`` to ``stop`` that are pending in any of the groups, in order."""
    every = [_group_ids(end, key, group.name, start, stop) for group in groups if group.pending]
    previous = -1
    for identity in heapq.merge(*every):
        if identity != previous:
            yield identity
        previous = identity


def _group_ids(end: End, key: bytes, group: bytes, start: int, stop: int) -> Iterator[int]:
    while start <= stop:
        page = end.ask("XPENDING", key, group, ids.text(start), ids.text(stop), PAGE_ENTRIES)
        yield from (ids.parse(line[0]) for line in page)
        if len(page) < PAGE_ENTRIES:
            return
        start = ids.parse(page[-1][0]) + 1
