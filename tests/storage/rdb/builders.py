"""RDB files and payloads made by hand, to have in them what servers at hand do not write."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from storage.checksums import crc64
from storage.engine.limits import StreamLimits
from storage.keyspace.databases import Keyspace
from storage.rdb import codes
from storage.rdb.listpack import add_text, integer
from storage.rdb.read import Item, Key, read_rdb
from storage.rdb.source import Source
from storage.rdb.write import length, raw

SAMPLES: Final = Path(__file__).parent / "samples"
"""Files of real servers, all with the same keys."""


def sample(name: str) -> bytes:
    """The file that a real server wrote."""
    return (SAMPLES / f"{name}.rdb").read_bytes()


def rdb_file(*pieces: bytes, magic: bytes = b"REDIS0012") -> bytes:
    """A file with these pieces between its beginning and its end."""
    data = magic + b"".join(pieces) + bytes((codes.END,))
    return data + crc64(data).to_bytes(8, "little")


def payload(data: bytes, version: int = 12) -> bytes:
    """What DUMP makes of a type and its value."""
    data += version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


def items_of(data: bytes, chunk: int = 1 << 20) -> list[Item]:
    """All items of a file that is read in chunks of this size."""
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    return list(read_rdb(Source(chunks), StreamLimits()))


def keys_of(data: bytes) -> dict[bytes, Key]:
    """The keys of a file by name."""
    return {item.key: item for item in items_of(data) if isinstance(item, Key)}


def keyspace_of(data: bytes) -> Keyspace:
    """A keyspace with the strings and streams of a file."""
    keyspace = Keyspace()
    for item in items_of(data):
        if isinstance(item, Key) and item.value is not None:
            database = keyspace.databases[item.db]
            database.attach(item.key, item.value)
            if item.expires_at is not None:
                database.expire_at(item.key, item.expires_at)
    keyspace.check()
    return keyspace


def a_node(*elements: bytes) -> bytes:
    """A listpack of these elements, with its two counts in front."""
    size = 6 + sum(map(len, elements)) + 1
    head = size.to_bytes(4, "little") + len(elements).to_bytes(2, "little")
    return head + b"".join(elements) + b"\xff"


def words(*items: int | bytes) -> bytes:
    """Elements of a listpack."""
    parts: list[bytes] = []
    for item in items:
        if isinstance(item, int):
            parts.append(integer(item))
        else:
            add_text(parts, item)
    return b"".join(parts)


def node(*items: int | bytes) -> bytes:
    """A listpack of these elements."""
    return a_node(*(words(item) for item in items))


def a_stream(
    *nodes: tuple[int, bytes],
    entries: int = 1,
    last: tuple[int, int] = (1, 1),
    deleted: tuple[int, int] = (0, 0),
    added: int | None = None,
    groups: bytes = b"\0",
) -> bytes:
    """A stream of Redis 7.2, with its type, of nodes under these IDs."""
    parts = [bytes((codes.STREAM_7_2,)), length(len(nodes))]
    for entry_id, node in nodes:
        parts += [raw(entry_id.to_bytes(16, "big")), raw(node)]
    numbers = (entries, *last, 1, 1, *deleted, entries if added is None else added)
    return b"".join([*parts, *map(length, numbers), groups])
