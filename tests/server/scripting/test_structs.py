"""The library struct; what Redis says of wrong calls is in the conformance scripts."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from server.scripting import structs

ROOM = 1000


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=9), st.floats(allow_nan=False))
def test_what_is_packed_is_unpacked(number: int, text: bytes, real: float) -> None:
    form = b">i4Bc0d!8xi2"
    packed = structs.pack(ROOM, form, number, len(text), text, real, 7)
    *values, after = structs.unpack(ROOM, form, packed)
    assert values == [number, text, real, 7]
    assert after == len(packed) + 1


@given(st.sampled_from("<>"), st.integers(-(2**15), 2**15 - 1), st.floats(width=32))
def test_bytes_are_those_of_c(order: str, short: int, real: float) -> None:
    assert structs.pack(ROOM, f"{order}hf".encode(), short, real) == struct.pack(
        f"{order}hf", short, real
    )
