"""The checksums of files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage.checksums import crc32c, crc64

CHECKED = b"123456789"
"""What catalogues of checksums give the value of."""


def test_crc32c_is_that_of_iscsi() -> None:
    assert crc32c(CHECKED) == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_crc64_is_that_of_redis() -> None:
    assert crc64(CHECKED) == 0xE9C6D914C4B8D9CA


@pytest.mark.parametrize("checksum", [crc32c, crc64])
def test_nothing_at_all_has_a_checksum_of_zero(checksum: Callable[[bytes], int]) -> None:
    assert checksum(b"") == 0


@pytest.mark.parametrize("checksum", [crc32c, crc64])
@pytest.mark.parametrize("at", range(len(CHECKED) + 1))
def test_a_checksum_can_be_had_piece_by_piece(
    checksum: Callable[[bytes, int], int], at: int
) -> None:
    first = checksum(CHECKED[:at], 0)
    assert checksum(CHECKED[at:], first) == checksum(CHECKED, 0)
