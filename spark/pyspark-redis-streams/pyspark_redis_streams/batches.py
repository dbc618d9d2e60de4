"""What a place that is written remembers of a batch, so that it knows one that is repeated.

The number alone does not tell that: a checkpoint that is an older copy makes a batch of the same
number with other entries. So the end is remembered, too, which is the same text whenever a batch
of the checkpoint is repeated::

    5f3a9b1c orders up to 1000-0, refunds up to 7-0

It is a checksum of where the batch begins and ends in each stream that it has entries of, and the
ends, for people. Places that were written by earlier versions remember the number only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from zlib import crc32

from pyspark_redis_streams.errors import CheckpointError
from pyspark_redis_streams.streams import key_of, shown

NAMED: Final = 3
"""The most streams whose ends are named."""

ADVICE: Final = (
    "Nothing was written there. In mode 'offsets' put back the checkpoint of the last run, or "
    "start with a new one (another checkpoint.path) and starting_offsets where that run ended; in "
    "mode 'group' start with a new one, as the group says where to go on"
)


class BatchMark(NamedTuple):
    """The number of a batch, and its end as :func:`batch_end` gives it, empty if nobody knows."""

    number: int
    end: str = ""

    @property
    def checksum(self) -> str:
        """The part of the end that is compared."""
        return self.end.partition(" ")[0]

    def describe(self) -> str:
        """Return the number and the end for people."""
        where = self.end.partition(" ")[2]
        return f"batch {self.number}" + (f" ({where})" if where else "")


def batch_end(offsets: Iterable[str]) -> str:
    """Return what tells a batch from others of its number, from its offsets of either mode.

    Empty if they are too old to say where the batch ends.
    """
    found: list[tuple[Any, ...]] = []
    for offset in offsets:
        for server, streams in json.loads(offset).get("servers", {}).items():
            for name, at in streams.items():
                # In mode `group` entries may have been claimed, wherever the group stands.
                if at.get("count", at["from"] != at["id"]):
                    found.append((server, name, at["from"], at["id"], at.get("count")))
    if not found:
        return ""
    found = sorted(set(found))
    texts = [f"{shown(key_of(name))} up to {id}" for _, name, _, id, _ in found[:NAMED]]
    if len(found) > NAMED:
        texts.append(f"and {len(found) - NAMED:,} more")
    return f"{crc32(json.dumps(found).encode()):08x} {', '.join(texts)}"


def is_written(noted: BatchMark | None, this: BatchMark, place: str) -> bool:
    """Whether ``place`` has a batch, of which it has ``noted`` the last one.

    Raises CheckpointError if it has a later one, or another one of that number.
    """
    if noted is None or noted.number < this.number:
        return False
    is_same = noted.checksum == this.checksum or not (noted.end and this.end)
    if noted.number == this.number and is_same:
        return True
    raise CheckpointError(
        f"{place} has {noted.describe()} of this query, and this is {this.describe()}: the "
        f"checkpoint is an older copy, or another run went on meanwhile. {ADVICE}"
    )
