"""Values and types that Spark takes and a table of files does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from penstock_pipeline.errors import NotWritable, PipelineError
from penstock_pipeline.sinks.base import Batch
from penstock_pipeline.sinks.delta import DeltaSink
from penstock_pipeline.sinks.iceberg import IcebergSink
from penstock_pipeline.sinks.table import TableSink


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> TableSink:
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="needs the extra `delta`")
        return DeltaSink("s", "t", f"{tmp_path}/t", "append")
    pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"}
    catalog["warehouse"] = f"file://{tmp_path}"
    return IcebergSink("s", "t", "a.b", "append", options=catalog)


@pytest.mark.parametrize("beyond", [253_402_300_800_000_000, -62_135_596_800_000_001, 2**62])
def test_a_time_that_no_reader_knows_is_told_with_its_column(sink: TableSink, beyond: int) -> None:
    times = pa.array([0, beyond]).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(NotWritable) as caught, sink.errors():
        sink._change(sink.open(), pa.table({"at": times}), Batch("q", 0, ordered=True))
    assert str(caught.value) == (
        "sink 's': column 'at' has a time that is not in the years 1 to 9999 in 1 of 2 rows of the "
        f"batch, which type '{sink.kind}' does not take; write CASE WHEN year(`at`) BETWEEN 1 AND "
        "9999 THEN `at` END in SQL, or leave such rows out"
    )


def frame(kind: T.DataType) -> Any:
    return SimpleNamespace(columns=["c"], schema=T.StructType([T.StructField("c", kind)]))


def test_a_type_that_no_table_has_is_told_before_anything_runs(sink: TableSink) -> None:
    with pytest.raises(PipelineError) as caught:
        sink.check(frame(T.DayTimeIntervalType()))
    assert str(caught.value) == (
        f"sink 's': column 'c' is interval day to second, which type '{sink.kind}' does not hold; "
        "cast it to another type in SQL"
    )
    sink.check(frame(T.StringType()))


def test_iceberg_needs_a_type_for_a_column_that_is_null(sink: TableSink) -> None:
    if sink.kind == "delta":
        sink.check(frame(T.NullType()))
        return
    with pytest.raises(PipelineError, match=r"column 'c' is void, which type 'iceberg' does not"):
        sink.check(frame(T.NullType()))
