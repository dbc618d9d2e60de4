"""Decoders of compressed values and of CSV: right values, and the one error of wrong ones."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
from typing import Any

import lz4.frame
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_pipeline.decode.payload import FORMS, Row, csv_decoder, csv_row, decompressor
from penstock_pipeline.errors import Undecodable
from penstock_pipeline.model import Payload


def pack(form: str, data: bytes) -> bytes:
    if form == "gzip":
        return gzip.compress(data)
    if form == "lz4":
        return bytes(lz4.frame.compress(data))
    return bytes(pyarrow.Codec(form).compress(data, asbytes=True))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.binary(max_size=1000))
def test_values_are_unpacked_as_they_were(form: str, data: bytes) -> None:
    assert decompressor(form, 1000)(pack(form, data)) == data


@pytest.mark.parametrize("form", FORMS)
@given(data=st.binary(max_size=200))
def test_bytes_that_are_not_compressed_are_refused(form: str, data: bytes) -> None:
    with contextlib.suppress(Undecodable):
        assert isinstance(decompressor(form, 1000)(data), bytes)


@pytest.mark.parametrize("form", FORMS)
def test_a_value_longer_than_allowed_is_not_unpacked(form: str) -> None:
    bomb = pack(form, bytes(100_000_000))
    assert len(bomb) < 5_000_000
    default = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(default)
    pyarrow.set_memory_pool(pool)
    try:
        with pytest.raises(
            Undecodable, match=f"is longer than 1000 bytes when unpacked from {form}"
        ):
            decompressor(form, 1000)(bomb)
    finally:
        pyarrow.set_memory_pool(default)
    assert pool.max_memory() < 10_000_000


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_was_cut_is_refused(form: str) -> None:
    whole = pack(form, b"a value of some length" * 10)
    for cut in (b"", whole[:-1], whole[: len(whole) // 2]):
        with pytest.raises(Undecodable):
            decompressor(form, 1000)(cut)


def payload(*header: str, **more: Any) -> Payload:
    return Payload("csv", "line", header=header, **more)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_records_are_read_as_they_were_written(values: list[str]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow(values)
    names = [f"c{n}" for n in range(len(values))]
    assert csv_decoder(payload(*names))(out.getvalue().encode()) == values


@given(st.binary())
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    row = csv_row(payload("a", "b"), ["a"], True)(data)
    assert (row.problem is None) == (row.values is not None and len(row.values) == 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("1", "has 1 values, not 2"),
        ('"1,2', "is not CSV: unexpected end of data"),
        ('"1"2,3', "is not CSV: ',' expected after '\"'"),
        ("1,2\n3,4", "has 2 records of CSV, not 1"),
    ],
)
def test_what_is_no_record_is_told(text: str, problem: str) -> None:
    assert csv_row(payload("a", "b"), ["a"], False)(text.encode()) == Row(f"field 'line' {problem}")


def test_values_without_a_column_are_kept_if_asked() -> None:
    read = csv_row(payload("a", "b", compression="gzip"), ["b"], True)
    assert read(gzip.compress(b"1,2\n")) == Row(None, [b"1", b"2"], [("a", "1")])
    assert read(b"1,2") == Row("field 'line' is not gzip")
