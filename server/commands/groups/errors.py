"""Hold the error texts of the commands for consumer groups, which are those of Redis."""

from __future__ import annotations

from typing import Final

from protocol.errors import shown_name

# --- reading streams --------------------------------------------------------------------------


def meaningless_id(special: str) -> str:
    """XREADGROUP was given ``$`` or ``+``."""
    return (
        f"ERR The {special} ID is meaningless in the context of XREADGROUP: you want to read the"
        " history of this consumer by specifying a proper ID, or use the > ID to get new messages."
        f" The {special} ID would just return an empty result set."
    )


# --- consumer groups --------------------------------------------------------------------------

GROUP_EXISTS: Final = "BUSYGROUP Consumer Group name already exists"
ENTRIESREAD_NEGATIVE: Final = "ERR value for ENTRIESREAD must be positive or -1"
COUNT_NOT_POSITIVE: Final = "ERR COUNT must be > 0"
NACK_MODE: Final = "ERR mode must be SILENT, FAIL, or FATAL"
NACK_NO_IDS: Final = "ERR syntax error, expected IDS keyword"
NACK_NUMIDS_NOT_POSITIVE: Final = "ERR numids must be a positive integer"
NACK_NUMIDS_MISMATCH: Final = "ERR number of IDs doesn't match numids"
NACK_RETRYCOUNT_NEGATIVE: Final = "ERR Invalid RETRYCOUNT value, must be >= 0"


def invalid_min_idle(command: str) -> str:
    """XCLAIM's or XAUTOCLAIM's min-idle-time is no integer."""
    return f"ERR Invalid min-idle-time argument for {command}"


def invalid_claim_option(option: str) -> str:
    """The value of XCLAIM's IDLE, TIME or RETRYCOUNT is no integer."""
    return f"ERR Invalid {option} option argument for XCLAIM"


def unrecognized_option(command: str, option: bytes) -> str:
    """XCLAIM or XNACK met a word that is neither an ID nor an option."""
    return f"ERR Unrecognized {command} option '{shown_name(option)}'"
