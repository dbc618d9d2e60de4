"""The parts of clients' own suites that are about what the server has.

The suites come with the source packages of the clients, which ``make test-clients`` unpacks below
``build/suites``. Which cases are run is in lists in ``suites``, with what the others need.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import pytest

from tests.clients.applications import find as find_installed
from tests.clients.suites import find, selection
from tests.support.process import ROOT, PenstockProcess

pytestmark = pytest.mark.slow

LISTS: Final = ROOT / "tests/clients/suites"
TIMEOUT_S: Final = 600

Record = Callable[[str, object], None]
"""Notes a property of the test, which the table of results shows."""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PenstockProcess]:
    """A server whose clients may use DEBUG, as these suites do."""
    settings = "--port", "0", "--enable-debug-command", "yes", "--logfile", "penstock.log"
    with PenstockProcess(*settings, cwd=tmp_path) as process:
        yield process


def run(
    client: str, *options: str, results: Path, python: str = sys.executable, **environment: str
) -> int:
    """Runs the listed cases of a client's suite; returns how many have passed, if none failed."""
    chosen = LISTS / f"{client}.txt"
    path = os.pathsep.join((str(Path(python).parent), os.environ["PATH"]))
    command = [python, "-m", "pytest", "-p", "selection", f"--selection={chosen}"]
    command += ["-p", "no:penstock", "-p", "no:cacheprovider", "--tb=native", "-v"]
    command += [f"--config-file={LISTS / 'pytest.ini'}", "--rootdir=."]
    command += [f"--junit-xml={results}", *options, *selection.read(chosen)[selection.RUN]]
    with (results.parent / "log").open("w+") as log:
        status = subprocess.run(
            command,
            cwd=find(client),
            env={"PATH": path, "PYTHONPATH": str(LISTS), **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        ).returncode
        log.seek(0)
        assert status == 0, log.read()[-20_000:]
    [suite] = ElementTree.parse(results).getroot()
    cases = {name: int(suite.attrib[name]) for name in ("tests", "skipped", "failures", "errors")}
    assert (cases["failures"], cases["errors"]) == (0, 0)
    passed = cases["tests"] - cases["skipped"]
    assert passed > 0
    return passed


def test_redis_py_passes_its_own_suite(
    process: PenstockProcess, protocol: int, tmp_path: Path, record_property: Record
) -> None:
    host, port = process.address
    options = f"--redis-url=redis://{host}:{port}/0", f"--protocol={protocol}"
    record_property("cases", run("redis", *options, results=tmp_path / "results.xml"))


def test_walrus_passes_its_own_suite(
    process: PenstockProcess, tmp_path: Path, record_property: Record
) -> None:
    # Its files of tests are called like what they are about.
    passed = run(
        "walrus",
        "--override-ini=python_files=*.py",
        results=tmp_path / "results.xml",
        WALRUS_REDIS_PORT=str(process.address[1]),
    )
    record_property("cases", passed)


class Suite(NamedTuple):
    """How the suite of a library is run: what pytest is told, and where the library is."""

    options: tuple[str, ...] = ()
    beside: str = ""
    urls: tuple[str, ...] = ()
    """Variables that say which kind of server it is."""


CLASSES: Final = "--override-ini=python_classes=test_*"

LIBRARIES: Final = {
    "aiocache": Suite(("-k", "redis or Redis")),
    "arq": Suite(("-p", "containers"), beside="-arq"),
    "celery": Suite((CLASSES, "-p", "celery.contrib.pytest"), urls=("TEST_BROKER", "TEST_BACKEND")),
    "channels_redis": Suite(),
    # Each case is run with all of its settings; of these there are a dozen.
    "django_redis": Suite(("-k", "sqlite]")),
    "huey": Suite(("-k", "Redis or redis")),
    "kombu": Suite((CLASSES,)),
    # It has to know the number of its process.
    "pydocket": Suite(("-p", "containers", "-n", "1")),
    "rq": Suite(),
}
"""The libraries that are installed apart, by the names of their source packages."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_passes_its_own_suite(
    process: PenstockProcess, tmp_path: Path, record_property: Record, library: str
) -> None:
    suite = LIBRARIES[library]
    passed = run(
        library,
        *suite.options,
        results=tmp_path / "results.xml",
        python=find_installed("python", suite.beside),
        SUITE_PORT=str(process.address[1]),
        REDIS_PORT=str(process.address[1]),
        **dict.fromkeys(suite.urls, "redis://"),
    )
    record_property("cases", passed)
