"""Hold the error texts of the commands for strings, which are those of Redis."""

from __future__ import annotations

from typing import Final

INCREMENT_OVERFLOW: Final = "ERR increment or decrement would overflow"
DECREMENT_OVERFLOW: Final = "ERR decrement would overflow"
INCREMENT_NOT_FINITE: Final = "ERR increment would produce NaN or Infinity"
DIGEST_LENGTH: Final = "ERR must be exactly 16 hexadecimal characters"
INVALID_NUMKEYS: Final = "ERR invalid numkeys value or out of range"
ENX_WITHOUT_EXPIRATION: Final = "ERR ENX flag requires an expiration"
LBOUND_ABOVE_UBOUND: Final = "ERR LBOUND can't be greater than UBOUND"
LCS_OF_OTHERS: Final = "ERR The specified keys must contain string values"
LCS_LEN_WITH_IDX: Final = "ERR If you want both the length and indexes, please just use IDX."
LCS_TOO_LARGE: Final = (
    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
)
BIT_OFFSET: Final = "ERR bit offset is not an integer or out of range"
BIT_VALUE: Final = "ERR bit is not an integer or out of range"
BITPOS_VALUE: Final = "ERR The bit argument must be 1 or 0."
BITOP_NOT_SOURCES: Final = "ERR BITOP NOT must be called with a single source key."
BITFIELD_TYPE: Final = (
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64"
    " is."
)
BITFIELD_OVERFLOW: Final = "ERR Invalid OVERFLOW type specified"
BITFIELD_RO_GET: Final = "ERR BITFIELD_RO only supports the GET subcommand"
STRING_TOO_LONG: Final = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
OFFSET_OUT_OF_RANGE: Final = "ERR offset is out of range"
