"""Packing and compressing of full blocks, to save memory.

While a block grows, each entry is two objects: an integer and a byte string. Once the block is full
it is packed: its IDs become one array of small integers, and its entries one byte string, of which
a range reply is a slice. That byte string is compressed at once, with LZ4, which costs less than
the packing, but for blocks of a few large entries: to clear LZ4's table takes longer than all else
that is done for them. The fewest are not even packed while they are new. A block that nobody reads
for some time is compressed again, with zlib, which takes longer and makes it smaller: the entries,
or what LZ4 has left of them. One that is read is kept decompressed beside, within a limit on all
such bytes, until it has been idle for some time. Beyond the limit nothing is kept but in the place
of what is idle, so that reads at random places of a long stream do not write to more and more
memory.

Entries that come as a node of Redis, as in an RDB file, stay as they are there (:class:`Folded`)
until somebody reads them or the time has come to compress them.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from struct import pack
from typing import TYPE_CHECKING, Final, Protocol, cast

import lz4.block

from storage.engine.entries import Stretch, id_in
from storage.engine.ids import HALF, NATIVE, decode

if TYPE_CHECKING:
    from mypy_extensions import i64

COLD_AFTER_MS: Final = 10_000
"""A packed block that was not touched for as long is compressed as far as zlib can."""
SMALL: Final = 16 * 1024
"""Blocks of so many bytes are compressed by :data:`LEVEL`, larger ones, for which that would take
several times as long, by zlib's quickest."""
LEVEL: Final = 6
WINDOW: Final = -15
"""zlib's window, without header and checksum, which take a third of the time to read a block."""
HASH: Final = 5
"""How much memory zlib uses to find what repeats; with more it takes longer to clear it."""
NEVER: Final = -COLD_AFTER_MS
"""When a block was touched that nobody has read."""
WORTHWHILE: Final = 0.8
"""What does not get smaller than this by compression stays as it is."""
QUICK, DENSE, TWICE = range(3)
"""Compressed by LZ4, by zlib, and by both, the one after the other."""
REGULAR: Final = 0.5
"""Where zlib makes what LZ4 has left smaller than this, entries are so regular that it is less than
what zlib alone would leave of them, and back in half of the time."""
LARGEST: Final = 1024 * 1024
"""A block with more bytes is not compressed: that would take more than 10 ms."""
_ID: Final = 56
"""Bytes of an ID in a list."""
THAWED_BYTES: Final = 16 * 1024 * 1024
"""So much of compressed blocks is kept uncompressed beside, at most."""
IDLE_MS: Final = 1000
"""A block that was not touched for as long makes room for another one that is read again."""
WAITING: Final = 16
"""How many blocks wait to be packed, at most: those behind the end of a stream, which are read."""
_LARGE: Final = 8
"""A block of up to so many entries waits until it is cold: they are so large that it takes hardly
more unpacked, and it may be trimmed before."""
PACKED_TOGETHER: Final = 32 * 1024
"""How many bytes are packed at once then."""
PACKED_A_ROUND: Final = 1024 * 1024
"""How many bytes one round packs and compresses with LZ4; that takes some 2 ms."""
SQUEEZED_A_ROUND: Final = 256 * 1024
"""How many bytes one round compresses with zlib; that takes some 1 ms."""
_TIMES_FOLDED: Final = 4
"""How many times as long that takes for entries that are unfolded before."""
LOOKED_AT_A_ROUND: Final = 2000
"""How many packed blocks are looked at in search of one that was not touched."""

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether reading the digits of IDs is quicker than taking integers of 128 bits apart."""
_ROOMY: Final = 20
"""So many bits have room for a usual sequence number."""
_MOST_MS: Final = 1 << 40
"""From one ID to another in so many milliseconds both have room in a native integer."""
_AT_ONCE: Final = 8
"""Where more entries than these were added in a millisecond, their IDs are packed together."""
_FEW: Final = 16
"""For up to so many numbers, IDs or entries, what is quicker for many takes longer."""

_squeeze = cast("Callable[[bytes], bytes]", lz4.block.compress)
_expand = cast("Callable[[bytes], bytes]", lz4.block.decompress)


def _deflate(raw: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Compresses as far as possible within the time that there is."""
    level = LEVEL if len(raw) <= SMALL else 1
    compressor = zlib.compressobj(level, zlib.DEFLATED, WINDOW, HASH, strategy)
    return compressor.compress(raw) + compressor.flush()


def _narrow(numbers: Sequence[int]) -> Sequence[int]:
    """The ascending numbers in what takes the least memory: a range if they are evenly spaced, else
    an array of the narrowest type, and a list if none is wide enough."""
    if isinstance(numbers, range):
        return numbers
    count = len(numbers)
    first, highest = numbers[0], numbers[-1]
    if count > _FEW:
        even = range(first, highest + 1, max((highest - first) // (count - 1), 1))
        middle = count // 2
        if numbers[middle] - first == middle * even.step and numbers == list(even[: count + 1]):
            return even
    return fitting(numbers)


def fitting(numbers: Sequence[int]) -> Sequence[int]:
    """Return the ascending numbers in an array of the narrowest type, or a list if none is wide
    enough."""
    count, highest = len(numbers), numbers[-1]
    if highest < 1 << 8:  # An array of bytes is one object, others are two.
        return bytes(numbers)
    if highest >= 1 << 64:
        return numbers
    typecode = "H" if highest < 1 << 16 else "I" if highest < 1 << 32 else "Q"
    # An array that is given numbers parses an argument for each.
    return array(typecode, numbers if count <= _FEW else pack(f"={count}{typecode}", *numbers))


def _encode(entry_ids: list[int], payloads: list[bytes]) -> tuple[Sequence[int], int]:
    """Return the codes of ascending IDs, and how many bits a sequence number has in them."""
    base, last = entry_ids[0] >> 64, entry_ids[-1] >> 64
    if (last - base) * _AT_ONCE < len(entry_ids) and len(entry_ids) > _FEW:
        return _encode_by_time(entry_ids, base, last)
    if IS_COMPILED and last < NATIVE and last - base < _MOST_MS:
        codes = _encode_texts(payloads, base)
        if codes:
            return _tighten(codes)
    numbers = [entry_id & HALF for entry_id in entry_ids]
    shift = max(numbers).bit_length()
    pairs = zip(entry_ids, numbers, strict=True)
    return [(entry_id >> 64) - base << shift | number for entry_id, number in pairs], shift


def _encode_texts(payloads: list[bytes], base: i64) -> list[int]:
    """Return codes with :data:`_ROOMY` bits for the sequence number; none if one has no room."""
    codes: list[int] = []
    for payload in payloads:
        ms, seq, _ = id_in(payload)
        if ms < 0 or seq >> _ROOMY:
            return []
        codes.append(ms - base << _ROOMY | seq)
    return codes


def _tighten(codes: list[int]) -> tuple[list[int], int]:
    """Return such codes with as many bits as the sequence numbers need, and how many that is."""
    used: i64 = 0
    for code in codes:
        used |= code
    mask: i64 = (1 << _ROOMY) - 1
    shift: i64 = int(used & mask).bit_length()
    tight: list[int] = []
    for code in codes:
        wide: i64 = code
        tight.append(wide >> _ROOMY << shift | wide & mask)
    return tight, shift


def ends_of(payloads: list[bytes]) -> list[int]:
    """Return where each of these begins that follow each other, and where the last one ends."""
    if not IS_COMPILED:
        return list(accumulate(map(len, payloads), initial=0))
    end: i64 = 0
    ends: list[int] = [0]
    for payload in payloads:
        end += len(payload)
        ends.append(end)
    return ends


def _encode_by_time(entry_ids: list[int], base: int, last: int) -> tuple[Sequence[int], int]:
    """Encode IDs of which many have the same milliseconds: their sequence numbers are had together,
    and mostly follow each other."""
    parts: list[Sequence[int]] = []
    at = highest = 0
    for ms in range(base, last + 1):
        stop = bisect_left(entry_ids, ms + 1 << 64, at)
        parts.append(_numbers(entry_ids[at:stop], ms << 64))
        highest = max(highest, parts[-1][-1] if parts[-1] else 0)
        at = stop
    shift = highest.bit_length()
    if len(parts) == 1:
        return parts[0], shift
    return [at << shift | number for at, part in enumerate(parts) for number in part], shift


def _numbers(entry_ids: list[int], start: int) -> Sequence[int]:
    """Return how far these ascending IDs are above this one."""
    if not entry_ids:
        return ()
    first, last = entry_ids[0] - start, entry_ids[-1] - start
    if last - first == len(entry_ids) - 1:
        return range(first, last + 1)
    return [entry_id - start for entry_id in entry_ids]


class Folded(Protocol):
    """Entries in another form that takes no more memory; ``count`` is how many, ``lowest`` the
    first ID, ``size`` how many bytes there are."""

    count: int
    lowest: int
    size: int

    def unfold(self) -> tuple[list[int], list[bytes]]:
        """Return their IDs and their RESP forms."""


class Packed:
    """The entries of one block, packed. Places count from 0, as in a list.

    An ID is kept as a code: its distance in milliseconds from the first, above as many bits as the
    longest sequence number has. While entries are ``folded`` there is nothing else but
    :attr:`lowest`: :meth:`unfold` comes before all that looks into them.
    """

    __slots__ = (
        "_base",
        "_codes",
        "_ends",
        "_form",
        "_ids",
        "_mask",
        "_raw",
        "_shift",
        "_squeezed",
        "_step",
        "folded",
        "touched",
    )

    def __init__(
        self, entry_ids: list[int], payloads: list[bytes], folded: Folded | None = None
    ) -> None:
        self._base = self._shift = self._mask = 0
        self._codes: Sequence[int] = ()
        self._ends: Sequence[int] = ()
        self._step: i64 = 0
        """How long each entry is where all are equally long: a range takes longer to ask."""
        self._raw: bytes | None = None
        self._squeezed: bytes | None = None
        self._ids: list[int] | None = None
        """The IDs, which readers that come one after the other share while the entries are kept
        uncompressed beside what is compressed."""
        self._form = QUICK
        """How what is kept compressed was made."""
        self.touched = NEVER
        """When an entry was last read, in the packer's milliseconds."""
        self.folded = folded
        if entry_ids:
            self._take(entry_ids, payloads)

    def _take(self, entry_ids: list[int], payloads: list[bytes]) -> None:
        self._base = entry_ids[0] >> 64
        codes, self._shift = _encode(entry_ids, payloads)
        self._mask = (1 << self._shift) - 1
        self._codes = _narrow(codes)
        self._ends = _narrow(ends_of(payloads))
        self._step = self._ends.step if isinstance(self._ends, range) else 0
        self._raw = b"".join(payloads)

    def unfold(self) -> None:
        """Packs entries that are folded, as full blocks are."""
        if self.folded is not None:
            self._take(*self.folded.unfold())
            self.folded = None
            self.squeeze()

    def __len__(self) -> int:
        return len(self._codes) if self.folded is None else self.folded.count

    @property
    def size(self) -> int:
        """Bytes of the entries in their RESP form; 0 if that is not known, or they are gone."""
        return self._ends[-1] if self._ends else 0

    @property
    def thawed_size(self) -> int:
        """Bytes that are kept beside the compressed form, at most."""
        return self.size + _ID * len(self._codes)

    @property
    def held(self) -> int:
        """Bytes that are kept for the entries."""
        if self.folded is not None:
            return self.folded.size
        size = len(self._raw or b"") + len(self._squeezed or b"")
        return size if self._ids is None else size + _ID * len(self._ids)

    @property
    def lowest(self) -> int:
        """The lowest ID, which has the code of its sequence number."""
        if self.folded is not None:
            return self.folded.lowest
        return self._base << 64 | self._codes[0]

    def before(self, entry_id: int) -> int:
        """How many entries have a lower ID."""
        ms = (entry_id >> 64) - self._base
        if ms < 0:
            return 0
        seq = entry_id & HALF
        if seq > self._mask:
            return bisect_right(self._codes, ms << self._shift | self._mask)
        return bisect_left(self._codes, ms << self._shift | seq)

    def find(self, entry_id: int) -> int:
        """Return the place of the entry with this ID, -1 if there is none."""
        ms, seq = (entry_id >> 64) - self._base, entry_id & HALF
        if ms < 0 or seq > self._mask:
            return -1
        codes, code = self._codes, ms << self._shift | seq
        if isinstance(codes, range):
            return codes.index(code) if code in codes else -1
        place = bisect_left(codes, code)
        return place if place < len(codes) and codes[place] == code else -1

    def ids(self, low: int, high: int) -> list[int]:
        """The IDs at the places from ``low`` to below ``high``."""
        if self._ids is not None:
            return self._ids[low:high]
        if self._raw is None or self._squeezed is None:
            return decode(self._codes[low:high], self._base, self._shift, self._mask)
        self._ids = decode(self._codes, self._base, self._shift, self._mask)
        return self._ids[low:high]

    def slice(self, low: int, high: int, packer: Packer, goes_on: bool = False) -> bytes:
        """The entries at these places, one after the other; ``goes_on`` tells that the reader comes
        back for the next ones."""
        end = self._end_of(high)
        raw = self._read(end, packer, goes_on and high < len(self._codes))
        if high - low == len(self._codes):
            return raw
        return raw[self._end_of(low) : end]

    def _end_of(self, count: int) -> int:
        """Where so many entries end."""
        return count * self._step if self._step else self._ends[count]

    def glance(self, low: int, high: int) -> bytes:
        """Read a block once: nothing is kept uncompressed beside it."""
        end = self._ends[high]
        return self._begin(end)[self._ends[low] : end]

    def glance_each(self, low: int, high: int) -> list[bytes]:
        """The entries at these places, each for itself, read for once."""
        return self._cut(self._begin(self._ends[high]), low, high)

    def payloads(self, low: int, high: int, packer: Packer) -> list[bytes]:
        """The entries at these places, each for itself."""
        if high - low == 1:
            return [self.slice(low, high, packer)]
        return self._cut(self._read(self._ends[high], packer), low, high)

    def pick(self, places: Sequence[int], packer: Packer) -> list[bytes]:
        """Return the entries at these ascending places, each for itself."""
        raw = self._read(self._end_of(places[-1] + 1), packer)
        return [raw[self._end_of(place) : self._end_of(place + 1)] for place in places]

    def _cut(self, raw: bytes, low: int, high: int) -> list[bytes]:
        return [raw[start:end] for start, end in pairwise(self._ends[low : high + 1])]

    def stretch(self, low: int, high: int, packer: Packer) -> Stretch:
        """The entries at these places, still one behind the other."""
        ends = list(self._ends[low : high + 1])
        raw = self._read(ends[-1], packer)
        return Stretch(self.ids(low, high), raw, ends)

    def _read(self, end: int, packer: Packer, goes_on: bool = False) -> bytes:
        """Return the entries up to this byte at least, which are kept uncompressed where more of
        them is wanted at once, or there is room for them."""
        before, self.touched = self.touched, packer.now_ms
        if self._raw is None and (goes_on or packer.admits(self.thawed_size, before)):
            self._raw = self._begin(self.size)
            packer.thawed(self)
        return self._begin(end)

    def _begin(self, end: int) -> bytes:
        """Return the entries up to this byte at least."""
        if self._raw is not None:
            return self._raw
        assert self._squeezed is not None
        if self._form == QUICK:
            return _expand(self._squeezed)
        if self._form == TWICE:
            return _expand(zlib.decompress(self._squeezed, WINDOW))
        return zlib.decompressobj(WINDOW).decompress(self._squeezed, end)

    def unpack(self) -> tuple[list[int], list[bytes]]:
        """The IDs and the entries, which are given up here."""
        if self.folded is not None:
            entries = self.folded.unfold()
            self.discard()
            return entries
        raw = self._begin(self.size)
        self.discard()
        payloads = [raw[start:end] for start, end in pairwise(self._ends)]
        return self.ids(0, len(payloads)), payloads

    def squeeze(self) -> None:
        """Compresses more than a few entries quickly if that makes them smaller, and keeps nothing
        beside."""
        raw = self._raw
        if raw is not None and len(raw) <= LARGEST and len(self._codes) > _FEW:
            self._keep(raw, _squeeze(raw), QUICK)

    def condense(self) -> None:
        """Compresses the entries as far as possible, and keeps nothing beside."""
        self.unfold()
        if self.held == 0 or self.size > LARGEST or self._form != QUICK:
            return
        if self._squeezed is not None:
            # Without tables of its own, which take longer to read than what they tell.
            twice = _deflate(self._squeezed, zlib.Z_FIXED)
            if len(twice) < REGULAR * len(self._squeezed):
                self._squeezed, self._form, self._raw = twice, TWICE, None
                return
        raw = self._begin(self.size)
        self._keep(raw, _deflate(raw), DENSE)

    def _keep(self, raw: bytes, squeezed: bytes, form: int) -> None:
        """Keeps the compressed form if it is small enough."""
        if len(squeezed) < WORTHWHILE * len(raw):
            self._squeezed, self._form = squeezed, form
            self._raw = None

    def forget(self) -> None:
        """Keeps nothing beside what is compressed."""
        if self._squeezed is not None:
            self._raw = self._ids = None

    def discard(self) -> None:
        """Gives the entries up; nothing may be read any more."""
        self.folded = None
        self._raw = self._squeezed = self._ids = None

    def copy(self) -> Packed:
        """An equal, independent value; what never changes is shared."""
        twin = Packed([], [], self.folded)
        twin._base, twin._mask, twin._shift = self._base, self._mask, self._shift
        twin._codes, twin._ends, twin._step = self._codes, self._ends, self._step
        twin._raw, twin._squeezed, twin._form = self._raw, self._squeezed, self._form
        twin.touched = self.touched
        return twin


class Packable(Protocol):
    """A block of entries, as the packer knows it."""

    def __len__(self) -> int:
        """How many entries there are."""

    def pack(self) -> Packed | None:
        """Packs the entries; what is to be compressed, ``None`` if there is nothing."""


class Packer:
    """The blocks to pack, and the packed ones to compress further, in the order in which their turn
    comes.

    ``now_ms`` is the time of the last round.
    """

    __slots__ = ("_full", "_large", "_thawed", "_thawed_bytes", "_warm", "freed", "now_ms")

    def __init__(self) -> None:
        self._full: deque[Packable] = deque()
        self._large: deque[tuple[int, Packable]] = deque()
        self._warm: deque[tuple[int, Packed]] = deque()
        self._thawed: deque[tuple[int, Packed]] = deque()
        self._thawed_bytes = 0
        self.now_ms = 0
        self.freed = 0
        """How many bytes have become free of what was not read, until the one who is interested
        sets it to 0."""

    def add(self, block: Packable) -> None:
        """Takes note of a block that is full, to be packed in one of the next rounds, unless its
        entries are large; or at once, where they come faster than rounds pack them: memory that
        single entries have taken is not given back when they are packed long after."""
        if len(block) <= _LARGE:
            self._large.append((self.now_ms + COLD_AFTER_MS, block))
            return
        self._full.append(block)
        if len(self._full) > WAITING:
            # Some at once, so that what is done between is less often driven out of the caches.
            room = PACKED_TOGETHER
            while room > 0 and len(self._full) > WAITING // 2:
                room -= self._pack_oldest()

    def _pack_oldest(self) -> int:
        """Packs a block and compresses it; returns how many bytes there were."""
        packed = self._full.popleft().pack()
        if packed is None:
            return 0
        packed.squeeze()
        self._warm.append((self.now_ms + COLD_AFTER_MS, packed))
        return packed.size

    def admits(self, size: int, touched: int) -> bool:
        """Whether a block of so many bytes that was touched then, and is now, may be kept
        uncompressed: as long as there is room, or in the place of one that is idle if it was itself
        read not long ago."""
        if not self._thawed or self._thawed_bytes + size <= THAWED_BYTES:
            return True
        if self.now_ms - touched >= COLD_AFTER_MS:
            return False
        return self.now_ms - self._thawed[0][1].touched >= IDLE_MS

    def thawed(self, packed: Packed) -> None:
        """Takes note that a compressed block is uncompressed as well, to end that in time."""
        self._thawed.append((self.now_ms + COLD_AFTER_MS, packed))
        self._thawed_bytes += packed.thawed_size
        while self._thawed_bytes > THAWED_BYTES and len(self._thawed) > 1:
            self._freeze_again(self._thawed.popleft()[1])

    def _freeze_again(self, packed: Packed) -> None:
        self._thawed_bytes -= packed.thawed_size
        before = packed.held
        packed.forget()
        self.freed += before - packed.held

    def _condense(self, packed: Packed) -> None:
        before = packed.held
        packed.condense()
        self.freed += before - packed.held

    def round(self, now_ms: int) -> bool:
        """Does some of what is due: packs, compresses, and gives up what was uncompressed.

        Returns whether there is more to be done, so that another round should follow soon."""
        self.now_ms = now_ms
        while self._large and self._large[0][0] <= now_ms:
            self._full.append(self._large.popleft()[1])
        room = PACKED_A_ROUND
        while room > 0 and self._full:
            room -= self._pack_oldest()
        while (packed := self._next_cold(self._thawed)) is not None:
            self._freeze_again(packed)
        room = SQUEEZED_A_ROUND
        while room > 0 and (packed := self._next_cold(self._warm)) is not None:
            times = 1 if packed.folded is None else _TIMES_FOLDED
            self._condense(packed)
            room -= times * packed.size
        return bool(self._full) or room <= 0

    def _next_cold(self, queue: deque[tuple[int, Packed]]) -> Packed | None:
        """Takes the next one that nobody has touched for long; puts back those that were."""
        for _ in range(LOOKED_AT_A_ROUND):
            if not queue or queue[0][0] > self.now_ms:
                return None
            packed = queue.popleft()[1]
            due = packed.touched + COLD_AFTER_MS
            if due <= self.now_ms:
                return packed
            queue.append((due, packed))
        return None
