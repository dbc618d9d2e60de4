"""Replies of XRANGE with entries that imitate replies, for comparisons of the ways to read them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pyspark_redis_streams.read.tables import PADDING, Lines, Table

PARTS = st.integers(0, 2**64 - 1)
VALUES = st.one_of(
    st.binary(max_size=9),
    st.integers(-(2**70), 2**70).map(lambda number: b"%d" % number),
    st.sampled_from(
        (
            *(b"", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"a\r\nb", b"\r\n$1\r\nx\r\n$1\r\ny"),
            *(b"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb", b"$1\r\na\r\n", b"*-1", b"$-1\r\n"),
            *(b"\0" * 9, b"\xff" * 30, b"x" * 99, b"x" * 100, b"x" * 999, b"x" * 1000),
            *(b"x" * 65535, b"x" * 65536, b"1.5", b"1e999", b"-0", b"0x21", b"2024-02-29", b"true"),
        )
    ),
)
NAMES = st.one_of(st.sampled_from((b"a", b"b", b"a long name of a field")), VALUES)


def _entries(names: st.SearchStrategy[list[bytes]]) -> st.SearchStrategy[list[Any]]:
    """An entry with such names, as hiredis gives it."""
    fields = names.flatmap(
        lambda found: st.tuples(*(VALUES for _ in found)).map(
            lambda values: [part for pair in zip(found, values, strict=True) for part in pair]
        )
    )
    ids = st.tuples(PARTS, PARTS).map(lambda parts: b"%d-%d" % parts)
    return st.tuples(ids, fields).map(list)


SHAPES = st.lists(NAMES, min_size=1, max_size=4)
REPLIES = st.one_of(
    SHAPES.flatmap(lambda names: st.lists(_entries(st.just(names)), min_size=1, max_size=8)),
    st.lists(_entries(SHAPES), max_size=5),
)
"""Entries of one shape, and others."""


def encoded(reply: Any) -> bytes:
    """A reply as a server sends it."""
    if isinstance(reply, bytes):
        return b"$%d\r\n%s\r\n" % (len(reply), reply)
    return b"*%d\r\n" % len(reply) + b"".join(map(encoded, reply))


def parsed(raw: bytes) -> Any:
    """What hiredis finds in a reply."""
    import hiredis

    reader = hiredis.Reader()
    reader.feed(raw)
    return reader.gets()


def table_of(raw: bytes, *ends: int, behind: bytes = b"\0" * PADDING) -> Table | None:
    """The table of a reply that comes in parts, each to one of these ends."""
    buffer = bytearray(raw + behind)
    lines = Lines()
    for end in sorted({min(end, len(raw)) for end in (*ends, len(raw))}):
        if lines.are_enough(buffer, end):
            return lines.table(buffer, end)
    return None
