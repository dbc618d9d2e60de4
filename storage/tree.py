"""The size of the radix tree in which Redis files a stream's nodes (``radix-tree-nodes``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

_KEY_BYTES: Final = 16


def radix_tree_nodes(keys: Sequence[int]) -> int:
    """Nodes of a path-compressed tree over ascending 16-byte keys; 1 when it is empty.

    Every key is a leaf; keys part at branches; a run of bytes that only one way leads through,
    between a branch and what is below it, is one node more.
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
    """A node at ``depth``, and the run that leads to it from ``parent`` if there is one."""
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
