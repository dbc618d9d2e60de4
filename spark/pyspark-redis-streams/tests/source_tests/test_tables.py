"""Replies as tables: the columns are those that objects would have given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_redis_streams.read.columns import Batches, default_schema
from pyspark_redis_streams.read.fetching import last_id, pieces, size_of
from pyspark_redis_streams.read.tables import Table
from pyspark_redis_streams.streams import Stream, bytes_of
from source_tests.hostile import NAMES, REPLIES, SHAPES, VALUES, encoded, parsed, table_of

STREAM = Stream(0, b"orders")
KINDS: tuple[DataType, ...] = (
    *(BinaryType(), StringType(), IntegerType(), LongType()),
    *(DoubleType(), DecimalType(20, 3), TimestampType()),
)
NUMBERS = [b"%d" % number for number in range(3000)]


def batches(names: list[str]) -> list[Batches]:
    """Every kind of columns: those of the source, and those of a user of each type."""
    own = [
        Batches(StructType([StructField("id", StringType()), StructField(name, kind)]))
        for name in dict.fromkeys(names)
        for kind in KINDS
    ]
    forms = [Batches(default_schema(form, True), id_columns=True) for form in ("map", "array")]
    return [*forms, *own]


def entries(*fields: list[bytes]) -> list[Any]:
    return [[b"1-%d" % number, each] for number, each in enumerate(fields, 1)]


@given(REPLIES, st.lists(st.integers(1, 400), max_size=3), st.binary(min_size=16, max_size=16))
def test_a_table_gives_the_columns_that_objects_give(
    reply: list[Any], ends: list[int], behind: bytes
) -> None:
    raw = encoded(reply)
    assert parsed(raw) == reply
    table = table_of(raw, *ends, behind=behind)
    if table is None:
        return
    assert len(table) == len(reply)
    assert [size_of(table), last_id(table)] == [bytes_of(reply), last_id(reply)]
    assert table.sizes() == [bytes_of([entry]) for entry in reply]
    names = [name.decode() for name in reply[0][1][::2] if name.isascii()]
    for each in batches(["absent", *(name for name in names if name not in ("id", "fields"))]):
        found = each.batch(STREAM, table)
        assert found.equals(each.batch(STREAM, reply))
        found.validate(full=True)


@given(SHAPES, st.data())
def test_entries_of_one_shape_without_line_breaks_are_a_table(
    names: list[bytes], data: st.DataObject
) -> None:
    plain = st.one_of(VALUES, NAMES).filter(lambda text: b"\r\n" not in text and len(text) < 65536)
    names = [*dict.fromkeys(name.replace(b"\r\n", b"") for name in names if len(name) < 65536)]
    names = names or [b"a"]
    rows = data.draw(st.lists(st.tuples(*(plain for _ in names)), min_size=1, max_size=5))
    fields = ([part for pair in zip(names, row, strict=True) for part in pair] for row in rows)
    assert table_of(encoded(entries(*fields))) is not None


@pytest.mark.parametrize(
    "reply",
    [
        entries(),
        entries([b"a", b"1"], [b"b", b"1"]),
        entries([b"a", b"1"], [b"aa", b"1"]),
        entries([b"a", b"1"], [b"a", b"1", b"b", b"2"]),
        entries([b"a", b"1", b"b", b"2"], [b"a", b"1"]),
        entries([b"a", b"1", b"a", b"2"]),
        entries([b"%d" % number for number in range(514)]),
        entries([b"%d" % number for number in range(200_000)]),
        entries([b"a", b"\r\n"]),
        entries([b"a", b"x" * 65536]),
        entries([b"a", b"1"], [b"a", b"1\r\n*2\r\n$3\r\n1-3\r\n*2\r\n$1\r\na\r\n$1\r\n1"]),
    ],
)
def test_all_else_is_no_table(reply: list[Any]) -> None:
    assert table_of(encoded(reply)) is None


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"\r\n", b"+OK\r\n", b"-ERR no\r\n", b"*-1\r\n", b"*1\r\n$1\r\na\r\n"),
        b"*x\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$2\r\na\r\n$1\r\nb\r\n",
        b"*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n+a\r\n$1\r\nb\r\n",
        b"*1\r\n*3\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"*1\r\n*2\r\n$3\r\n1-1\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        b"*1\r\n*2\r\n$3\r\n1-1\r\n*99999999999\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    ],
)
def test_what_is_no_reply_of_entries_is_no_table(raw: bytes) -> None:
    assert table_of(raw) is None


def test_tables_are_put_together_and_cut_as_lists_are() -> None:
    chunks = [entries(*([b"n", n, b"m", n + n] for n in NUMBERS[at : at + 700])) for at in (0, 900)]
    chunks.append(entries(*([b"other", n] for n in NUMBERS[:300])))
    tables = [table_of(encoded(chunk)) for chunk in chunks]
    each = Batches(default_schema("array"))
    for most, most_bytes in ((10_000, 1 << 20), (1000, 1 << 20), (10_000, 500)):
        found = [*pieces(((t, t.size()) for t in tables if t), most, most_bytes)]
        wanted = [
            piece
            for same in (chunks[:2], chunks[2:])
            for piece in pieces(((c, bytes_of(c)) for c in same), most, most_bytes)
        ]
        assert all(isinstance(piece, Table) for piece in found)
        rows = [each.batch(STREAM, piece).to_pylist() for piece in found]
        assert rows == [each.batch(STREAM, piece).to_pylist() for piece in wanted]


def test_lists_and_tables_of_one_stream_keep_their_order() -> None:
    plain = entries(*([b"n", n] for n in NUMBERS[:50]))
    table = table_of(encoded(plain))
    assert table is not None
    odd = entries([b"n", b"\r\n"])
    found = [*pieces([(odd, 3), (table, table.size()), (odd, 3), (odd, 3)], 1000, 1 << 20)]
    assert [type(piece).__name__ for piece in found] == ["list", "Table", "list"]
    assert [len(piece) for piece in found] == [1, 50, 2]
