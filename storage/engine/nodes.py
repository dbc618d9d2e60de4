"""The sizes that a stream's nodes would have in Redis, which decide where blocks end.

Redis packs the entries of a node into one *listpack*. Approximate trimming (``~``) removes whole
nodes, so blocks must end where Redis's nodes end. The sizes follow from the published listpack
format (https://github.com/antirez/listpack): an element is a small integer or a string, with a
header, and with its own length behind it. A node begins with the number of live and of deleted
entries and with the field names of its first entry; an entry with the same names stores its values
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from storage.engine.entries import id_in, next_line, text_at, unpack
from storage.engine.ids import HALF, NATIVE, join, split

if TYPE_CHECKING:
    from mypy_extensions import i64

FRAME: Final = 7
"""Bytes of a listpack without elements: its length, the number of its elements, the end mark."""

LARGEST: Final = 2**30
"""No node is larger than this, whatever is configured."""

_KEY_BYTES: Final = 16
"""An ID as the radix tree of the nodes holds it."""

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over bytes is quicker than objects made in C."""
_LINE_END: Final = len(b"\r\n")
_NINE: Final = 0x39
"""No integer begins with a byte above this one; most texts do, so they need no further check."""
_MINUS: Final = 0x2D
_ZERO: Final = 0x30
_LONGEST: Final = 19
"""No integer has more digits, and not all numbers of so many digits are integers."""
_LEAST: Final = -(2**63)


_CLOSE: Final = 2**32
"""From one ID with a sequence number below this to another, less than this above, it is the same
millisecond."""


def integer_size(value: i64) -> i64:
    """Bytes of an integer element."""
    if 0 <= value <= 127:
        return 2
    if value < 0:
        value = ~value  # It takes as many bits as the number that is stored.
    if value < 1 << 15:
        return 3 if value < 1 << 12 else 4
    if value < 1 << 31:
        return 5 if value < 1 << 23 else 6
    return 10


def element_size(data: bytes) -> int:
    """Bytes of an element that holds this text."""
    length = len(data)
    if 0 < length <= _LONGEST + 1 and data[0] <= _NINE:
        digits = data[1:] if data[0] == _MINUS else data
        if digits.isdigit() and (digits[0] != _ZERO or length == 1):
            value = int(data)
            if _LEAST <= value < -_LEAST:
                return integer_size(value)
    return _text_size(length)


def _text_size(length: i64) -> i64:
    """Return the size of a text of so many bytes that is no integer."""
    if length < 64:
        return length + 2
    size = length + (2 if length < 4096 else 5)
    return size + _back_length(size)


def _size_at(data: bytes, at: i64, length: i64) -> i64:
    """Return :func:`element_size` of the text there, which has a first byte of up to ``_NINE``,
    without making an object of it."""
    end = at + length
    place = at + 1 if data[at] == _MINUS else at
    if place == end or (data[place] == _ZERO and length > 1):
        return _text_size(length)
    if end - place >= _LONGEST:
        return element_size(data[at:end])
    value: i64 = 0
    while place < end:
        digit: i64 = data[place]
        if digit < _ZERO or digit > _NINE:
            return _text_size(length)
        value = value * 10 + digit - _ZERO
        place += 1
    return integer_size(-value if data[at] == _MINUS else value)


def _back_length(size: i64) -> i64:
    """Bytes of the length that follows an element of ``size`` bytes."""
    return (
        1
        if size <= 127
        else 2
        if size < 16383
        else 3
        if size < 2097151
        else 4
        if size < 268435455
        else 5
    )


def _distance_size(distance: int) -> int:
    """Bytes of a difference of unsigned halves, which is stored as an integer of 64 bits."""
    if not -(1 << 31) <= distance < 1 << 31:
        distance &= HALF
        if distance >= 1 << 63:
            distance -= 1 << 64
    return integer_size(distance)


def entries_size(
    entry_ids: list[int], payloads: list[bytes], first: int, names: list[bytes]
) -> int:
    """Bytes of entries with ascending IDs, given in their RESP forms as well, in the node that
    begins with the ID ``first`` and has these field names."""
    ms, seq = split(first)
    if IS_COMPILED and ms < NATIVE and seq < NATIVE:
        return _walked_size(entry_ids, payloads, ms, seq, names)
    return ids_size(entry_ids, first) + items_size(payloads, names)


def _walked_size(
    entry_ids: list[int], payloads: list[bytes], first_ms: i64, first_seq: i64, names: list[bytes]
) -> i64:
    """Return the same without making objects of anything, where that is possible; the first ID of
    the node has these halves."""
    size: i64 = 0
    for place, payload in enumerate(payloads):
        ms, seq, end = id_in(payload)
        at = next_line(payload, end + _LINE_END)
        if ms < 0:
            size += ids_size([entry_ids[place]], join(first_ms, first_seq))
            size += _size_in(payload, at, names, False)
        else:
            size += entry_size(payload, at, ms - first_ms, seq - first_seq, names, False)
    return size


def entry_size(payload: bytes, at: i64, ms: i64, seq: i64, names: list[bytes], alike: bool) -> i64:
    """Bytes of an entry, given in its RESP form with the fields and values from ``at`` on, in a
    node with these field names. The halves of its ID are so far above those of the node's first.
    ``alike`` tells that its field names are the same; they may be without."""
    return 2 + integer_size(ms) + integer_size(seq) + _size_in(payload, at, names, alike)


def ids_size(entry_ids: list[int], first: int) -> int:
    """Bytes of the ascending IDs of entries, with the flags before them, in the node that begins
    with ``first``."""
    first_ms, first_seq = split(first)
    before, ms, seq = first, first_ms, first_seq
    size = 2 * len(entry_ids)
    for entry_id in entry_ids:
        step = entry_id - before
        if seq < _CLOSE and step < _CLOSE:
            seq += step  # Shifts of large integers take longer than the rest.
        else:
            ms, seq = split(entry_id)
        before = entry_id
        size += _distance_size(ms - first_ms) + _distance_size(seq - first_seq)
    return size


def items_size(payloads: list[bytes], names: list[bytes]) -> int:
    """Bytes of the fields and values of entries, given in their RESP forms, with their numbers, in
    the node that has these field names."""
    entries = unpack(b"*%d\r\n%b" % (len(payloads), b"".join(payloads)))
    return sum([_size_of(items, names) for _, items in entries])


def _size_of(items: list[bytes], names: list[bytes]) -> int:
    """Return the size of these fields and values."""
    count = len(items) // 2
    if items[::2] == names:
        size, items = integer_size(count + 3), items[1::2]
    else:
        size = integer_size(count) + integer_size(2 * count + 4)
    return size + sum(map(element_size, items))


def _size_in(payload: bytes, at: i64, names: list[bytes], known: bool) -> i64:
    """Return the size of the fields and values from ``at`` on, without making objects of them.
    ``known`` tells that the fields are ``names``."""
    elements: i64 = 0
    of_names: i64 = 0
    of_values: i64 = 0
    alike = True
    end: i64 = len(payload)
    while at < end:
        at, stop = text_at(payload, at)
        is_value = elements & 1
        if is_value or not known:
            length = stop - at
            if 0 < length <= _LONGEST + 1 and payload[at] <= _NINE:
                size = _size_at(payload, at, length)
            else:
                size = _text_size(length)
            if is_value:
                of_values += size
            else:
                of_names += size
                alike = alike and _is_named(payload, at, stop, names, elements >> 1)
        elements += 1
        at = stop + _LINE_END
    count = elements >> 1
    if alike and count == len(names):
        return integer_size(count + 3) + of_values
    return integer_size(count) + integer_size(elements + 4) + of_names + of_values


def _is_named(payload: bytes, at: i64, stop: i64, names: list[bytes], place: i64) -> bool:
    """Whether the text there is the name at this place, if there is one."""
    if place >= len(names):
        return False
    name = names[place]
    if len(name) != stop - at:
        return False
    # Most others end in another byte, which is seen without an object of their own.
    return at == stop or (payload[stop - 1] == name[-1] and payload[at:stop] == name)


def head_size(live: int, deleted: int, names: list[bytes]) -> int:
    """Bytes of a node before its first entry, the frame included."""
    size = FRAME + integer_size(live) + integer_size(deleted) + integer_size(len(names)) + 2
    for name in names:
        size += element_size(name)
    return size


# --- the radix tree --------------------------------------------------------------------------


def radix_tree_nodes(keys: Sequence[int]) -> int:
    """The size of the radix tree in which Redis files a stream's nodes (``radix-tree-nodes``).

    Nodes of a path-compressed tree over ascending 16-byte keys; 1 when it is empty.

    Every key is a leaf, and every position where keys diverge is a branch. A run of bytes without
    a branch, between a branch and the node below it, adds one node.
    """
    if not keys:
        return 1
    shared = [_common_bytes(low, high) for low, high in pairwise(keys)]
    parents = map(max, chain((-1,), shared), chain(shared, (-1,)))
    return sum(_node_and_run(_KEY_BYTES, parent) for parent in parents) + _branches(shared)


def _common_bytes(low: int, high: int) -> int:
    """How many leading bytes two different keys share."""
    return _KEY_BYTES - ((low ^ high).bit_length() + 7) // 8


def _node_and_run(depth: int, parent: int) -> int:
    """A node at ``depth``, and the run that leads to it from ``parent``, if there is one."""
    return 2 if depth > parent + 1 else 1


def _branches(shared: Iterable[int]) -> int:
    """Branches and the runs that lead to them, from the bytes that neighbouring keys share."""
    total = 0
    opened: list[int] = []
    for depth in chain(shared, (-1,)):
        while opened and opened[-1] > depth:
            closed = opened.pop()
            total += _node_and_run(closed, max(depth, opened[-1] if opened else -1))
        if not opened or opened[-1] < depth:
            opened.append(depth)
    return total
