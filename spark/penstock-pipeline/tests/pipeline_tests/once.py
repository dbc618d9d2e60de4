"""Runs pipelines in the process of the tests, with their one Spark session."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.dataset
from pyspark.sql import SparkSession
from rich.console import Console

from penstock_pipeline.model import Pipeline
from penstock_pipeline.queries import queries
from penstock_pipeline.report import Reporter
from penstock_pipeline.runs import Run, Stopping, follow


class Once:
    """What a run over everything that is there has reported."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self._shown, self._records = io.StringIO(), io.StringIO()
        found = queries(spark, pipeline)
        names = [query.name for query in found]
        console = Console(file=self._shown, width=200)
        with Reporter(console, pipeline.name, [self._records], names) as reporter:
            runs = [Run(query, pipeline.retry, True, reporter) for query in found]
            try:
                follow(runs, Stopping())
            finally:
                for run in runs:
                    run.stop()
        shown = self._shown.tell()
        reporter.summary()
        self.summary = self._shown.getvalue()[shown:].splitlines()
        """What people see at the end."""

    @property
    def lines(self) -> list[str]:
        """What people see."""
        return self._shown.getvalue().splitlines()

    @property
    def batches(self) -> list[dict[str, Any]]:
        """What machines see of batches."""
        return [record for record in self.records if record["kind"] == "batch"]

    @property
    def records(self) -> list[dict[str, Any]]:
        """What machines see."""
        return [json.loads(line) for line in self._records.getvalue().splitlines()]


def rows(folder: str | Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table of Parquet, as any reader sees it, in order."""
    table = pyarrow.dataset.dataset(folder, partitioning="hive").to_table(list(columns))
    return sorted(tuple(row.values()) for row in table.to_pylist())
