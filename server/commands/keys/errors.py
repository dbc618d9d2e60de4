"""Hold the error texts of the commands for keys of any type, which are those of Redis."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

# --- RESTORE ----------------------------------------------------------------------------------

WRONG_PAYLOAD: Final = "ERR DUMP payload version or checksum are wrong"
DAMAGED_PAYLOAD: Final = "ERR Bad data format"
NEGATIVE_TTL: Final = "ERR Invalid TTL value, must be >= 0"
NEGATIVE_IDLETIME: Final = "ERR Invalid IDLETIME value, must be >= 0"
FREQUENCY_OUT_OF_RANGE: Final = "ERR Invalid FREQ value, must be >= 0 and <= 255"

# --- the others -------------------------------------------------------------------------------

SAME_OBJECT: Final = "ERR source and destination objects are the same"
INVALID_FIRST_DB: Final = "ERR invalid first DB index"
INVALID_SECOND_DB: Final = "ERR invalid second DB index"
NOT_A_NUMBER_TO_SORT: Final = "ERR One or more scores can't be converted into double"
TIMEOUT_NOT_A_FLOAT: Final = "ERR timeout is not a float or out of range"
TOO_FEW_KEYS: Final = "ERR numkeys should be greater than 0"
TOO_MANY_KEYS: Final = "ERR Number of keys can't be greater than number of args"
COUNT_TOO_SMALL: Final = "ERR count should be greater than 0"
NEGATIVE_LIMIT: Final = "ERR LIMIT can't be negative"
INVALID_CURSOR: Final = "ERR invalid cursor"
NOVALUES_OUTSIDE_HSCAN: Final = "ERR NOVALUES option can only be used in HSCAN"
NO_ACCESS_FREQUENCY: Final = (
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that"
    " when switching between policies at runtime LRU and LFU data will take some time to adjust."
)
EXPIRE_NX_WITH_OTHERS: Final = "ERR NX and XX, GT or LT options at the same time are not compatible"
EXPIRE_GT_WITH_LT: Final = "ERR GT and LT options at the same time are not compatible"


def sort_denied(option: str) -> str:
    """A user who may not read every key named some by a pattern."""
    return f"ERR {option} option of SORT denied due to insufficient ACL permissions"


def unsupported_option(option: bytes) -> str:
    """A command of the EXPIRE family met a word that is no option."""
    return f"ERR Unsupported option {shown_name(option)}"
