"""The pytest plugin: fixtures that start a server when a test asks for one, and not before.

It is loaded with every run of pytest in an environment where Penstock is installed, so it imports
nothing until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from penstock.testing import Penstock, PenstockServer
    from penstock.testing.explored import Explored
    from penstock.testing.fixture import ServerPool

_EXPLORED: Final[pytest.StashKey[Explored]] = pytest.StashKey()
"""Where that is kept which collects explorations."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the settings that the project under test may have in its configuration file."""
    parser.addini(
        "penstock_args",
        "options of the server that the fixture penstock starts, such as --loglevel verbose",
        type="args",
        default=[],
    )
    parser.addini(
        "penstock_command",
        "the command that starts the server, if it is not the penstock of this environment",
        type="args",
        default=[],
    )
    group = parser.getgroup("penstock")
    group.addoption(
        "--explore",
        metavar="ID",
        default="",
        help="run one scenario or order alone, as a failing exploration names it: crash-after@2",
    )
    group.addoption(
        "--explore-shard",
        metavar="I/N",
        default="1/1",
        help="try one of so many parts of all scenarios: 1/4",
    )
    group.addoption(
        "--explore-report",
        metavar="FILE",
        default="",
        help="write what was explored to this file: JSON, or a page if it ends with .html",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Passes options of explorations on, for servers too that no fixture of this plugin starts."""
    option = session.config.getoption
    if option("explore") or option("explore_report") or option("explore_shard") != "1/1":
        _collecting(session.config)


def _explored(config: pytest.Config) -> Explored | None:
    """What collects explorations, once a fixture has been used."""
    return config.stash.get(_EXPLORED, None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Adds what a test has explored to its report."""
    if (explored := _explored(item.config)) is not None:
        explored.note(item)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what a worker of pytest-xdist has explored."""
    rows = getattr(node, "workeroutput", {}).get("penstock_explored", [])
    if rows:
        _collecting(node.config).rows += rows


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the file of explorations."""
    if session.config.getoption("explore_report"):
        _collecting(session.config).finish()


def _collecting(config: pytest.Config) -> Explored:
    """What collects explorations; it is made when it is first asked for."""
    explored = _explored(config)
    if explored is None:
        from penstock.testing.explored import Explored

        explored = config.stash[_EXPLORED] = Explored(config)
    return explored


@pytest.fixture(scope="session")
def penstock_args(pytestconfig: pytest.Config) -> list[str]:
    """Options of the server; a project may override this fixture."""
    args: list[str] = pytestconfig.getini("penstock_args")
    return args


@pytest.fixture(scope="session")
def penstock_command(pytestconfig: pytest.Config) -> list[str]:
    """The command that starts the server, empty for the ``penstock`` of this environment."""
    command: list[str] = pytestconfig.getini("penstock_command")
    return command


@pytest.fixture(scope="session")
def penstock_server(
    penstock_args: list[str],
    penstock_command: list[str],
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PenstockServer]:
    """The server of this run, or of this worker of pytest-xdist: for fixtures of wider scope."""
    from penstock.testing import PenstockError, PenstockServer

    _collecting(pytestconfig)
    folder = tmp_path_factory.mktemp("penstock")
    server = PenstockServer(*penstock_args, command=penstock_command, folder=folder)
    try:
        server.start()
    except PenstockError as error:
        pytest.fail(str(error), pytrace=False)
    yield server
    server.stop()


@pytest.fixture
def penstock(penstock_server: PenstockServer) -> Iterator[Penstock]:
    """A server without data, and clients of it, for one test."""
    from penstock.testing import Penstock, PenstockError

    try:
        penstock_server.reset()
    except PenstockError as error:
        pytest.fail(str(error), pytrace=False)
    handle = Penstock(penstock_server)
    yield handle
    handle.close()


@pytest.fixture(scope="session")
def _penstock_pool(
    penstock_args: list[str],
    penstock_command: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServerPool]:
    """The further servers of this run."""
    from penstock.testing import PenstockServer
    from penstock.testing.fixture import ServerPool

    def make(options: tuple[str, ...]) -> PenstockServer:
        folder = tmp_path_factory.mktemp("penstock")
        return PenstockServer(*penstock_args, *options, command=penstock_command, folder=folder)

    pool = ServerPool(make)
    yield pool
    pool.close()


@pytest.fixture
def penstock_factory(_penstock_pool: ServerPool) -> Iterator[Callable[..., Penstock]]:
    """A function that gives one more server each time, with these options beside those of the
    project: ``other = penstock_factory("--databases", "4")``."""
    from penstock.testing import Penstock, PenstockError

    with ExitStack() as stack:

        def new_server(*options: str) -> Penstock:
            try:
                server = _penstock_pool.lend(options)
            except PenstockError as error:
                pytest.fail(str(error), pytrace=False)
            stack.callback(_penstock_pool.take_back, options, server)
            handle = Penstock(server)
            stack.callback(handle.close)
            return handle

        yield new_server
