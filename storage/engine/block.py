"""A block of the entry log: consecutive entries, and where Redis's node would end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import count as counting_from
from itertools import islice
from typing import TYPE_CHECKING, Final

from storage.engine import nodes
from storage.engine.compression import Folded, Packed, Packer, ends_of
from storage.engine.entries import Stretch, names_in, next_line, pack
from storage.engine.ids import HALF, NATIVE, split
from storage.engine.limits import StreamLimits
from storage.engine.runs import Run

if TYPE_CHECKING:
    from mypy_extensions import i64

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over the bytes of an entry takes less time than what it saves."""
_MOST_PER_ENTRY: Final = 38
"""An entry's bytes beside its fields and values in a node, at most."""
_USUAL_PER_ENTRY: Final = 12
"""The same in a block of IDs of which the milliseconds are less than _NEAR above the node's first,
and the sequence numbers less than _NEAR above or below: within a transaction, for which time
stands still, they go up and up."""
_NEAR: Final = 4096
_FAR: Final = (_NEAR - 1) << 64
_FURTHEST: Final = NATIVE
"""In the place of a half that has no room in a native integer: nothing is above it."""
_HEAD: Final = 32
"""A node's bytes before its first entry beside the field names, at most."""
_NAME: Final = 10
"""Bytes beside a field name's own, in two places. At the head of a node it takes no more than
these. An entry of up to 4095 bytes whose names the node has is shorter than in RESP by these, at
least: 6 around the name, and 4 by which its value is shorter.
"""
_LONG: Final = 4096
_SHORTEST_COUNT: Final = len(b"*2\r")
"""How many bytes an array's first line has at least before its end."""
_OBJECTS: Final = 90
"""Bytes of memory for an entry beside those of its RESP form, about."""
_PACKED: Final = 10
"""The same for a packed entry."""
_MOST_FOLDED: Final = 64 * 1024
"""What has more bytes is unfolded at once: later all clients would wait for that."""
_UNKNOWN: Final = -1
_NO_IDS: Final[list[int]] = []
_NO_PAYLOADS: Final[list[bytes]] = []
"""What packed blocks have in common, to save the memory; nothing is ever added to them."""


Held = list[bytes] | tuple[Packed, int, int]
"""Entries of a block at one moment."""


def read_held(held: Held) -> list[bytes]:
    """Their RESP forms, in any number of pieces."""
    if isinstance(held, list):
        return held
    packed, low, high = held
    packed.unfold()
    return [packed.glance(low, high)]


def read_reversed(held: Held) -> list[bytes]:
    """Return the entries at these places in the opposite order, a piece each."""
    if isinstance(held, list):
        return held[::-1]
    packed, low, high = held
    packed.unfold()
    return packed.glance_each(low, high)[::-1]


def _lengths(pieces: list[bytes]) -> tuple[i64, i64]:
    """Return how many bytes the pieces have together, and how many the longest has."""
    if not IS_COMPILED:
        return sum(map(len, pieces)), max(map(len, pieces))
    total: i64 = 0
    longest: i64 = 0
    for piece in pieces:
        size: i64 = len(piece)
        total += size
        if size > longest:
            longest = size
    return total, longest


def is_near(ms: i64, seq: i64) -> bool:
    """Whether an ID is near the first of its block, of which the halves are so much lower."""
    return 0 <= ms < _NEAR and -_NEAR < seq < _NEAR


class LoadedRun:
    """Entries with ascending IDs and the same field names, to be added one after the other.

    ``payloads`` are their RESP forms, ``sizes`` the lengths of the fields and values in them.
    ``near`` tells that no sequence number is above 999.
    """

    __slots__ = ("entry_ids", "names", "near", "payloads", "sizes")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.entry_ids: list[int] = []
        self.payloads: list[bytes] = []
        self.sizes: list[int] = []
        self.near = False


class Block:
    """Consecutive entries. ``first`` and ``last`` are the IDs of the first and the newest entry
    that was ever in it, ``taken`` is the number of those, live or deleted.

    The live ones are in ``ids`` and ``payloads``, or in ``packed`` while nobody writes to the block
    (see :mod:`storage.engine.compression`). A place is the number of live entries before one.

    What the block would take as a node is known exactly for ``_measured`` bytes; for the newest
    ``_unmeasured`` entries an upper bound ``_bound`` is kept, which costs next to nothing and is
    enough to tell in most cases that another entry fits, while all IDs are surely ``_near`` the
    first. An entry takes ``_per_entry`` bytes at most beside its fields and values, which are fewer
    as long as they are.

    ``names`` are the field names of its first entry; they are not to be changed.

    Once an entry had other field names than the first the bound is soon too high, so that each of
    those that follow ``measures`` itself when it is added, whatever its field names are, if that is
    compiled. It is quick where the halves of its ID are known as native integers, as those of the
    first are (``_ms`` and ``_seq``; :data:`_FURTHEST` if they have no room in these).
    """

    __slots__ = (
        "_bound",
        "_measured",
        "_ms",
        "_near",
        "_packed",
        "_per_entry",
        "_saved",
        "_seq",
        "_unmeasured",
        "first",
        "ids",
        "last",
        "measures",
        "names",
        "payloads",
        "taken",
    )

    def __init__(self, first: int, names: list[bytes]) -> None:
        self.first = self.last = first
        self.ids: list[int] = []
        self.payloads: list[bytes] = []
        self._packed: Packed | None = None
        self.taken: i64 = 0
        self.names = names
        saved: i64 = _NAME * len(names)
        for name in names:
            saved += len(name)
        self._saved = saved
        ms, seq = split(first)
        has_room = ms < NATIVE and seq < NATIVE
        self._ms: i64 = ms if has_room else _FURTHEST
        self._seq: i64 = seq if has_room else _FURTHEST
        self.measures = False
        self._near = True
        self._per_entry: i64 = _USUAL_PER_ENTRY
        self._measured: i64 = 0
        self._unmeasured: i64 = 0
        self._bound: i64 = 0

    @property
    def packed(self) -> Packed | None:
        """The entries to look into while they are packed."""
        packed = self._packed
        if packed is not None and packed.folded is not None:
            packed.unfold()
        return packed

    def follow(self, other: Block) -> None:
        """Refers to the same field names as the block before, if they are equal; else its entries
        will hardly have the same either."""
        if self.names == other.names:
            self.names = other.names
        else:
            self.measures = IS_COMPILED

    def append(
        self, entry_id: int, ms: i64, seq: i64, payload: bytes, size: i64, alike: bool
    ) -> None:
        """Adds a new highest entry. ``ms`` and ``seq`` are the halves of its ID if both are below
        :data:`.NATIVE`; else, or where that would have to be found out, they are -1. ``size`` is
        the length of the array of its fields and values in RESP, with which ``payload`` ends;
        ``alike`` tells that its field names are :attr:`names`."""
        if self._packed is not None:
            self.open()
        exactly = (self.measures or (IS_COMPILED and not alike)) and ms >= 0 and self._ms < NATIVE
        if exactly:
            self.measures = True
            self.measure()
            at = next_line(payload, len(payload) - size + _SHORTEST_COUNT)
            self._measured += nodes.entry_size(
                payload, at, ms - self._ms, seq - self._seq, self.names, alike
            )
        else:
            self._unmeasured += 1
            self._bound += size - self._saved if alike and size < _LONG else size
        if self._near and not is_near(ms - self._ms, seq - self._seq):
            self._note(entry_id)
        self.ids.append(entry_id)
        self.payloads.append(payload)
        self.last = entry_id
        self.taken += 1

    def extend(self, run: LoadedRun, at: int, limits: StreamLimits) -> int:
        """Adds those entries of a run, from the place ``at`` on, that surely go into this block;
        returns how many there were. The next one may go into it, too."""
        if self._packed is not None or (self._near and not (run.near and 0 <= self._seq < _NEAR)):
            return 0
        end = len(run.sizes)
        if limits.max_entries > 0:
            end = min(end, at + limits.max_entries - self.taken)
        if self._near:
            end = min(end, bisect_left(run.entry_ids, self.first + _FAR))
        taken, bound = self._count_fitting(run, at, end, limits)
        if taken:
            self.ids += run.entry_ids[at : at + taken]
            self.payloads += run.payloads[at : at + taken]
            self.last = self.ids[-1]
            self.taken += taken
            self._unmeasured += taken
            self._bound = bound
        return taken

    def _count_fitting(
        self, run: LoadedRun, at: int, end: int, limits: StreamLimits
    ) -> tuple[int, int]:
        """How many of the entries from place to place the bound proves to fit, and what it is when
        they are there."""
        most = limits.node_bytes - self._saved - _HEAD
        per_entry = self._per_entry
        saved = self._saved if run.names == self.names else 0
        total = self._measured + self._unmeasured * per_entry
        bound = self._bound
        place = at
        while place < end:
            size = run.sizes[place]
            if total + bound + size >= most:
                break
            bound += size - saved if size < _LONG else size
            total += per_entry
            place += 1
        return max(place - at, 0), bound

    def append_run(
        self,
        run: Run,
        payloads: list[bytes],
        at: int,
        stop: int,
        alike: bool,
        limits: StreamLimits,
    ) -> int:
        """Adds entries of the run from place ``at`` to ``stop``, or fewer if not all of them surely
        go into this block; returns where those end. The next one may go into it, too. ``alike``
        tells that the field names of all are :attr:`names`."""
        first = run.first + at if at else run.first
        if self._near:
            ms, seq = run.ms - self._ms, run.seq - self._seq
            if not (is_near(ms, seq + at) and is_near(ms, seq + stop - 1)):
                self._note(first)
                self._note(run.first + stop - 1)
        per_entry = self._per_entry
        room = limits.node_bytes - self._measured - self._bound - 2 * self._saved - _HEAD
        room -= self._unmeasured * per_entry
        while stop > at:
            pieces = run.pieces if stop - at == len(payloads) else run.pieces[at:stop]
            count = len(pieces)
            size, longest = _lengths(pieces)
            size += count * len(run.header)
            if alike and len(run.header) + longest < _LONG:
                size -= count * self._saved
            needed = size + count * per_entry
            if needed < room:
                self._extend(first, payloads if count == len(payloads) else payloads[at:stop])
                self._bound += size
                break
            # As many as would fit if each took the same.
            stop = at + min(count * max(room, 0) // needed, count - 1)
        return stop

    def _extend(self, first: int, payloads: list[bytes]) -> None:
        """Adds entries with consecutive IDs from ``first`` on."""
        count = len(payloads)
        if self._packed is not None:
            self.open()
        if count == 1:
            self.ids.append(first)
            self.payloads += payloads
        else:
            self.ids += islice(counting_from(first), count)
            self.payloads += payloads
        self.last = first + (count - 1)
        self.taken += count
        self._unmeasured += count

    def _note(self, entry_id: int) -> None:
        """Notes whether all IDs are still near the first."""
        distance = entry_id - self.first
        if distance >= _FAR or _NEAR <= distance & HALF <= HALF - _NEAR:
            self._go_far()

    def _go_far(self) -> None:
        """Notes that an ID is not near the first."""
        self._near = False
        self._per_entry = _MOST_PER_ENTRY

    def surely_takes(self, size: i64, limits: StreamLimits) -> bool:
        """Whether an entry goes into this block for certain, as far as the bound tells."""
        if 0 < limits.max_entries <= self.taken:
            return False
        bound = self._measured + self._bound + self._unmeasured * self._per_entry
        return bound + self._saved + _HEAD + size < limits.node_bytes

    def takes(self, length: i64, limits: StreamLimits) -> bool:
        """Whether an entry goes into this block, rather than into a new one, of which the fields
        and values have so many bytes."""
        if 0 < limits.max_entries <= self.taken:
            return False
        return self.node_size() + length < limits.node_bytes

    def node_size(self) -> int:
        """Return how many bytes the block would take as a node of Redis."""
        self.measure()
        live = len(self)
        return self._measured + nodes.head_size(live, self.taken - live, self.names)

    @property
    def unmeasured(self) -> int:
        """How many entries :meth:`node_size` has to measure."""
        return self._unmeasured

    def measure(self) -> None:
        """Replaces the bound of the newest entries by their exact size."""
        if self._unmeasured:
            high = len(self)
            low = high - self._unmeasured
            packed = self.packed
            payloads = self.payloads[low:] if packed is None else packed.glance_each(low, high)
            self._measured += nodes.entries_size(
                self.ids_at(low, high), payloads, self.first, self.names
            )
            self._unmeasured = self._bound = 0

    def remove(self, low: int, high: int) -> None:
        """Deletes the entries at these places; they go on counting for the block's end."""
        self.open()
        if high > len(self.ids) - self._unmeasured:
            self.measure()
        del self.ids[low:high], self.payloads[low:high]

    def copy(self) -> Block:
        """An equal, independent block."""
        twin = Block(self.first, self.names)
        twin.last, twin.taken = self.last, self.taken
        twin.ids, twin.payloads = self.ids[:], self.payloads[:]
        twin._packed = None if self._packed is None else self._packed.copy()
        twin._near, twin._per_entry = self._near, self._per_entry
        twin._measured, twin.measures = self._measured, self.measures
        twin._unmeasured, twin._bound = self._unmeasured, self._bound
        return twin

    # --- looking up, packed or not --------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ids) if self._packed is None else len(self._packed)

    @property
    def lowest(self) -> int:
        """The lowest live ID."""
        return self.ids[0] if self._packed is None else self._packed.lowest

    @property
    def highest(self) -> int:
        """The highest live ID."""
        live = len(self)
        if live == self.taken:
            return self.last
        return self.ids[-1] if self.packed is None else self.packed.ids(live - 1, live)[0]

    def before(self, entry_id: int) -> int:
        """How many live entries have a lower ID."""
        packed = self.packed
        if packed is None:
            return bisect_left(self.ids, entry_id)
        return packed.before(entry_id)

    def find(self, entry_id: int) -> int:
        """The place of the entry with this ID, -1 if there is none."""
        packed = self.packed
        if packed is not None:
            return packed.find(entry_id)
        place = bisect_left(self.ids, entry_id)
        return place if place < len(self.ids) and self.ids[place] == entry_id else -1

    def ids_at(self, low: int, high: int) -> list[int]:
        """The IDs at the places from ``low`` to below ``high``."""
        packed = self.packed
        if packed is None:
            return self.ids[low:high]
        return packed.ids(low, high)

    def payloads_at(self, low: int, high: int, packer: Packer) -> list[bytes]:
        """The entries at these places in their RESP form."""
        packed = self.packed
        if packed is None:
            return self.payloads[low:high]
        return packed.payloads(low, high, packer)

    def pick(self, places: Sequence[int], packer: Packer) -> list[bytes]:
        """Return the entries at these ascending places in their RESP form."""
        if isinstance(places, range):
            return self.payloads_at(places.start, places.stop, packer)
        packed = self.packed
        if packed is None:
            return [self.payloads[place] for place in places]
        return packed.pick(places, packer)

    def payload_at(self, place: int, packer: Packer) -> bytes:
        """Return the entry at this place in its RESP form."""
        packed = self.packed
        if packed is None:
            return self.payloads[place]
        return packed.slice(place, place + 1, packer)

    def chunks_at(self, low: int, high: int, packer: Packer, goes_on: bool = False) -> list[bytes]:
        """Return the RESP forms of these entries in any number of pieces that follow each other;
        ``goes_on`` tells that the reader comes back for the next ones."""
        packed = self.packed
        if packed is None:
            return self.payloads[low:high]
        return [packed.slice(low, high, packer, goes_on)]

    def stretch(self, low: int, high: int, packer: Packer) -> Stretch:
        """Return the entries at these places for who looks into each of them."""
        packed = self.packed
        if packed is not None:
            return packed.stretch(low, high, packer)
        payloads = self.payloads[low:high]
        return Stretch(self.ids[low:high], b"".join(payloads), ends_of(payloads))

    def hold(self, low: int, high: int) -> Held:
        """The entries at these places as they are now, whatever becomes of the block; to be read
        with :func:`read_held`."""
        if self._packed is None:
            return self.payloads[low:high]
        return self._packed.copy(), low, high

    def memory_usage(self) -> int:
        """Bytes that the entries take, about."""
        if self._packed is None:
            return sum(map(len, self.payloads)) + _OBJECTS * len(self.ids)
        return self._packed.held + _PACKED * len(self._packed)

    def contents(self) -> tuple[list[int], list[bytes]]:
        """All IDs and entries, in lists of their own."""
        if self._packed is None:
            return self.ids[:], self.payloads[:]
        return self._packed.copy().unpack()

    def pack(self) -> Packed | None:
        """Packs the entries unless they are folded; returns them, or ``None`` if there are none to
        pack."""
        packed = self._packed
        if packed is not None:
            return None if packed.folded is None else packed
        if not self.ids:
            return None
        packed = self._packed = Packed(self.ids, self.payloads)
        self.ids, self.payloads = _NO_IDS, _NO_PAYLOADS
        return packed

    def open(self) -> None:
        """Unpacks the entries, if they are packed."""
        packed = self._packed
        if packed is not None:
            self._packed = None
            self.ids, self.payloads = packed.unpack()

    def discard(self) -> None:
        """Gives the entries up, wherever they are still referred to."""
        if self._packed is not None:
            self._packed.discard()
        self.ids, self.payloads = [], []

    # --- as a node of Redis ---------------------------------------------------------------

    @classmethod
    def of_node(
        cls, first: int, last: int, names: list[bytes], deleted: int, node: Folded, near: bool
    ) -> Block:
        """Return a block of the entries in a node, in which so many are deleted.

        ``last`` is the ID of the newest one that was ever in it; ``near`` tells that all of them
        are near its first (:func:`is_near`)."""
        block = cls(first, names)
        packed = block._packed = Packed([], [], node)
        if node.size > _MOST_FOLDED:
            packed.unfold()
        block.last, block.taken = last, node.count + deleted
        block._measured = node.size - nodes.head_size(node.count, deleted, names)
        if not near:
            block._go_far()
        return block

    # --- its outline, for a log that is written anew --------------------------------------

    def is_plain(self, limits: StreamLimits) -> bool:
        """Whether the live entries, added one after the other, would surely give this block."""
        # In a node of a file the entry that it began with may be gone, and not be counted.
        if self.taken != len(self) or self.first != self.lowest:
            return False
        if 0 < limits.max_entries < self.taken:
            return False
        size = sum(map(len, self.contents()[1])) + _MOST_PER_ENTRY * self.taken + _HEAD
        return limits.max_bytes <= 0 or size < limits.max_bytes

    def outline(self) -> bytes:
        """All that its live entries do not tell, as an array of bulk strings: their number, the
        number of entries taken, the first and last ID, its size; and the field names that it
        began with, if that entry is gone."""
        live = len(self)
        size = _UNKNOWN if live == self.taken else self._measured_size()
        names = [] if self.first == self.lowest else self.names
        return pack(
            (b"%d" % live, *(b"%d" % n for n in (self.taken, self.first, self.last, size)), *names)
        )

    def _measured_size(self) -> int:
        self.measure()
        return self._measured

    @classmethod
    def restored(cls, outline: Sequence[bytes], ids: list[int], payloads: list[bytes]) -> Block:
        """The block with this outline, decoded, and these live entries.

        Raises :class:`ValueError` if they do not go together."""
        live, taken, first, last, size = map(int, outline[:5])
        in_order = first <= ids[0] and ids[-1] <= last if ids else False
        if not in_order or not live == len(ids) <= taken < NATIVE or abs(size) >= NATIVE:
            raise ValueError("the outline of a block does not fit its entries")
        block = cls(first, list(outline[5:]) or names_in(payloads[0])[0])
        block.ids, block.payloads, block.taken, block.last = ids, payloads, taken, last
        for entry_id in ids:
            block._note(entry_id)
        if size == _UNKNOWN:
            block._unmeasured, block._bound = live, sum(map(len, payloads))
        else:
            block._measured = size
        return block
