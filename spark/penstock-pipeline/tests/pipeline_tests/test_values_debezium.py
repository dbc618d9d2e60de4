"""Change events of Debezium: the row that they tell of, and what is wrong with them."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_pipeline.decode.payload import Row, record_row
from penstock_pipeline.model import Column, Payload

PAYLOAD = Payload("debezium", "")
COLUMNS = (
    Column("customer", "bigint", "id", required=True),
    Column("name", "string", "name", required=True),
    Column("since", "date", "since", format="epoch_d"),
    Column("op", "string", "__op"),
    Column("lsn", "bigint", "__source_lsn"),
)

decode = record_row(PAYLOAD, COLUMNS, unknown=False)


def event(op: str, **more: Any) -> dict[str, Any]:
    """An event as a connector of PostgreSQL makes it."""
    source = {"connector": "postgresql", "table": "customers", "lsn": 7}
    return {"before": None, "after": None, "source": source, "op": op, "ts_ms": 1, **more}


def row(given: Any) -> Row:
    """What is made of a value."""
    return decode(given if isinstance(given, bytes) else json.dumps(given).encode())


ANN = {"id": 1, "name": "Ann", "since": 20454}


@pytest.mark.parametrize("op", ["c", "r", "u"])
def test_a_row_is_as_it_is_after_the_change(op: str) -> None:
    found = row(event(op, before={"id": 1, "name": "Anna"}, after=ANN))
    assert found == Row(None, [1, "Ann", date(2026, 1, 1), op, 7])


def test_an_event_may_come_with_its_schema() -> None:
    bare = event("c", after=ANN)
    assert row({"schema": {"type": "struct"}, "payload": bare}) == row(bare)


def test_a_deleted_row_is_known_by_its_key_and_lacks_what_else_is_required() -> None:
    found = row(event("d", before={"id": 1, "name": None}))
    assert found == Row(None, [1, None, None, "d", 7])


@pytest.mark.parametrize("text", [b"default", b"null", b""])
def test_a_tombstone_is_neither_a_row_nor_wrong(text: bytes) -> None:
    assert row(text) == Row(None)


def test_numbers_are_exact_and_the_rest_may_be_kept() -> None:
    columns = (Column("price", "decimal(30,10)", "price"),)
    read = record_row(PAYLOAD, columns, unknown=True)
    data = b'{"op": "c", "ts_ms": 5, "after": {"price": 12345678901234567890.0123456789, "x": 1}}'
    found = read(data)
    assert str(found.values[0]) == "12345678901234567890.0123456789"
    assert found.more == [("x", "1"), ("__op", "c"), ("__ts_ms", "5")]


def test_a_value_that_is_not_told_is_of_no_interest_where_no_column_is_made_of_it() -> None:
    found = row(event("u", after={**ANN, "notes": "__debezium_unavailable_value"}))
    assert found.problem is None


FULL = "REPLICA IDENTITY FULL of its table would have it told"
NO_CHANGE = "the last field is no change of a row by Debezium: 'op' is {}, not one of c, r, u, d"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (b"\xff", "the last field is not UTF-8"),
        (b"[1]", "the last field is '[1]', not a JSON object"),
        (b"{", "the last field is '{', not JSON: expecting property name enclosed in double quotes"
         " at character 2"),
        ({"id": 1}, NO_CHANGE.format("None")),
        (event("t"), NO_CHANGE.format("'t'")),
        (event("m"), NO_CHANGE.format("'m'")),
        ({**event("c"), "op": ["c"]}, NO_CHANGE.format("['c']")),
        ({"schema": {}, "payload": None},
         "the last field has a schema without a change event of Debezium"),
        (event("u", before=ANN), "the last field has no row 'after'"),
        (event("d", after=ANN), f"the last field has no row 'before': {FULL}"),
        (event("c", after={"id": 1}), "member 'name' is missing"),
        (event("d", before={"id": "1"}), "member 'id' is \"1\", not bigint"),
        (event("c", after={**ANN, "since": 1.5}), "member 'since' is 1.5, not date as epoch_d"),
        (event("u", after={**ANN, "name": "__debezium_unavailable_value"}),
         f"member 'name' has not changed, and is not told: {FULL}"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(given: Any, problem: str) -> None:
    assert row(given) == Row(problem)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {"op": st.sampled_from("crudtm") | JSON}, optional=dict.fromkeys(("before", "after"), JSON)
    ).map(lambda value: json.dumps(value).encode())
)
def test_whatever_comes_is_a_row_a_tombstone_or_told(data: bytes) -> None:
    found = decode(data)
    assert found.problem or found.values is None or len(found.values) == len(COLUMNS)
