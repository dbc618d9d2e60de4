"""Payloads of Protobuf: what was written is read, and broken bytes are refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock_pipeline.decode.payload import Row, record_row
from penstock_pipeline.decode.protobuf import (
    columns_of_message,
    compile_files,
    find_message,
    protobuf_decoder,
    read_descriptors,
)
from penstock_pipeline.decode.registry import RegistryClient, split_indexes
from penstock_pipeline.errors import Undecodable
from penstock_pipeline.model import Column, Payload, Registry
from pipeline_tests.registry import TestRegistry, registry

SHOP = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
message Other {}
message Order {
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<int32, double> rates = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.Int32Value seats = 6;
  Kind kind = 7;
  bytes raw = 8;
  uint64 big = 9;
  oneof one { string left = 10; bool right = 11; }
  google.protobuf.Struct more = 12;
  enum Kind { NEW = 0; PAID = 1; }
  message Inner {}
  message Line { string item = 1; int32 qty = 2; }
}
message Tree { int32 n = 1; Tree next = 2; }
"""


@pytest.fixture(scope="module")
def descriptors() -> bytes:
    return compile_files({"shop.proto": SHOP}, "shop.proto")


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with registry() as running:
        yield running


def order(descriptors: bytes, **members: Any) -> Any:
    kind = find_message(read_descriptors(descriptors), "shop.Order")
    return message_factory.GetMessageClass(kind)(**members)


def payload(descriptors: bytes | None, message: str | None = "shop.Order", **more: Any) -> Payload:
    return Payload("protobuf", "f", descriptors=descriptors, message=message, **more)


def proposed(descriptors: bytes) -> list[Column]:
    types = columns_of_message(find_message(read_descriptors(descriptors), "shop.Order"))
    return [Column(name, str(type), name) for name, type in types.items()]


def test_columns_are_proposed_from_a_message(descriptors: bytes) -> None:
    assert {column.name: column.type for column in proposed(descriptors)} == {
        "id": "bigint",
        "note": "string",
        "lines": "array<struct<item:string,qty:int>>",
        "rates": "map<string,double>",
        "at": "timestamp",
        "seats": "int",
        "kind": "string",
        "raw": "binary",
        "big": "decimal(20,0)",
        "left": "string",
        "right": "boolean",
        "more": "string",
    }


def test_a_message_becomes_the_values_of_its_columns(descriptors: bytes) -> None:
    message = order(
        descriptors,
        id=-5,
        lines=[{"item": "x", "qty": 2}],
        rates={1: 0.5},
        kind=1,
        raw=b"\xff",
        big=2**64 - 1,
        right=False,
    )
    message.at.FromDatetime(datetime(2026, 1, 2, tzinfo=UTC))
    message.seats.value = 0
    message.more.update({"a": [1, None, {"b": True}]})
    decode = record_row(payload(descriptors), proposed(descriptors), False)
    assert decode(message.SerializeToString()) == Row(
        None,
        [
            *(-5, None, [{"item": "x", "qty": 2}], [("1", 0.5)]),
            *(datetime(2026, 1, 2, tzinfo=UTC), 0, "PAID", b"\xff", Decimal(2**64 - 1)),
            *(None, False, '{"a":[1.0,null,{"b":true}]}'),
        ],
    )
    assert decode(b"").values == [
        *(0, None, [], [], None, None, "NEW", b"", Decimal(0), None, None, None)
    ]


def test_every_wrong_member_is_named_and_others_are_kept_if_asked(descriptors: bytes) -> None:
    message = order(descriptors, id=2**40, lines=[{"item": "x"}], left="l")
    message.at.seconds = 10**15
    columns = [
        Column("id", "int", "id", required=True),
        Column("note", "string", "note", required=True),
        Column("lines", "array<struct<item:int>>", "lines"),
        Column("at", "timestamp", "at"),
    ]
    read = record_row(payload(descriptors), columns, True)
    assert read(message.SerializeToString()) == Row(
        "member 'id' is 1099511627776, not int; member 'note' is missing; "
        "member 'lines[0].item' is \"x\", not int; "
        'member \'at\' is {"seconds":1000000000000000,"nanos":0}, not timestamp'
    )
    more = record_row(payload(descriptors), proposed(descriptors)[:9], True)(b"").more
    assert more == [("left", None), ("right", None), ("more", None)]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.integers(-(2**63), 2**63 - 1),
            "note": st.text(st.characters(codec="utf-8")),
            "rates": st.dictionaries(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False)),
            "raw": st.binary(),
            "big": st.integers(0, 2**64 - 1),
        },
    )
)
@settings(deadline=None)
def test_what_was_written_is_read(descriptors: bytes, members: dict[str, Any]) -> None:
    data = order(descriptors, **members).SerializeToString()
    found = protobuf_decoder(payload(descriptors))(data)
    rates = {str(key): value for key, value in members.pop("rates", {}).items()}
    assert found["rates"] == rates
    assert {name: found[name] for name in members} == members


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_a_message_or_refused(descriptors: bytes, data: bytes) -> None:
    row = record_row(payload(descriptors), proposed(descriptors), True)(data)
    assert (row.problem is None) == (row.values is not None)


def test_a_message_that_lacks_what_it_needs_is_refused() -> None:
    text = 'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; }'
    local = payload(compile_files({"m.proto": text}, "m.proto"), "M")
    with pytest.raises(Undecodable, match="is a message 'M' without a"):
        protobuf_decoder(local)(b"\x10\x01")
    assert protobuf_decoder(local)(b"\x08\x01") == {"a": 1, "b": None}


def test_what_is_no_set_of_descriptors_is_told(descriptors: bytes) -> None:
    with pytest.raises(ValueError, match="is no set of descriptors"):
        read_descriptors(b"\xff\xff")
    with pytest.raises(ValueError, match="has no descriptors"):
        read_descriptors(b"")
    kinds = pytest.importorskip("google.protobuf.descriptor_pb2")
    alone = kinds.FileDescriptorSet.FromString(descriptors)
    del alone.file[:-1]
    with pytest.raises(ValueError, match="protoc needs --include_imports"):
        read_descriptors(alone.SerializeToString())
    with pytest.raises(ValueError, match=r"has no message 'shop\.No'"):
        find_message(read_descriptors(descriptors), "shop.No")


def test_a_message_within_itself_has_no_columns_but_can_be_read(descriptors: bytes) -> None:
    with pytest.raises(ValueError, match=r"has a message 'shop\.Tree' within itself"):
        columns_of_message(find_message(read_descriptors(descriptors), "shop.Tree"))
    read = protobuf_decoder(payload(descriptors, "shop.Tree"))
    assert read(b"\x08\x01\x12\x02\x08\x02") == {"n": 1, "next": {"n": 2, "next": None}}


@pytest.mark.parametrize(
    ("data", "indexes", "rest"),
    [
        (b"\x00x", (0,), b"x"),
        (b"\x02\x02x", (1,), b"x"),
        (b"\x04\x02\x02", (1, 1), b""),
        (b"\x02\x80\x02x", (128,), b"x"),
    ],
)
def test_a_header_names_the_message(data: bytes, indexes: tuple[int, ...], rest: bytes) -> None:
    assert split_indexes(data) == (indexes, rest)


@given(st.binary(max_size=20))
def test_any_other_header_is_refused(data: bytes) -> None:
    try:
        indexes, rest = split_indexes(data)
    except Undecodable as error:
        assert "has a wrong header" in str(error)  # noqa: PT017
    else:
        assert indexes
        assert data.endswith(rest)


HEADER = b"\x00\x00\x00\x00\x01"


def test_a_message_of_a_registered_schema_is_found_by_its_place(
    server: TestRegistry, descriptors: bytes
) -> None:
    server.schemas[1] = {"schemaType": "PROTOBUF", "schema": SHOP}
    read = protobuf_decoder(payload(None, None), RegistryClient(Registry(server.url)))
    data = order(descriptors, id=7).SerializeToString()
    assert read(HEADER + b"\x02\x02" + data)["id"] == 7
    assert read(HEADER + b"\x00") == {}
    assert read(HEADER + b"\x04\x02\x02" + b"\x0a\x01x") == {"item": "x", "qty": 0}
    with pytest.raises(Undecodable, match=r"has the schema 1, which has no message at 1\.9"):
        read(HEADER + b"\x04\x02\x12")
    line = payload(None, "shop.Order.Line")
    read = protobuf_decoder(line, RegistryClient(Registry(server.url)))
    for place in (b"\x02", b"\x04"):
        assert read(HEADER + b"\x04\x02" + place) == {"item": "", "qty": 0}
    wanted = protobuf_decoder(payload(None), RegistryClient(Registry(server.url)))
    with pytest.raises(Undecodable, match=r"is a message 'shop\.Other', not 'shop\.Order'"):
        wanted(HEADER + b"\x00")


def test_a_schema_may_import_another(server: TestRegistry) -> None:
    line = 'syntax = "proto3"; package a; message Line { int32 qty = 1; }'
    text = 'syntax = "proto3"; import "x/line.proto"; message O { a.Line line = 1; }'
    server.subjects["line", 3] = {"schema": line, "schemaType": "PROTOBUF"}
    reference = {"name": "x/line.proto", "subject": "line", "version": 3}
    server.schemas[1] = {"schemaType": "PROTOBUF", "schema": text, "references": [reference]}
    read = protobuf_decoder(payload(None, None), RegistryClient(Registry(server.url)))
    assert read(HEADER + b"\x00\x0a\x02\x08\x05") == {"line": {"qty": 5}}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"schema": "{}"}, "has the schema 1, which is AVRO, not PROTOBUF"),
        (
            {"schemaType": "PROTOBUF", "schema": "message M {"},
            "has the schema 1, which does not compile: registered.proto",
        ),
        (
            {
                "schemaType": "PROTOBUF",
                "schema": "",
                "references": [{"name": "../../x.proto", "subject": "s", "version": 1}],
            },
            "has the schema 1, which refers to '../../x.proto', which is no name of a .proto file",
        ),
    ],
)
def test_what_has_no_usable_schema_is_a_dead_letter(
    server: TestRegistry, schema: dict[str, Any], why: str
) -> None:
    server.schemas[1] = schema
    server.subjects["s", 1] = {"schema": ""}
    registered = payload(None, registry=Registry(server.url))
    read = record_row(registered, [Column("a", "int", "a")], False)
    assert (read(HEADER + b"\x00").problem or "").startswith(f"field 'f' {why}")
