"""Hold the error texts of the commands for sets, which are those of Redis."""

from __future__ import annotations

from typing import Final

TOO_FEW_KEYS: Final = "ERR numkeys should be greater than 0"
TOO_MANY_KEYS: Final = "ERR Number of keys can't be greater than number of args"
NEGATIVE_LIMIT: Final = "ERR LIMIT can't be negative"
