"""Random commands on sorted sets. Ranges of members are asked for where all scores are the same,
and ZSCAN where the order is not that of a hash table."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.key_commands import FLOATS, KEYS, NUMBERS, flags, options
from tests.property.stream_commands import Strategy, several, words

MEMBERS = st.sampled_from(["a", "b", "c", "d", "", "a\0", "7", "y" * 65])
SHORT = st.sampled_from(["a", "b", "c", "d", "", "a\0", "7", "B"])
SCORES = st.one_of(
    st.sampled_from(["0", "-0", "1", "2", "3", "2.5", "inf", "-inf", "1e23", "0.1"]),
    st.floats(allow_nan=False).map(repr),
    FLOATS,
)
PAIRS: Strategy = st.lists(words(SCORES, MEMBERS), min_size=1, max_size=4).map(
    lambda lists: [word for some in lists for word in some]
)
RANKS = st.sampled_from(["0", "1", "2", "-1", "-2", "5", "x"])
ENDS = st.sampled_from(["0", "(0", "1", "(2", "2.5", "-inf", "+inf", "(inf", "(-inf", "", "x"])
LEX = st.sampled_from(["-", "+", "[a", "(a", "[c", "(c", "[", "(", "[b\0", "x"])
FEW = st.lists(KEYS, min_size=1, max_size=3)
SIDES = st.sampled_from(["MIN", "max", "FOO"])
COUNTS = st.sampled_from(["1", "2", "2", "2", "3", "0", "x"])

LIMIT: Strategy = words("LIMIT", RANKS, RANKS)
BY_SCORE: Strategy = options(flags("WITHSCORES", "FOO"), LIMIT)
ANY: Strategy = options(flags("WITHSCORES", "BYSCORE", "REV", "FOO"), flags("BYSCORE"), LIMIT)
WEIGHTS: Strategy = words("WEIGHTS", st.lists(SCORES, min_size=1, max_size=3))
COMBINED: Strategy = options(
    WEIGHTS, words("AGGREGATE", st.sampled_from(["SUM", "min", "MAX", "FOO"])), flags("WITHSCORES")
)

SORTED_SETS = st.one_of(
    words("ZADD", KEYS, PAIRS),
    words("ZADD", KEYS, options(flags("NX", "XX", "GT", "LT", "CH", "INCR")), PAIRS),
    words("ZINCRBY", KEYS, SCORES, MEMBERS),
    words("ZREM", KEYS, several(MEMBERS)),
    words(st.sampled_from(["ZSCORE", "ZRANK", "ZREVRANK"]), KEYS, MEMBERS),
    words(st.sampled_from(["ZRANK", "ZREVRANK"]), KEYS, MEMBERS, flags("WITHSCORE", "FOO")),
    words("ZMSCORE", KEYS, several(MEMBERS)),
    words(st.sampled_from(["ZCARD", "TYPE"]), KEYS),
    words("OBJECT", "ENCODING", KEYS),
    words(st.sampled_from(["ZRANGE", "ZREVRANGE"]), KEYS, RANKS, RANKS, BY_SCORE),
    words(st.sampled_from(["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]), KEYS, ENDS, ENDS, BY_SCORE),
    words("ZRANGE", KEYS, ENDS, ENDS, ANY),
    words("ZRANGESTORE", KEYS, KEYS, RANKS, RANKS, options(flags("REV", "WITHSCORES"))),
    words("ZRANGESTORE", KEYS, KEYS, ENDS, ENDS, "BYSCORE", options(flags("REV"), LIMIT)),
    words("ZCOUNT", KEYS, ENDS, ENDS),
    words("ZREMRANGEBYRANK", KEYS, RANKS, RANKS),
    words("ZREMRANGEBYSCORE", KEYS, ENDS, ENDS),
    words(st.sampled_from(["ZPOPMIN", "ZPOPMAX"]), KEYS),
    words(st.sampled_from(["ZPOPMIN", "ZPOPMAX"]), KEYS, NUMBERS),
    words("ZMPOP", COUNTS, FEW, SIDES),
    words("ZMPOP", "1", KEYS, SIDES, "COUNT", NUMBERS),
    words("ZRANDMEMBER", KEYS, st.sampled_from(["99", "0", "x"]), options(flags("WITHSCORES"))),
)  # fmt: skip
"""On a sorted set, or on whatever is at the key."""

COMBINATIONS = st.one_of(
    words("ZADD", KEYS, PAIRS),
    words("SADD", KEYS, several(MEMBERS)),
    words(st.sampled_from(["ZUNION", "ZINTER", "ZDIFF"]), COUNTS, FEW, COMBINED),
    words(st.sampled_from(["ZUNION", "ZINTER"]), "2", KEYS, KEYS, "WEIGHTS", SCORES, SCORES,
          COMBINED),
    words(st.sampled_from(["ZUNIONSTORE", "ZINTERSTORE"]), KEYS, "2", KEYS, KEYS, COMBINED),
    words("ZDIFFSTORE", KEYS, COUNTS, FEW),
    words("ZINTERCARD", COUNTS, FEW, options(words("LIMIT", NUMBERS), flags("LIMIT", "FOO"))),
)  # fmt: skip
"""Of sorted sets and sets."""

LEX_RANGES = st.one_of(
    words("ZADD", "lex", "0", SHORT, "0", SHORT),
    words("ZADD", "lex", "0", SHORT),
    words("ZREM", "lex", SHORT),
    words("ZREMRANGEBYLEX", "lex", LEX, LEX),
    words("ZLEXCOUNT", "lex", LEX, LEX),
    words(st.sampled_from(["ZRANGEBYLEX", "ZREVRANGEBYLEX"]), "lex", LEX, LEX, options(LIMIT)),
    words("ZRANGE", "lex", LEX, LEX, "BYLEX", options(flags("REV", "WITHSCORES"), LIMIT)),
    words("ZRANGESTORE", "lex", "lex", LEX, LEX, "BYLEX", options(LIMIT)),
    words("ZSCAN", "lex", st.sampled_from(["0", "7", "x"]),
          options(words("MATCH", "[a-b]*"), words("COUNT", NUMBERS), flags("NOVALUES"))),
)  # fmt: skip
"""On members with the same score."""

ALL = SORTED_SETS | COMBINATIONS | LEX_RANGES
EVERYTHING = (SORTED_SETS, SORTED_SETS, COMBINATIONS, LEX_RANGES)
