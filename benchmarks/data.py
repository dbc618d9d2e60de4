"""What a server holds before a load: one stream with its groups, consumers and pending entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.driver import Address, Client, LoadError, pack

KEY: Final = "s"
FIRST_MS: Final = 10**12
"""The time of the first entry; so clients can put a random number of twelve digits behind a 1."""
PER_MS: Final = 10
"""How many entries share a millisecond."""
FIELDS: Final = ("sensor-id", "1234", "temperature", "19.8")
READ: Final = 1000
"""How many entries one command makes pending at most."""


def entry_id(index: int) -> bytes:
    """The ID of an entry, all of the same length; the first has index 0."""
    return b"%d-%d" % (FIRST_MS + index // PER_MS, index % PER_MS)


_ADD: Final = pack("XADD", KEY, entry_id(0), *FIELDS).replace(entry_id(0), b"%b")


def group_name(index: int) -> str:
    """A group's name, in which redis-benchmark can put a random number for the index."""
    return f"g:{index:012}"


def consumer_name(index: int) -> str:
    """The same of a consumer."""
    return f"c:{index:012}"


def key_name(index: int) -> str:
    """The name of a string key; the first has index 0."""
    return f"key:{index}"


@dataclass(frozen=True)
class Data:
    """One stream. ``pending`` of the entries have been delivered in the first group, in equal
    parts, one after the other, to its consumers; everything else is unread in every group.

    Beside it there may be ``keys`` that hold strings, and small ``streams`` with a group each; so
    many ``collections`` of each type with :data:`ELEMENTS` elements (lists have ten times as many),
    and a sorted set ``one`` with
    so many ``members``.
    ``commands`` is how many there are in a file that is loaded instead.
    """

    entries: int = 0
    groups: int = 0
    consumers: int = 1
    pending: int = 0
    keys: int = 0
    streams: int = 0
    commands: int = 0
    collections: int = 0
    members: int = 0

    def scaled(self, factor: float) -> Data:
        """The same with more or less of everything that there is much of."""
        return replace(
            self,
            entries=_scaled(self.entries, factor),
            groups=self.groups if self.groups <= 10 else _scaled(self.groups, factor),
            consumers=self.consumers if self.consumers <= 10 else _scaled(self.consumers, factor),
            pending=_scaled(self.pending, factor),
            keys=_scaled(self.keys, factor),
            streams=_scaled(self.streams, factor),
            commands=_scaled(self.commands, factor),
            collections=_scaled(self.collections, factor),
            members=_scaled(self.members, factor),
        )

    @property
    def milliseconds(self) -> int:
        """How many different times the entries have."""
        return -(-self.entries // PER_MS)

    @property
    def pending_milliseconds(self) -> int:
        """How many different times the pending entries have."""
        return -(-self.pending // PER_MS)

    @property
    def unread(self) -> int:
        """How many deliveries the groups have before them; the first counts for all of them."""
        return (self.entries - self.pending) * max(self.groups, 1)


ELEMENTS: Final = 20
"""How many elements each of the collections has."""

MEMBERS_AT_ONCE: Final = 500
"""How many members a ZADD brings that fills a sorted set."""

EMPTY: Final = Data()


def _scaled(count: int, factor: float) -> int:
    return max(int(count * factor), 1) if count else 0


def prepare(address: Address, data: Data) -> None:
    """Fills a server that is empty."""
    with Client(address) as client:
        client.feed(_entries(data.entries))
        client.feed(
            pack("XGROUP", "CREATE", KEY, group_name(index), 0, "MKSTREAM")
            for index in range(data.groups)
        )
        client.feed(_deliveries(data), batch=10)
        client.feed(pack("SET", key_name(index), "value") for index in range(data.keys))
        client.feed(_small_streams(data.streams))
        client.feed(_collections(data.collections))
        client.feed(_members(data.members))
        if data.entries and client.call("XLEN", KEY) != data.entries:
            raise LoadError("the server has not taken every entry")


def _entries(count: int) -> Iterator[bytes]:
    for index in range(count):
        yield _ADD % entry_id(index)


def _small_streams(count: int) -> Iterator[bytes]:
    for index in range(count):
        yield pack("XGROUP", "CREATE", f"stream:{index}", "readers", 0, "MKSTREAM")
        yield pack("XADD", f"stream:{index}", entry_id(index), "field", "value")


def _collections(count: int) -> Iterator[bytes]:
    """One key of each type for each number, under the names that redis-benchmark makes."""
    numbers = range(ELEMENTS)
    fields = [word for at in numbers for word in (f"field:{at}", "value-of-the-field")]
    scored = [word for at in numbers for word in (str(at), f"member:{at}")]
    for index in range(count):
        name = f"{index:012d}"
        yield pack("HSET", f"hash:{name}", *fields)
        yield pack("RPUSH", f"list:{name}", *(["element-of-the-list"] * 10 * ELEMENTS))
        yield pack("SADD", f"set:{name}", *(f"member:{at}" for at in numbers))
        yield pack("ZADD", f"zset:{name}", *scored)


def _members(count: int) -> Iterator[bytes]:
    for first in range(0, count, MEMBERS_AT_ONCE):
        some = range(first, min(first + MEMBERS_AT_ONCE, count))
        yield pack("ZADD", "one", *(word for at in some for word in (at, f"member:{at:012d}")))


def _deliveries(data: Data) -> Iterator[bytes]:
    share = -(-data.pending // data.consumers)
    left = data.pending
    for index in range(data.consumers):
        mine = min(share, left)
        left -= mine
        while mine:
            count = min(mine, READ)
            mine -= count
            yield read_new(group_name(0), consumer_name(index), count)


def read_new(group: str, consumer: str, count: int) -> bytes:
    """A packed command that delivers new entries to a consumer."""
    return pack("XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", KEY, ">")
