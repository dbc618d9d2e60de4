"""Strategies for stream commands: few keys, groups, consumers and IDs, so that they meet often."""

from __future__ import annotations

from hypothesis import strategies as st

Words = list[str]
Strategy = st.SearchStrategy[Words]

KEYS = st.sampled_from(["k", "q"])
GROUPS = st.sampled_from(["g", "h"])
CONSUMERS = st.sampled_from(["ann", "bob", ""])
EXACT_IDS = st.builds("{}-{}".format, st.integers(0, 9), st.integers(0, 3))
SHORT_IDS = st.integers(0, 10).map(str)
ODD_IDS = st.sampled_from(
    [
        "18446744073709551615-18446744073709551615",
        "18446744073709551615",
        "00-01",
        "1-",
        "x",
        "+5-1",
    ]
)
IDS = st.one_of(EXACT_IDS, EXACT_IDS, SHORT_IDS, ODD_IDS)
BOUNDS = st.one_of(IDS, IDS.map("({}".format), st.sampled_from(["-", "+", "(-"]))
COUNTS = st.one_of(st.integers(-1, 6).map(str), st.just("x"))
IDLES = st.sampled_from(["0", "-5", "1000000", "x"])
FIELDS = st.lists(
    st.sampled_from(["a", "b", "7", "-300", "longer value " * 6, ""]), min_size=2, max_size=6
)


def words(*parts: str | Strategy | st.SearchStrategy[str]) -> Strategy:
    """A command of fixed words, single words drawn, and lists of words drawn."""
    strategies = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map(_flatten)


def _flatten(parts: tuple[str | Words, ...]) -> Words:
    flat: Words = []
    for part in parts:
        flat += part if isinstance(part, list) else [part]
    return flat


def optional(*parts: str | Strategy | st.SearchStrategy[str]) -> Strategy:
    """The same, or nothing."""
    return st.one_of(st.just([]), words(*parts))


def several(strategy: st.SearchStrategy[str], most: int = 4) -> Strategy:
    """One word or more."""
    return st.lists(strategy, min_size=1, max_size=most)


TRIM = st.one_of(
    words("MAXLEN", optional(st.sampled_from(["=", "~"])), COUNTS, optional("LIMIT", COUNTS)),
    words("MINID", optional(st.sampled_from(["=", "~"])), IDS, optional("LIMIT", COUNTS)),
)

ADDING = words(
    "XADD",
    KEYS,
    optional("NOMKSTREAM"),
    st.one_of(st.just([]), st.just([]), TRIM),
    st.one_of(EXACT_IDS, EXACT_IDS, IDS, SHORT_IDS.map("{}-*".format)),
    FIELDS,
)
CHANGING = st.one_of(
    words("XTRIM", KEYS, TRIM),
    words("XDEL", KEYS, several(IDS)),
    words("XSETID", KEYS, IDS, optional("ENTRIESADDED", COUNTS), optional("MAXDELETEDID", IDS)),
    words("DEL", KEYS),
    words("SET", KEYS, "text"),
    words("COPY", KEYS, KEYS, optional("REPLACE")),
)
READING = st.one_of(
    words("XLEN", KEYS),
    words("XRANGE", KEYS, BOUNDS, BOUNDS, optional("COUNT", COUNTS)),
    words("XREVRANGE", KEYS, BOUNDS, BOUNDS, optional("COUNT", COUNTS)),
    words(
        "XREAD", optional("COUNT", COUNTS), "STREAMS", KEYS, st.one_of(IDS, st.sampled_from("$+>"))
    ),
    words("XREAD", "STREAMS", KEYS, KEYS, EXACT_IDS, EXACT_IDS),
)
GROUP_MANAGEMENT = st.one_of(
    words("XGROUP", "CREATE", KEYS, GROUPS, st.one_of(IDS, st.just("$")), optional("MKSTREAM")),
    words("XGROUP", "CREATE", KEYS, GROUPS, "0", "MKSTREAM"),
    words("XGROUP", "SETID", KEYS, GROUPS, BOUNDS),
    words("XGROUP", "DESTROY", KEYS, GROUPS),
    words("XGROUP", "CREATECONSUMER", KEYS, GROUPS, CONSUMERS),
    words("XGROUP", "DELCONSUMER", KEYS, GROUPS, CONSUMERS),
)
DELIVERING = st.one_of(
    words(
        "XREADGROUP",
        "GROUP",
        GROUPS,
        CONSUMERS,
        optional("COUNT", COUNTS),
        optional("NOACK"),
        "STREAMS",
        KEYS,
        st.one_of(st.just(">"), st.just(">"), IDS),
    ),
    words("XREADGROUP", "GROUP", GROUPS, CONSUMERS, "STREAMS", KEYS, KEYS, ">", EXACT_IDS),
    words("XACK", KEYS, GROUPS, several(IDS)),
    words(
        "XCLAIM",
        KEYS,
        GROUPS,
        CONSUMERS,
        IDLES,
        several(IDS),
        optional(st.sampled_from(["IDLE", "RETRYCOUNT"]), st.sampled_from(["0", "5000000", "-1"])),
        optional("FORCE"),
        optional("JUSTID"),
        optional("LASTID", IDS),
    ),
    words(
        "XAUTOCLAIM",
        KEYS,
        GROUPS,
        CONSUMERS,
        IDLES,
        BOUNDS,
        optional("COUNT", COUNTS),
        optional("JUSTID"),
    ),
)
INSPECTING = st.one_of(
    words("XPENDING", KEYS, GROUPS),
    words(
        "XPENDING",
        KEYS,
        GROUPS,
        optional("IDLE", IDLES),
        BOUNDS,
        BOUNDS,
        COUNTS,
        optional(CONSUMERS),
    ),
    words("XINFO", "STREAM", KEYS, optional("FULL", optional("COUNT", COUNTS))),
    words("XINFO", "GROUPS", KEYS),
    words("XINFO", "CONSUMERS", KEYS, GROUPS),
)
NODE_SIZES = st.one_of(
    words("CONFIG", "SET", "stream-node-max-entries", st.integers(0, 5).map(str)),
    words(
        "CONFIG", "SET", "stream-node-max-bytes", st.sampled_from(["0", "60", "150", "400", "4096"])
    ),
)
EVERYTHING = [
    ADDING,
    ADDING,
    CHANGING,
    READING,
    GROUP_MANAGEMENT,
    DELIVERING,
    DELIVERING,
    INSPECTING,
    NODE_SIZES,
]
NEWER = st.one_of(
    words("XADD", KEYS, st.sampled_from(["KEEPREF", "DELREF", "ACKED"]), TRIM, EXACT_IDS, FIELDS),
    words("XTRIM", KEYS, TRIM, st.sampled_from(["KEEPREF", "DELREF", "ACKED"])),
    words("XADD", KEYS, "IDMP", CONSUMERS, st.sampled_from("xyz"), "*", FIELDS),
    words("XADD", KEYS, "IDMPAUTO", CONSUMERS, "*", FIELDS),
    words("XDELEX", KEYS, optional(st.sampled_from(["DELREF", "ACKED"])), "IDS", "1", IDS),
    words("XACKDEL", KEYS, GROUPS, optional(st.sampled_from(["DELREF", "ACKED"])), "IDS", "1", IDS),
    words(
        "XNACK",
        KEYS,
        GROUPS,
        st.sampled_from(["SILENT", "FAIL", "FATAL", "x"]),
        "IDS",
        "2",
        IDS,
        IDS,
        optional("RETRYCOUNT", COUNTS),
        optional("FORCE"),
    ),
    words(
        "XREADGROUP",
        "GROUP",
        GROUPS,
        CONSUMERS,
        optional("COUNT", COUNTS),
        "CLAIM",
        IDLES,
        optional("MAXCOUNT", COUNTS),
        optional("MAXSIZE", st.sampled_from(["1", "90", "200"])),
        optional("NOACK"),
        "STREAMS",
        KEYS,
        st.one_of(st.just(">"), IDS),
    ),
    words("XCFGSET", KEYS, "IDMP-MAXSIZE", st.integers(0, 3).map(str)),
    words("XIDMPRECORD", KEYS, CONSUMERS, st.sampled_from("xyz"), IDS),
)
"""Commands that only servers since Redis 8.2 know."""
_POLICY = st.sampled_from(
    [
        *("ack-wait 50", "backoff 50,500", "max-deliveries 2 dead-letter q", "dead-letter dead"),
        *("consumer-ttl 400", "max-pending 2", "order-by a", "only a=b", "delay-field b"),
        *("paused yes", "paused no", "ack-wait 0", "reasons yes", "reasons yes"),
    ]
).map(str.split)
_POLICY_OF_STREAM = st.sampled_from(
    ["delete acked", "delete acked delete-grace 400", "retention 900", "retention-unread keep"]
).map(str.split)

POLICIES = st.one_of(
    st.builds(
        lambda key, group, policy: ["PENSTOCK", "POLICY", "SET", key, "GROUP", group, *policy],
        KEYS,
        GROUPS,
        _POLICY,
    ),
    st.builds(
        lambda key, policy: ["PENSTOCK", "POLICY", "SET", key, *policy], KEYS, _POLICY_OF_STREAM
    ),
    words("PENSTOCK", "POLICY", "DEL", KEYS, "GROUP", GROUPS, "ack-wait", "order-by", "paused"),
    words("PENSTOCK", "REDRIVE", st.sampled_from(["q", "dead"])),
    st.builds(
        lambda key, group, mode, more, entry_id: [
            *("PENSTOCK", "NACK", key, group, mode, *more, "IDS", "1", entry_id)
        ],
        KEYS,
        GROUPS,
        st.sampled_from(["FAIL", "SILENT", "FATAL"]),
        st.sampled_from([[], ["REASON", "why"], ["DELAY", "50", "REASON", "later"]]),
        IDS,
    ),
)
"""What only Penstock has."""

KEYSPACE = st.one_of(
    words("RENAME", KEYS, KEYS),
    words("COPY", KEYS, KEYS, "DB", "1", "REPLACE"),
    words("MOVE", KEYS, "1"),
    words("PEXPIRE", KEYS, st.sampled_from(["-1", "400", "90000"])),
    words("PERSIST", KEYS),
    words("SWAPDB", "0", "1"),
    words("FLUSHDB"),
    words("APPEND", KEYS, "more"),
)

# --- wrong arguments -------------------------------------------------------------------------

OPTIONS_OF_GROUPS = st.one_of(
    words(
        "XGROUP",
        st.sampled_from(["CREATE", "SETID"]),
        KEYS,
        GROUPS,
        st.one_of(IDS, st.just("$")),
        optional("MKSTREAM"),
        optional("ENTRIESREAD", COUNTS),
    ),
    words("XPENDING", KEYS, GROUPS, "IDLE", IDLES, optional(BOUNDS, BOUNDS, optional(COUNTS))),
    words(
        "XCLAIM",
        KEYS,
        GROUPS,
        CONSUMERS,
        IDLES,
        IDS,
        optional("TIME", COUNTS),
        optional("LASTID", BOUNDS),
        optional("RETRYCOUNT", COUNTS),
    ),
    words("XREAD", "BLOCK", st.sampled_from(["1", "x", "-1", "1.5"]), "STREAMS", KEYS, IDS),
    words(
        "XREADGROUP",
        st.sampled_from(["GROUP", "BLOCK"]),
        GROUPS,
        CONSUMERS,
        "NOACK",
        "BLOCK",
        st.sampled_from(["1", "x", "-1", "1.5"]),
        "STREAMS",
        KEYS,
        st.one_of(IDS, st.sampled_from("$>+")),
    ),
    words("XSETID", KEYS, IDS, "ENTRIESADDED", COUNTS, "MAXDELETEDID", IDS),
    words("XAUTOCLAIM", KEYS, GROUPS, CONSUMERS, IDLES, BOUNDS, "COUNT", COUNTS, "JUSTID"),
)
"""Commands with the options that are mistaken for others, or left without their values."""

OPTIONS = (
    "MAXLEN MINID LIMIT COUNT NOMKSTREAM STREAMS GROUP NOACK IDLE TIME RETRYCOUNT FORCE JUSTID"
    " LASTID MKSTREAM ENTRIESREAD ENTRIESADDED MAXDELETEDID FULL HELP"
)
STRAY_WORDS = st.one_of(
    KEYS,
    GROUPS,
    BOUNDS,
    COUNTS,
    st.sampled_from(OPTIONS.split()),
    st.sampled_from(["foo", "=", "~", "$", ">", "*", "+"]),
    st.sampled_from(["", "99999999999999999999", "-9223372036854775808", "1.5", " 1", "\0"]),
)


def _drop(command: Words, at: int, word: str) -> Words:
    return command[:at] + command[at + 1 :]


def _cut(command: Words, at: int, word: str) -> Words:
    return command[:at]


def _insert(command: Words, at: int, word: str) -> Words:
    return [*command[:at], word, *command[at:]]


def _replace(command: Words, at: int, word: str) -> Words:
    return [*command[:at], word, *command[at + 1 :]]


def _repeat(command: Words, at: int, word: str) -> Words:
    return command + command[at:]


@st.composite
def malformed(draw: st.DrawFn) -> Words:
    """A stream command with up to three words too few, too many, or wrong."""
    command = draw(st.one_of(*STREAM_COMMANDS))
    for _ in range(draw(st.integers(1, 3))):
        mistake = draw(st.sampled_from([_drop, _cut, _insert, _replace, _repeat]))
        # The name stays: what else it could be is not the question.
        command = mistake(command, draw(st.integers(1, len(command))), draw(STRAY_WORDS))
    return _without_the_clock(_without_long_waits(command))


def _without_long_waits(command: Words) -> Words:
    """The command with each time to block that could be long made a millisecond."""
    blocks = [at + 1 for at, word in enumerate(command) if word.upper() == "BLOCK"]
    return ["1" if at in blocks and word.isdigit() else word for at, word in enumerate(command)]


def _without_the_clock(command: Words) -> Words:
    """The command without IDs that servers make, as each has a clock of its own."""
    return ["9-*" if command[0] == "XADD" and word == "*" else word for word in command]


STREAM_COMMANDS = [
    ADDING,
    CHANGING,
    READING,
    GROUP_MANAGEMENT,
    DELIVERING,
    INSPECTING,
    OPTIONS_OF_GROUPS,
]
_HIGHEST = str(2**63 - 1)
COUNTER_LIMITS = st.sampled_from([_HIGHEST, str(2**63 - 2), str(2**63), "0", "-1"])
TIME_LIMITS = st.sampled_from([_HIGHEST, str(-(2**63)), str(2**63), "-1", "0"])
ID_LIMITS = st.sampled_from(
    ["18446744073709551615-18446744073709551614", "18446744073709551614-0", "9-0", "9", "0-1"]
)
LIMITS = st.one_of(
    words("XADD", KEYS, st.one_of(ID_LIMITS, EXACT_IDS), "f", "v"),
    words(
        "XSETID",
        KEYS,
        st.one_of(st.just("9-0"), ID_LIMITS),
        optional("ENTRIESADDED", COUNTER_LIMITS),
        optional("MAXDELETEDID", ID_LIMITS),
    ),
    words("XGROUP", "CREATE", KEYS, GROUPS, "0", "ENTRIESREAD", COUNTER_LIMITS),
    words("XGROUP", "SETID", KEYS, GROUPS, IDS, "ENTRIESREAD", COUNTER_LIMITS),
    words("XREADGROUP", "GROUP", GROUPS, CONSUMERS, "COUNT", "1", "STREAMS", KEYS, ">"),
    words("XREADGROUP", "GROUP", GROUPS, CONSUMERS, "STREAMS", KEYS, "0"),
    words("XDEL", KEYS, st.one_of(ID_LIMITS, EXACT_IDS)),
    words("XTRIM", KEYS, "MAXLEN", st.sampled_from(["0", "1", _HIGHEST])),
    words("XTRIM", KEYS, "MINID", ID_LIMITS),
    words("COPY", KEYS, KEYS, "REPLACE"),
)
"""Counters and IDs at the ends of what they may be, and what counts them further."""
CLAIM_LIMITS = words(
    "XCLAIM",
    KEYS,
    GROUPS,
    CONSUMERS,
    st.sampled_from(["0", "-1", _HIGHEST]),
    several(st.one_of(ID_LIMITS, EXACT_IDS)),
    st.lists(
        st.one_of(
            words("RETRYCOUNT", COUNTER_LIMITS),
            words("TIME", TIME_LIMITS),
            words("IDLE", TIME_LIMITS),
            words("FORCE"),
            words("LASTID", ID_LIMITS),
        ),
        max_size=4,
    ).map(lambda options: [word for option in options for word in option]),
)
"""The same of what XCLAIM sets."""
STRING_LIMITS = st.one_of(
    words("SET", st.just("n"), COUNTER_LIMITS),
    words(st.sampled_from(["INCR", "DECR"]), st.just("n")),
    words(st.sampled_from(["INCRBY", "DECRBY"]), st.just("n"), TIME_LIMITS),
    words(st.sampled_from(["PEXPIRE", "PEXPIREAT", "EXPIREAT"]), st.just("n"), TIME_LIMITS),
    words("SET", st.just("n"), "1", st.sampled_from(["PX", "PXAT", "EX"]), COUNTER_LIMITS),
)
"""The same of numbers and expiries."""
