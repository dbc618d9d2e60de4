"""The number of nodes of a path-compressed tree, against a tree that is really built."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine import ids
from storage.engine.nodes import radix_tree_nodes

Tree = dict[int, "Tree"]
"""A node a byte: what follows on each."""


def _tree(keys: Iterable[int]) -> Tree:
    root: Tree = {}
    for key in keys:
        node = root
        for byte in key.to_bytes(16, "big"):
            node = node.setdefault(byte, {})
    return root


def _compressed_nodes(node: Tree) -> int:
    """Nodes that are left when each run of bytes without a branch has become one node."""
    if len(node) == 1:
        while len(node) == 1:
            (node,) = node.values()
        return 1 + _compressed_nodes(node)
    return 1 + sum(map(_compressed_nodes, node.values()))


BYTES = st.sampled_from([0, 1, 255])
NEAR = st.lists(BYTES, min_size=16, max_size=16).map(lambda key: int.from_bytes(bytes(key), "big"))
KEYS = st.one_of(NEAR, st.integers(0, 300), st.integers(ids.MIN, ids.MAX))


@given(keys=st.sets(KEYS, max_size=40))
def test_the_nodes_are_those_of_a_tree_that_is_built(keys: set[int]) -> None:
    assert radix_tree_nodes(sorted(keys)) == _compressed_nodes(_tree(keys))


@pytest.mark.parametrize(
    ("keys", "nodes"),
    [
        ([], 1),
        ([5], 2),
        ([5, 6], 4),
        ([0, ids.MAX], 5),
        ([0, 1, 2**120], 7),
        ([0, 1, 256, 257], 8),
    ],
)
def test_trees_that_can_be_drawn_by_hand(keys: list[int], nodes: int) -> None:
    assert radix_tree_nodes(keys) == nodes
