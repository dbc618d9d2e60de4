"""Hold the error texts of the commands for streams, which are those of Redis."""

from __future__ import annotations

from typing import Final

# --- streams ----------------------------------------------------------------------------------

TRIM_STRATEGY_TWICE: Final = (
    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
)
TRIM_STRATEGY_MISSING: Final = "ERR syntax error, XTRIM must be called with a trimming strategy"
MAXLEN_NEGATIVE: Final = "ERR The MAXLEN argument must be >= 0."
LIMIT_NEGATIVE: Final = "ERR The LIMIT argument must be >= 0."
LIMIT_WITHOUT_STRATEGY: Final = (
    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
)
LIMIT_WITHOUT_TILDE: Final = "ERR syntax error, LIMIT cannot be used without the special ~ option"
XADD_ID_ZERO: Final = "ERR The ID specified in XADD must be greater than 0-0"
IDMP_NEEDS_AUTO_ID: Final = "ERR IDMP/IDMPAUTO can be used only with auto-generated IDs"
IDMP_TWICE: Final = "ERR IDMP/IDMPAUTO specified multiple times"
IDMP_EMPTY_PRODUCER: Final = "ERR IDMP requires a non-empty producer ID"
IDMP_EMPTY_ID: Final = "ERR IDMP requires a non-empty idempotent ID"
IDMPAUTO_EMPTY_PRODUCER: Final = "ERR IDMPAUTO requires a non-empty producer ID"
IDMP_NO_ENTRY: Final = "ERR The specified stream ID does not exist in the stream"
XIDMPRECORD_EMPTY_PRODUCER: Final = "ERR XIDMPRECORD requires a non-empty producer ID"
XIDMPRECORD_EMPTY_ID: Final = "ERR XIDMPRECORD requires a non-empty idempotent ID"
XCFGSET_NOTHING: Final = "ERR At least one parameter must be specified"
IDMP_DURATION_RANGE: Final = "ERR IDMP-DURATION must be between 1 and 86400 seconds"
IDMP_MAXSIZE_RANGE: Final = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries"
NUMIDS_NOT_POSITIVE: Final = "ERR Number of IDs must be a positive integer"
NUMIDS_MISMATCH: Final = "ERR The `numids` parameter must match the number of arguments"
ENTRIES_ADDED_NEGATIVE: Final = "ERR entries_added must be positive"
XSETID_BELOW_GIVEN_DELETED: Final = (
    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
)
XSETID_BELOW_DELETED: Final = (
    "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
)
XSETID_BELOW_TOP: Final = (
    "ERR The ID specified in XSETID is smaller than the target stream top item"
)
XSETID_ADDED_BELOW_LENGTH: Final = (
    "ERR The entries_added specified in XSETID is smaller than the target stream length"
)

# --- reading streams --------------------------------------------------------------------------

NEW_ID_OUTSIDE_GROUP: Final = (
    "ERR The > ID can be specified only when calling XREADGROUP using the"
    " GROUP <group> <consumer> option."
)
GROUP_MISSING: Final = "ERR Missing GROUP option for XREADGROUP"
CLAIM_NOT_INTEGER: Final = "ERR min-idle-time is not an integer"
CLAIM_NEGATIVE: Final = "ERR min-idle-time must be a positive integer"
MAXCOUNT_NOT_POSITIVE: Final = "ERR MAXCOUNT must be a positive integer"
MAXCOUNT_BELOW_COUNT: Final = "ERR MAXCOUNT must be greater than or equal to COUNT"
MAXSIZE_NOT_POSITIVE: Final = "ERR MAXSIZE must be a positive integer"


def group_only_option(option: str) -> str:
    """XREAD was given an option of XREADGROUP."""
    return f"ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."


def unbalanced(command: str, special: str) -> str:
    """The keys and IDs of ``command`` do not pair up; ``special`` lists its special IDs."""
    return (
        f"ERR Unbalanced '{command}' list of streams: for each stream key an ID{special}"
        " must be specified."
    )
