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
from typing import Final

from storage.engine.entries import items_at, text_at, unpack
from storage.engine.ids import HALF, split

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
_SIZES: Final = [
    (b"", 0, 0),
    (b"9", 2, 2),
    (b"99", 2, 2),
    (b"127", 2, 3),
    (b"4095", 3, 4),
    (b"32767", 4, 5),
    (b"999999", 5, 5),
    (b"8388607", 5, 6),
    *[(b"9" * digits, 6, 6) for digits in (8, 9)],
    (b"2147483647", 6, 10),
    *[(b"9" * digits, 10, 10) for digits in range(11, _LONGEST)],
    (b"%d" % (2**63 - 1), 10, 0),
]
"""By the number of its digits, what tells how many bytes an integer takes: the first of these sizes
up to the number, the second above; 0 where it is no integer any more. So no number is made."""
_CLOSE: Final = 2**32
"""From one ID with a sequence number below this to another, less than this above, it is the same
millisecond."""


def integer_size(value: int) -> int:
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
    return _text_size(data, 0, len(data))


def _text_size(data: bytes, start: int, end: int) -> int:
    """Return how many bytes an element takes that holds the text from place to place."""
    length = end - start
    if length < 64:
        if 0 < length <= _LONGEST + 1 and data[start] <= _NINE:
            return _number_size(data, start, end)
        return length + 2
    size = length + (2 if length < 4096 else 5)
    return size + _back_length(size)


def _number_size(data: bytes, start: int, end: int) -> int:
    """Return the size of a short text, stored as an integer if that would be written so."""
    length = end - start
    negative = data[start] == _MINUS
    digits = data[start + 1 : end] if negative else data[start:end]
    if not digits.isdigit() or (digits[0] == _ZERO and length > 1):
        return length + 2
    if negative:
        value = -int(digits)
        return integer_size(value) if value >= _LEAST else length + 2
    if len(digits) > _LONGEST:
        return length + 2
    most, size, above = _SIZES[len(digits)]
    return size if digits <= most else above or length + 2


def _back_length(size: int) -> int:
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
    if IS_COMPILED:
        return sum([_size_in(payload, items_at(payload), names) for payload in payloads])
    entries = unpack(b"*%d\r\n%b" % (len(payloads), b"".join(payloads)))
    return sum([_size_of(items, names) for _, items in entries])


def _size_of(items: list[bytes], names: list[bytes]) -> int:
    """Return the size of these fields and values."""
    count = len(items) // 2
    if items[::2] == names:
        size, items = integer_size(count + 3), items[1::2]
    else:
        size = integer_size(count) + integer_size(2 * count + 4)
    return size + sum([_text_size(item, 0, len(item)) for item in items])


def _size_in(payload: bytes, at: int, names: list[bytes]) -> int:
    """Return the size of the fields and values from ``at`` on, without making objects of them."""
    count = of_names = of_values = 0
    alike = True
    while at < len(payload):
        start, end = text_at(payload, at)
        alike = alike and count < len(names) and payload[start:end] == names[count]
        of_names += _text_size(payload, start, end)
        start, end = text_at(payload, end + _LINE_END)
        of_values += _text_size(payload, start, end)
        at = end + _LINE_END
        count += 1
    if alike and count == len(names):
        return integer_size(count + 3) + of_values
    return integer_size(count) + integer_size(2 * count + 4) + of_names + of_values


def head_size(live: int, deleted: int, names: list[bytes]) -> int:
    """Bytes of a node before its first entry, the frame included."""
    size = FRAME + integer_size(live) + integer_size(deleted) + integer_size(len(names)) + 2
    return size + sum(map(element_size, names))


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
