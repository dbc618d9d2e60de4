"""Checksums of files: CRC-32C of the append-only file, and the CRC-64 of RDB files and of DUMP.

Both find every error of a single bit, and every burst of errors up to their own width. CRC-32C is
that of RFC 3720, appendix B.4; the CRC-64 has the polynomial of Jones (0xad93d23594c935a9,
reflected, beginning with 0), which Redis uses.
"""

from __future__ import annotations

from typing import Final, Protocol, cast

import anycrc


class Checksum(Protocol):
    """Computes a checksum, which is below 2^32 or 2^64."""

    def __call__(self, data: bytes, before: int = 0, /) -> int:
        """Return the checksum of ``data`` behind bytes of which ``before`` is the checksum."""


crc32c: Final = cast("Checksum", anycrc.Model("CRC32-ISCSI").calc)
crc64: Final = cast("Checksum", anycrc.Model("CRC64-REDIS").calc)
