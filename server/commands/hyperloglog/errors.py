"""Hold the error texts of the commands for HyperLogLogs, which are those of Redis."""

from __future__ import annotations

from typing import Final

NO_HYPERLOGLOG: Final = "WRONGTYPE Key is not a valid HyperLogLog string value."
DAMAGED: Final = "INVALIDOBJ Corrupted HLL object detected"
