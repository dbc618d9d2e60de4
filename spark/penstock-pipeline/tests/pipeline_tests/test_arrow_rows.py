"""What a batch does to the rows of its keys, and how it fits the columns of a table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.arrow import completed, fitted, plain, split
from penstock_pipeline.sinks.changes import Changes

UPSERT = Changes("upsert", ("k",))


def test_the_last_row_of_a_key_counts_by_the_order() -> None:
    rows = pa.table({"K": [1, 2, 1, 2], "v": ["b", "c", "a", "d"], "__order0": [2, 3, 1, 4]})
    assert split(rows, UPSERT, "s").written.to_pylist() == [{"K": 1, "v": "b"}, {"K": 2, "v": "d"}]


def test_of_rows_that_are_equal_in_the_order_the_last_one_read_counts() -> None:
    rows = pa.table({"k": [1, 1, 1], "v": [1, 2, 3], "__order0": [None, 5, 5]})
    by = Changes("upsert", ("k",), order_by=("v",))
    assert split(rows, by, "s").written.to_pylist() == [{"k": 1, "v": 3}]


def test_a_key_is_removed_if_its_last_row_says_so() -> None:
    rows = pa.table(
        {"k": [1, 2, 1, 2], "__remove": [True, False, False, True], "__order0": [1, 2, 3, 4]}
    )
    found = split(rows, UPSERT, "s")
    assert found.written.to_pylist() == [{"k": 1}]
    assert found.removed.to_pylist() == [{"k": 2}]


def test_in_mode_delete_every_row_removes_its_key() -> None:
    rows = pa.table({"k": [1, 1, 2], "v": [1, 2, 3], "__order0": [1, 2, 3]})
    found = split(rows, Changes("delete", ("k",)), "s")
    assert len(found.written) == 0
    assert found.removed.to_pylist() == [{"k": 1}, {"k": 2}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"k": [1, None], "__order0": ["a", "b"]},
            "sink 's': 1 rows have no value in 'k', which is a key; make it required in "
            "[parse.columns], or leave such rows out in SQL",
        ),
        (
            {"k": [1, 1]},
            "sink 's': 1 rows have the keys of another row of the same batch (k), and nothing "
            "tells which is the last; name columns in order_by, or all columns of GROUP BY in keys",
        ),
        (
            {"k": [1, 2], "__order0": ["a", None]},
            "sink 's': column 'id' holds something else than IDs of entries, so it does not tell "
            "which row of a key is the last; name columns in order_by",
        ),
    ],
)
def test_rows_whose_key_or_order_is_not_known_are_refused(
    columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(NotWritable) as caught:
        split(pa.table(columns), UPSERT, "s")
    assert str(caught.value) == message


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 5), st.booleans())))
def test_a_batch_does_what_its_rows_do_one_after_the_other(
    entries: list[tuple[int, int, int, bool]],
) -> None:
    schema = pa.schema(
        {"a": pa.int64(), "b": pa.int64(), "__order0": pa.int64(), "__remove": pa.bool_()}
    )
    rows = pa.table(list(map(list, zip(*entries, strict=True))) or [[]] * 4, schema=schema)
    numbered = rows.append_column("n", pa.array(range(len(rows)), pa.int64()))
    found = split(numbered, Changes("upsert", ("a", "b"), order_by=("n",)), "s")
    model: dict[tuple[int, int], int] = {}
    gone: set[tuple[int, int]] = set()
    for number, (a, b, _, remove) in sorted(enumerate(entries), key=lambda e: e[1][2]):
        model.pop((a, b), None)
        gone.discard((a, b))
        if remove:
            gone.add((a, b))
        else:
            model[a, b] = number
    assert {(r["a"], r["b"]): r["n"] for r in found.written.to_pylist()} == model
    assert {(r["a"], r["b"]) for r in found.removed.to_pylist()} == gone


def test_times_are_in_utc_wherever_they_are() -> None:
    moment = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    there = pa.timestamp("us", "Asia/Tokyo")
    schema = pa.schema(
        [
            pa.field("at", there, nullable=False),
            pa.field("s", pa.struct([pa.field("l", pa.list_(there))])),
            pa.field("m", pa.map_(pa.string(), there)),
        ]
    )
    rows = pa.table([[moment], [{"l": [moment]}], [[("a", moment)]]], schema=schema)
    found = plain(rows)
    utc = pa.timestamp("us", "UTC")
    assert found.schema.field("at") == pa.field("at", utc)
    assert found.schema.field("s").type == pa.struct([pa.field("l", pa.list_(utc))])
    assert found.to_pylist() == [{"at": moment, "s": {"l": [moment]}, "m": [("a", moment)]}]


def test_rows_take_names_and_wider_types_of_the_table() -> None:
    table = pa.schema({"Item": pa.string(), "n": pa.int64(), "d": pa.decimal128(12, 3)})
    rows = pa.table({"item": ["a"], "n": pa.array([1], pa.int32()), "d": [Decimal("1.20")]})
    found = fitted(rows, table, "freeze", "s")
    assert found.added == []
    assert found.rows.schema == table
    assert completed(found.rows.drop_columns(["n"]), table, "s").to_pylist() == [
        {"Item": "a", "n": None, "d": Decimal("1.200")}
    ]


def test_new_columns_are_named() -> None:
    rows = pa.table({"a": [1], "b": ["x"]})
    table = pa.schema({"a": pa.int64()})
    assert fitted(rows, table, "evolve", "s").added == [pa.field("b", pa.string())]
    with pytest.raises(NotWritable) as caught:
        fitted(rows, table, "freeze", "s")
    assert str(caught.value) == (
        "sink 's': the table has no column 'b' (string), and schema = 'freeze'; it has a; use "
        "schema = 'evolve', or leave the column out in SQL"
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int32()),
        (pa.int32(), pa.string()),
        (pa.float64(), pa.float32()),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.struct({"a": pa.int32()}), pa.struct({"a": pa.int32(), "b": pa.int32()})),
    ],
)
def test_a_column_that_may_lose_something_is_refused(
    given: pa.DataType, wanted: pa.DataType
) -> None:
    with pytest.raises(NotWritable) as caught:
        fitted(pa.table({"a": pa.nulls(1, given)}), pa.schema({"a": wanted}), "evolve", "s")
    assert str(caught.value) == (
        f"sink 's': column 'a' is {given}, and the table's is {wanted}; cast it in SQL"
    )


def test_a_column_that_needs_a_value_is_named() -> None:
    table = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    with pytest.raises(NotWritable) as caught:
        completed(pa.table({"a": [1, 2]}), table, "s")
    assert str(caught.value) == (
        "sink 's': the table's column 'b' needs a value in each row, and 2 rows have none"
    )
