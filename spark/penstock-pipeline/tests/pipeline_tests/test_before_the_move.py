"""A pipeline whose checkpoint and table were made while its package belonged to the server's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import redis

from pipeline_tests.once import rows
from source_tests.driving import contents
from tests.support.process import PYTHON_PATH

BEFORE = Path(__file__).parent / "data" / "before"
"""A pipeline of four entries, 1-1 to 4-1, of which the last one was no row; without its server."""


def test_it_runs_on_from_its_checkpoint(server: redis.Redis, url: str, tmp_path: Path) -> None:
    shutil.copytree(BEFORE, tmp_path, dirs_exist_ok=True)
    for number in range(1, 4):
        server.xadd("orders", {"item": "tea", "qty": number}, id=f"{number}-1")
    server.xadd("orders", {"item": "ink", "qty": "many"}, id="4-1")
    server.xadd("orders", {"item": "pen", "qty": 5}, id="5-1")
    server.xadd("orders", {"item": "pen", "qty": "few"}, id="6-1")
    environment = {**os.environ, "PYTHONPATH": PYTHON_PATH, "REDIS_URL": url}
    command = [sys.executable, "-m", "penstock_pipeline", "run", "orders.toml", "--once"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rows(tmp_path / "lake", "item", "qty") == [
        ("pen", 5),
        ("tea", 1),
        ("tea", 2),
        ("tea", 3),
    ]
    letters = contents(server, "orders-dead")
    assert [fields[b"dead-letter-id"] for _, fields in letters] == [b"6-1"]
