"""The numbers of the RDB format: versions, opcodes, types of values, encodings of strings.

The format is described at https://rdb.fnordig.de/file_format.html up to version 7; what came later
was read off files of Redis 7.0 and 8.0 and of Valkey 9.1.
"""

from __future__ import annotations

from typing import Final

OLDEST: Final = 5
"""The first version with a checksum (Redis 2.6); streams are there since version 9 (Redis 5.0)."""
NEWEST: Final = 12
"""The version of Redis 7.4 and 8.0."""
VALKEY: Final = 80
"""The version of Valkey 9, which numbers its own versions from 80 on."""

REDIS_7_0: Final = 10
"""The version of Redis 7.0, which Redis 7.2 to 8 and Valkey load, too."""
REDIS_7_2: Final = 11
"""The version of Redis 7.2 and Valkey 7.2 to 8.1; the first with active-times of consumers."""

# --- opcodes ---------------------------------------------------------------------------------

SLOT_INFO: Final = 0xF4
FUNCTION: Final = 0xF5
MODULE_AUX: Final = 0xF7
IDLE: Final = 0xF8
FREQUENCY: Final = 0xF9
AUX: Final = 0xFA
RESIZE: Final = 0xFB
EXPIRES_MS: Final = 0xFC
EXPIRES_S: Final = 0xFD
SELECT: Final = 0xFE
END: Final = 0xFF

# --- types of values -------------------------------------------------------------------------

STRING: Final = 0
LIST: Final = 1
LIST_ZIPLIST: Final = 10
LIST_ZIPLISTS: Final = 14
LIST_NODES: Final = 18
LISTS: Final = (LIST, LIST_ZIPLIST, LIST_ZIPLISTS, LIST_NODES)
SET: Final = 2
SET_INTSET: Final = 11
SET_LISTPACK: Final = 20
SETS: Final = (SET, SET_INTSET, SET_LISTPACK)
ZSET_TEXT: Final = 3
ZSET: Final = 5
ZSET_ZIPLIST: Final = 12
ZSET_LISTPACK: Final = 17
ZSETS: Final = (ZSET_TEXT, ZSET, ZSET_ZIPLIST, ZSET_LISTPACK)
HASH: Final = 4
HASH_ZIPMAP: Final = 9
HASH_ZIPLIST: Final = 13
HASH_LISTPACK: Final = 16
HASH_EXPIRING: Final = 24
HASH_EXPIRING_LISTPACK: Final = 25
HASH_EXPIRING_VALKEY: Final = 22
HASHES: Final = (
    *(HASH, HASH_ZIPMAP, HASH_ZIPLIST, HASH_LISTPACK),
    *(HASH_EXPIRING, HASH_EXPIRING_LISTPACK, HASH_EXPIRING_VALKEY),
)
STREAM_5_0: Final = 15
STREAM_7_0: Final = 19
STREAM_7_2: Final = 21
STREAMS: Final = (STREAM_5_0, STREAM_7_0, STREAM_7_2)

# --- consumer groups -------------------------------------------------------------------------

NOBODY: Final = b""
"""The consumer of entries without an owner, which were delivered in 1970: the format has no other
place for them."""

# --- encodings -------------------------------------------------------------------------------

LENGTH_32: Final = 0x80
LENGTH_64: Final = 0x81
INT_8: Final = 0xC0
INT_16: Final = 0xC1
INT_32: Final = 0xC2
COMPRESSED: Final = 0xC3

DELETED: Final = 1
SAME_FIELDS: Final = 2
"""The flags of an entry in a stream's listpack."""
