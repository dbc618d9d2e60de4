"""Tables in a storage of objects, as S3 is, with a server that speaks its protocol."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("deltalake", reason="needs the extra `delta`")
pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")
pytest.importorskip("moto", reason="needs the extra `test`")

import redis
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from pipeline_tests.conftest import Load
from pipeline_tests.databases import START_S
from pipeline_tests.once import Once
from pipeline_tests.pipelines import PATIENT, fill, forget_commits, head
from tests.support.ports import free_port


@contextmanager
def storage() -> Iterator[str]:
    """The URL of a storage with a bucket ``lake``.

    It is a process of its own: what writes to it may keep this one from running meanwhile.
    """
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(f"{url}/lake")
        yield url
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str) -> None:
    """Makes it as soon as the storage answers."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            urlopen(Request(url, method="PUT")).close()
            return
        except URLError:
            assert time.monotonic() < deadline, "the storage does not start"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of a storage for a file of tests."""
    with storage() as url:
        yield url


def delta_options(s3: str) -> dict[str, str]:
    return {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
        "aws_endpoint_url": s3,
        "aws_allow_http": "true",
    }


def iceberg_options(s3: str, folder: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": "s3://lake/warehouse",
        "s3.endpoint": s3,
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
    }


def table_of(options: dict[str, str]) -> str:
    """The options as a table of TOML."""
    return "{ " + ", ".join(f'"{key}" = "{text}"' for key, text in options.items()) + " }"


def test_tables_are_kept_in_s3_also_when_batches_are_repeated(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, s3: str, tmp_path: Path
) -> None:
    of_delta, of_iceberg = delta_options(s3), iceberg_options(s3, tmp_path)
    pipeline = load_text(f"""{head(url)}{PATIENT}
[[sink]]
name = "delta"
type = "delta"
path = "s3://lake/items"
storage = {table_of(of_delta)}
compact_every = 2
keys = ["item"]
[[sink]]
name = "iceberg"
type = "iceberg"
table = "shop.items"
catalog = {table_of(of_iceberg)}
keys = ["item"]
""")

    def kept() -> list[list[tuple[Any, ...]]]:
        delta = DeltaTable("s3://lake/items", storage_options=of_delta)
        iceberg = load_catalog("default", **of_iceberg).load_table("shop.items")
        tables = (delta.to_pyarrow_table(), iceberg.scan().to_arrow())
        return [sorted((row["item"], row["qty"]) for row in table.to_pylist()) for table in tables]

    fill(server, ("a", 1, "00:00:00"), ("b", 2, "00:00:00"))
    Once(spark, pipeline)
    fill(server, ("a", 3, "00:00:00"))
    Once(spark, pipeline)
    assert kept() == [[("a", 3), ("b", 2)]] * 2
    for name in ("delta", "iceberg"):
        forget_commits(tmp_path / "checkpoint" / name)
    fill(server, ("c", 4, "00:00:00"))
    Once(spark, pipeline)
    assert kept() == [[("a", 3), ("b", 2), ("c", 4)]] * 2


def test_a_storage_that_refuses_is_told_in_a_sentence(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, s3: str
) -> None:
    from penstock_pipeline.errors import PipelineError

    fill(server, ("a", 1, "00:00:00"))
    options = table_of(delta_options(s3))
    sink = f'[[sink]]\ntype = "delta"\npath = "s3://nowhere/items"\nstorage = {options}\n'
    text = f"{head(url)}{PATIENT}{sink}".replace("attempts = 5", "attempts = 0")
    with pytest.raises(PipelineError) as caught:
        Once(spark, load_text(text))
    assert str(caught.value) == (
        "entries: sink 'entries': Generic S3 error: NoSuchBucket: The specified bucket does not "
        "exist"
    )
