"""Payloads of Avro: what was written is read, and broken bytes are refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock_pipeline.decode.avro import avro_decoder, columns_of
from penstock_pipeline.decode.payload import Row, record_row
from penstock_pipeline.decode.registry import RegistryClient
from penstock_pipeline.errors import Unavailable, Undecodable
from penstock_pipeline.model import Column, Payload, Registry
from pipeline_tests.registry import TestRegistry, registry

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "PAID"]}},
        {"name": "was", "type": ["null", "Kind"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "item", "type": "string"}, {"name": "qty", "type": "int"}],
                },
            },
        },
        {"name": "odd", "type": ["null", "int", "string"]},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
VALUE: dict[str, Any] = {
    "id": 5,
    "note": None,
    "kind": "PAID",
    "was": "NEW",
    "price": Decimal("12.50"),
    "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "raw": b"\x00\xff",
    "tags": {"a": 0.5},
    "lines": [{"item": "x", "qty": 2}],
    "odd": "text",
    "token": "12345678-1234-1234-1234-123456789abc",
}


def written(value: dict[str, Any], schema: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def payload(schema: Any = None, **more: Any) -> Payload:
    return Payload("avro", "f", schema=None if schema is None else json.dumps(schema), **more)


def proposed(schema: Any) -> list[Column]:
    return [Column(name, str(type), name) for name, type in columns_of(json.dumps(schema)).items()]


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with registry() as running:
        yield running


def test_columns_are_proposed_from_a_schema() -> None:
    assert {name: str(type) for name, type in columns_of(json.dumps(ORDER)).items()} == {
        "id": "bigint",
        "note": "string",
        "kind": "string",
        "was": "string",
        "price": "decimal(9,2)",
        "at": "timestamp",
        "day": "date",
        "raw": "binary",
        "tags": "map<string,double>",
        "lines": "array<struct<item:string,qty:int>>",
        "odd": "string",
        "token": "string",
    }


def test_a_record_becomes_the_values_of_its_columns() -> None:
    decode = record_row(payload(ORDER), proposed(ORDER), False)
    assert decode(written(VALUE, ORDER)) == Row(
        None,
        [
            *(5, None, "PAID", "NEW", Decimal("12.50"), VALUE["at"], date(2026, 1, 2)),
            *(b"\x00\xff", [("a", 0.5)], [{"item": "x", "qty": 2}], "text", VALUE["token"]),
        ],
    )


def test_every_wrong_member_is_named_and_others_are_kept_if_asked() -> None:
    data = written(VALUE, ORDER)
    columns = [
        Column("kind", "int", "kind"),
        Column("note", "string", "note", required=True),
        Column("x", "array<struct<qty:string,item:date>>", "lines"),
    ]
    assert record_row(payload(ORDER), columns, False)(data) == Row(
        "member 'kind' is \"PAID\", not int; member 'note' is missing; "
        "member 'lines[0].item' is \"x\", not date"
    )
    more = record_row(payload(ORDER), [Column("id", "int", "id")], True)(data).more
    assert more is not None
    assert dict(more) == {
        "note": None,
        "kind": "PAID",
        "was": "NEW",
        "price": "12.50",
        "at": '"2026-01-02T03:04:05+00:00"',
        "day": '"2026-01-02"',
        "raw": '"AP8="',
        "tags": '{"a":0.5}',
        "lines": '[{"item":"x","qty":2}]',
        "odd": "text",
        "token": '"12345678-1234-1234-1234-123456789abc"',
    }


def test_a_number_of_milliseconds_is_a_time_if_the_file_says_so() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}
    decode = record_row(
        payload(schema), [Column("at", "timestamp", "at", format="epoch_ms")], False
    )
    assert decode(written({"at": 1500}, schema)).values == [
        datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    ]
    decode = record_row(payload(schema), [Column("at", "timestamp", "at")], False)
    assert decode(written({"at": 1500}, schema)) == Row("member 'at' is 1500, not timestamp")


@given(st.integers(0, 10**6))
def test_what_any_schema_of_the_kind_writes_is_read(index: int) -> None:
    value = generate_one(fastavro.parse_schema({**ORDER, "fields": ORDER["fields"][:4]}))
    value = {**VALUE, **value, "id": index}
    row = record_row(payload(ORDER), proposed(ORDER), False)(written(value, ORDER))
    assert (row.problem, row.values[:3]) == (None, [index, value["note"], value["kind"]])


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    for given_bytes in (data, written(VALUE, ORDER) + data, written(VALUE, ORDER)[: -len(data)]):
        row = record_row(payload(ORDER), proposed(ORDER), True)(given_bytes)
        assert (row.problem is None) == (row.values is not None)


def test_bytes_behind_a_record_are_refused() -> None:
    with pytest.raises(Undecodable, match="has 2 bytes behind its record of Avro"):
        avro_decoder(payload(ORDER))(written(VALUE, ORDER) + b"xx")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ('{"type": "record"}', "is no schema of Avro"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "intt"}]}', "intt"),
        ('"int"', "is no record: only a record has members"),
        ('["null", "int"]', "is no record"),
        ("5", "is no schema of Avro"),
    ],
)
def test_what_is_no_record_is_no_schema(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        columns_of(text)


def fields(*types: Any) -> dict[str, Any]:
    inner = [{"name": f"f{n}", "type": type} for n, type in enumerate(types)]
    return {"type": "record", "name": f"R{len(types)}", "fields": inner}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "E", "fields": []},
        {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]},
    ],
)
def test_an_array_of_values_without_bytes_is_refused(items: Any) -> None:
    array = {"type": "array", "items": items}
    for schema in (fields(array), fields("int", ["null", {"type": "map", "values": array}])):
        with pytest.raises(ValueError, match="has an array of values without bytes"):
            columns_of(json.dumps(schema))
    named = fields(items, {"type": "array", "items": "E"})
    if isinstance(items, dict) and items.get("name") == "E":
        with pytest.raises(ValueError, match="has an array of values without bytes"):
            columns_of(json.dumps(named))


def test_an_array_of_values_with_bytes_may_be_empty() -> None:
    schema = fields(
        {"type": "array", "items": ["null", "int"]},
        "null",
        {"type": "enum", "name": "E", "symbols": ["A"]},
    )
    assert list(columns_of(json.dumps(schema))) == ["f0", "f1", "f2"]


def test_a_record_within_itself_has_no_columns_but_can_be_read() -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "Tree"]}],
    }
    with pytest.raises(ValueError, match="has a record 'Tree' within itself"):
        columns_of(json.dumps(tree))
    columns = [Column("a", "struct<next:struct<n:int>>", "next")]
    value = {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}
    row = record_row(payload(tree), columns, False)(written(value, tree))
    assert row.values == [{"next": {"n": 3}}]


def header(id: int) -> bytes:
    return b"\x00" + id.to_bytes(4, "big")


def test_a_record_of_a_registered_schema_is_brought_to_that_of_the_file(
    server: TestRegistry,
) -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    new = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": "long"},
            {"name": "b", "type": "string", "default": "none"},
        ],
    }
    other = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    server.schemas = {n: {"schema": json.dumps(s)} for n, s in enumerate((old, new, other))}
    client = RegistryClient(Registry(server.url))
    decode = avro_decoder(payload(new), client)
    assert decode(header(0) + written({"a": 1}, old)) == {"a": 1, "b": "none"}
    assert decode(header(1) + written({"a": 2, "b": "x"}, new)) == {"a": 2, "b": "x"}
    with pytest.raises(Undecodable, match="is not such Avro"):
        decode(header(2) + written({"a": "x"}, other))
    own = avro_decoder(payload(), client)
    assert own(header(2) + written({"a": "x"}, other)) == {"a": "x"}
    assert len(server.requests) == 3


def test_a_schema_may_refer_to_another(server: TestRegistry) -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "qty", "type": "int"}]}
    order = {"type": "record", "name": "O", "fields": [{"name": "line", "type": "Line"}]}
    server.subjects["line", 2] = {"schema": json.dumps(line)}
    reference = {"name": "Line", "subject": "line", "version": 2}
    server.schemas[9] = {"schema": json.dumps(order), "references": [reference]}
    decode = avro_decoder(payload(), RegistryClient(Registry(server.url)))
    assert decode(header(9) + b"\x04") == {"line": {"qty": 2}}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "has no ID of a schema: it does not begin with a zero byte and 4 bytes"),
        (b"\x01\x00\x00\x00\x01\x02", "has no ID of a schema"),
        (header(404), "has the schema 404, which the registry does not know"),
        (header(1), "has the schema 1, which is JSON, not AVRO"),
        (header(2), "has the schema 2, which is no schema of Avro"),
        (header(3), "is no record of Avro"),
    ],
)
def test_what_has_no_usable_schema_is_a_dead_letter(
    server: TestRegistry, data: bytes, problem: str
) -> None:
    server.schemas = {
        1: {"schema": "{}", "schemaType": "JSON"},
        2: {"schema": '{"type": "none"}'},
        3: {"schema": '"null"'},
    }
    read = record_row(payload(registry=Registry(server.url)), [Column("a", "int", "a")], False)
    assert (read(data).problem or "").startswith(f"field 'f' {problem}")


def test_a_registry_that_fails_is_no_dead_letter(server: TestRegistry) -> None:
    server.broken = (503, b"", {})
    read = record_row(payload(registry=Registry(server.url)), [Column("a", "int", "a")], False)
    with pytest.raises(Unavailable, match="it answers 503"):
        read(header(1) + b"\x02")
