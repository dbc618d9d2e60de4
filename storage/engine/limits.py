# Compiled by mypyc.
"""What every stream of a keyspace follows: settings, and who frees and packs its blocks."""

from __future__ import annotations

from storage.engine.compression import Packer
from storage.engine.lazy_free import Disposal


class StreamLimits:
    """Settings that every stream of a keyspace follows (``stream-node-max-entries`` and so on), the
    :class:`Disposal` that frees what they drop, and the :class:`Packer` of what they keep."""

    __slots__ = ("disposal", "idmp_duration", "idmp_maxsize", "max_bytes", "max_entries", "packer")

    def __init__(self, max_entries: int = 100, max_bytes: int = 4096) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.idmp_duration = 100
        self.idmp_maxsize = 100
        self.disposal = Disposal()
        self.packer = Packer()

    @property
    def approximate_limit(self) -> int:
        """How many entries an approximate trimming removes at most where nothing is said."""
        limit = 100 * self.max_entries
        return min(limit, 1_000_000) if limit > 0 else 10_000
