# Compiled by mypyc.
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

from storage.engine.ids import HALF

FRAME: Final = 7
"""Bytes of a listpack without elements: its length, the number of its elements, the end mark."""

LARGEST: Final = 2**30
"""No node is larger than this, whatever is configured."""

_KEY_BYTES: Final = 16
"""An ID as the radix tree of the nodes holds it."""

_NINE: Final = 0x39
"""No integer begins with a byte above this one; most texts do, so they need no further check."""
_MINUS: Final = 0x2D
_ZERO: Final = 0x30
_SHORT: Final = 10
"""More digits than these take the bytes of the largest integers, whatever they are."""
_LONGEST: Final = 19
"""No integer has more digits, and not all numbers of so many digits are integers."""
_MOST: Final = b"%d" % (2**63 - 1)
_LEAST: Final = b"%d" % 2**63
"""The digits of the highest and of the lowest integer."""


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
    length = len(data)
    if length < 64:
        if 0 < length <= _LONGEST + 1 and data[0] <= _NINE:
            return _number_size(data, length)
        return length + 2
    size = length + (2 if length < 4096 else 5)
    return size + _back_length(size)


def _number_size(data: bytes, length: int) -> int:
    """Return the size of a short text, stored as an integer if that would be written so."""
    negative = data[0] == _MINUS
    digits = data[1:] if negative else data
    count = len(digits)
    if not digits.isdigit() or (digits[0] == _ZERO and length > 1):
        return length + 2
    if count <= _SHORT:
        return integer_size(int(data))
    if count < _LONGEST:
        return 10
    fits = count == _LONGEST and digits <= (_LEAST if negative else _MOST)
    return 10 if fits else length + 2


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


def entry_size(identity: int, first: int, items: list[bytes], names: list[bytes]) -> int:
    """Bytes of an entry in the node that begins with ``first`` and has these field names."""
    count = len(items) // 2
    milliseconds = (identity >> 64) - (first >> 64)
    sequence = (identity & HALF) - (first & HALF) if milliseconds else identity - first
    size = 2 + _distance_size(milliseconds) + _distance_size(sequence)
    if items[::2] == names:
        items = items[1::2]
        size += integer_size(count + 3)
    else:
        size += integer_size(count) + integer_size(2 * count + 4)
    for item in items:
        size += element_size(item)
    return size


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
