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

EVERYTHING = (STRINGS, STRINGS, EXPIRIES, KEYSPACE)
