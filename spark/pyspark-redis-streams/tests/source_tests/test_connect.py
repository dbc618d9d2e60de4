"""A client of Spark Connect, which has no Java, reads and writes streams with the data source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_status", reason="needs grpcio-status, as Spark Connect does")

from source_tests.backends import Backend
from tests.support.process import PYTHON_PATH

LIMIT_S = 240

CODE = """
import sys
from pyspark.sql import SparkSession
from pyspark_redis_streams import RedisStreamsSource

url, folder = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__ == "pyspark.sql.connect.session"
spark.dataSource.register(RedisStreamsSource)

def once(frame, kind, name, **options):
    options["checkpointLocation"] = f"{folder}/checkpoint-{name}"
    writer = frame.writeStream.format(kind).options(**options).trigger(availableNow=True)
    writer.start().awaitTermination()

orders = {"url": url, "subscribe": "orders", "startingOffsets": "earliest"}
columns = "id string, item string, qty int"
batch = spark.read.format("redis-streams").schema(columns).options(**orders).load()
print([tuple(row)[1:] for row in batch.orderBy("id").collect()])
batch.select("item").write.format("redis-streams").options(url=url, stream="items").mode(
    "append"
).save()
entries = spark.readStream.format("redis-streams").options(**orders).load()
once(entries, "parquet", "files", path=f"{folder}/files")
once(entries.select("fields"), "redis-streams", "copy", url=url, stream="copy")
print(spark.read.parquet(f"{folder}/files").count())
spark.stop()
"""


def test_streams_are_read_and_written_in_batches_and_by_queries(tmp_path: Path) -> None:
    with Backend(None) as backend, backend.client() as client:
        for number in range(3):
            client.xadd("orders", {"item": f"ink{number}", "qty": number})
        done = subprocess.run(
            [sys.executable, "-c", CODE, backend.url, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": PYTHON_PATH},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ["[('ink0', 0), ('ink1', 1), ('ink2', 2)]", "3"]
        assert client.xlen("items") == client.xlen("copy") == 3
