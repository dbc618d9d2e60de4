"""Dead letters: the original entry, preceded by fields with its origin and the reason.

The data source writes such letters too, for entries that were delivered too often. The reason is
the last of these fields in both, so the fields after it are those of the entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.pipeline.decode.sql import REASON, text

PREFIX: Final = b"dead-letter-"
STREAM: Final = b"dead-letter-stream"
ID: Final = b"dead-letter-id"
PIPELINE: Final = b"dead-letter-pipeline"
LAST: Final = b"dead-letter-reason"


class Letter(NamedTuple):
    """A parsed dead letter; ``fields`` are names and values in turn."""

    stream: bytes
    id: bytes
    reason: bytes
    fields: list[bytes]


def letter_fields(pipeline: str) -> str:
    """The SQL of a letter's fields, from the columns of an entry and :data:`REASON`."""
    pairs = {
        STREAM: "stream",
        ID: "id",
        PIPELINE: text(pipeline),
        LAST: REASON,
    }
    heads = ", ".join(
        f"named_struct('name', X'{key.hex()}', 'value', CAST({value} AS BINARY))"
        for key, value in pairs.items()
    )
    return f"concat(array({heads}), fields) AS fields"


def unpack(fields: Sequence[bytes]) -> Letter | None:
    """The letter in an entry; None if the entry is not a dead letter."""
    heads: dict[bytes, bytes] = {}
    for index in range(0, len(fields), 2):
        key, value = fields[index], fields[index + 1]
        if not key.startswith(PREFIX):
            return None
        heads[key] = value
        if key == LAST:
            rest = list(fields[index + 2 :])
            if STREAM not in heads or not rest:
                return None
            return Letter(heads[STREAM], heads.get(ID, b""), value, rest)
    return None
