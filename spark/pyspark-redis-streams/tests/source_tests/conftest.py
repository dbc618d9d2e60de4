"""What tests of the data source share: servers, a Spark session, and reads with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.process import PYTHON_PATH
from tests.support.spark_folder import SparkFolder

PLAIN = (
    *("test_arrow", "test_fetching", "test_filters", "test_gc_paused", "test_group_loss"),
    *("test_group_planner", "test_group_position", "test_group_uncounted", "test_ids"),
    *("test_limits", "test_loss", "test_offsets", "test_offsets_planner", "test_options"),
    *("test_polling", "test_progress", "test_ranges", "test_servers", "test_split_points"),
    *("test_urls", "test_writer"),
)
"""Files of tests that need no Java."""

FOLDER = SparkFolder(__file__, ("pyspark", "pyarrow", "pandas", "redis"), PLAIN)

collect_ignore_glob = FOLDER.ignored
pytest_collection_modifyitems = FOLDER.mark
pytest_terminal_summary = FOLDER.tell

if TYPE_CHECKING:
    import redis
    from pyspark.sql import SparkSession

    from source_tests.backends import Backend


if not FOLDER.missing:
    from source_tests.backends import find_programs

    PROGRAMS: dict[str, str | None] = {"penstock": None, **find_programs()}
else:
    PROGRAMS = {}


@contextmanager
def running(program: str | None) -> Iterator[Backend]:
    """A server for a whole run, on whose program it depends how it is started."""
    from source_tests.backends import Backend

    with Backend(program) as backend:
        yield backend


@pytest.fixture(scope="session", params=list(PROGRAMS))
def each_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """One server after the other."""
    with running(PROGRAMS[request.param]) as backend:
        yield backend


@pytest.fixture(scope="session")
def penstock_backend() -> Iterator[Backend]:
    """Penstock alone, for what is the same on all servers."""
    with running(None) as backend:
        yield backend


@contextmanager
def _emptied(backend: Backend) -> Iterator[redis.Redis]:
    with backend.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def on_each(each_backend: Backend) -> Iterator[redis.Redis]:
    """A client of an empty server of each kind."""
    with _emptied(each_backend) as client:
        yield client


@pytest.fixture
def server(penstock_backend: Backend) -> Iterator[redis.Redis]:
    """A client of an empty Penstock."""
    with _emptied(penstock_backend) as client:
        yield client


@pytest.fixture
def url(penstock_backend: Backend) -> str:
    """The URL of ``server``."""
    return penstock_backend.url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole run: starting it takes longer than most of the tests."""
    from pyspark.sql import SparkSession

    # Spark looks for data sources in what its workers can import.
    os.environ["PYTHONPATH"] = os.pathsep.join([PYTHON_PATH, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,3]").appName("tests")
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    folder = str(tmp_path_factory.mktemp("warehouse"))
    session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def installed_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the project has been installed, as users install it."""
    from source_tests.standalone import install

    return install(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def standalone_master_url(
    installed_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a Spark standalone master with two workers, for all who need a cluster."""
    from source_tests.standalone import standalone_cluster

    with standalone_cluster(installed_package, tmp_path_factory.mktemp("cluster")) as url:
        yield url


LEAN = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""What makes a Java process start in half the time, as most of them here do not live long."""

SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": LEAN,
    # As docs/spark.md recommends.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.streaming.pollingDelay": "50",
}

Read = Callable[..., Any]


@pytest.fixture
def read(spark: SparkSession, url: str) -> Read:
    """Reads a batch with the given options from ``server``."""

    def run(schema: str | None = None, **options: Any) -> Any:
        reader = spark.read.format("redis-streams").options(**{"url": url, **options})
        return (reader.schema(schema) if schema else reader).load()

    return run
