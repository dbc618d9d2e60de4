"""Every row once, though drivers and Python workers are killed at random points.

Each kill of a driver costs the start of another one, so the folder's run has twenty kills in all;
``PENSTOCK_SPARK_KILLS`` asks each test for another number.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import redis

from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS, SPARK_SETTINGS
from source_tests.driving import contents
from source_tests.processes import kill_python_worker
from tests.support.process import PYTHON_PATH, ROOT

KILLS = int(os.environ.get("PENSTOCK_SPARK_KILLS", "0"))
ROWS = 3000
"""Entries that are there when the first driver starts. Where a driver has read them all before the
last kill, the next one gets as many again."""

OLDEST = sorted(name for name in PROGRAMS if name.startswith("redis"))[:1]
"""A server without idempotent IDs, if there is one."""

BATCH = 150
LIMIT_S = 600


class Driver:
    """A driver process in a group of its own, with its Java and Python children."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.errors = Path(settings["folder"]) / "errors.txt"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "source_tests.following", json.dumps(settings)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PYTHON_PATH, "PYSPARK_PYTHON": sys.executable},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def batches(self) -> Iterator[int]:
        """The rows of each batch, as the driver tells them."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, *numbers = line.split()
            if word == "batch":
                yield int(numbers[1])

    def kill(self) -> None:
        """Kills everything at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill_worker(self, choice: random.Random) -> None:
        """Kills one of the Python workers of its tasks."""
        kill_python_worker(self.process.pid, choice)

    def failure(self) -> str:
        """What it has said about what went wrong."""
        return self.errors.read_text()[-3000:]

    def wait(self) -> int:
        """The status in the end."""
        assert self.process.stdout is not None
        self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(LIMIT_S)


def fill(client: redis.Redis, rows: int = ROWS) -> None:
    """Adds entries to be read, which go on counting from those that are there."""
    begin = client.xlen("s")
    with client.pipeline(transaction=False) as pipeline:
        for number in range(begin, begin + rows):
            pipeline.xadd("s", {"n": number}, id=f"{number // 7 + 1}-{number % 7 + 1}")
        pipeline.execute()


def settings_of(
    backend: Backend, folder: Path, sink: str = "parquet", **options: str
) -> dict[str, Any]:
    """Settings of a driver."""
    folder.mkdir(exist_ok=True)
    usual = {"minPartitions": "2", "maxOffsetsPerTrigger": str(BATCH)}
    common = {"url": backend.url, "folder": str(folder), "sink": sink, "conf": SPARK_SETTINGS}
    return {**common, "options": {**usual, **options}}


def run_with_kills(client: redis.Redis, settings: dict[str, Any], kills: int, seed: int) -> None:
    """Kills after some batches: two workers, then the driver; lets the last driver finish."""
    choice = random.Random(seed)
    kills = KILLS or kills
    driver = Driver(settings)
    batches = driver.batches()
    for number in range(kills):
        for _ in range(choice.randint(1, 4)):
            while next(batches, None) is None:
                assert driver.wait() == 0, driver.failure()
                fill(client)
                driver = Driver(settings)
                batches = driver.batches()
        # A moment's wait puts the kill somewhere into the batch that follows.
        with contextlib.suppress(subprocess.TimeoutExpired):
            driver.process.wait(choice.uniform(0, 1.0))
        if number % 3 < 2:
            driver.kill_worker(choice)
        else:
            driver.kill()
            driver.wait()
            driver = Driver(settings)
            batches = driver.batches()
    assert driver.wait() == 0, driver.failure()


def ids_in_table(folder: Path) -> list[str]:
    """The IDs in the table, as the log of the file sink says which files count."""
    entries = [
        json.loads(line)
        for log in sorted((folder / "out" / "_spark_metadata").iterdir())
        if not log.name.startswith(".")
        for line in log.read_text().splitlines()[1:]
    ]
    paths = {entry["path"].removeprefix("file://") for entry in entries}
    ids: list[str] = []
    for path in paths:
        ids += pyarrow.parquet.read_table(path, columns=["id"]).column("id").to_pylist()
    return ids


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_a_table_holds_every_entry_once_after_kills(
    penstock_backend: Backend, server: redis.Redis, tmp_path: Path, mode: str
) -> None:
    fill(server)
    group = {"mode": mode, "groupId": "g", "consumerName": "q"}
    settings = settings_of(penstock_backend, tmp_path, **group)
    run_with_kills(server, settings, 7, seed=1)
    ids = ids_in_table(tmp_path)
    assert len(ids) == len(set(ids))
    assert set(ids) == {entry_id.decode() for entry_id, _ in contents(server, "s")}
    (found,) = server.xinfo_groups("s")
    assert found["lag"] == found["pending"] == 0


@pytest.mark.parametrize("each_backend", ["penstock", *OLDEST], indirect=True)
def test_a_copied_stream_holds_every_entry_once_after_kills(
    each_backend: Backend, on_each: redis.Redis, tmp_path: Path
) -> None:
    fill(on_each)
    run_with_kills(on_each, settings_of(each_backend, tmp_path, "copy"), 3, seed=2)
    values = [int(fields[b"n"]) for _, fields in contents(on_each, "copy")]
    assert sorted(values) == list(range(on_each.xlen("s")))


def test_credentials_are_in_no_log(tmp_path: Path) -> None:
    program = PROGRAMS.get("redis-8.0") or PROGRAMS.get("redis-7.0")
    if program is None:
        pytest.skip("no redis-server")
    with Backend(program, "--requirepass", "url-secret") as backend:
        with backend.client(password="url-secret") as client:
            fill(client, 100)
        settings = settings_of(backend, tmp_path, failOnDataLoss="true")
        settings["url"] = f"redis://:url-secret@127.0.0.1:{backend.port}/0"
        settings["log"] = "INFO"
        driver = Driver(settings)
        assert driver.wait() == 0
        with backend.client(password="url-secret") as client:
            client.delete("s")
        driver = Driver(settings)
        assert driver.wait() != 0
        log = driver.errors.read_text()
        assert "stream 's' was deleted" in log
        assert "url-secret" not in log
