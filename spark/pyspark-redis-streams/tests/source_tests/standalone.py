"""A Spark standalone cluster on the loopback: a master and two workers, and the package for them.

The shell scripts that start these come with Spark's own distribution and not with PySpark, so the
classes are started as the scripts would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from source_tests.conftest import LEAN
from tests.support.ports import free_port

START_TIMEOUT_S = 90.0

MASTER_HOST = "127.0.0.1"
WORKER_HOSTS = ("127.0.0.1", "127.0.0.2")
"""Two, because Spark makes no second attempt of a slow task on the same host."""

DISTRIBUTION = Path(__file__).parents[2]
"""The folder of the data source."""

NOT_INSTALLED = ("tests", "docs", "examples", "build", "*.egg-info", "__pycache__")
"""What a copy of it can do without."""


def install(folder: Path) -> Path:
    """Installs the data source as a user does, into a new folder; returns where modules are."""
    source, target = folder / "source", folder / "installed"
    # Building leaves files behind, so it is done on a copy.
    shutil.copytree(DISTRIBUTION, source, ignore=shutil.ignore_patterns(*NOT_INSTALLED))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--no-deps", "--target", str(target), str(source)]
    subprocess.run(command, check=True)
    return target


@contextmanager
def standalone_cluster(python_path: str | Path, folder: Path) -> Iterator[str]:
    """A cluster whose executors find modules in ``python_path``; gives the URL of its master."""
    port = free_port()
    url = f"spark://{MASTER_HOST}:{port}"
    log = folder / "master.log"
    with ExitStack() as stack:
        stack.enter_context(
            _running("master.Master", MASTER_HOST, ["--port", str(port)], python_path, log)
        )
        _wait_for(log, "I have been elected leader", 1)
        for number, host in enumerate(WORKER_HOSTS):
            work = ["--work-dir", str(folder / f"worker-{number}")]
            options = ["--cores", "1", "--memory", "700m", *work, url]
            worker_log = folder / f"worker-{number}.log"
            stack.enter_context(_running("worker.Worker", host, options, python_path, worker_log))
        _wait_for(log, "Registering worker", len(WORKER_HOSTS))
        yield url


@contextmanager
def _running(
    name: str, host: str, options: list[str], python_path: str | Path, log: Path
) -> Iterator[None]:
    home = _spark_home()
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "200m",
        "SPARK_DAEMON_JAVA_OPTS": LEAN,
        "PYTHONPATH": str(python_path),
    }
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*program, "--host", host, "--webui-port", "0", *options],
            cwd=log.parent,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        # On SIGTERM a worker ends its executors as well.
        process.terminate()
        process.wait()


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _wait_for(log: Path, words: str, times: int) -> None:
    """Returns when a log says something that often."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while log.read_text().count(words) < times:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log.name} does not say '{words}': {log.read_text()[-2000:]}")
        time.sleep(0.1)
