"""What tests of the plugin share: an installation of Penstock, and projects that use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import Penstock, PenstockServer
from tests.support import logs
from tests.support.process import ROOT

TIMEOUT_S = 120
"""How long a run of pytest may take before the test gives it up."""

SCRIPT = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from penstock.__main__ import main
from tests.support.copied import copy_output
copy_output(__file__ + ".log")
sys.exit(main())
"""

SETTINGS = """\
[pytest]
addopts = -p no:cacheprovider -p no:hypothesispytest --color=no -rA
filterwarnings = error
asyncio_default_fixture_loop_scope = function
"""


class Installation:
    """What ``pip install`` leaves behind of ``pyproject.toml``: entry points and the command."""

    def __init__(self, folder: Path) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        self.site = folder / "site"
        info = self.site / "penstock_server-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-server\nVersion: 0\n")
        plugins = project["entry-points"]["pytest11"]
        lines = [f"{name} = {module}\n" for name, module in plugins.items()]
        (info / "entry_points.txt").write_text("".join(["[pytest11]\n", *lines]))
        self.scripts = folder / "bin"
        self.scripts.mkdir()
        self.command = self.scripts / "penstock"
        self.command.write_text(SCRIPT)
        self.command.chmod(0o755)
        logs.follow(self.scripts / "penstock.log")


class Project:
    """A folder with tests that use the plugin, and pytest to run them."""

    def __init__(self, folder: Path, installation: Installation) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(installation.site), str(ROOT)]),
            "PATH": os.pathsep.join([str(installation.scripts), os.environ["PATH"]]),
            "PYTEST_ADDOPTS": "",
            "PYTEST_PLUGINS": "tests.plugin.passing_on",
            "PENSTOCK_TEST_LOG": str(folder / "errors.log"),
        }
        logs.follow(folder / "errors.log")
        self.output = ""
        self.write("pytest.ini", SETTINGS)

    def write(self, name: str, text: str) -> None:
        """Puts a file into the project."""
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, *args: str) -> dict[str, int]:
        """Runs the tests in a process of their own; what pytest counted, such as ``passed``."""
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *args],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        self.output = ended.stdout + ended.stderr
        last = ended.stdout.rstrip().rpartition("\n")[2]
        return {kind: int(count) for count, kind in re.findall(r"(\d+) ([a-z]+)", last)}

    def outcomes(self, module: str) -> set[str]:
        """How the tests of a module ended in the last run: ``PASSED`` and the like."""
        found = re.findall(rf"^([A-Z]+) {re.escape(module)}(?:::| )", self.output, re.MULTILINE)
        return set(found)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Penstock as an installed package."""
    return Installation(tmp_path_factory.mktemp("installation"))


@pytest.fixture
def project(tmp_path: Path, installation: Installation) -> Project:
    """A project with no tests yet."""
    return Project(tmp_path, installation)


@pytest.fixture(scope="session")
def shared_server(installation: Installation) -> Iterator[PenstockServer]:
    """A server that several tests use one after the other."""
    with PenstockServer(command=[str(installation.command)]) as server:
        yield server


@pytest.fixture
def server(shared_server: PenstockServer) -> PenstockServer:
    """The same, as if it had just been started."""
    shared_server.reset()
    return shared_server


@pytest.fixture
def handle(server: PenstockServer) -> Iterator[Penstock]:
    """What the fixture ``penstock`` is to a test, on the same server."""
    handle = Penstock(server)
    yield handle
    handle.close()
