"""Three servers into a Delta and an Iceberg table, by a cluster of which processes are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pandas
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from pipeline_tests.commands import kill, process, write
from pipeline_tests.conftest import SPARK_SETTINGS
from pipeline_tests.test_processes import more_batches
from source_tests.backends import Backend
from source_tests.conftest import LEAN
from source_tests.standalone import standalone_cluster
from tests.support.process import PYTHON_PATH
from tests.support.wire import wait_until

LIMIT_S = 600
STREAMS = ("a", "b", "c")
ENTRIES = 400
"""How many each stream gets each time."""
KILLS = int(os.environ.get("PENSTOCK_PIPELINE_KILLS", "1"))
"""Of a driver, and as many of an executor."""

SETTINGS = {
    **SPARK_SETTINGS,
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": LEAN,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


class Lakes(NamedTuple):
    """Three servers, what has been published there, and the pipeline that reads it."""

    servers: list[Backend]
    published: list[tuple[str, str, int, str]]
    """Stream, key, value and operation of each entry."""
    file: Path
    folder: Path
    workers: Path


def _text(urls: str, dead: str, folder: Path) -> str:
    conf = "".join(f'"{name}" = "{value}"\n' for name, value in SETTINGS.items())
    rows = 'keys = ["key"]\ndelete_when = "op = \'d\'"\n'
    rows += 'without = ["op", "id", "stream", "timestamp"]\ncompact_every = 4\n'
    catalog = f'type = "sql", uri = "sqlite:///{folder}/catalog.db", warehouse = "{folder}/lake"'
    return f"""\
[source]
url = "{urls}"
subscribe = "{",".join(STREAMS)}"
starting_offsets = "earliest"
max_offsets_per_trigger = 200
min_partitions = 4
[parse.columns]
key = {{ type = "string", required = true }}
value = "int"
op = "string"
[dead_letters]
url = "{dead}"
stream = "dead"
[[sink]]
name = "delta"
type = "delta"
path = "delta"
{rows}
[[sink]]
name = "iceberg"
type = "iceberg"
table = "shop.stock"
catalog = {{ {catalog} }}
{rows}
[checkpoint]
path = "checkpoint"
[trigger]
every = "200 milliseconds"
[retry]
attempts = 10
[metrics]
file = "metrics.jsonl"
[spark.conf]
{conf}"""


@pytest.fixture
def lakes(tmp_path: Path) -> Iterator[Lakes]:
    """The servers of each stream are different ones."""
    with ExitStack() as stack:
        servers = [stack.enter_context(Backend(None)) for _ in STREAMS]
        urls = ",".join(server.url for server in servers)
        file = write(tmp_path, _text(urls, servers[0].url, tmp_path))
        workers = tmp_path / "cluster"
        workers.mkdir()
        yield Lakes(servers, [], file, tmp_path, workers)


def publish(lakes: Lakes, choice: random.Random) -> None:
    """More entries for each stream: keys come again and again, and some are removed."""
    for stream, server in zip(STREAMS, lakes.servers, strict=True):
        with server.client() as client, client.pipeline(transaction=False) as pipeline:
            for _ in range(ENTRIES):
                key = f"{stream}-{choice.randrange(60)}"
                value, op = choice.randrange(10**6), choice.choice("uuuud")
                pipeline.xadd(stream, {"key": key, "value": value, "op": op})
                lakes.published.append((stream, key, value, op))
            pipeline.execute()


def expected(lakes: Lakes) -> list[tuple[str, int]]:
    """What pandas makes of all that was published: the last row of each key, unless removed."""
    frame = pandas.DataFrame(lakes.published, columns=["stream", "key", "value", "op"])
    last = frame.groupby("key").last().reset_index()
    kept = last[last["op"] != "d"]
    return sorted(zip(kept["key"], (int(value) for value in kept["value"]), strict=True))


def pairs(frame: pandas.DataFrame) -> list[tuple[str, int]]:
    """The rows of a table."""
    assert sorted(frame.columns) == ["key", "value"]
    return sorted(zip(frame["key"], (int(value) for value in frame["value"]), strict=True))


def executors(workers: Path) -> list[int]:
    """The processes of executors of the cluster."""
    found = []
    for process_folder in Path("/proc").glob("[0-9]*"):
        try:
            program = (process_folder / "cmdline").read_bytes()
            where = os.readlink(process_folder / "cwd")
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in program and where.startswith(str(workers)):
            found.append(int(process_folder.name))
    return found


def test_two_lakes_hold_what_pandas_makes_of_three_streams_after_kills(lakes: Lakes) -> None:
    choice = random.Random(11)
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with standalone_cluster(PYTHON_PATH, lakes.workers) as master:
        run = ("run", lakes.file, "--master", master)
        for _ in range(KILLS):
            publish(lakes, choice)
            running = process(*run, **environment)
            wait_until(more_batches(lakes.folder, choice.randint(1, 3)), LIMIT_S)
            for pid in choice.sample(executors(lakes.workers), 1):
                os.kill(pid, signal.SIGKILL)
            wait_until(more_batches(lakes.folder, choice.randint(1, 3)), LIMIT_S)
            time.sleep(choice.uniform(0, 0.5))
            kill(running)
        publish(lakes, choice)
        ended = process(*run, "--once", **environment)
        _, err = ended.communicate(timeout=LIMIT_S)
        assert ended.returncode == 0, err
    wanted = expected(lakes)
    assert pairs(DeltaTable(lakes.folder / "delta").to_pandas()) == wanted
    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{lakes.folder}/catalog.db")
    assert pairs(catalog.load_table("shop.stock").scan().to_pandas()) == wanted
    with lakes.servers[0].client() as client:
        assert client.exists("dead") == 0
