"""Streams from the types of values that Redis 5.0 and later write.

Each node becomes a block of the same size with the same beginning, so that what clients can see of
nodes stays as it was. Everything in it is verified: what a damaged file says of a stream that could
not be has :class:`DamagedRDB` raised.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from storage.engine.block import Block, is_near
from storage.engine.entries import line_before
from storage.engine.groups import Group
from storage.engine.ids import HALF, MIN, NATIVE, join, split, text
from storage.engine.limits import StreamLimits
from storage.engine.pending import HIGHEST, Consumer
from storage.engine.runs import text_of
from storage.engine.stream import Stream
from storage.rdb import codes
from storage.rdb.listpack import DamagedListpack, ListpackReader
from storage.rdb.source import DamagedRDB, Source
from storage.steps import InSteps

if TYPE_CHECKING:
    from mypy_extensions import i64

_KEY: Final = 16
"""Bytes of an ID that is stored as such."""
_UNKNOWN: Final = HALF
"""Entries-read that are not known."""
_COUNTED: Final = 3
"""What an entry counts as its own elements beside its fields and values: flags and ID."""

Pending = dict[int, tuple[int, int]]
"""Delivery time and delivery count of pending entries by ID."""


def read_stream(source: Source, kind: int, limits: StreamLimits) -> InSteps[Stream]:
    """The stream that is stored as this type. Raises :class:`DamagedRDB`."""
    stream = Stream(limits)
    for _ in range(source.length()):
        _add_node(source, stream)
        yield
    offset = source.offset
    length = source.length()
    last_id = _entry_id(source)
    added, max_deleted_id = length, MIN
    if kind != codes.STREAM_5_0:
        _entry_id(source)  # The ID of the first entry, which the entries tell.
        max_deleted_id = _entry_id(source)
        added = source.length()
    if length != stream.log.length:
        found = stream.log.length
        raise DamagedRDB(offset, f"a stream of {length} entries that has {found}")
    if not stream.set_counters(last_id, added, max_deleted_id):
        raise DamagedRDB(offset, "counters of a stream that do not fit its entries")
    for _ in range(source.length()):
        _add_group(source, kind, stream)
        yield
    return stream


def _entry_id(source: Source) -> int:
    ms = source.length()
    return ms << 64 | source.length()


def _raw_entry_id(source: Source) -> int:
    return int.from_bytes(source.take(_KEY), "big")


# --- entries ---------------------------------------------------------------------------------


def _add_node(source: Source, stream: Stream) -> None:
    """Adds the entries of a node, if any is left in it."""
    offset = source.offset
    key = source.string()
    if len(key) != _KEY:
        raise DamagedRDB(offset, "a node of a stream whose ID does not have 16 bytes")
    first = int.from_bytes(key, "big")
    blocks = stream.log.blocks
    if blocks and first <= blocks[-1].last:
        raise DamagedRDB(offset, "a node of a stream that begins before the one before it ends")
    offset = source.offset
    data = source.string()
    try:
        block = _Node(first, data).block()
    except DamagedListpack as error:
        # Within compressed data there is no offset that would say more.
        inside = source.offset - offset > len(data)
        at = source.offset - len(data) + error.offset if inside else offset
        raise DamagedRDB(at, error.reason) from None
    except ValueError as wrong:
        raise DamagedRDB(offset, str(wrong)) from None
    except IndexError:
        raise DamagedRDB(offset, "a node of a stream ends early") from None
    if block is not None:
        stream.log.append_block(block)


class _Entries:
    """The ``count`` entries of a node that was verified, as they are there."""

    __slots__ = ("_data", "_first", "count", "lowest", "size")

    def __init__(self, first: int, data: bytes, count: int, lowest: int) -> None:
        self._first = first
        self._data = data
        self.count = count
        self.lowest = lowest
        self.size = len(data)

    def unfold(self) -> tuple[list[int], list[bytes]]:
        """Return their IDs and their RESP forms."""
        return _Node(self._first, self._data, unfolds=True).entries()


class _Node:
    """Verifies a node, and takes it apart if it ``unfolds``: makes the RESP form of each of its
    entries. Every method raises :class:`DamagedListpack`, :class:`ValueError` with a reason, or
    :class:`IndexError` where the elements end early."""

    __slots__ = (
        "_elements",
        "_first",
        "_first_ms",
        "_first_seq",
        "_gone",
        "_ids",
        "_live",
        "_lowest",
        "_ms",
        "_names",
        "_near",
        "_payloads",
        "_seq",
        "_unfolds",
    )

    def __init__(self, first: int, data: bytes, unfolds: bool = False) -> None:
        self._first = first
        self._first_ms, self._first_seq = split(first)
        self._ms, self._seq = split(max(first - 1, MIN))
        """The halves of the last ID so far."""
        self._elements = ListpackReader(data)
        self._names: list[bytes] = []
        self._live = self._gone = 0
        self._lowest = MIN
        self._ids: list[int] = []
        self._payloads: list[bytes] = []
        self._near = True
        self._unfolds = unfolds

    def block(self) -> Block | None:
        """The block; ``None`` if all entries are deleted."""
        self._read()
        if not self._live:
            return None
        last, data = join(self._ms, self._seq), self._elements.data
        node = _Entries(self._first, data, self._live, self._lowest)
        return Block.of_node(self._first, last, self._names, self._gone, node, self._near)

    def entries(self) -> tuple[list[int], list[bytes]]:
        """The IDs of the live entries, and their RESP forms."""
        self._read()
        return self._ids, self._payloads

    def _read(self) -> None:
        """Reads all elements."""
        live, deleted = self._number(), self._number()
        self._names = [self._text() for _ in range(self._number())]
        if self._number() != 0:
            raise ValueError("a node of a stream whose field names do not end")
        heads = [line_before(len(name)) + name for name in self._names]
        while not self._elements.is_at_end():
            flags = self._number()
            if flags > codes.DELETED | codes.SAME_FIELDS:
                raise ValueError("an entry of a stream with unknown flags")
            self._read_entry(flags, heads)
        if (live, deleted) != (self._live, self._gone):
            raise ValueError("a node of a stream with a wrong number of entries")

    def _read_entry(self, flags: int, heads: list[bytes]) -> None:
        """Reads an entry; ``heads`` are the node's field names in RESP."""
        above_ms: int = self._signed()
        above_seq: int = self._signed()
        ms, seq = self._first_ms + above_ms, self._first_seq + above_seq
        if not (0 <= ms < NATIVE and 0 <= seq < NATIVE):
            ms, seq = ms & HALF, seq & HALF
        if ms < self._ms or (ms == self._ms and seq <= self._seq):
            raise ValueError("entries of a stream that are not in the order of their IDs")
        self._ms, self._seq = ms, seq
        start = self._elements.count
        same, live = flags & codes.SAME_FIELDS, not flags & codes.DELETED
        if self._unfolds and live:
            self._ids.append(join(ms, seq))
            self._payloads.append(self._payload(heads, same))
        else:
            for _ in range(len(heads) if same else 2 * self._number()):
                self._elements.read()
        if self._number() != self._elements.count - 1 - start + _COUNTED:
            raise ValueError("an entry of a stream with a wrong number of elements")
        if live:
            if not self._live:
                self._lowest = join(ms, seq)
            self._live += 1
            self._near = self._near and is_near(above_ms, above_seq)
        else:
            self._gone += 1

    def _payload(self, heads: list[bytes], same: int) -> bytes:
        """The RESP form of an entry, of which the fields and values follow."""
        count = len(heads) if same else self._number()
        pieces = [b"*2\r\n", text_of(self._ms, self._seq), b"*%d" % (2 * count)]
        for place in range(count):
            if same:
                pieces.append(heads[place])
            else:
                self._add_text(pieces)
            self._add_text(pieces)
        pieces.append(b"\r\n")
        return b"".join(pieces)

    def _add_text(self, pieces: list[bytes]) -> None:
        text = self._text()
        pieces.append(line_before(len(text)))
        pieces.append(text)

    def _text(self) -> bytes:
        self._elements.read()
        return self._elements.text()

    def _signed(self) -> i64:
        self._elements.read()
        if self._elements.size >= 0:
            raise ValueError("text in a stream where a number should be")
        return self._elements.value

    def _number(self) -> i64:
        value = self._signed()
        if value < 0:
            raise ValueError("a negative number in a stream where none can be")
        return value


# --- groups ----------------------------------------------------------------------------------


def _add_group(source: Source, kind: int, stream: Stream) -> None:
    offset = source.offset
    name = source.string()
    if name in stream.groups:
        raise DamagedRDB(offset, "two consumer groups of one name")
    last_id = _entry_id(source)
    if kind == codes.STREAM_5_0:
        read = stream.estimate_read(last_id)
    else:
        number = source.length()
        read = None if number == _UNKNOWN else number
    group = stream.add_group(name, last_id, read)
    pending = _read_pending(source)
    owners: dict[int, Consumer] = {}
    for _ in range(source.length()):
        _add_consumer(source, kind, group, pending, owners)
    if len(owners) != len(pending):
        raise DamagedRDB(source.offset, "a pending entry that no consumer has")
    _fill_pending(group, pending, owners)


def _read_pending(source: Source) -> Pending:
    pending: Pending = {}
    for _ in range(source.length()):
        offset = source.offset
        entry_id = _raw_entry_id(source)
        if entry_id in pending:
            raise DamagedRDB(offset, "an entry that is pending twice")
        time = source.signed()
        pending[entry_id] = (time, min(source.length(), HIGHEST))
    return pending


def _add_consumer(
    source: Source, kind: int, group: Group, pending: Pending, owners: dict[int, Consumer]
) -> None:
    offset = source.offset
    name = source.string()
    if name in group.consumers:
        raise DamagedRDB(offset, "two consumers of one name")
    seen = source.signed()
    consumer = group.add_consumer(name, seen)
    consumer.active = source.signed() if kind == codes.STREAM_7_2 else seen
    for _ in range(source.length()):
        offset = source.offset
        entry_id = _raw_entry_id(source)
        if entry_id not in pending:
            raise DamagedRDB(offset, f"the entry {text(entry_id).decode()} is not pending")
        if entry_id in owners:
            raise DamagedRDB(offset, f"the entry {text(entry_id).decode()} has two consumers")
        owners[entry_id] = consumer


def _fill_pending(group: Group, pending: Pending, owners: dict[int, Consumer]) -> None:
    """Makes the entries pending, those together that differ in their IDs alone. Those of
    :data:`codes.NOBODY` since 1970 have no owner, and it goes if it was there for them alone."""

    def alike(entry_id: int) -> tuple[bytes, int, int]:
        time, count = pending[entry_id]
        return owners[entry_id].name, time, count

    for (name, time, count), found in groupby(sorted(owners), alike):
        run = list(found)
        if name == codes.NOBODY and time == 0:
            for entry_id in run:
                group.pending.set(entry_id, None, 0, count)
            continue
        consumer = group.consumers[name]
        group.pending.append_run(run, consumer, time)
        if count != 1:
            group.pending.take_over(run, consumer, time, HIGHEST, 0, count)
    nobody = group.consumers.get(codes.NOBODY)
    if group.pending.extras.released and nobody is not None and not (nobody.owned or nobody.seen):
        group.remove_consumer(codes.NOBODY)
