"""Hold the error texts of the commands for sets, which are those of Redis."""

from __future__ import annotations

from typing import Final

NEGATIVE_LIMIT: Final = "ERR LIMIT can't be negative"
