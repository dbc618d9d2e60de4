"""What tests of pipelines share: a server, a Spark session, and pipelines written to files."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

NEEDED = ("pyspark", "pyarrow", "pandas", "redis", "rich")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

collect_ignore_glob = ["test_*.py"] if MISSING else []

if TYPE_CHECKING:
    import redis
    from pyspark.sql import SparkSession

    from pipeline.definition import Pipeline
    from tests.pipeline.commands import Command
    from tests.spark.backends import Backend

ROOT = Path(__file__).parents[2]

SPARK_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Dderby.stream.error.file=/dev/null",
    "spark.sql.streaming.pollingDelay": "50",
}
"""What makes Spark start faster and need less."""


def pytest_configure(config: pytest.Config) -> None:
    """Names the mark by which a run can leave these tests out."""
    config.addinivalue_line("markers", "spark: needs the extra `spark`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("spark")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says aloud that nothing here was run."""
    if MISSING:
        names = ", ".join(MISSING)
        terminalreporter.section("tests/pipeline left out", yellow=True)
        terminalreporter.line(f"not installed: {names}; install the extra `spark` to run them")


@pytest.fixture(scope="session")
def backend() -> Iterator[Backend]:
    """A Penstock for the whole run."""
    from tests.spark.backends import Backend

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
    from pipeline.definition import Pipeline, Retry
    from pipeline.session import start

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
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


Load = Callable[..., "Pipeline"]


@pytest.fixture
def load_text(tmp_path: Path) -> Load:
    """Reads a pipeline from a text, with the given environment."""
    from pipeline.loading import load

    def read(text: str, **environment: str) -> Pipeline:
        file = tmp_path / "p.toml"
        file.write_text(text, encoding="utf-8")
        return load(file, environment)

    return read


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands of ``penstock pipeline``."""
    from tests.pipeline.commands import Command

    return Command(capsys)
