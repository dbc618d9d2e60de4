"""Values of columns, made without Spark: types, times, numbers, and what is said of wrong ones."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_pipeline.decode.json_object import NotJson, read_object
from penstock_pipeline.decode.payload import explainer
from penstock_pipeline.model import Column
from penstock_pipeline.values import (
    as_text,
    converter,
    from_epoch,
    parse_type,
    read_date,
    read_time,
    shown,
)


def made(type: str, value: Any, format: str | None = None) -> tuple[Any, list[str]]:
    wrong: list[str] = []
    return converter(parse_type(type), format)(value, "m", wrong), wrong


@pytest.mark.parametrize(
    ("type", "value", "result"),
    [
        ("int", -(2**31), -(2**31)),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("boolean", True, True),
        ("float", 1, 1.0),
        ("double", Decimal("1.5"), 1.5),
        ("decimal(4,2)", "12.50", Decimal("12.50")),
        ("decimal(4,2)", 0.1, Decimal("0.10")),
        ("decimal(38,37)", Decimal("1." + "3" * 37), Decimal("1." + "3" * 37)),
        ("string", "ä", "ä"),
        ("string", {"a": [1, None, True]}, '{"a":[1,null,true]}'),
        ("string", b"\x01", "AQ=="),
        ("binary", "AQI=", b"\x01\x02"),
        ("binary", b"\xff", b"\xff"),
        ("date", "2026-01-02", date(2026, 1, 2)),
        ("timestamp", "2026-01-02T03:04:05.5-01:30", datetime(2026, 1, 2, 4, 34, 5, 500000, UTC)),
        ("timestamp_ntz", "2026-01-02 03:04", datetime(2026, 1, 2, 3, 4)),
        ("array<int>", [1, None], [1, None]),
        ("map<string,int>", {"a": 1}, [("a", 1)]),
        ("struct<a:int,b:string>", {"a": 1, "c": 2}, {"a": 1, "b": None}),
        ("int", None, None),
    ],
)
def test_values_of_the_type_are_converted(type: str, value: Any, result: Any) -> None:
    assert made(type, value) == (result, [])


WRONG: list[tuple[str, Any]] = [
    *(("int", value) for value in (2**31, 1.0, "1", True)),
    ("int", []),
    *(("tinyint", value) for value in (128, -129)),
    ("boolean", 1),
    ("float", 1e300),
    ("double", "1"),
    ("double", 10**400),
    *(("decimal(4,2)", value) for value in (100, "1.005", "x", "NaN", float("nan"), True)),
    ("decimal(38,0)", Decimal(10) ** 38),
    ("string", "\ud800"),
    ("binary", "A!"),
    *(("date", value) for value in ("2026", "2026-02-30", "2026-01-02T00:00", 5)),
    *(("timestamp", value) for value in ("10:00", "2026-01", "0001-01-01T00:00+05:00", 5)),
    ("timestamp", "2026-01-02T03:04:05 Nowhere/Town"),
    ("array<int>", "x"),
    ("map<string,int>", [1]),
    ("struct<a:int>", 1),
]
"""Types, and values that are not of them."""


@pytest.mark.parametrize(("type", "value"), WRONG)
def test_others_are_named_and_become_null(type: str, value: Any) -> None:
    assert made(type, value) == (None, [f"member 'm' is {shown(value)}, not {parse_type(type)}"])


def test_every_wrong_value_within_another_is_named() -> None:
    value, wrong = made("array<struct<a:int,b:map<string,int>>>", [{"a": "x", "b": {"k": 1.5}}, 3])
    assert value == [{"a": None, "b": [("k", None)]}, None]
    assert wrong == [
        "member 'm[0].a' is \"x\", not int",
        "member 'm[0].b.k' is 1.5, not int",
        "member 'm[1]' is 3, not struct<a:int,b:map<string,int>>",
    ]


def test_a_long_value_is_quoted_in_part() -> None:
    assert shown("x" * 100) == '"' + "x" * 59 + "..."


@pytest.mark.parametrize(
    ("number", "format", "time"),
    [
        (0, "epoch_s", datetime(1970, 1, 1, tzinfo=UTC)),
        (Decimal("1700000000.1234560"), "epoch_s", datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)),
        (-1, "epoch_ms", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
        (253402300799999999, "epoch_us", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    ],
)
def test_a_number_is_a_time(number: Any, format: str, time: datetime) -> None:
    assert from_epoch(number, format) == time


@pytest.mark.parametrize(("number", "format"), [(10**12, "epoch_s"), (-(10**18), "epoch_us")])
def test_a_number_beyond_the_years_1_to_9999_is_no_time(number: int, format: str) -> None:
    with pytest.raises(ValueError, match="is no epoch"):
        from_epoch(number, format)


@pytest.mark.parametrize(
    ("number", "format"),
    [
        (Decimal("1700000000.1234567"), "epoch_s"),
        (Decimal("0.5"), "epoch_us"),
        (Decimal("0.5"), "epoch_d"),
    ],
)
def test_a_number_that_is_finer_than_its_unit_allows_is_no_time(
    number: Decimal, format: str
) -> None:
    with pytest.raises(ValueError, match="is no epoch"):
        from_epoch(number, format)


def test_a_text_that_is_finer_than_a_microsecond_is_no_time() -> None:
    whole = datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)
    assert read_time("2026-01-02T03:04:05.123456000Z") == whole
    with pytest.raises(ValueError, match="is no time"):
        read_time("2026-01-02T03:04:05.1234561Z")


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_read_as_they_were_written(time: datetime) -> None:
    assert read_time(time.isoformat()) == time
    assert read_time(time.isoformat(" ").replace("+00:00", "Z")) == time
    assert read_date(time.date().isoformat()) == time.date()


@given(st.text())
def test_other_texts_are_refused_as_wrong_values(text: str) -> None:
    for read in (read_time, read_date):
        with contextlib.suppress(ValueError):
            assert isinstance(read(text), date)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
TYPES = st.sampled_from(
    [
        *("int", "double", "decimal(6,2)", "string", "date", "timestamp", "binary"),
        *("array<int>", "map<string,double>", "struct<a:int,b:array<string>>"),
    ]
)


@given(JSON, TYPES)
def test_any_value_is_converted_or_named(value: Any, type: str) -> None:
    result, wrong = made(type, value)
    assert wrong or (result is None) == (value is None)
    assert isinstance(as_text(value), str)


@given(st.dictionaries(st.text(), JSON))
def test_objects_are_read_exactly(value: dict[str, Any]) -> None:
    assert set(read_object(as_text(value))) == set(value)


@given(st.text())
def test_texts_that_are_no_objects_are_refused(text: str) -> None:
    with contextlib.suppress(NotJson):
        assert isinstance(read_object(text), dict)


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    assert "too deeply" in (explainer("j", [Column("a", "int", "a")])("[" * 100_000) or "")


def test_what_is_right_is_not_explained() -> None:
    explain = explainer("j", [Column("a", "int", "a", required=True)])
    assert explain('{"a": 1}') is None
    assert explain("{}") == "member 'a' is missing"
