"""Random commands on hashes. Times are far from now, absolute, and none is told relative to now."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.key_commands import FLOATS, KEYS, NUMBERS, VALUES, flags, options
from tests.property.stream_commands import Strategy, several, words

NAMES = st.sampled_from(["f", "g", "h", "i", ""])
PAIRS: Strategy = st.lists(
    st.one_of(words(NAMES, VALUES), words(NAMES)), min_size=1, max_size=4
).map(lambda lists: [word for some in lists for word in some])
AT = st.sampled_from(["4000000000000", "4000000000500", "4000000001000", "1", "-1", "x"])
SECONDS = st.sampled_from(["4000000000", "4000000001", "1", "70368744177664"])
CONDITION = st.sampled_from([[], [], ["NX"], ["xx"], ["GT"], ["LT"], ["FOO"]])

SHORT_FLOATS = FLOATS.filter(lambda number: "e4" not in number)
"""Without the one whose digits make a hash table, which has an order of its own."""

CHANGES: Strategy = st.one_of(st.just([]), words("PXAT", AT), st.just(["PERSIST"]))
PICKS = st.sampled_from([["9"], ["9", "WITHVALUES"], ["0"], ["x"], ["9", "F"]])


def listed(names: st.SearchStrategy[str]) -> Strategy:
    """The word FIELDS, a number that is mostly right, and names."""
    return st.tuples(
        st.sampled_from([0, 0, 0, 0, 1, -9]), st.lists(names, min_size=1, max_size=3)
    ).map(lambda both: ["FIELDS", str(both[0] + len(both[1])), *both[1]])


UNTIMED = st.one_of(
    words("HSET", KEYS, PAIRS),
    words("HSET", KEYS, NAMES, VALUES, NAMES, VALUES),
    words(st.sampled_from(["HMSET", "HSETNX"]), KEYS, NAMES, VALUES),
    words("HDEL", KEYS, several(NAMES)),
    words("HINCRBY", KEYS, NAMES, NUMBERS),
    words("HINCRBYFLOAT", KEYS, NAMES, SHORT_FLOATS),
    words(st.sampled_from(["HGET", "HEXISTS", "HSTRLEN"]), KEYS, NAMES),
    words("HMGET", KEYS, several(NAMES)),
    words(st.sampled_from(["HGETALL", "HKEYS", "HVALS", "HLEN"]), KEYS),
    words(
        "HSCAN", KEYS, st.sampled_from(["0", "7", "x"]),
        options(
            flags("NOVALUES", "FOO", "COUNT"), words("MATCH", "[f-h]"), words("COUNT", NUMBERS)
        ),
    ),
    words("HRANDFIELD", KEYS, PICKS),
)  # fmt: skip
"""What changes no times."""

HASHES = st.one_of(
    UNTIMED,
    UNTIMED,
    words("HPEXPIREAT", KEYS, AT, CONDITION, listed(NAMES)),
    words("HEXPIREAT", KEYS, SECONDS, CONDITION, listed(NAMES)),
    words(st.sampled_from(["HEXPIRETIME", "HPEXPIRETIME", "HPERSIST"]), KEYS, listed(NAMES)),
    words("HGETDEL", KEYS, listed(NAMES)),
    words("HGETEX", KEYS, CHANGES, listed(NAMES)),
    words(
        "HSETEX", KEYS,
        options(
            flags("FNX", "FXX", "KEEPTTL", "PERSIST"), words("PXAT", AT), words("EXAT", SECONDS)
        ),
        "FIELDS", st.sampled_from(["1", "1", "2"]), PAIRS,
    ),
    words("TYPE", KEYS),
)  # fmt: skip
"""On a hash, or on whatever is at the key."""

EVERYTHING = (HASHES, HASHES, HASHES)
