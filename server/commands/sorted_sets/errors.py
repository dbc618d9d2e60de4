"""Hold the error texts of the commands for sorted sets, which are those of Redis."""

from __future__ import annotations

from typing import Final

# --- ZADD -------------------------------------------------------------------------------------

NX_WITH_XX: Final = "ERR XX and NX options at the same time are not compatible"
GT_WITH_OTHERS: Final = "ERR GT, LT, and/or NX options at the same time are not compatible"
ONE_INCREMENT: Final = "ERR INCR option supports a single increment-element pair"
NOT_A_NUMBER: Final = "ERR resulting score is not a number (NaN)"

# --- ranges -----------------------------------------------------------------------------------

NO_SCORE_RANGE: Final = "ERR min or max is not a float"
NO_LEX_RANGE: Final = "ERR min or max not valid string range item"
LIMIT_ALONE: Final = (
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
)
SCORES_BY_LEX: Final = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"

# --- several sorted sets ----------------------------------------------------------------------

NOT_A_WEIGHT: Final = "ERR weight value is not a float"


def no_keys(command: str) -> str:
    """The number of keys of a command that combines them is not positive."""
    return f"ERR at least 1 input key is needed for '{command}' command"
