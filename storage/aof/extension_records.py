# Compiled by mypyc.
"""Records for what no command of Redis can express.

A record is the command ``ECHO <payload>``, whose payload is a RESP array of bulk strings: the mark
:data:`MARK`, the record's name, its arguments. Other servers run ECHO when they load the file,
which has no effect. A record refers to the database that is selected at its position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from hiredis import ProtocolError, Reader

from storage.aof.commands import command, id_text, number
from storage.aof.errors import LoadError
from storage.engine.idempotency import IdempotencyTable
from storage.engine.limits import StreamLimits

MARK: Final = b"penstock:1"
"""The first word of a record: whose it is, and the number of the format."""

SETTINGS: Final = b"settings"
"""What follows in this file was written by Penstock, under these settings: the four of
:class:`StreamLimits`."""
SKIP: Final = b"skip"
"""The next commands, so many of them, are only for servers that do not know these records."""
SEEN: Final = b"seen"
"""Key, group, and for each consumer its name, its seen-time and its active-time."""
RELEASED: Final = b"released"
"""Key, group, and for each entry without an owner its ID and its delivery count."""
RELEASED_UNTIL: Final = b"released-until"
"""The same, with the time before which the group's policies keep each entry back."""
POLICY: Final = b"policy"
"""Key, and names and values of the policies that the stream has from now on."""
GROUP_POLICY: Final = b"group-policy"
"""Key, group, and names and values of the policies that the group has from now on."""
TRIMMED: Final = b"trimmed"
"""Key, and the IDs of single entries that a trimming removed."""
BLOCKS: Final = b"blocks"
"""Key, and the layout of its blocks."""
RETENTION: Final = b"idmp-retention"
"""Key, duration in seconds, and maxsize; as XCFGSET this forgets every idempotent ID."""
IIDS: Final = b"idmp-iids"
"""Key, and for each idempotent ID its producer, itself, the entry's ID, and when it was noted."""
DUPLICATE: Final = b"idmp-duplicate"
"""Key: another XADD was recognized as a duplicate."""
LIFETIME: Final = b"idmp-lifetime"
"""Key, how many idempotent IDs were ever noted, and how many duplicates recognized."""

_HEAD: Final = re.compile(rb"\*\d+\r\n\$\d+\r\n(penstock:[^\r\n]*)\r\n")
_FEWEST: Final = 2
_RECORDS_AT_ONCE: Final = 1000


def record(name: bytes, *arguments: bytes) -> bytes:
    """A record as a command."""
    return command(b"ECHO", command(MARK, name, *arguments))


def settings(limits: StreamLimits, measuring: bool = True) -> bytes:
    """The record that a file of Penstock begins with.

    Without ``measuring`` blocks may be of any number of bytes, as before a layout of them comes."""
    return record(
        SETTINGS,
        number(limits.max_entries),
        number(limits.max_bytes if measuring else 0),
        number(limits.idmp_duration),
        number(limits.idmp_maxsize),
    )


def skip(commands: int) -> bytes:
    """The record before commands that are only for other servers."""
    return record(SKIP, number(commands))


def seen(key: bytes, group: bytes, consumers: Sequence[tuple[bytes, int, int]]) -> list[bytes]:
    """Records of when these consumers were last seen and active."""
    records: list[bytes] = []
    for at in range(0, len(consumers), _RECORDS_AT_ONCE):
        words: list[bytes] = []
        for name, seen_ms, active_ms in consumers[at : at + _RECORDS_AT_ONCE]:
            words += (name, number(seen_ms), number(active_ms))
        records.append(record(SEEN, key, group, *words))
    return records


def policy(key: bytes, group: bytes | None, settings: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The record of the policies that a stream, or a group of it, has of its own."""
    words = [word for pair in settings for word in pair]
    if group is None:
        return record(POLICY, key, *words)
    return record(GROUP_POLICY, key, group, *words)


def retention(key: bytes, duration: int, maxsize: int) -> bytes:
    """The record of how long, in seconds, and how many idempotent IDs a stream remembers."""
    return record(RETENTION, key, number(duration), number(maxsize))


def iids(key: bytes, noted: Sequence[tuple[bytes, bytes, int, int]]) -> list[bytes]:
    """Records of idempotent IDs: producer, idempotent ID, the entry's ID, and when it was noted."""
    records: list[bytes] = []
    for at in range(0, len(noted), _RECORDS_AT_ONCE):
        words: list[bytes] = []
        for producer, iid, identity, time in noted[at : at + _RECORDS_AT_ONCE]:
            words += (producer, iid, id_text(identity), number(time))
        records.append(record(IIDS, key, *words))
    return records


def lifetime(key: bytes, table: IdempotencyTable) -> bytes:
    """The record of a stream's counters of idempotent producing."""
    return record(LIFETIME, key, number(table.added), number(table.duplicates))


def parse(payload: bytes) -> list[bytes] | None:
    """The name and the arguments of a record from what ECHO is given; ``None`` if it is not one.

    Raises :class:`LoadError` if it is one of a format that is not known, or damaged.
    """
    head = _HEAD.match(payload)
    if head is None:
        return None
    if head[1] != MARK:
        known, other = MARK.decode(), head[1].decode("ascii", "backslashreplace")
        raise LoadError(f"a record of the format {other}, where only {known} is known")
    words = _words(payload)
    if len(words) < _FEWEST or command(*words) != payload:
        raise LoadError("a damaged record")
    return words[1:]


def _words(payload: bytes) -> list[bytes]:
    """The words of a record, none if it is damaged."""
    reader = Reader()
    reader.feed(payload)
    try:
        words: Any = reader.gets()
    except ProtocolError:
        return []
    if type(words) is not list or any(type(word) is not bytes for word in words):
        return []
    return words
