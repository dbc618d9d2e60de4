"""Settings that all streams of a keyspace follow, and who frees what they drop.

Freeing a million entries takes 80 ms, a million pending entries 20 ms. The command that removed
them is answered at once; the memory is released in portions, without blocking other clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from storage.engine import nodes
from storage.engine.compression import Packer

if TYPE_CHECKING:
    from mypy_extensions import i64

Table = dict[Any, Any] | list[Any] | deque[Any]

FEW: Final = 200
"""Up to this many blocks are freed at once, which takes less than 2 ms."""


class Discardable(Protocol):
    """The interface of a block that is needed to free it."""

    def discard(self) -> None:
        """Empties the block."""


class Disposal:
    """Blocks of entries, columns of pending entries, and tables of keys that are no longer
    referenced elsewhere."""

    __slots__ = ("_blocks", "_columns", "_tables", "freed")

    def __init__(self) -> None:
        self._blocks: list[Discardable] = []
        self._columns: list[object] = []
        self._tables: list[Table] = []
        self.freed = 0
        """How much has been freed in portions."""

    def __len__(self) -> int:
        return len(self._blocks) + len(self._columns) + sum(map(len, self._tables))

    def take(self, blocks: Sequence[Discardable]) -> None:
        """Queues the blocks, if they are many."""
        if len(blocks) > FEW:
            self._blocks.extend(blocks)
        else:
            _discard(blocks)

    def keep(self, columns: Sequence[object]) -> None:
        """Queues columns, if they are many."""
        if len(columns) > FEW:
            self._columns.extend(columns)

    def drop(self, *tables: Table) -> None:
        """Queues tables with their contents, if they are long."""
        self._tables.extend([table for table in tables if len(table) > FEW])

    def free(self, most: int) -> None:
        """Frees up to ``most`` blocks, as many columns, and as many items of tables."""
        before = len(self)
        _discard(self._blocks[-most:])
        del self._blocks[-most:]
        del self._columns[-most:]
        left = most
        while left > 0 and self._tables:
            left -= self._free_items(left)
        self.freed += max(0, before - len(self))

    def _free_items(self, most: int) -> int:
        """Frees up to ``most`` items of one table; returns how many."""
        table = self._tables[-1]
        count = min(most, len(table))
        if isinstance(table, list):
            del table[len(table) - count :]
        elif isinstance(table, dict):
            for _ in range(count):
                table.popitem()
        else:
            for _ in range(count):
                table.pop()
        if not table:
            # The freed items may have queued tables of their own.
            self._tables = [other for other in self._tables if other is not table]
        return count


def _discard(blocks: Sequence[Discardable]) -> None:
    """Empties the blocks, which may still be in the packer's queue."""
    for block in blocks:
        block.discard()


class CollectionLimits:
    """Settings that values of many elements follow: up to which sizes Redis keeps them in one piece
    of memory, which their encodings and their order tell; and the :class:`Disposal` that frees what
    they drop."""

    __slots__ = (
        "disposal",
        "hash_max_listpack_entries",
        "hash_max_listpack_value",
        "hll_sparse_max_bytes",
        "list_max_listpack_size",
        "set_max_intset_entries",
        "set_max_listpack_entries",
        "set_max_listpack_value",
        "zset_max_listpack_entries",
        "zset_max_listpack_value",
    )

    def __init__(self, disposal: Disposal) -> None:
        self.disposal = disposal
        self.hash_max_listpack_entries = 512
        self.hash_max_listpack_value = 64
        self.hll_sparse_max_bytes = 3000
        self.list_max_listpack_size = -2
        self.set_max_intset_entries = 512
        self.set_max_listpack_entries = 128
        self.set_max_listpack_value = 64
        self.zset_max_listpack_entries = 128
        self.zset_max_listpack_value = 64


class StreamLimits:
    """Settings that every stream of a keyspace follows (``stream-node-max-entries`` and so on), the
    :class:`Disposal` that frees what values drop, the :class:`Packer` of what they keep, and the
    limits of ``collections``."""

    __slots__ = (
        "_max_bytes",
        "collections",
        "disposal",
        "idmp_duration",
        "idmp_maxsize",
        "max_entries",
        "node_bytes",
        "packer",
    )

    def __init__(self, max_entries: int = 100, max_bytes: int = 4096) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.idmp_duration = 100
        self.idmp_maxsize = 100
        self.disposal = Disposal()
        self.packer = Packer()
        self.collections = CollectionLimits(self.disposal)

    @property
    def max_bytes(self) -> int:
        """How many bytes a block may have as a node of Redis, as it is configured."""
        return self._max_bytes

    @max_bytes.setter
    def max_bytes(self, size: int) -> None:
        self._max_bytes = size
        self.node_bytes: i64 = size if 0 < size < nodes.LARGEST else nodes.LARGEST
        """No node takes as many bytes as these."""

    @property
    def approximate_limit(self) -> int:
        """How many entries an approximate trimming removes at most where nothing is said."""
        limit = 100 * self.max_entries
        return min(limit, 1_000_000) if limit > 0 else 10_000
