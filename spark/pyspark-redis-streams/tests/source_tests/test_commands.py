"""Rows as XADD commands."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from pyspark_redis_streams.errors import RedisStreamsError, SchemaError
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write.writer import Entry, Rows, to_bytes, trimming, xadd


def schema_of(**columns: Any) -> StructType:
    """A schema from the simple JSON names of types."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in columns.items()
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def pairs(kind: str) -> Any:
    members = schema_of(name=kind, value=kind).jsonValue()
    return {"type": "array", "elementType": members, "containsNull": True}


MAP = {"type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": True}


def entries(schema: StructType, *rows: dict[str, Any], **options: str) -> list[Entry]:
    batch = pa.RecordBatch.from_pylist(list(rows))
    return list(Rows(write_settings(options), schema).entries(batch))


def test_columns_become_fields_and_null_is_left_out() -> None:
    schema = schema_of(stream="string", item="string", qty="long")
    rows: list[dict[str, Any]] = [
        {"stream": "s", "item": "tea", "qty": 2},
        {"stream": "t", "item": None, "qty": 3},
    ]
    assert entries(schema, *rows) == [
        Entry(b"s", None, [b"item", b"tea", b"qty", b"2"]),
        Entry(b"t", None, [b"qty", b"3"]),
    ]


def test_a_map_becomes_the_fields_and_other_columns_do_not() -> None:
    schema = schema_of(stream="string", id="string", timestamp="timestamp", fields=MAP)
    row = {"stream": "s", "id": "5-1", "timestamp": None, "fields": {"a": b"\xff", "b": b""}}
    batch = pa.RecordBatch.from_pylist(
        [row],
        pa.schema(
            [
                *(("stream", pa.string()), ("id", pa.string()), ("timestamp", pa.timestamp("us"))),
                ("fields", pa.map_(pa.string(), pa.binary())),
            ]
        ),
    )
    found = list(Rows(write_settings({}), schema).entries(batch))
    assert found == [Entry(b"s", "5-1", [b"a", b"\xff", b"b", b""])]


def test_pairs_become_the_fields_in_their_order() -> None:
    row = {"fields": [{"name": b"a", "value": b"1"}, {"name": b"a", "value": b"2"}]}
    found = entries(schema_of(fields=pairs("binary")), row, stream="s")
    assert found == [Entry(b"s", None, [b"a", b"1", b"a", b"2"])]


def test_the_option_names_the_stream_of_all_rows() -> None:
    found = entries(schema_of(stream="string", a="string"), {"stream": "t", "a": "1"}, stream="s")
    assert found == [Entry(b"s", None, [b"a", b"1"])]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"stream": None, "id": None, "a": "1"}, "a row has null in the column 'stream'"),
        ({"stream": "s", "id": None, "a": None}, "a row has no field that is not null"),
        ({"stream": "s", "id": "5-x", "a": "1"}, "a row has '5-x' in the column 'id'; allowed"),
    ],
)
def test_a_row_that_is_no_entry_is_refused(row: dict[str, Any], message: str) -> None:
    with pytest.raises(RedisStreamsError, match=message):
        entries(schema_of(stream="string", id="string", a="string"), row)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": "string"}, {}, "there is neither a column 'stream' nor the option 'stream'"),
        ({"stream": "long"}, {}, "column 'stream' is bigint; allowed: string"),
        ({"id": "long", "a": "string"}, {"stream": "s"}, "column 'id' is bigint; allowed"),
        ({"stream": "string"}, {}, "there is no column to write"),
        ({"a": MAP}, {"stream": "s"}, "column 'a' is map<string,binary>, which is no single"),
        ({"fields": "string"}, {"stream": "s"}, "column 'fields' is string; allowed: map<"),
        ({"fields": pairs("long")}, {"stream": "s"}, "column 'fields' is array<struct<name:big"),
    ],
)
def test_a_schema_that_can_not_be_written_is_refused(
    columns: dict[str, Any], options: dict[str, str], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        Rows(write_settings(options), schema_of(**columns))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xff", b"\xff"),
        ("café", b"caf\xc3\xa9"),
        (True, b"true"),
        (False, b"false"),
        (7, b"7"),
        (1.5, b"1.5"),
        (Decimal("1.50"), b"1.50"),
        (date(2024, 2, 29), b"2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), b"2024-02-29T01:02:03+00:00"),
        (
            datetime(2024, 2, 29, 1, 2, 3, tzinfo=timezone(timedelta(hours=-5))),
            b"2024-02-29T06:02:03+00:00",
        ),
    ],
)
def test_values_are_written_as_people_would(value: Any, text: bytes) -> None:
    assert to_bytes(value) == text


def test_a_command_holds_its_words_in_the_order_of_the_documentation() -> None:
    entry = Entry(b"s", None, [b"a", b"1"])
    options = trimming(write_settings({"maxlen": "5"}))
    assert xadd(entry, options, "q-0-0", "7-3") == (
        *("XADD", b"s", "IDMP", "q-0-0", "7-3", "MAXLEN", "~", 5, "*", b"a", b"1"),
    )
    assert xadd(Entry(b"s", "5-1", [b"a", b"1"]), (), None, "7-3") == (
        *("XADD", b"s", "5-1", b"a", b"1"),
    )


def test_trimming_is_exact_on_request() -> None:
    assert trimming(write_settings({"minid": "5-1", "approximate": "false"})) == (
        *("MINID", "=", "5-1"),
    )
    assert trimming(write_settings({})) == ()
