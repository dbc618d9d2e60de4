"""Writing RDB: a keyspace as a file, for servers that replicate it and for SAVE; values as the
payloads of DUMP.

What the format has no place for is left out: idempotent IDs with their retention, where blocks had
entries that are deleted, and, for Redis 7.0, active-times of consumers. Pending entries that XNACK
has released are pending for the consumer ``""`` since 1970, as in the append-only file for other
servers. Nothing is compressed: that is optional in the format, and would take longer than all the
rest. The keyspace must not change while it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from struct import pack
from typing import Any, Final, NamedTuple

from storage.checksums import crc64
from storage.chunks import in_chunks
from storage.engine.block import Block
from storage.engine.entries import unpack
from storage.engine.groups import Group
from storage.engine.ids import HALF
from storage.engine.pending import Consumer, PendingEntry
from storage.engine.stream import Stream, unsigned
from storage.keyspace.databases import Database, Keyspace
from storage.rdb import codes, listpack
from storage.types.hash import Hash
from storage.types.kinds import Value
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

_INTEGER: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,9})\Z")
_LONGEST: Final = 11
"""Bytes of the longest integer of 32 bits as text."""
_UNKNOWN: Final = HALF
"""Entries-read that are not known, -1 as an unsigned number."""
_AT_ONCE: Final = 500
"""How many pending entries make a piece."""
_KEPT: Final = bytes((codes.SAME_FIELDS, 1))
_OTHER: Final = bytes((0, 1))
"""The flags of entries with the field names of their node and with others, as elements."""


# --- files -----------------------------------------------------------------------------------


def write_rdb(
    keyspace: Keyspace,
    *,
    version: int,
    aux: Iterable[tuple[bytes, bytes]] = (),
    libraries: bool = True,
    keys: bool = True,
) -> Iterator[bytes]:
    """Return the contents of an RDB file in chunks, the last of which is the checksum.

    ``version`` is :data:`codes.REDIS_7_0`, :data:`codes.REDIS_7_2`, or :data:`codes.VALKEY`, which
    differs from the second only in how strings of 16378, 2097146 and 268435450 bytes are stored:
    Valkey 9 reads no such entries from Redis's files, and Redis none from Valkey's. ``aux`` are
    names and values for its beginning, which say who has written it (``redis-ver``...).
    ``libraries`` of functions and ``keys`` may be left out."""
    pieces = chain(
        _beginning(version, aux),
        _libraries(keyspace) if libraries else (),
        _keys(keyspace, version) if keys else (),
        (bytes((codes.END,)),),
    )
    checksum = 0
    for chunk in in_chunks(pieces):
        checksum = crc64(chunk, checksum)
        yield chunk
    yield checksum.to_bytes(8, "little")


def _beginning(version: int, aux: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    yield b"VALKEY%03d" % version if version == codes.VALKEY else b"REDIS%04d" % version
    for name, value in aux:
        yield bytes((codes.AUX,)) + raw(name) + string(value)


def _libraries(keyspace: Keyspace) -> Iterator[bytes]:
    for code in keyspace.libraries.values():
        yield bytes((codes.FUNCTION,)) + raw(code)


def _keys(keyspace: Keyspace, version: int) -> Iterator[bytes]:
    for database in keyspace.databases:
        if database.values:
            yield from _database(database, version)


def _database(database: Database, version: int) -> Iterator[bytes]:
    yield bytes((codes.SELECT,)) + length(database.index)
    sizes = length(len(database.values)) + length(len(database.expires))
    yield bytes((codes.RESIZE,)) + sizes
    for key, value in database.values.items():
        at = database.expires.get(key)
        if at is not None:
            yield bytes((codes.EXPIRES_MS,)) + milliseconds(at)
        yield bytes((value_type(value, version),)) + string(key)
        yield from value_pieces(value, version)


# --- payloads --------------------------------------------------------------------------------


def dump(value: Value, version: int | None = None) -> bytes:
    """Return the payload that makes the value anew, by default in the oldest version that holds all
    of it: the value, the version, a checksum."""
    return b"".join(dump_chunks(value, version))


def dump_chunks(value: Value, version: int | None = None) -> Iterator[bytes]:
    """Yield the parts of what :func:`dump` returns; the value may not change meanwhile."""
    version = version or needed_version(value)
    kind, footer = bytes((value_type(value, version),)), version.to_bytes(2, "little")
    checksum = 0
    for chunk in in_chunks(chain((kind,), value_pieces(value, version), (footer,))):
        checksum = crc64(chunk, checksum)
        yield chunk
    yield checksum.to_bytes(8, "little")


def dump_libraries(libraries: Iterable[bytes]) -> bytes:
    """Return the payload of FUNCTION DUMP for libraries with this code."""
    marked = [bytes((codes.FUNCTION,)) + raw(code) for code in libraries]
    return _with_footer(b"".join(marked), codes.NEWEST)


def _with_footer(data: bytes, version: int) -> bytes:
    data += version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


# --- parts -----------------------------------------------------------------------------------


def length(value: int) -> bytes:
    """A length, or another unsigned number below 2**64."""
    if value < 1 << 6:
        return bytes((value,))
    if value < 1 << 14:
        return bytes((0x40 | value >> 8, value & 0xFF))
    if value < 1 << 32:
        return b"\x80" + value.to_bytes(4, "big")
    return b"\x81" + value.to_bytes(8, "big")


def raw(data: bytes) -> bytes:
    """A string as it is."""
    return length(len(data)) + data


def string(data: bytes) -> bytes:
    """A string; the text of an integer of up to 32 bits is stored as one."""
    if 0 < len(data) <= _LONGEST and _INTEGER.match(data):
        value = int(data)
        for kind, size in ((codes.INT_8, 1), (codes.INT_16, 2), (codes.INT_32, 4)):
            if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
                return bytes((kind,)) + value.to_bytes(size, "little", signed=True)
    return raw(data)


def milliseconds(value: int) -> bytes:
    """A time."""
    return value.to_bytes(8, "little", signed=True)


class _Form(NamedTuple):
    """How the values of a class are stored."""

    code: Callable[[Any, int], int]
    """Returns the type of a value in an RDB of a version."""
    pieces: Callable[[Any, int], Iterator[bytes]]
    """Returns what follows the type in an RDB of a version."""
    version: Callable[[Any], int]
    """Returns the oldest version that holds all of a value."""


def value_type(value: Value, version: int) -> int:
    """Return the type of a value in an RDB of this version."""
    return _FORMS[type(value)].code(value, version)


def value_pieces(value: Value, version: int) -> Iterator[bytes]:
    """Return what follows the type, in pieces."""
    return _FORMS[type(value)].pieces(value, version)


def needed_version(value: Value) -> int:
    """Return the oldest version that holds all of a value that any version holds."""
    return _FORMS[type(value)].version(value)


# --- strings ---------------------------------------------------------------------------------


def _string_type(value: Value, version: int) -> int:
    return codes.STRING


def _string_pieces(value: bytes | bytearray, version: int) -> Iterator[bytes]:
    yield string(bytes(value))


def _any_version(value: Value) -> int:
    return codes.REDIS_7_0


# --- collections -----------------------------------------------------------------------------


def _list_type(value: ListValue, version: int) -> int:
    return codes.LIST


def _list(value: ListValue, version: int) -> Iterator[bytes]:
    """Every element."""
    yield length(len(value))
    yield from map(string, value.elements)


def _sorted_set_type(value: SortedSet, version: int) -> int:
    return codes.ZSET


def _sorted_set(value: SortedSet, version: int) -> Iterator[bytes]:
    """Every member with its score, from the last on: so Redis adds each before all others."""
    yield length(len(value))
    items = value.items(0, len(value))
    items.reverse()
    for score, member in items.pairs():
        yield string(member) + pack("<d", score)


def _set_type(value: SetValue, version: int) -> int:
    return codes.SET


def _set(value: SetValue, version: int) -> Iterator[bytes]:
    """Every member."""
    yield length(len(value))
    yield from map(string, value.ordered())


def _hash_type(value: Hash, version: int) -> int:
    """Up to Redis 7.2 and Valkey 8.1 no field expires; what cannot be said is left out."""
    if not value.times or version < codes.NEWEST:
        return codes.HASH
    return codes.HASH_EXPIRING_VALKEY if version == codes.VALKEY else codes.HASH_EXPIRING


def _version_of_hash(value: Hash) -> int:
    return codes.NEWEST if value.times else codes.REDIS_7_0


def _hash(value: Hash, version: int) -> Iterator[bytes]:
    """Every field with its value, and its time if it has one."""
    kind, times = _hash_type(value, version), value.times
    first = min(times.values(), default=0)
    if kind == codes.HASH_EXPIRING:
        yield milliseconds(first)
    yield length(len(value))
    for field, text in value.fields.items():
        pair = string(field) + string(text)
        if kind == codes.HASH_EXPIRING:
            yield length(times[field] - first + 1 if field in times else 0) + pair
        elif kind == codes.HASH_EXPIRING_VALKEY:
            yield pair + milliseconds(times.get(field, -1))
        else:
            yield pair


# --- streams ---------------------------------------------------------------------------------


def _stream_type(value: Value, version: int) -> int:
    return codes.STREAM_7_2 if version >= codes.REDIS_7_2 else codes.STREAM_7_0


def _version_of_times(stream: Stream) -> int:
    """Up to Redis 7.0 a consumer had one time, which newer servers take for both of its times."""
    for group in stream.groups.values():
        for consumer in group.consumers.values():
            if consumer.active != consumer.seen:
                return codes.REDIS_7_2
    return codes.REDIS_7_0


def _stream(stream: Stream, version: int) -> Iterator[bytes]:
    log = stream.log
    yield length(len(log.blocks))
    for block in log.blocks:
        yield b"\x10" + block.first.to_bytes(16, "big")
        yield raw(_listpack(block, version == codes.VALKEY))
    numbers = [log.length, *_halves(stream.last_id), *_halves(log.first)]
    numbers += [*_halves(stream.max_deleted_id), unsigned(stream.entries_added)]
    numbers.append(len(stream.groups))
    yield b"".join(map(length, numbers))
    for group in stream.groups_in_order():
        yield from _group(group, version)


def _halves(entry_id: int) -> tuple[int, int]:
    return entry_id >> 64, entry_id & HALF


def _listpack(block: Block, valkey: bool) -> bytes:
    """The node of a block; deleted entries are left out."""
    entry_ids, payloads = block.contents()
    names, first_ms, first_seq = block.names, block.first >> 64, block.first & HALF
    parts = [listpack.integer(len(entry_ids)), listpack.integer(0), listpack.integer(len(names))]
    for name in names:
        listpack.add_text(parts, name, valkey)
    parts.append(listpack.integer(0))
    count = len(names) + 4
    same_end = listpack.integer(len(names) + 3)
    entries = unpack(b"*%d\r\n%b" % (len(payloads), b"".join(payloads)))
    for entry_id, entry in zip(entry_ids, entries, strict=True):
        items: list[bytes] = entry[1]
        same = items[::2] == names
        parts.append(_KEPT if same else _OTHER)
        parts.append(listpack.integer(_signed((entry_id >> 64) - first_ms)))
        parts.append(listpack.integer(_signed((entry_id & HALF) - first_seq)))
        if same:
            stored, end = items[1::2], same_end
        else:
            stored, end = items, listpack.integer(len(items) + 4)
            parts.append(listpack.integer(len(items) // 2))
            count += 1
        for item in stored:
            listpack.add_text(parts, item, valkey)
        parts.append(end)
        count += len(stored) + 4
    return listpack.framed(parts, count)


def _signed(value: int) -> int:
    """A difference of unsigned halves as the 64-bit integer it is stored as."""
    value &= HALF
    return value - 2**64 if value >= 2**63 else value


# --- groups ----------------------------------------------------------------------------------


def _group(group: Group, version: int) -> Iterator[bytes]:
    read = _UNKNOWN if group.entries_read is None else unsigned(group.entries_read)
    yield raw(group.name) + b"".join(map(length, (*_halves(group.last_id), read)))
    yield length(len(group.pending))
    start = 0
    while entries := _pending_from(group, start):
        yield b"".join(map(_pending, entries))
        start = entries[-1].id + 1
    yield from _consumers(group, version)


def _pending_from(group: Group, start: int) -> list[PendingEntry]:
    """Some pending entries from an ID on."""
    columns = group.pending.columns(start, 2**128, _AT_ONCE)
    every = zip(columns.ids, columns.owners, columns.times, columns.counts, strict=True)
    return [PendingEntry(*each) for each in every]


def _pending(entry: PendingEntry) -> bytes:
    time = 0 if entry.owner is None else entry.time
    return b"".join((entry.id.to_bytes(16, "big"), milliseconds(time), length(entry.deliveries)))


def _consumers(group: Group, version: int) -> Iterator[bytes]:
    """The consumers by name. Entries without an owner belong to the one without a name, which has
    been idle since 1970 if there is none."""
    consumers = dict(group.consumers)
    pending = group.pending
    unowned = pending.unowned
    if unowned and codes.NOBODY not in consumers:
        nobody = consumers[codes.NOBODY] = Consumer(codes.NOBODY, 0)
        nobody.active = 0
    yield length(len(consumers))
    for name in sorted(consumers):
        consumer = consumers[name]
        times = milliseconds(consumer.seen)
        if version >= codes.REDIS_7_2:
            times += milliseconds(consumer.active)
        yield raw(name) + times + length(consumer.owned + (name == codes.NOBODY) * unowned)
        yield from _ids(partial(pending.owned_ids, consumer))
        if name == codes.NOBODY:
            yield from _ids(lambda start, most: pending.columns_unowned(start, most).ids)


def _ids(find: Callable[[int, int], list[int]]) -> Iterator[bytes]:
    """The IDs that are found from an ID on, so many at a time."""
    start = 0
    while found := find(start, _AT_ONCE):
        yield b"".join([entry_id.to_bytes(16, "big") for entry_id in found])
        start = found[-1] + 1


_STRING: Final = _Form(_string_type, _string_pieces, _any_version)
_FORMS: Final[dict[type, _Form]] = {
    bytes: _STRING,
    bytearray: _STRING,
    Hash: _Form(_hash_type, _hash, _version_of_hash),
    ListValue: _Form(_list_type, _list, _any_version),
    SetValue: _Form(_set_type, _set, _any_version),
    SortedSet: _Form(_sorted_set_type, _sorted_set, _any_version),
    Stream: _Form(_stream_type, _stream, _version_of_times),
}
"""How values are stored, by their class (see :mod:`storage.types.kinds`)."""
