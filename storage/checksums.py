"""Checksums of files: CRC-32C of the append-only file, and the CRC-64 of RDB files and of DUMP.

Both find every error of a single bit, and every burst of errors up to their own width. CRC-32C is
that of RFC 3720, appendix B.4; the CRC-64 has the polynomial of Jones (0xad93d23594c935a9,
reflected, beginning with 0), which Redis uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import anycrc

_Sum = Callable[[bytes, int], int]

_CRC32C: Final = cast("_Sum", anycrc.Model("CRC32-ISCSI").calc)
_CRC64: Final = cast("_Sum", anycrc.Model("CRC64-REDIS").calc)


def crc32c(data: bytes, before: int = 0) -> int:
    """The CRC-32C of ``data``, behind bytes whose CRC-32C is ``before``: 0 to 2^32 - 1."""
    return _CRC32C(data, before)


def crc64(data: bytes, before: int = 0) -> int:
    """The CRC-64 of ``data``, behind bytes whose CRC-64 is ``before``: 0 to 2^64 - 1."""
    return _CRC64(data, before)
