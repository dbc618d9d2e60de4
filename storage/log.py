"""The entry log: a stream's entries in order, in blocks.

An entry is kept as the bytes it is answered with, ``*2 $id *n $field $value ...``, which read the
same in RESP2 and RESP3: a range reply is a slice of ready bytes. Blocks end where Redis's nodes end
(see :mod:`storage.nodes`), so that approximate trimming removes what Redis would remove.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast

from hiredis import Reader, pack_command

from storage import ids, nodes
from storage.disposal import Disposal
from storage.failures import EntryTooLarge

_MOST_PER_ENTRY: Final = 38
"""An entry's bytes beside its fields and values in a node, at most."""
_USUAL_PER_ENTRY: Final = 12
"""The same where the halves of its ID are less than 4096 apart from the node's first."""
_HEAD: Final = 32
"""A node's bytes before its first entry beside the field names, at most."""
_NAME: Final = 10
"""Bytes beside a field name's own, in two places. At the head of a node it takes no more than
these. An entry of up to 4095 bytes whose names the node has is shorter than in RESP by these, at
least: 6 around the name, and 4 by which its value is shorter.
"""
_LONG: Final = 4096
_SAMPLE: Final = 128
"""How many blocks are looked at, about, to tell how much memory all of them take."""
_OBJECTS: Final = 90
"""Bytes of memory for an entry beside those of its RESP form, about."""

_pack = cast("Callable[[tuple[bytes, ...]], bytes]", pack_command)
"""Encodes an array of bulk strings in C; hiredis declares it for tuples of one element."""


class StreamLimits:
    """Settings that every stream of a keyspace follows (``stream-node-max-entries`` and so on), and
    the :class:`Disposal` that frees what they drop."""

    __slots__ = ("disposal", "idmp_duration", "idmp_maxsize", "max_bytes", "max_entries")

    def __init__(self, max_entries: int = 100, max_bytes: int = 4096) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.idmp_duration = 100
        self.idmp_maxsize = 100
        self.disposal = Disposal()

    @property
    def approximate_limit(self) -> int:
        """How many entries an approximate trimming removes at most where nothing is said."""
        limit = 100 * self.max_entries
        return min(limit, 1_000_000) if limit > 0 else 10_000


def encode_entry(identity: int, items: Sequence[bytes]) -> bytes:
    """The RESP form of an entry; ``items`` are its fields and values in turn."""
    text = ids.text(identity)
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, _pack(tuple(items)))


def decode_entry(payload: bytes) -> tuple[bytes, list[bytes]]:
    """The ID's text and the fields and values of an entry in its RESP form."""
    reader = Reader()
    reader.feed(payload)
    entry: list[Any] = reader.gets()
    return entry[0], entry[1]


def id_of(payload: bytes) -> bytes:
    """The ID of an entry in its RESP form, as the bulk string that it is in there."""
    return payload[4 : payload.index(b"*", 4)]


class Block:
    """Consecutive entries. ``first`` and ``last`` are the IDs of the first and the newest entry
    that was ever in it, ``taken`` is the number of those, live or deleted.

    What the block would take as a node is known exactly for ``_measured`` bytes; for the newest
    ``_unmeasured`` entries an upper bound ``_bound`` is kept, which costs next to nothing and is
    enough to tell in most cases that another entry fits.
    """

    __slots__ = (
        "_bound",
        "_measured",
        "_names",
        "_saved",
        "_seen",
        "_unmeasured",
        "first",
        "ids",
        "last",
        "payloads",
        "taken",
    )

    def __init__(self, first: int, items: Sequence[bytes]) -> None:
        self.first = self.last = first
        self.ids: list[int] = []
        self.payloads: list[bytes] = []
        self.taken = 0
        self._names = list(items[::2])
        self._saved = sum(map(len, self._names)) + _NAME * len(self._names)
        self._seen = 0
        self._measured = 0
        self._unmeasured = 0
        self._bound = 0

    def append(self, identity: int, payload: bytes, items: Sequence[bytes], size: int) -> None:
        """Adds a new highest entry; ``size`` is the length of its packed fields and values."""
        self.ids.append(identity)
        self.payloads.append(payload)
        self.last = identity
        self.taken += 1
        self._unmeasured += 1
        self._seen |= identity
        self._bound += self._bound_of(size, items)

    def _bound_of(self, size: int, items: Sequence[bytes]) -> int:
        same = size < _LONG and items[::2] == self._names
        return size - self._saved if same else size

    def takes(self, size: int, items: Sequence[bytes], limits: StreamLimits) -> bool:
        """Whether an entry goes into this block, rather than into a new one."""
        if 0 < limits.max_entries <= self.taken:
            return False
        most = limits.max_bytes
        most = most if 0 < most < nodes.LARGEST else nodes.LARGEST
        bound = self._measured + self._bound + self._unmeasured * self._per_entry()
        if bound + self._saved + _HEAD + size < most:
            return True
        return self.node_size() + sum(map(len, items)) < most

    def _per_entry(self) -> int:
        """What an entry takes beside its fields and values, at most.

        The bits that any ID has had in its sequence number bound all of them; the milliseconds
        ascend.
        """
        near = (self.last >> 64) - (self.first >> 64) < 4096 and self._seen & ids.HALF < 4096
        return _USUAL_PER_ENTRY if near else _MOST_PER_ENTRY

    def node_size(self) -> int:
        """What the block would take as a node of Redis, in bytes."""
        self.measure()
        live = len(self.ids)
        return self._measured + nodes.head_size(live, self.taken - live, self._names)

    def measure(self) -> None:
        """Replaces the bound of the newest entries by their exact size."""
        self._measure(len(self.ids) - self._unmeasured, len(self.ids))

    def _measure(self, low: int, high: int) -> None:
        """The same for the entries at these places, which are among the newest, alone."""
        for identity, payload in zip(self.ids[low:high], self.payloads[low:high], strict=True):
            _, items = decode_entry(payload)
            self._measured += nodes.entry_size(identity, self.first, items, self._names)
            self._bound -= self._bound_of(len(payload) - payload.index(b"*", 1), items)
            self._unmeasured -= 1

    def remove(self, low: int, high: int) -> None:
        """Deletes the entries at these places; they go on counting for the block's end."""
        self._measure(max(low, len(self.ids) - self._unmeasured), high)
        del self.ids[low:high], self.payloads[low:high]

    def copy(self) -> Block:
        """An equal, independent block."""
        twin = Block(self.first, ())
        twin.last, twin.taken = self.last, self.taken
        twin.ids, twin.payloads = self.ids[:], self.payloads[:]
        twin._names, twin._saved = self._names, self._saved
        twin._seen, twin._measured = self._seen, self._measured
        twin._unmeasured, twin._bound = self._unmeasured, self._bound
        return twin


class EntryLog:
    """All live entries of a stream, by ID."""

    __slots__ = ("_blocks", "_firsts", "_limits", "length")

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._blocks: list[Block] = []
        self._firsts: list[int] = []
        self.length = 0

    # --- adding ---------------------------------------------------------------------------

    def append(self, identity: int, items: Sequence[bytes]) -> bytes:
        """Adds an entry above all others and returns its RESP form.

        Raises :class:`EntryTooLarge` for more than 1 GiB of fields and values.
        """
        text = ids.text(identity)
        packed = _pack(tuple(items))
        payload = b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, packed)
        size = len(packed)
        if size > nodes.LARGEST and sum(map(len, items)) > nodes.LARGEST:
            raise EntryTooLarge
        if not self._blocks or not self._blocks[-1].takes(size, items, self._limits):
            self._blocks.append(Block(identity, items))
            self._firsts.append(identity)
        self._blocks[-1].append(identity, payload, items, size)
        self.length += 1
        return payload

    # --- reading --------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The lowest live ID, 0 if there is none."""
        return self._blocks[0].ids[0] if self._blocks else ids.MIN

    @property
    def last(self) -> int:
        """The highest live ID, 0 if there is none."""
        return self._blocks[-1].ids[-1] if self._blocks else ids.MIN

    def get(self, identity: int) -> bytes | None:
        """The entry with this ID in its RESP form, or ``None``."""
        at = bisect_right(self._firsts, identity) - 1
        if at < 0:
            return None
        block = self._blocks[at]
        place = bisect_left(block.ids, identity)
        if place < len(block.ids) and block.ids[place] == identity:
            return block.payloads[place]
        return None

    def get_many(self, wanted: list[int]) -> list[bytes | None]:
        """The entries with these ascending IDs; ``None`` in the place of each one missing."""
        found: list[bytes | None] = []
        while len(found) < len(wanted):
            found += self._get_run(wanted, len(found))
        return found

    def _get_run(self, wanted: list[int], at: int) -> Sequence[bytes | None]:
        """The entry at ``at``, and those that follow it in its block as in ``wanted``."""
        identity = wanted[at]
        index = bisect_right(self._firsts, identity) - 1
        if index < 0:
            return (None,)
        block = self._blocks[index]
        low = bisect_left(block.ids, identity)
        if low == len(block.ids) or block.ids[low] != identity:
            return (None,)
        high = min(len(block.ids), low + len(wanted) - at)
        if block.ids[low:high] == wanted[at : at + high - low]:
            return block.payloads[low:high]
        return (block.payloads[low],)

    def _spans(self, start: int, end: int, count: int) -> Iterator[tuple[Block, int, int]]:
        """The blocks, each with the places from and to, of up to ``count`` entries, ascending."""
        at = max(bisect_right(self._firsts, start) - 1, 0)
        while at < len(self._blocks) and count > 0:
            block = self._blocks[at]
            low = bisect_left(block.ids, start)
            high = len(block.ids)
            if block.last > end:
                high = bisect_right(block.ids, end)
            high = min(high, low + count)
            if low < high:
                yield block, low, high
                count -= high - low
            elif block.first > end:
                return
            at += 1

    def range(self, start: int, end: int, count: int) -> list[bytes]:
        """Up to ``count`` entries with IDs from ``start`` to ``end``, in their RESP form."""
        found: list[bytes] = []
        for block, low, high in self._spans(start, end, count):
            found += block.payloads[low:high]
        return found

    def range_with_ids(self, start: int, end: int, count: int) -> tuple[list[int], list[bytes]]:
        """The same as :meth:`range`, with the IDs in a list of their own."""
        identities: list[int] = []
        found: list[bytes] = []
        for block, low, high in self._spans(start, end, count):
            identities += block.ids[low:high]
            found += block.payloads[low:high]
        return identities, found

    def reverse(self, start: int, end: int, count: int) -> list[bytes]:
        """Up to ``count`` entries with IDs from ``end`` down to ``start``."""
        found: list[bytes] = []
        at = bisect_right(self._firsts, end) - 1
        while at >= 0 and len(found) < count:
            block = self._blocks[at]
            if block.last < start:
                break
            low = bisect_left(block.ids, start)
            high = bisect_right(block.ids, end)
            low = max(low, high - count + len(found))
            found += block.payloads[low:high][::-1]
            at -= 1
        return found

    # --- removing -------------------------------------------------------------------------

    def delete(self, identity: int) -> bool:
        """Removes one entry; false if there is none with this ID."""
        at = bisect_right(self._firsts, identity) - 1
        if at < 0:
            return False
        block = self._blocks[at]
        place = bisect_left(block.ids, identity)
        if place == len(block.ids) or block.ids[place] != identity:
            return False
        block.remove(place, place + 1)
        self.length -= 1
        if not block.ids:
            del self._blocks[at], self._firsts[at]
        return True

    def trim_to_length(self, length: int) -> int:
        """Removes the oldest entries until ``length`` are left; returns how many went."""
        removed = 0
        excess = self.length - length
        if excess <= 0:
            return 0
        whole = 0
        while whole < len(self._blocks) and removed + len(self._blocks[whole].ids) <= excess:
            removed += len(self._blocks[whole].ids)
            whole += 1
        self._drop_blocks(whole)
        if removed < excess:
            self._blocks[0].remove(0, excess - removed)
        self.length -= excess
        return excess

    def count_below(self, identity: int) -> int:
        """How many live entries have an ID below this one."""
        at = bisect_left(self._firsts, identity)
        whole = sum(len(block.ids) for block in self._blocks[: max(at - 1, 0)])
        return whole + (bisect_left(self._blocks[at - 1].ids, identity) if at else 0)

    def count_blocks_over(self, length: int, limit: int) -> int:
        """How many entries the oldest blocks have that may go while ``length`` entries stay.

        A ``limit`` above 0 bounds the number.
        """
        if self._blocks and self.length - len(self._blocks[0].ids) < length:
            return 0
        return self._count_blocks(lambda block, left: left - len(block.ids) >= length, limit)

    def count_blocks_below(self, lowest: int, limit: int) -> int:
        """How many entries the oldest blocks have that lie below ``lowest`` as a whole.

        A ``limit`` above 0 bounds the number.
        """
        return self._count_blocks(lambda block, left: block.last < lowest, limit)

    def _count_blocks(self, goes: Callable[[Block, int], bool], limit: int) -> int:
        count = 0
        for block in self._blocks:
            live = len(block.ids)
            if not goes(block, self.length - count) or (limit and count + live > limit):
                break
            count += live
        return count

    def _drop_blocks(self, whole: int) -> None:
        self._limits.disposal.take(self._blocks[:whole])
        del self._blocks[:whole], self._firsts[:whole]

    def __del__(self) -> None:
        self._limits.disposal.take(self._blocks)

    # --- looking inside -------------------------------------------------------------------

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks in order, to look at."""
        return self._blocks

    @property
    def block_count(self) -> int:
        """How many blocks there are (``radix-tree-keys``)."""
        return len(self._blocks)

    @property
    def block_keys(self) -> list[int]:
        """The ID each block is filed under, ascending."""
        return self._firsts

    def __iter__(self) -> Iterator[int]:
        for block in self._blocks:
            yield from block.ids

    def memory_usage(self) -> int:
        """Bytes that the entries take, about, from a sample of the blocks."""
        every = len(self._blocks) // _SAMPLE + 1
        sample = self._blocks[::every]
        count = sum(len(block.ids) for block in sample)
        size = sum(map(len, chain.from_iterable(block.payloads for block in sample)))
        return self.length * (size + _OBJECTS * count) // max(count, 1)

    def copy(self) -> EntryLog:
        """An equal, independent log."""
        twin = EntryLog(self._limits)
        twin._blocks = [block.copy() for block in self._blocks]
        twin._firsts = self._firsts[:]
        twin.length = self.length
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        everything = list(self)
        assert everything == sorted(set(everything))
        assert len(everything) == self.length
        assert self._firsts == [block.first for block in self._blocks]
        for block in self._blocks:
            assert 0 < len(block.ids) == len(block.payloads) <= block.taken
            assert block.first <= block.ids[0] <= block.ids[-1] <= block.last
            for identity, payload in zip(block.ids, block.payloads, strict=True):
                assert payload == encode_entry(identity, decode_entry(payload)[1])
