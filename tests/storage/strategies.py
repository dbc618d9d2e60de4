"""What several tests of the engine draw: fields and values of every size, as pairs in turn."""

from __future__ import annotations

from hypothesis import strategies as st

LENGTHS = [0, 1, 5, 62, 63, 64, 65, 99, 100, 125, 126, 127, 128, 999, 1000, 4094, 4095, 4096, 4097]
"""Around these, strings change their form in a node or in a reply."""

NUMBERS = st.integers(0, 65).flatmap(lambda bits: st.integers(-(2**bits), 2**bits))
DATA = st.one_of(
    NUMBERS.map(lambda number: b"%d" % number),
    st.sampled_from([b"007", b"-0", b"+1", b" 1", b"1.0", b"-"]),
    st.sampled_from(LENGTHS).map(lambda length: b"x" * length),
)


def _in_turn(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [part for pair in pairs for part in pair]


def items(most: int = 40) -> st.SearchStrategy[list[bytes]]:
    """Fields and values in turn: of few names, that come again and again, or of any."""
    names = st.sampled_from([[b"a"], [b"a", b"b"], [b"17", b"x" * 70], [b"y" * 5000]])
    named = names.flatmap(
        lambda some: st.tuples(*(st.tuples(st.just(name), DATA) for name in some)).map(list)
    )
    free = st.lists(st.tuples(DATA, DATA), min_size=1, max_size=most)
    return st.one_of(named, named, free).map(_in_turn)
