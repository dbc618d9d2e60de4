"""Random commands on sets. Replies in the order of a hash table are not asked for."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.key_commands import KEYS, NUMBERS, flags, options
from tests.property.stream_commands import several, words

MEMBERS = st.sampled_from(
    ["0", "1", "2", "-7", "13", "9223372036854775807", "01", "x", "", "y" * 65]
)
FEW = st.lists(KEYS, min_size=1, max_size=3)

SETS = st.one_of(
    words("SADD", KEYS, several(MEMBERS)),
    words("SADD", KEYS, several(MEMBERS)),
    words("SREM", KEYS, several(MEMBERS)),
    words("SMOVE", KEYS, KEYS, MEMBERS),
    words(st.sampled_from(["SISMEMBER", "SMISMEMBER"]), KEYS, MEMBERS),
    words(st.sampled_from(["SCARD", "TYPE"]), KEYS),
    words("SPOP", KEYS, st.sampled_from(["99", "0", "-1", "x"])),
    words("SRANDMEMBER", KEYS, st.sampled_from(["0", "x"])),
    words(st.sampled_from(["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]), KEYS, FEW),
    words(
        "SINTERCARD", st.sampled_from(["1", "2", "0", "x"]), FEW,
        options(words("LIMIT", NUMBERS), flags("LIMIT", "FOO")),
    ),
)  # fmt: skip
"""On a set, or on whatever is at the key."""

EVERYTHING = (SETS, SETS, SETS)
