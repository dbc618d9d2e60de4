"""Hold the error texts of the commands for hashes, which are those of Redis."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

NOT_AN_INTEGER: Final = "ERR hash value is not an integer"
NOT_A_FLOAT: Final = "ERR hash value is not a float"
INFINITE_INCREMENT: Final = "ERR value is NaN or Infinity"

# --- times of fields --------------------------------------------------------------------------

NO_FIELDS: Final = "ERR Mandatory argument FIELDS is missing or not at the right position"
WRONG_NUMBER: Final = "ERR The `numfields` parameter must match the number of arguments"
TOO_FEW_TO_EXPIRE: Final = "ERR Parameter `numFields` should be greater than 0"
TOO_FEW: Final = "ERR Number of fields must be a positive integer"
TOO_FEW_TO_SET: Final = "ERR invalid number of fields"
NEGATIVE_TIME: Final = "ERR invalid expire time, must be >= 0"
ONE_CONDITION: Final = "ERR Only one of FXX or FNX arguments can be specified"
ONE_LIFETIME: Final = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"


def unknown_argument(word: bytes) -> str:
    """HSETEX met a word that is no option."""
    return f"ERR unknown argument: {shown_name(word)}"
