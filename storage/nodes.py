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

import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

from storage.ids import HALF

FRAME: Final = 7
"""Bytes of a listpack without elements: its length, the number of its elements, the end mark."""

LARGEST: Final = 2**30
"""No node is larger than this, whatever is configured."""

_KEY_BYTES: Final = 16
"""An ID as the radix tree of the nodes holds it."""

_INTEGER = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")
_NINE: Final = 0x39
"""No integer begins with a byte above this one; most texts do, so they need no further check."""
_STEPS: Final = ((13, 2), (16, 3), (24, 4), (32, 5))


def integer_size(value: int) -> int:
    """Bytes of an integer element."""
    if 0 <= value <= 127:
        return 2
    for bits, size in _STEPS:
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return size + 1
    return 10


def element_size(data: bytes) -> int:
    """Bytes of an element that holds this text."""
    length = len(data)
    if 0 < length <= 20 and data[0] <= _NINE and _INTEGER.match(data):
        value = int(data)
        if -(2**63) <= value < 2**63:
            return integer_size(value)
    if length < 64:
        return length + 2
    size = length + (2 if length < 4096 else 5)
    return size + _back_length(size)


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


def _signed(value: int) -> int:
    """A difference of unsigned halves as the 64-bit integer it is stored as."""
    value &= HALF
    return value - 2**64 if value >= 2**63 else value


def entry_size(identity: int, first: int, items: Sequence[bytes], names: Sequence[bytes]) -> int:
    """Bytes of an entry in the node that begins with ``first`` and has these field names."""
    count = len(items) // 2
    same = list(items[::2]) == list(names)
    stored = items[1::2] if same else items
    size = sum(map(element_size, stored))
    size += integer_size(_signed((identity >> 64) - (first >> 64)))
    size += integer_size(_signed((identity & HALF) - (first & HALF)))
    if same:
        return size + 2 + integer_size(count + 3)
    return size + 2 + integer_size(count) + integer_size(2 * count + 4)


def head_size(live: int, deleted: int, names: Sequence[bytes]) -> int:
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
