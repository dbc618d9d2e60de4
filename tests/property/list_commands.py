"""Random commands on lists."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.key_commands import KEYS, NUMBERS, flags, options
from tests.property.stream_commands import several, words

ELEMENTS = st.sampled_from(["a", "b", "c", "", "7", "x" * 70])
INDEXES = st.sampled_from(["0", "1", "2", "3", "-1", "-2", "-5", "x"])
ENDS = st.sampled_from(["LEFT", "RIGHT", "left", "FOO"])
SOME = st.lists(KEYS, min_size=1, max_size=3)

LISTS = st.one_of(
    words(st.sampled_from(["LPUSH", "RPUSH"]), KEYS, several(ELEMENTS)),
    words(st.sampled_from(["LPUSH", "RPUSH", "LPUSHX", "RPUSHX"]), KEYS, several(ELEMENTS)),
    words(st.sampled_from(["LPOP", "RPOP"]), KEYS),
    words(st.sampled_from(["LPOP", "RPOP"]), KEYS, NUMBERS),
    words(st.sampled_from(["LLEN", "TYPE"]), KEYS),
    words("LINDEX", KEYS, INDEXES),
    words(st.sampled_from(["LRANGE", "LTRIM"]), KEYS, INDEXES, INDEXES),
    words("LSET", KEYS, INDEXES, ELEMENTS),
    words("LINSERT", KEYS, st.sampled_from(["BEFORE", "after", "FOO"]), ELEMENTS, ELEMENTS),
    words("LREM", KEYS, INDEXES, ELEMENTS),
    words(
        "LPOS", KEYS, ELEMENTS,
        options(
            words("RANK", INDEXES), words("COUNT", INDEXES), words("MAXLEN", INDEXES), flags("FOO")
        ),
    ),
    words("LMOVE", KEYS, KEYS, ENDS, ENDS),
    words("RPOPLPUSH", KEYS, KEYS),
    words("LMPOP", st.sampled_from(["1", "2", "0", "x"]), SOME, ENDS),
    words("LMPOP", "1", KEYS, ENDS, "COUNT", INDEXES),
    words(
        st.sampled_from(["SORT", "SORT", "SORT_RO"]), KEYS,
        options(
            flags("ALPHA", "ASC", "DESC", "FOO"), words("LIMIT", INDEXES, INDEXES),
            words("GET", st.sampled_from(["#", "*", "nope"])), words("STORE", KEYS),
        ),
    ),
)  # fmt: skip
"""On a list, or on whatever is at the key."""

EVERYTHING = (LISTS, LISTS, LISTS)
