"""What tests of pipelines share: a server, a Spark session, and pipelines written to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.process import PYTHON_PATH
from tests.support.spark_folder import SparkFolder

PLAIN = (
    *("test_arrow_rows", "test_progress", "test_redrive", "test_sinks", "test_toml_lines"),
    *("test_values", "test_values_debezium", "test_values_decoders", "test_values_registry"),
    "test_values_types",
)
"""Files of tests that need no Java."""

FOLDER = SparkFolder(__file__, ("pyspark", "pyarrow", "pandas", "redis", "rich"), PLAIN)

collect_ignore_glob = FOLDER.ignored
pytest_collection_modifyitems = FOLDER.mark
pytest_terminal_summary = FOLDER.tell

if TYPE_CHECKING:
    import redis
    from pyspark.sql import SparkSession

    from penstock_pipeline.model import Pipeline
    from penstock_pipeline.sinks.base import Sink
    from pipeline_tests.commands import Command
    from source_tests.backends import Backend

ROOT = Path(__file__).parents[2]
"""The folder of the distribution."""

SPARK_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Dderby.stream.error.file=/dev/null",
    "spark.sql.streaming.pollingDelay": "50",
}
"""What makes Spark start faster and need less."""


@pytest.fixture(scope="session")
def backend() -> Iterator[Backend]:
    """A Penstock for the whole run."""
    from source_tests.backends import Backend

    with Backend(None) as backend:
        yield backend


@pytest.fixture
def server(backend: Backend) -> Iterator[redis.Redis]:
    """A client of the Penstock, which is empty."""
    with backend.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def url(backend: Backend) -> str:
    """The URL of ``server``."""
    return backend.url


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for the whole run, as a pipeline starts it."""
    from penstock_pipeline.model import Pipeline, Retry
    from penstock_pipeline.supervise import start

    os.environ["PYTHONPATH"] = os.pathsep.join([PYTHON_PATH, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    pipeline = Pipeline(
        name="tests",
        file=ROOT,
        source={},
        parse=None,
        dead_letters=None,
        transforms=(),
        sinks=(),
        checkpoint="",
        every="1 second",
        metrics=None,
        retry=Retry(),
        master="local[2]",
        spark=SPARK_SETTINGS,
    )
    session = start(pipeline)
    yield session
    session.stop()


@pytest.fixture
def write(spark: SparkSession) -> Callable[..., None]:
    """Writes rows to a sink as a batch of the query ``q``."""
    from penstock_pipeline.sinks.base import Batch

    def call(
        sink: Sink, number: int, rows: list[Any], columns: str = "k int, v string", end: str = ""
    ) -> None:
        frame = spark.createDataFrame(rows, columns)
        sink.check(frame)
        sink.write(frame, Batch("q", number, ordered=True, end=end))

    return call


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL for a file of tests."""
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    from pipeline_tests.databases import postgres

    with postgres() as url:
        yield url


@pytest.fixture(scope="module")
def mariadb_url() -> Iterator[str]:
    """The URL of a MariaDB for a file of tests."""
    pytest.importorskip("pymysql", reason="needs the extra `mysql`")
    from pipeline_tests.databases import mariadb

    with mariadb() as url:
        yield url


Load = Callable[..., "Pipeline"]


@pytest.fixture
def load_text(tmp_path: Path) -> Load:
    """Reads a pipeline from a text, with the given environment."""
    from penstock_pipeline.file import load

    def read(text: str, **environment: str) -> Pipeline:
        file = tmp_path / "p.toml"
        file.write_text(text, encoding="utf-8")
        return load(file, environment)

    return read


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands of ``penstock-pipeline``."""
    from pipeline_tests.commands import Command

    return Command(capsys)
