"""The demo of an installed package, as a process in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from penstock.pipeline.demo import expected
from tests.pipeline.conftest import ROOT

LIMIT_S = 300


def test_the_demo_shows_a_table_that_is_right(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.pipeline", "demo", "--out", "shown"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    rows = len(expected())
    assert f"{tmp_path}/shown/tables/hours has {rows} rows, which is right:" in lines
    assert "20 dead letters are in the stream 'orders-dead', with the reason in each" in lines
    assert (tmp_path / "shown/orders.toml").exists()
