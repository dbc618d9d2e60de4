"""The three distributions as their wheels, in environments that have nothing of the others.

One environment grows: the data source alone, the pipeline with it, then the server beside both; a
second one has the server alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from source_tests.backends import Backend, find_programs
from tests.support.process import ROOT, printed_by

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOURCES = {
    "pyspark_redis_streams": ROOT / "spark" / "pyspark-redis-streams",
    "penstock_pipeline": ROOT / "spark" / "penstock-pipeline",
    "penstock_server": ROOT,
}
"""The folder of each distribution, by the name of its wheel."""

BUILT_WITHOUT = {"build", "dist", "tests", "docs", "examples", "spark"}
"""What is at the top of a distribution and not needed to build it."""

READ = """
import json, os, sys
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.format("redis-streams").option("url", sys.argv[1]).option("subscribe", "orders")
rows = frame.schema("id string, item string, qty int").load().collect()
print(json.dumps([list(row) for row in rows]))
"""

PIPELINE = """
[source]
url = "{url}"
subscribe = "orders"
starting_offsets = "earliest"

[parse.columns]
item = "string"
qty = "int"

[dead_letters]
stream = "orders-dead"

[[sink]]
type = "parquet"
path = "lake"

[checkpoint]
path = "checkpoint"
"""

IDS = ("1-1", "1-2")
MODULES = ("pyspark_redis_streams", "penstock_pipeline", "penstock", "server", "pyspark")


class Environment:
    """An environment of Python that begins empty, and finds no compiler."""

    def __init__(self, folder: Path) -> None:
        printed_by(sys.executable, "-m", "venv", folder, cwd=folder)
        self.folder = folder
        self.bin = folder / "bin"

    def install(self, *wanted: str) -> None:
        """Installs wheels, with their extras."""
        pip = (self.bin / "python", "-m", "pip", "--disable-pip-version-check", "install")
        printed_by(*pip, "--quiet", *wanted, cwd=self.folder, CC="false", PYTHONPATH="")

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end, with nothing of the checkout on its path."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PYTHONPATH": "", "PATH": path}
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )

    def there(self) -> list[str]:
        """Which of the modules can be imported."""
        program = "import importlib.util as u, sys; print(*filter(u.find_spec, sys.argv[1:]))"
        done = self.run(self.bin / "python", "-c", program, *MODULES, cwd=self.folder)
        return done.stdout.split()

    def distributions(self) -> set[str]:
        """The names of what is installed."""
        listing = (self.bin / "python", "-m", "pip", "list", "--format=json")
        done = self.run(*listing, cwd=self.folder)
        return {each["name"].lower() for each in json.loads(done.stdout)}


def not_needed(folder: str, names: list[str]) -> set[str]:
    """What of a folder building does without; a folder of sources may be called `build`."""
    hidden = {name for name in names if name.startswith(".") or name == "__pycache__"}
    return hidden | (BUILT_WITHOUT & {*names} if Path(folder) in SOURCES.values() else set())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The path of each wheel, built from a copy, as building leaves files behind."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("only a checkout has the sources")
    folder = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    found = {}
    for name, source in SOURCES.items():
        copy = folder / name
        shutil.copytree(source, copy, ignore=not_needed)
        command = (*pip, "--no-deps", "--wheel-dir", folder, copy)
        printed_by(*command, cwd=folder, PENSTOCK_COMPILE="0")
        (wheel,) = folder.glob(f"{name}-*.whl")
        found[name] = str(wheel)
    return found


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment that one distribution after the other is installed in."""
    return Environment(tmp_path_factory.mktemp("growing"))


@pytest.fixture
def redis() -> Iterator[Backend]:
    """A real Redis with two entries."""
    programs = find_programs()
    program = next((programs[name] for name in programs if name.startswith("redis")), None)
    if program is None:
        pytest.skip("no redis-server is there; PENSTOCK_REFERENCE_SERVERS names a folder with one")
    with Backend(program) as backend:
        with backend.client() as client:
            client.xadd("orders", {"item": "tea", "qty": "2"}, id=IDS[0])
            client.xadd("orders", {"item": "ink", "qty": "3"}, id=IDS[1])
        yield backend


def run_pipeline(environment: Environment, folder: Path, url: str, *command: str) -> None:
    """Runs a pipeline once, twice: the second time there is nothing left to do."""
    file = folder / "orders.toml"
    file.write_text(PIPELINE.format(url=url))
    for _ in range(2):
        words = (*command[1:], "run", str(file), "--once")
        done = environment.run(environment.bin / command[0], *words, cwd=folder)
        assert done.returncode == 0, done.stderr
    program = "import pyarrow.parquet as p; print(*p.read_table('lake')['item'].to_pylist())"
    done = environment.run(environment.bin / "python", "-c", program, cwd=folder)
    assert sorted(done.stdout.split()) == ["ink", "tea"], done.stderr


def test_the_data_source_reads_a_real_redis_where_there_is_nothing_else(
    wheels: dict[str, str], growing: Environment, redis: Backend, tmp_path: Path
) -> None:
    growing.install(f"{wheels['pyspark_redis_streams']}[spark]")
    assert growing.there() == ["pyspark_redis_streams", "pyspark"]
    done = growing.run(growing.bin / "python", "-c", READ, redis.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)) == [["1-1", "tea", 2], ["1-2", "ink", 3]]


def test_the_pipeline_runs_where_there_is_no_server(
    wheels: dict[str, str], growing: Environment, redis: Backend, tmp_path: Path
) -> None:
    growing.install(wheels["pyspark_redis_streams"], f"{wheels['penstock_pipeline']}[spark]")
    assert growing.there() == ["pyspark_redis_streams", "penstock_pipeline", "pyspark"]
    run_pipeline(growing, tmp_path, redis.url, "penstock-pipeline")


def test_beside_the_server_its_command_runs_the_pipeline(
    wheels: dict[str, str], growing: Environment, redis: Backend, tmp_path: Path
) -> None:
    growing.install(*(wheels[name] for name in SOURCES))
    assert set(growing.there()) >= {"pyspark_redis_streams", "penstock_pipeline", "penstock"}
    run_pipeline(growing, tmp_path, redis.url, "penstock", "pipeline")
    done = growing.run(growing.bin / "penstock", "pipeline", "--help", cwd=tmp_path)
    assert done.stdout.startswith("usage: penstock-pipeline [-h] COMMAND ...\n")


def test_the_server_alone_brings_nothing_of_spark_and_says_how_to_have_a_pipeline(
    wheels: dict[str, str], tmp_path: Path
) -> None:
    environment = Environment(tmp_path)
    environment.install(wheels["penstock_server"])
    assert environment.there() == ["penstock"]
    assert not {"pyspark", "pyarrow", "pandas", "py4j"} & environment.distributions()
    done = environment.run(environment.bin / "penstock", "pipeline", "run", "p.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "penstock pipeline is in penstock-pipeline, which is not installed for this Python: "
        "install its wheel and that of pyspark-redis-streams with"
        f" {environment.bin}/python -m pip\n"
    )
