"""A real cluster: the package is installed there, found by itself, and works on its executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from source_tests.backends import Backend
from source_tests.conftest import LEAN, SPARK_SETTINGS
from source_tests.driving import contents

ROWS = 4000
PROGRAM = Path(__file__).with_name("visiting.py")

CLUSTER_SETTINGS = {
    **SPARK_SETTINGS,
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": LEAN,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


class Visit(NamedTuple):
    """What a driver program has left behind."""

    told: dict[str, Any]
    client: redis.Redis


@pytest.fixture(scope="module")
def visit(
    installed_package: Path,
    standalone_master_url: str,
    penstock_backend: Backend,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Visit]:
    """The program of ``visiting.py``, run with the installed package and nothing of this tree."""
    folder = tmp_path_factory.mktemp("visit")
    settings = {
        "master": standalone_master_url,
        "url": penstock_backend.url,
        "checkpoint": str(folder / "checkpoint"),
        "conf": CLUSTER_SETTINGS,
    }
    with penstock_backend.client() as client:
        client.flushall()
        with client.pipeline(transaction=False) as pipeline:
            for number in range(ROWS):
                pipeline.xadd("s", {"n": number, "padding": "x" * 500}, id=f"{number + 1}-1")
            pipeline.execute()
        ended = subprocess.run(
            [sys.executable, str(PROGRAM), json.dumps(settings)],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(installed_package),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        yield Visit(json.loads(ended.stdout.splitlines()[-1]), client)


def numbers(client: redis.Redis, key: str) -> list[int]:
    return sorted(int(fields[b"n"]) for _, fields in contents(client, key))


def test_driver_and_executors_import_what_was_installed(
    visit: Visit, installed_package: Path
) -> None:
    module = str(installed_package / "pyspark_redis_streams" / "__init__.py")
    assert visit.told == {"here": module, "there": [module, module]}


def test_a_batch_is_read_and_written_by_the_executors(visit: Visit) -> None:
    assert numbers(visit.client, "batch") == list(range(ROWS))


def test_a_second_attempt_of_a_slow_task_writes_nothing_twice(visit: Visit) -> None:
    assert numbers(visit.client, "copy") == list(range(ROWS))
    assert visit.client.xinfo_stream("copy")["iids-duplicates"] > 0, "there was a second attempt"
