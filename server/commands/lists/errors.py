"""Hold the error texts of the commands for lists, which are those of Redis."""

from __future__ import annotations

from typing import Final

INDEX_OUT_OF_RANGE: Final = "ERR index out of range"
RANK_ZERO: Final = (
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use"
    " negative to start from the end of the list"
)
NEGATIVE_COUNT: Final = "ERR COUNT can't be negative"
NEGATIVE_MAXLEN: Final = "ERR MAXLEN can't be negative"
