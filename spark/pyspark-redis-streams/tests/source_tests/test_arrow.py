"""Arrow batches of raw entries."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_redis_streams.errors import SchemaError
from pyspark_redis_streams.read import columns
from pyspark_redis_streams.read.columns import Batches, check_schema, default_schema
from pyspark_redis_streams.streams import Stream

ORDERS = Stream(0, b"orders")

PARTS = st.integers(0, 2**64 - 1)
FIELDS = st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=5)), min_size=1, max_size=4)
ENTRIES = st.lists(st.tuples(PARTS, PARTS, FIELDS), max_size=5)


def raw(entries: list[tuple[int, int, list[tuple[bytes, bytes]]]]) -> list[list[Any]]:
    return [
        [f"{ms}-{sequence}".encode(), [part for pair in fields for part in pair]]
        for ms, sequence, fields in entries
    ]


def column(kind: DataType, *values: bytes | None) -> list[Any]:
    """What fields with these values become in a column of a user's schema."""
    schema = StructType([StructField("f", kind)])
    entries = [
        [b"1-%d" % i, [b"g", b"x"] if value is None else [b"f", value]]
        for i, value in enumerate(values, 1)
    ]
    batch = Batches(schema).batch(ORDERS, entries)
    assert batch.schema == to_arrow_schema(schema, timezone="UTC")
    found: list[Any] = batch.column(0).to_pylist()
    return found


@given(ENTRIES)
def test_the_array_form_holds_every_field_in_its_order(
    entries: list[tuple[int, int, list[tuple[bytes, bytes]]]],
) -> None:
    batch = Batches(default_schema("array")).batch(ORDERS, raw(entries))
    assert batch.schema == to_arrow_schema(default_schema("array"), timezone="UTC")
    rows = batch.to_pylist()
    assert [row["id"] for row in rows] == [f"{ms}-{seq}" for ms, seq, _ in entries]
    assert [[(f["name"], f["value"]) for f in row["fields"]] for row in rows] == [
        fields for _, _, fields in entries
    ]


@given(ENTRIES)
def test_the_map_form_holds_the_last_value_of_each_field(
    entries: list[tuple[int, int, list[tuple[bytes, bytes]]]],
) -> None:
    batch = Batches(default_schema("map")).batch(ORDERS, raw(entries))
    assert batch.schema == to_arrow_schema(default_schema("map"), timezone="UTC")
    expected = [
        [(name.decode("utf-8", "backslashreplace"), value) for name, value in dict(fields).items()]
        for _, _, fields in entries
    ]
    assert [row["fields"] for row in batch.to_pylist()] == expected


@given(ENTRIES)
def test_a_users_column_holds_the_last_value_of_its_field(
    entries: list[tuple[int, int, list[tuple[bytes, bytes]]]],
) -> None:
    schema = StructType([StructField("a", BinaryType()), StructField("", BinaryType())])
    batch = Batches(schema).batch(ORDERS, raw(entries))
    assert batch.to_pylist() == [
        {"a": dict(fields).get(b"a"), "": dict(fields).get(b"")} for _, _, fields in entries
    ]


def test_the_timestamp_is_the_time_of_the_id() -> None:
    entries = [[b"1700000000123-7", [b"f", b"v"]], [b"0-1", [b"f", b"v"]]]
    rows = Batches(default_schema("map")).batch(ORDERS, entries).to_pylist()
    assert [row["timestamp"] for row in rows] == [
        datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ]


def test_an_id_may_be_had_as_two_numbers_that_sort() -> None:
    last = 2**64 - 1
    entries = [[id, [b"ms", b"v"]] for id in (b"9-1", b"10-7", b"%d-%d" % (last, last))]
    schema = default_schema("map", id_columns=True)
    batch = Batches(schema, id_columns=True).batch(ORDERS, entries)
    assert batch.schema == to_arrow_schema(schema, timezone="UTC")
    rows = batch.to_pylist()
    assert [(row["ms"], row["seq"]) for row in rows] == [(9, 1), (10, 7), (None, None)]
    fields = StructType([StructField("ms", StringType())])
    assert Batches(fields).batch(ORDERS, entries).to_pylist()[0] == {"ms": "v"}
    with pytest.raises(SchemaError, match="column 'ms' is string; allowed: bigint"):
        check_schema(fields, id_columns=True)


def test_an_id_after_the_year_9999_has_no_timestamp() -> None:
    entries = [[b"253402300799999-0", [b"f", b"v"]], [b"253402300800000-0", [b"f", b"v"]]]
    batch = Batches(default_schema("map")).batch(ORDERS, entries)
    assert batch.column(2).is_null().to_pylist() == [False, True]


def test_entries_of_several_forms_whose_names_line_up_stay_apart() -> None:
    entries = [
        [b"1-1", [b"a", b"1", b"b", b"2"]],
        [b"1-2", [b"a", b"3"]],
        [b"1-3", [b"b", b"4", b"a", b"5", b"b", b"6"]],
    ]
    rows = Batches(default_schema("map")).batch(ORDERS, entries).to_pylist()
    assert [dict(row["fields"]) for row in rows] == [
        {"a": b"1", "b": b"2"},
        {"a": b"3"},
        {"b": b"6", "a": b"5"},
    ]


def test_a_name_that_is_no_utf_8_is_shown_with_escapes() -> None:
    rows = Batches(default_schema("map")).batch(Stream(0, b"\xffs"), [[b"1-1", [b"\xfe", b"\xfd"]]])
    assert rows.column(0).to_pylist() == ["\\xffs"]
    assert rows.column(3).to_pylist() == [[("\\xfe", b"\xfd")]]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (StringType(), b"caf\xc3\xa9", "café"),
        (StringType(), b"\xff", "\\xff"),
        (BinaryType(), b"\xff", b"\xff"),
        (IntegerType(), b"-7", -7),
        (IntegerType(), b"2147483648", None),
        (LongType(), b"9223372036854775807", 2**63 - 1),
        (LongType(), b"7.5", None),
        (LongType(), b"0x21", None),
        (ByteType(), b"0XFF", None),
        (DoubleType(), b"1e3", 1000.0),
        (DoubleType(), b"-inf", -math.inf),
        (DoubleType(), b"1e999", None),
        (DoubleType(), b"1e-999", None),
        (DoubleType(), b"-0.0e5", 0.0),
        (DoubleType(), b"1d", None),
        (DoubleType(), b"0x21", None),
        (FloatType(), b"1e39", None),
        (DecimalType(6, 2), b"12.34", Decimal("12.34")),
        (DecimalType(6, 2), b"12.345", None),
        (BooleanType(), b"true", True),
        (BooleanType(), b"maybe", None),
        (DateType(), b"2024-02-29", date(2024, 2, 29)),
        (TimestampType(), b"2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        (TimestampType(), b"2024-02-29T01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500000, UTC)),
        (TimestampType(), b"2024-02-29 01:02:03-05:00", datetime(2024, 2, 29, 6, 2, 3, 0, UTC)),
        (TimestampType(), b"2024-02-29T01:02:03Z", datetime(2024, 2, 29, 1, 2, 3, 0, UTC)),
        (TimestampType(), b"2024-02-29T01:02:03.1234567Z", None),
        (TimestampType(), b"soon", None),
    ],
)
def test_a_column_of_a_users_schema_is_read_from_text(
    kind: DataType, text: bytes, value: Any
) -> None:
    assert column(kind, text, None) == [value, None]


def test_one_bad_value_does_not_spoil_the_others() -> None:
    assert column(IntegerType(), b"1", b"x", None, b"4") == [1, None, None, 4]


def test_a_bad_value_costs_the_others_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    casts: list[int] = []

    def counted(texts: Any, kind: Any) -> Any:
        casts.append(len(texts))
        return usual(texts, kind)

    usual = columns._cast
    monkeypatch.setattr(columns, "_cast", counted)
    values = [b"%d" % number for number in range(9000)]
    values[4711] = b"x"
    found = column(IntegerType(), *values)
    assert found == [None if number == 4711 else number for number in range(9000)]
    assert len(casts) < 40
    assert sum(casts) < 5 * 9000


def test_a_schema_may_not_give_reserved_columns_another_type() -> None:
    with pytest.raises(SchemaError, match="column 'id' is int; allowed: string"):
        check_schema(StructType([StructField("id", IntegerType())]))
    with pytest.raises(SchemaError, match="column 'fields' is string; allowed: map<string,binary>"):
        check_schema(StructType([StructField("fields", StringType())]))


def test_a_schema_may_not_have_columns_that_text_can_not_become() -> None:
    kind = MapType(StringType(), StringType())
    with pytest.raises(SchemaError, match="column 'f' is map<string,string>, which the text"):
        check_schema(StructType([StructField("f", kind)]))
    check_schema(default_schema("map"))
    check_schema(default_schema("array"))
