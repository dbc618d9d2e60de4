"""Random commands on keys, strings and expiries.

Nothing expires while a test runs, and no reply depends on how fast it runs: times from now on are
far from the absolute ones, and are not compared with each other.
"""

from __future__ import annotations

import time

from hypothesis import strategies as st

from tests.property.stream_commands import Strategy, several, words

KEYS = st.sampled_from(["a", "b", "c", ""])
VALUES = st.sampled_from(["0", "10", "-7", "abc", "", "x" * 45, "9223372036854775807", "3.0", "\0"])
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "5", "-0", "05", "+1", " 1", "abc", "", "1.5", "9223372036854775807",
     "-9223372036854775808", "9223372036854775808", "9223372036854775"],
)  # fmt: skip
FLOATS = NUMBERS | st.sampled_from(["0.1", "1e5", "-3.25", "inf", "nan", "1e4000", "0x1p-3"])
DATABASES = st.sampled_from(["0", "0", "1", "1", "16", "-1", "abc", "2147483648"])
_SOON = int(time.time()) + 1_000_000
"""A Unix time at which this test does not run any more."""

TIMES = {
    "EX": st.sampled_from(["3000000", "0", "-1", "abc", "9223372036854775807"]),
    "PX": st.sampled_from(["3000000000", "0", "-1", "9223372036854775807"]),
    "EXAT": st.sampled_from([str(_SOON), str(_SOON + 9), "0", "9223372036854776"]),
    "PXAT": st.sampled_from([f"{_SOON}000", f"{_SOON}900", "0", "-5"]),
}


def options(*choices: Strategy) -> Strategy:
    """Up to three options, each in upper or lower case."""
    return st.lists(st.one_of(*choices), max_size=3).map(
        lambda lists: [word for some in lists for word in some]
    )


def flags(*names: str) -> Strategy:
    """One of the flags."""
    return st.sampled_from(names).flatmap(lambda name: st.sampled_from([[name], [name.lower()]]))


LIFETIMES = [words(name, TIMES[name]) for name in TIMES]

STRINGS = st.one_of(
    words("SET", KEYS, VALUES),
    words(
        "SET", KEYS, VALUES,
        options(flags("NX", "XX", "GET", "KEEPTTL", "EX", "FOO"), *LIFETIMES),
    ),
    words("GETEX", KEYS, options(flags("PERSIST", "KEEPTTL"), *LIFETIMES)),
    words(st.sampled_from(["GET", "GETDEL", "STRLEN", "INCR", "DECR"]), KEYS),
    words(st.sampled_from(["GETSET", "SETNX", "APPEND"]), KEYS, VALUES),
    words("SETEX", KEYS, TIMES["EX"], VALUES),
    words("PSETEX", KEYS, TIMES["PX"], VALUES),
    words(st.sampled_from(["INCRBY", "DECRBY"]), KEYS, NUMBERS),
    words("INCRBYFLOAT", KEYS, FLOATS),
    words("MGET", several(KEYS)),
    words(st.sampled_from(["MSET", "MSETNX"]), st.lists(KEYS, min_size=2, max_size=5)),
)  # fmt: skip

PLACES = st.sampled_from(
    ["0", "1", "2", "5", "44", "60", "-1", "-2", "-44", "-100", "9223372036854775807",
     "-9223372036854775808", "abc", "01"],
)  # fmt: skip
SMALL_OFFSETS = st.sampled_from(["0", "1", "2", "7", "8", "13", "63", "64", "100", "400"])
OFFSETS = SMALL_OFFSETS | st.sampled_from(["-1", "4294967295", "4294967296", "x", "#1", "+1", "01"])
BITS = st.sampled_from(["0", "1", "1", "0", "2", "x", ""])
UNITS = st.sampled_from([[], [], ["BYTE"], ["bit"], ["BIT"], ["FOO"], ["BIT", "BIT"]])
SPANS: Strategy = st.one_of(
    st.just([]), words(PLACES), words(PLACES, PLACES), words(PLACES, PLACES, UNITS)
)
TYPES = st.sampled_from(
    ["u1", "i1", "u8", "i8", "u5", "i13", "u16", "i32", "u63", "i64", "u64", "i65", "u0", "x8",
     "U8", "u08", "u", ""],
)  # fmt: skip
GOOD_TYPES = st.sampled_from(["u1", "i2", "u8", "i8", "u5", "i13", "u16", "i32", "u63", "i64"])
PLACED = SMALL_OFFSETS | st.sampled_from(["#0", "#1", "#3", "#10"])
FIELD_PLACES = PLACED | st.sampled_from(["#-1", "#x", "-1", "x", "#4294967295", "#", ""])
AMOUNTS = st.sampled_from(
    ["0", "1", "-1", "3", "100", "-100", "255", "9223372036854775807", "-9223372036854775808"]
)
POLICIES = st.sampled_from(["WRAP", "sat", "SAT", "fail", "FAIL"])
GOOD_FIELDS = st.one_of(
    words("GET", GOOD_TYPES, PLACED),
    words(st.sampled_from(["SET", "INCRBY", "set"]), GOOD_TYPES, PLACED, AMOUNTS),
    words("OVERFLOW", POLICIES),
)
FIELDS = GOOD_FIELDS | st.one_of(
    words("GET", TYPES, FIELD_PLACES),
    words(st.sampled_from(["SET", "INCRBY"]), TYPES, FIELD_PLACES, AMOUNTS | NUMBERS),
    words("OVERFLOW", POLICIES | st.just("FOO")),
    words(st.sampled_from(["SET", "GET", "OVERFLOW", "FOO"])),
)
DIFFERENT = st.sampled_from(
    ["a", "b", "c", "d", "xyz", "abcabcab", "x" * 10, "aXbYcZ", "\0\xff", ""]
)

PARTS = st.one_of(
    words("SET", KEYS, DIFFERENT),
    words(st.sampled_from(["GETRANGE", "SUBSTR"]), KEYS, PLACES, PLACES),
    words("SETRANGE", KEYS, SMALL_OFFSETS, DIFFERENT),
    words("SETRANGE", KEYS, NUMBERS | st.just("536870912"), DIFFERENT),
    words("APPEND", KEYS, DIFFERENT),
    words(
        "LCS", KEYS, KEYS,
        options(
            flags("IDX", "LEN", "WITHMATCHLEN", "FOO", "MINMATCHLEN"), words("MINMATCHLEN", NUMBERS)
        ),
    ),
    words("LCS", KEYS, KEYS, "IDX", st.sampled_from([[], ["WITHMATCHLEN"], ["MINMATCHLEN", "2"]])),
)  # fmt: skip

BITMAPS = st.one_of(
    words("SETBIT", KEYS, SMALL_OFFSETS, st.sampled_from(["0", "1"])),
    words("SETBIT", KEYS, OFFSETS.filter(lambda offset: len(offset) != 10), BITS),
    words("GETBIT", KEYS, OFFSETS),
    words("BITCOUNT", KEYS, SPANS),
    words("BITPOS", KEYS, BITS, SPANS),
    words(
        "BITOP", st.sampled_from(["AND", "OR", "xor", "NOT", "FOO"]), KEYS,
        st.lists(KEYS, min_size=1, max_size=3),
    ),
    words("BITFIELD", KEYS, options(GOOD_FIELDS)),
    words("BITFIELD", KEYS, options(FIELDS)),
    words("BITFIELD_RO", KEYS, options(words("GET", GOOD_TYPES, PLACED))),
    words("BITFIELD_RO", KEYS, options(FIELDS)),
)  # fmt: skip

EXPIRIES = st.one_of(
    words("EXPIRE", KEYS, TIMES["EX"], options(flags("NX", "XX", "FOO"))),
    words("PEXPIRE", KEYS, TIMES["PX"], options(flags("NX", "XX"))),
    words("EXPIREAT", KEYS, TIMES["EXAT"], options(flags("NX", "XX", "GT", "LT"))),
    words("PEXPIREAT", KEYS, TIMES["PXAT"], options(flags("NX", "XX", "GT", "LT"))),
    words("PERSIST", KEYS),
)

KEYSPACE = st.one_of(
    words(st.sampled_from(["DEL", "UNLINK", "EXISTS", "TOUCH"]), several(KEYS)),
    words("TYPE", KEYS),
    words(st.sampled_from(["RENAME", "RENAMENX"]), KEYS, KEYS),
    words("COPY", KEYS, KEYS, options(flags("REPLACE", "DB", "FOO"), words("DB", DATABASES))),
    words("MOVE", KEYS, DATABASES),
    words("SELECT", DATABASES),
    words("SWAPDB", DATABASES, DATABASES),
    words(st.sampled_from(["FLUSHDB", "FLUSHALL"]), options(flags("ASYNC", "SYNC", "FOO"))),
    words("DBSIZE"),
    words("OBJECT", st.sampled_from(["ENCODING", "FREQ"]), KEYS),
    words("XADD", KEYS, "1-1", "f", "v"),
)

EVERYTHING = (STRINGS, PARTS, BITMAPS, EXPIRIES, KEYSPACE)
