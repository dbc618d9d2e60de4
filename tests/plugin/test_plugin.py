"""The plugin as projects use it: pytest runs in processes of its own, with warnings as errors."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

from tests.plugin.conftest import SETTINGS, Installation, Project
from tests.plugin.scenarios import ANYIO, SCENARIOS

HAS_ANYIO = importlib.util.find_spec("anyio") is not None
TRIED = {**SCENARIOS, **(ANYIO if HAS_ANYIO else {})}


def module_of(scenario: str) -> str:
    """The name of the module that a scenario is in; pytest keeps their order."""
    return f"test_{list(TRIED).index(scenario):02}_{re.sub(r'[^a-z]', '_', scenario)}.py"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, installation: Installation) -> Project:
    """A project with every scenario in it, after a run of its tests."""
    project = Project(tmp_path_factory.mktemp("project"), installation)
    project.write("conftest.py", "import pytest\nanyio_backend = pytest.fixture(lambda: 'asyncio')")
    project.write("server/__init__.py", "NAME = 'mine'\n")
    project.write("penstock/cli.py", "raise ImportError('not this one')\n")
    for scenario, text in TRIED.items():
        project.write(module_of(scenario), text)
    project.run()
    return project


@pytest.mark.parametrize("scenario", TRIED)
def test_in_a_project(finished: Project, scenario: str) -> None:
    assert finished.outcomes(module_of(scenario)) == {"PASSED"}, finished.output


def test_the_scenarios_leave_no_warnings_behind(finished: Project) -> None:
    last = finished.output.rstrip().rpartition("\n")[2]
    assert re.fullmatch(r"=+ \d+ passed in .*", last), finished.output


@pytest.mark.slow
def test_workers_of_xdist_have_a_server_each(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write(
        "test_it.py",
        """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it(penstock, number, worker_id):
    assert penstock.client.incr("k") == 1
    print(f"{worker_id} at {penstock.port}.")
""",
    )
    assert project.run("-n", "2", "--dist", "load", "--maxschedchunk=1") == {"passed": 6}
    pairs = set(re.findall(r"(gw\d) at (\d+)\.", project.output))
    assert {worker for worker, _ in pairs} == {"gw0", "gw1"}, project.output
    assert len(pairs) == len({port for _, port in pairs}) == 2


def test_options_and_command_come_from_the_configuration_file(
    project: Project, installation: Installation
) -> None:
    command = f"{sys.executable} {installation.command}"
    settings = f"penstock_args = --databases 3 --hz 50\npenstock_command = {command}\n"
    project.write("pytest.ini", SETTINGS + settings)
    project.write(
        "test_it.py",
        """
import sys

SERVER = {"server", "protocol", "storage"}

def test_nothing_is_imported_until_a_test_asks_for_it():
    loaded = {name for name in sys.modules if name.startswith("penstock.testing")}
    assert loaded == {"penstock.testing", "penstock.testing.plugin"}
    assert not ({"redis", "hiredis"} | SERVER) & set(sys.modules)

def test_clients_are_imported_when_they_are_asked_for(penstock):
    assert penstock.url == f"redis://127.0.0.1:{penstock.port}"
    assert not ({"redis"} | SERVER) & set(sys.modules)

def test_it(penstock):
    settings = penstock.client.config_get("databases", "hz", "enable-debug-command")
    assert settings == {"databases": "3", "hz": "50", "enable-debug-command": "yes"}
    penstock.client.shutdown(nosave=True)

def test_that(penstock):
    pass
""",
    )
    assert project.run() == {"passed": 4}, project.output
    # The server that a test has ended is what the log of the next one tells of.
    told = "the server is started anew: the server has ended, with exit status 0"
    assert told in project.output


def test_options_come_from_a_fixture(project: Project) -> None:
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture(scope="session")
def penstock_args(tmp_path_factory):
    return ["--enable-debug-command", "no", "--appendonly", "yes", "--loglevel", "nothing"]
""",
    )
    project.write(
        "test_it.py",
        """
import pytest
from penstock.testing import PenstockError

@pytest.mark.parametrize("number", range(2))
def test_it(penstock, number):
    assert penstock.client.incr("k") == 1
    with pytest.raises(PenstockError, match="DEBUG command not allowed"):
        penstock.clock.advance(1)
""",
    )
    assert project.run() == {"passed": 2}, project.output


def test_a_server_that_cannot_start_shows_what_it_said(project: Project) -> None:
    project.write("pytest.ini", SETTINGS + "penstock_args = --no-such-setting yes\n")
    project.write(
        "test_it.py", "def test_it(penstock):\n    pass\ndef test_that(penstock):\n    pass\n"
    )
    assert project.run() == {"errors": 2}
    assert "the server could not be started: it ended with exit status 1\n" in project.output
    assert "--enable-debug-command yes --no-such-setting yes\n" in project.output
    assert "penstock: command line: " in project.output
    assert "Traceback" not in project.output
    assert "def penstock_server" not in project.output
