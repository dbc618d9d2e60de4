"""Random commands on HyperLogLogs, and on whatever is at the key."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.key_commands import KEYS
from tests.property.stream_commands import several, words

ELEMENTS = st.integers(0, 300).map(str) | st.sampled_from(["", "x" * 100])
SPARSE = "HYLL\x01\0\0\0" + "\0" * 8
"""The header of one that is not dense, in characters of one byte each."""

HYPERLOGLOGS = st.one_of(
    words("PFADD", KEYS, several(ELEMENTS)),
    words("PFADD", KEYS, st.lists(ELEMENTS, min_size=20, max_size=40)),
    words("PFADD", KEYS),
    words("PFCOUNT", several(KEYS)),
    words("PFMERGE", several(KEYS)),
    words("SET", KEYS, st.sampled_from([SPARSE, SPARSE + "\x7f\x7f"])),
)

EVERYTHING = (HYPERLOGLOGS, HYPERLOGLOGS, HYPERLOGLOGS)
