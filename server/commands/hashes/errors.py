"""Hold the error texts of the commands for hashes, which are those of Redis."""

from __future__ import annotations

from typing import Final

NOT_AN_INTEGER: Final = "ERR hash value is not an integer"
NOT_A_FLOAT: Final = "ERR hash value is not a float"
INFINITE_INCREMENT: Final = "ERR value is NaN or Infinity"
