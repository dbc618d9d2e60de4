"""Compressed values, of which no more is unpacked than is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.pipeline.parse.errors import Undecodable
from penstock.pipeline.parse.settings import MAX_BYTES

FORMS: Final = ("gzip", "zstd", "lz4", "snappy")
"""``lz4`` is its frame format, ``snappy`` its raw block format."""


def decompressor(form: str, max_bytes: int = MAX_BYTES) -> Callable[[bytes], bytes]:
    """A function that unpacks a value, and raises Undecodable.

    What would be longer than ``max_bytes`` is not unpacked: a few bytes may stand for gigabytes.
    """
    unpack = _snappy if form == "snappy" else _stream(form)

    def decompress(data: bytes) -> bytes:
        if not data:
            raise Undecodable(f"is empty, not {form}")
        try:
            found = unpack(data, max_bytes)
        except (OSError, ValueError):
            raise Undecodable(f"is not {form}") from None
        if found is None:
            raise Undecodable(f"is longer than {max_bytes} bytes when unpacked from {form}")
        return found

    return decompress


def _stream(form: str) -> Callable[[bytes, int], bytes | None]:
    import pyarrow

    def unpack(data: bytes, max_bytes: int) -> bytes | None:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), form) as stream:
            found: bytes = stream.read(max_bytes + 1)
            return found if len(found) <= max_bytes else None

    return unpack


def _snappy(data: bytes, max_bytes: int) -> bytes | None:
    import pyarrow

    size = _snappy_size(data)
    if size > max_bytes:
        return None
    unpacked: bytes = pyarrow.Codec("snappy").decompress(data, size, asbytes=True)
    return unpacked


def _snappy_size(data: bytes) -> int:
    """The length that a block says it has, a number of 7 bits a byte, the lowest first."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise ValueError("no length")
