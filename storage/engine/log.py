"""The entry log: a stream's entries in order, in blocks.

**The idea.** An entry is stored as the bytes it is answered with, ``*2 $id *n $field $value ...``.
They are encoded once, by XADD, and are the same in RESP2 and RESP3, so XRANGE, XREAD, XREADGROUP,
XCLAIM and XAUTOCLAIM answer with a slice of a list and a ``join``, both in C. A server in Python
can only be fast where it does nothing for each entry. An ID is one integer, ``ms << 64 | seq``:
integers compare, sort and bisect in C.

**Blocks.** The log is a list of blocks (:mod:`storage.engine.block`) beside a list of their first
IDs. A lookup bisects the first IDs, then the IDs of one block; an append touches the last block
only; trimming drops whole blocks from the front. A block ends where a node of Redis would end under
``stream-node-max-entries`` and ``stream-node-max-bytes`` (:mod:`storage.engine.nodes`), because
clients can see it: ``MAXLEN ~`` removes whole nodes, and XINFO STREAM counts them. The exact size
of an entry costs half of what the rest of XADD does, so a block keeps an upper bound, and computes
the size only when the bound does not prove that the entry fits.

**Memory.** A full block is handed to the packer (:mod:`storage.engine.compression`), which turns it
into one byte string and compresses that. A large deletion hands blocks to
:mod:`storage.engine.limits` instead of freeing them within the command.

**Invariants** (the tests call :meth:`EntryLog.check`):

- ``_firsts`` is parallel to ``blocks`` and ascending. It holds the ID with which each block began,
  which may have been deleted since.
- Blocks do not overlap, and none is empty: the last entry of a block takes the block with it.
- ``length`` is the number of live entries of all blocks.
- Only the last block grows. What an iterator of :meth:`EntryLog.hold` returns later is the state at
  the time of the call, whatever has been added, trimmed or packed since.

**Rejected.** Lists of fields: every read would encode its reply. Packing from the start: every
append would rewrite a block. Blocks of a fixed number of entries: simpler, but approximate trimming
would differ from Redis for every entry above some 40 bytes. Decisions 1, 2 and 9 have the
measurements.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from storage.engine import ids, nodes
from storage.engine.block import Block, Held, LoadedRun, read_held, read_reversed
from storage.engine.entries import (
    Stretch,
    bulk,
    decode_entry,
    encode_entry,
    head_of,
    id_of,
    names_in,
    unpack,
    with_items,
)
from storage.engine.ids import NATIVE, split
from storage.engine.limits import StreamLimits
from storage.engine.runs import Run
from storage.errors import EntryTooLarge

if TYPE_CHECKING:
    from mypy_extensions import i64

__all__ = ["Block", "EntryLog", "decode_entry", "encode_entry", "id_of"]

_NO_NAMES: Final[list[bytes]] = []
_NOWHERE: Final = (0,)
"""In the place of an entry's, where there is no such entry."""
_SAMPLE: Final = 128
"""How many blocks are looked at, about, to tell how much memory all of them take."""


class EntryLog:
    """All live entries of a stream, by ID."""

    __slots__ = ("_bulks", "_firsts", "_limits", "_names", "blocks", "length", "packer")

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self.packer = limits.packer
        """Who packs the blocks."""
        self.blocks: list[Block] = []
        """The blocks in order, to look at."""
        self._firsts: list[int] = []
        self._names: list[bytes] = []
        self._bulks: list[bytes] = []
        self.length = 0

    # --- adding ---------------------------------------------------------------------------

    def append(self, entry_id: int, items: list[bytes]) -> bytes:
        """Adds an entry above all others and returns its RESP form.

        Raises :class:`EntryTooLarge` for more than 1 GiB of fields and values.
        """
        ms, seq = split(entry_id)
        head = head_of(ms, seq)
        payload = with_items(head, items)
        size = len(payload) - len(head) - len(b"\r\n")
        if size > nodes.LARGEST and sum(map(len, items)) > nodes.LARGEST:
            raise EntryTooLarge
        alike = bool(self.blocks) and items[::2] == self.blocks[-1].names
        if ms < NATIVE and seq < NATIVE:
            self.append_packed(entry_id, ms, seq, payload, size, alike)
        else:
            self._append_unknown(entry_id, payload, size, alike)
        return payload

    def names(self) -> list[bytes]:
        """Return the field names with which the newest block began, as bulk strings: most likely
        the next entry has the same. Not to be changed; empty where it hardly has, or without a
        block."""
        if not self.blocks or self.blocks[-1].measures:
            return _NO_NAMES
        names = self.blocks[-1].names
        if names is not self._names:
            self._names, self._bulks = names, list(map(bulk, names))
        return self._bulks

    def append_packed(
        self, entry_id: int, ms: i64, seq: i64, payload: bytes, size: i64, alike: bool
    ) -> None:
        """Adds an entry above all others, of which this is the RESP form; the others are as for
        :meth:`.Block.append`."""
        block = self.blocks[-1] if self.blocks else None
        if block is None or not block.surely_takes(size, self._limits):
            names, length = names_in(payload)
            if block is None or not block.takes(length, self._limits):
                block = self._begin_block(entry_id, names)
                alike = True
        block.append(entry_id, ms, seq, payload, size, alike)
        self.length += 1

    def append_loaded(self, run: LoadedRun) -> None:
        """Adds entries above all others."""
        at, limits = 0, self._limits
        while at < len(run.entry_ids):
            taken = self.blocks[-1].extend(run, at, limits) if self.blocks else 0
            self.length += taken
            if not taken:
                self._append_of(run, at)
                taken = 1
            at += taken

    def _append_of(self, run: LoadedRun, at: int) -> None:
        """Adds an entry of a run, to a new block if the last one has no room for it."""
        alike = bool(self.blocks) and run.names == self.blocks[-1].names
        self._append_unknown(run.entry_ids[at], run.payloads[at], run.sizes[at], alike)

    def _append_unknown(self, entry_id: int, payload: bytes, size: int, alike: bool) -> None:
        """Adds an entry; the halves of its ID are not looked at."""
        self.append_packed(entry_id, ids.UNKNOWN, ids.UNKNOWN, payload, size, alike)

    def append_block(self, block: Block) -> None:
        """Adds a block of which all IDs are above all others."""
        if self.blocks:
            block.follow(self.blocks[-1])
            self.packer.add(self.blocks[-1])
        self.blocks.append(block)
        self._firsts.append(block.first)
        self.length += len(block)

    def append_run(self, run: Run) -> list[bytes]:
        """Adds the entries of a run, whose IDs are above all others; returns their RESP forms."""
        payloads = run.payloads()
        at = 0
        while at < len(payloads):
            at = self._append_some(run, payloads, at)
        return payloads

    def _append_some(self, run: Run, payloads: list[bytes], at: int) -> int:
        """Adds some of the entries from place ``at`` on to one block; returns where it ends.

        As many as there is certainly room for are added together; the one after them may need the
        exact size of the block."""
        limits = self._limits
        if self.blocks:
            block = self.blocks[-1]
            stop = len(payloads)
            if 0 < limits.max_entries < block.taken + stop - at:
                stop = at + limits.max_entries - block.taken
            end = block.append_run(run, payloads, at, stop, self._are_alike(run), limits)
            if end > at:
                self.length += end - at
                return end
        size = len(run.header) + len(run.pieces[at])
        self._append_unknown(run.first + at, payloads[at], size, self._are_alike(run))
        return at + 1

    def _are_alike(self, run: Run) -> bool:
        """Whether all entries of the run have the field names of the newest block."""
        return run.names is not None and run.names == self.names()

    def _begin_block(self, first: int, names: list[bytes]) -> Block:
        block = Block(first, names)
        if self.blocks:
            block.follow(self.blocks[-1])
            self.packer.add(self.blocks[-1])
        self.blocks.append(block)
        self._firsts.append(first)
        return block

    # --- reading --------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The lowest live ID, 0 if there is none."""
        return self.blocks[0].lowest if self.blocks else ids.MIN

    def begins_by(self, entry_id: int) -> bool:
        """Whether :attr:`first` is at most this ID, without looking for it in most cases."""
        firsts = self._firsts
        return (len(firsts) > 1 and firsts[1] <= entry_id) or self.first <= entry_id

    @property
    def last(self) -> int:
        """The highest live ID, 0 if there is none."""
        return self.blocks[-1].highest if self.blocks else ids.MIN

    def get(self, entry_id: int) -> bytes | None:
        """The entry with this ID in its RESP form, or ``None``."""
        at = bisect_right(self._firsts, entry_id) - 1
        if at < 0:
            return None
        block = self.blocks[at]
        place = block.find(entry_id)
        if place < 0:
            return None
        return block.payload_at(place, self.packer)

    def get_many(self, wanted: list[int]) -> list[bytes | None]:
        """The entries with these ascending IDs; ``None`` in the place of each one missing."""
        if len(wanted) == 1:
            return [self.get(wanted[0])]
        found: list[bytes | None] = []
        packer = self.packer
        for block, places in self._runs(wanted):
            if block is None:
                found.append(None)
            else:
                found += block.pick(places, packer)
        return found

    def chunks_of(self, wanted: list[int], absent: Callable[[int], bytes]) -> list[bytes]:
        """Return the entries with these ascending IDs in any number of pieces that follow each
        other; ``absent`` gives what stands for an entry that is missing."""
        packer = self.packer
        found: list[bytes] = []
        at = 0
        for block, places in self._runs(wanted):
            if block is None:
                found.append(absent(wanted[at]))
            elif isinstance(places, range):
                found += block.chunks_at(places.start, places.stop, packer)
            else:
                found += block.pick(places, packer)
            at += len(places)
        return found

    def missing(self, wanted: list[int]) -> list[int]:
        """Return those of these ascending IDs that no entry has."""
        found: list[int] = []
        at = 0
        for block, places in self._runs(wanted):
            if block is None:
                found.append(wanted[at])
            at += len(places)
        return found

    def hold_many(self, wanted: list[int], absent: Callable[[int], bytes]) -> Iterator[list[bytes]]:
        """Return what :meth:`chunks_of` does as it is now, whatever becomes of the log; the pieces
        are put together as they are asked for."""
        held: list[Held] = []
        at = 0
        for block, places in self._runs(wanted):
            if block is None:
                held.append([absent(wanted[at])])
            elif isinstance(places, range):
                held.append(block.hold(places.start, places.stop))
            else:
                held.append(block.pick(places, self.packer))
            at += len(places)
        return map(read_held, held)

    def _runs(self, wanted: list[int]) -> Iterator[tuple[Block | None, Sequence[int]]]:
        """Where the entries with these ascending IDs are: blocks, each with ascending places, which
        are a range where more than one follow each other.

        In the place of each one missing there is no block, and one place."""
        at = 0
        while at < len(wanted):
            index = bisect_right(self._firsts, wanted[at]) - 1
            if index < 0:
                yield None, _NOWHERE
                at += 1
                continue
            block = self.blocks[index]
            stop = max(bisect_right(wanted, block.last, at), at + 1)
            low = high = 0
            if stop - at > 1:
                low, high = block.before(wanted[at]), block.before(wanted[stop - 1]) + 1
            if low < high == low + stop - at and block.ids_at(low, high) == wanted[at:stop]:
                yield block, range(low, high)
                at = stop
                continue
            places: list[int] = []
            for entry_id in wanted[at:stop]:
                place = block.find(entry_id)
                if place >= 0:
                    places.append(place)
                    continue
                if places:
                    yield block, places
                    places = []
                yield None, _NOWHERE
            if places:
                yield block, places
            at = stop

    def _spans(self, start: int, end: int, count: int) -> list[tuple[Block, int, int]]:
        """The blocks, each with the places from and to, of up to ``count`` entries, ascending."""
        spans: list[tuple[Block, int, int]] = []
        blocks, firsts = self.blocks, self._firsts
        at = max(bisect_right(firsts, start) - 1, 0)
        while at < len(blocks) and count > 0:
            block, following = blocks[at], at + 1
            low = 0 if start <= firsts[at] else block.before(start)
            # The search has just looked at the first IDs; the last one of a block is in no cache.
            is_whole = following < len(firsts) and firsts[following] <= end
            high = len(block) if is_whole or block.last <= end else block.before(end + 1)
            high = min(high, low + count)
            if low < high:
                spans.append((block, low, high))
                count -= high - low
            elif firsts[at] > end:
                break
            at = following
        return spans

    def range(self, start: int, end: int, count: int) -> list[bytes]:
        """Up to ``count`` entries with IDs from ``start`` to ``end``, in their RESP form."""
        return self.range_with_ids(start, end, count)[1]

    def by_block(self, start: int, end: int, count: int, newest: bool) -> Iterator[list[bytes]]:
        """Yield what :meth:`range` finds block by block, with ``newest`` the last block first."""
        reverse, ascending = self._reverse_spans, self._spans
        for block, low, high in (reverse if newest else ascending)(start, end, count):
            yield block.payloads_at(low, high, self.packer)

    def range_with_ids(self, start: int, end: int, count: int) -> tuple[list[int], list[bytes]]:
        """Return what :meth:`range` does, with the IDs in a list of their own."""
        packer = self.packer
        entry_ids: list[int] = []
        found: list[bytes] = []
        for block, low, high in self._spans(start, end, count):
            entry_ids += block.ids_at(low, high)
            found += block.payloads_at(low, high, packer)
        return entry_ids, found

    def stretches(self, start: int, count: int) -> list[Stretch]:
        """Return up to ``count`` entries from ``start`` on for who looks into each of them."""
        spans, packer = self._spans(start, ids.MAX, count), self.packer
        return [block.stretch(low, high, packer) for block, low, high in spans]

    def chunks(self, start: int, end: int, count: int) -> tuple[int, list[bytes]]:
        """The number of entries that :meth:`range` would find, and their RESP forms in any number
        of pieces that follow each other, which takes less time."""
        packer = self.packer
        number = 0
        found: list[bytes] = []
        for block, low, high in self._spans(start, end, count):
            number += high - low
            found += block.chunks_at(low, high, packer)
        return number, found

    def hold(self, start: int, end: int, count: int) -> tuple[int, Iterator[list[bytes]]]:
        """Return :meth:`chunks` as they are now, whatever becomes of the log; the pieces are put
        together block by block as they are asked for."""
        number = 0
        held: list[Held] = []
        for block, low, high in self._spans(start, end, count):
            number += high - low
            held.append(block.hold(low, high))
        return number, map(read_held, held)

    def ids_of(self, start: int, end: int, count: int) -> list[int]:
        """The IDs of what :meth:`range` would find."""
        entry_ids: list[int] = []
        for block, low, high in self._spans(start, end, count):
            entry_ids += block.ids_at(low, high)
        return entry_ids

    def hold_reverse(self, start: int, end: int, count: int) -> tuple[int, Iterator[list[bytes]]]:
        """Return what :meth:`reverse` would find as it is now, like :meth:`hold`."""
        number = 0
        held: list[Held] = []
        for block, low, high in self._reverse_spans(start, end, count):
            number += high - low
            held.append(block.hold(low, high))
        return number, map(read_reversed, held)

    def reverse(self, start: int, end: int, count: int) -> list[bytes]:
        """Up to ``count`` entries with IDs from ``end`` down to ``start``."""
        packer = self.packer
        found: list[bytes] = []
        for block, low, high in self._reverse_spans(start, end, count):
            found += block.payloads_at(low, high, packer)[::-1]
        return found

    def _reverse_spans(self, start: int, end: int, count: int) -> Iterator[tuple[Block, int, int]]:
        """Yield :meth:`_spans` in descending order."""
        at = bisect_right(self._firsts, end) - 1
        while at >= 0 and count > 0:
            block = self.blocks[at]
            if block.last < start:
                return
            high = len(block) if block.last <= end else block.before(end + 1)
            low = max(0 if start <= block.first else block.before(start), high - count)
            if low < high:
                yield block, low, high
                count -= high - low
            at -= 1

    def __contains__(self, entry_id: int) -> bool:
        at = bisect_right(self._firsts, entry_id) - 1
        return at >= 0 and self.blocks[at].find(entry_id) >= 0

    # --- removing -------------------------------------------------------------------------

    def delete(self, entry_id: int) -> bool:
        """Removes one entry; false if there is none with this ID."""
        at = bisect_right(self._firsts, entry_id) - 1
        if at < 0:
            return False
        block = self.blocks[at]
        place = block.find(entry_id)
        if place < 0:
            return False
        self._remove(block, place, place + 1)
        self.length -= 1
        if not len(block):
            del self.blocks[at], self._firsts[at]
        return True

    def _remove(self, block: Block, low: int, high: int) -> None:
        """Deletes entries of a block, which has to be unpacked for that until its turn comes."""
        if block.packed is not None:
            self.packer.add(block)
        block.remove(low, high)

    def trim_to_length(self, length: int) -> int:
        """Removes the oldest entries until ``length`` are left; returns how many went."""
        excess = left = max(self.length - length, 0)
        whole = 0
        for block in self.blocks:
            live = len(block)
            if live > left:
                break
            left -= live
            whole += 1
        self._drop_blocks(whole)
        if left:
            self._remove(self.blocks[0], 0, left)
        self.length -= excess
        return excess

    def count_below(self, entry_id: int) -> int:
        """How many live entries have an ID below this one."""
        at = bisect_left(self._firsts, entry_id)
        whole = sum(len(block) for block in self.blocks[: max(at - 1, 0)])
        return whole + (self.blocks[at - 1].before(entry_id) if at else 0)

    def count_above(self, entry_id: int) -> int:
        """How many live entries have an ID above this one; only the blocks on the nearer side of
        it are counted."""
        at = bisect_right(self._firsts, entry_id)
        if at > len(self.blocks) // 2:
            above = sum([len(block) for block in self.blocks[at:]])
            block = self.blocks[at - 1]
            return above + len(block) - block.before(entry_id + 1)
        return self.length - self.count_below(entry_id + 1)

    def count_blocks_over(self, length: int, limit: int) -> int:
        """How many entries the oldest blocks have that may go while ``length`` entries stay.

        A ``limit`` above 0 bounds the number.
        """
        if self.blocks and self.length - len(self.blocks[0]) < length:
            return 0
        return self._count_blocks(lambda block, left: left - len(block) >= length, limit)

    def count_blocks_below(self, lowest: int, limit: int) -> int:
        """How many entries the oldest blocks have that lie below ``lowest`` as a whole.

        A ``limit`` above 0 bounds the number.
        """
        return self._count_blocks(lambda block, left: block.last < lowest, limit)

    def _count_blocks(self, goes: Callable[[Block, int], bool], limit: int) -> int:
        count = 0
        for block in self.blocks:
            live = len(block)
            if not goes(block, self.length - count) or (limit and count + live > limit):
                break
            count += live
        return count

    def _drop_blocks(self, whole: int) -> None:
        self._limits.disposal.take(self.blocks[:whole])
        del self.blocks[:whole], self._firsts[:whole]

    def __del__(self) -> None:
        self._limits.disposal.take(self.blocks)

    def place_behind(self, entry_id: int) -> tuple[int, int]:
        """Where the entries above this ID begin: the number of a block, and a place there."""
        at = max(bisect_right(self._firsts, entry_id) - 1, 0)
        return at, self.blocks[at].before(entry_id + 1) if self.blocks else 0

    # --- looking inside -------------------------------------------------------------------

    @property
    def block_count(self) -> int:
        """How many blocks there are (``radix-tree-keys``)."""
        return len(self.blocks)

    @property
    def block_keys(self) -> list[int]:
        """The ID each block is filed under, ascending."""
        return self._firsts

    def __iter__(self) -> Iterator[int]:
        for block in self.blocks:
            yield from block.ids_at(0, len(block))

    def memory_usage(self) -> int:
        """Bytes that the entries take, about, from a sample of the blocks."""
        every = len(self.blocks) // _SAMPLE + 1
        sample = self.blocks[::every]
        count = sum(map(len, sample))
        return self.length * sum(block.memory_usage() for block in sample) // max(count, 1)

    # --- the outlines of its blocks -------------------------------------------------------

    def layout(self) -> list[bytes]:
        """How the entries are grouped in blocks, a value for each block.

        There is none if adding the live entries one after the other gives the same block."""
        if not self.blocks or (len(self.blocks) == 1 and self.blocks[0].is_plain(self._limits)):
            return []
        return [block.outline() for block in self.blocks]

    def arrange(self, layout: Sequence[bytes]) -> None:
        """Groups the entries as in a log that had this layout and the same entries.

        Raises :class:`ValueError`, and changes nothing, if the layout does not fit."""
        entry_ids, payloads = self.range_with_ids(ids.MIN, ids.MAX, self.length)
        outlines = [unpack(outline) for outline in layout]
        blocks: list[Block] = []
        at = 0
        for outline in outlines:
            end = at + int(outline[0])
            blocks.append(Block.restored(outline, entry_ids[at:end], payloads[at:end]))
            at = end
        firsts = [block.first for block in blocks]
        if at != self.length or firsts != sorted(set(firsts)):
            raise ValueError("the layout of a stream does not fit its entries")
        for block in blocks[:-1]:
            self.packer.add(block)
        self.blocks, self._firsts = blocks, firsts

    def copy(self) -> EntryLog:
        """An equal, independent log."""
        twin = EntryLog(self._limits)
        twin.blocks = [block.copy() for block in self.blocks]
        twin._firsts = self._firsts[:]
        twin.length = self.length
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        everything = list(self)
        assert everything == sorted(set(everything))
        assert len(everything) == self.length
        assert self._firsts == [block.first for block in self.blocks]
        for block in self.blocks:
            assert 0 < len(block) <= block.taken
            assert block.first <= block.lowest <= block.highest <= block.last
            assert block.packed is None or not block.ids
            entry_ids, payloads = block.contents()
            for entry_id, payload in zip(entry_ids, payloads, strict=True):
                assert payload == encode_entry(entry_id, decode_entry(payload)[1])
