"""Writes the table of ``benchmarks/results/clients.md`` from a test run: a plugin of pytest.

``python -m pytest -p tests.clients.results tests/clients`` replaces the rows of the clients whose
tests it has collected: in which versions, over which protocols, and how it went. A client that was
skipped is shown so. The rows of clients that the run was not about stay as they are.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.process import ROOT

PAGE: Final = ROOT / "benchmarks" / "results" / "clients.md"
BEGIN: Final = "<!-- This table is written by `make test-clients` and `make test-container`. -->"
END: Final = "<!-- The end of what is written. -->"

HEAD: Final = "| client | version | protocol | tests passed |", "|---|---|---|---|"
CASES: Final = "cases"
"""The property of a test that says of how many it consists, if a program runs them for it."""

PROTOCOLS: Final = {"resp2": "RESP2", "resp3": "RESP3"}


class Client(NamedTuple):
    """A row of the table.

    ``tests`` is found at the start of the names of its test files, and ``variant`` in those of its
    tests if two clients share a file. ``always`` is the protocol of a client that has no choice.
    """

    name: str
    tests: str
    version: Callable[[], str]
    variant: str = ""
    always: str = ""


def python(package: str) -> Callable[[], str]:
    """Finds the version of a package that is installed here."""
    return lambda: metadata.version(package)


def program(path: Callable[[], str]) -> Callable[[], str]:
    """Finds the version that a program prints."""

    def ask() -> str:
        ended = subprocess.run([path(), "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"\d+\.\d+(\.\d+)?", ended.stdout)
        return found[0] if found else "unknown"

    return ask


def node(package: str) -> Callable[[], str]:
    """Finds the version of a package of Node that is installed beside the programs."""
    path = Path(__file__).parent / "node" / "node_modules" / package / "package.json"
    return lambda: str(json.loads(path.read_text())["version"])


def debian(package: str) -> Callable[[], str]:
    """Finds the version of what Debian has packed."""
    from tests.clients.test_debian import version

    return lambda: version(package)


def suite(client: str) -> Callable[[], str]:
    """Finds the version of a client that was unpacked with its own suite."""
    from tests.clients.suites import find

    return lambda: find(client).name.rpartition("-")[2]


def iredis() -> str:
    """The path of iredis, which is installed apart."""
    from tests.clients.applications import find

    return find("iredis")


def apart(package: str) -> Callable[[], str]:
    """Finds the version of a package that is installed apart."""
    from tests.clients.applications import find

    code = f"from importlib.metadata import version; print(version({package!r}))"
    ask = ["-c", code]
    return lambda: subprocess.run(
        [find("python"), *ask], capture_output=True, text=True, check=True
    ).stdout.strip()


SUITES: Final = {
    "Celery": "celery",
    "kombu": "kombu",
    "rq": "rq",
    "arq": "arq",
    "huey": "huey",
    "docket": "pydocket",
    "django-redis": "django_redis",
    "channels_redis": "channels_redis",
    "aiocache": "aiocache",
}
"""Libraries, and what their source packages are called."""

CLIENTS: Final = (
    Client("redis-py, synchronous", "clients/test_redis_py_stories", python("redis"), "blocking"),
    Client("redis-py, asyncio", "clients/test_redis_py_", python("redis"), "asyncio"),
    Client("redis-py, pools, retries, pub/sub", "clients/test_redis_py_conn", python("redis")),
    Client("redis-py, beyond its own suite", "clients/test_redis_py_methods", python("redis")),
    Client("redis-py, TLS and a user", "clients/test_redis_py_tls", python("redis")),
    Client("redis-py, its locks and scripts", "clients/test_scripts", python("redis")),
    Client(
        "redis-py, beside policies",
        "clients/test_policies",
        python("redis"),
        variant="[redis-py-",
    ),
    Client("redis-py, its own suite", "clients/test_suites", suite("redis"), variant="redis_py"),
    Client("coredis", "clients/test_coredis", python("coredis"), always="resp3"),
    Client("walrus", "clients/test_walrus", python("walrus")),
    Client(
        "walrus, its own suite",
        "clients/test_suites",
        suite("walrus"),
        variant="walrus",
        always="resp3",
    ),
    Client("iredis", "clients/test_iredis", program(iredis), always="resp2"),
    Client("pytest-redis", "clients/test_starters", apart("pytest-redis"), "pytest", "resp2"),
    Client("testing.redis", "clients/test_starters", apart("testing.redis"), "testing", "resp2"),
    Client("redis-cli", "clients/test_redis_cli", program(lambda: "redis-cli"), always="resp2"),
    Client("redis-benchmark", "clients/test_redis_bench", program(lambda: "redis-benchmark")),
    Client("ioredis", "clients/test_node", node("ioredis"), variant="[ioredis-"),
    Client(
        "ioredis, beside policies", "clients/test_policies", node("ioredis"), variant="[ioredis-"
    ),
    Client("node-redis", "clients/test_node", node("redis"), variant="[node-redis-"),
    Client(
        "valkey-glide",
        "clients/test_node",
        node("@valkey/valkey-glide"),
        variant="[valkey-glide-",
    ),
    Client("phpredis", "clients/test_debian", debian("php-redis"), "[phpredis", always="resp2"),
    Client(
        "Symfony Messenger",
        "clients/test_symfony",
        debian("php-symfony-redis-messenger"),
        variant="[penstock]",
        always="resp2",
    ),
    Client("redis-rb", "clients/test_debian", debian("ruby-redis"), "[redis-rb", always="resp2"),
    Client(
        "redis_exporter",
        "clients/test_debian",
        debian("prometheus-redis-exporter"),
        variant="redis_exporter",
        always="resp2",
    ),
    Client(
        "syslog-ng",
        "clients/test_debian",
        debian("syslog-ng-mod-redis"),
        variant="syslog_ng",
        always="resp2",
    ),
    Client(
        "redis-commander",
        "clients/test_redis_comm",
        node("redis-commander"),
        always="resp2",
    ),
    Client(
        "Socket.IO, adapter of streams",
        "clients/test_socket_io",
        node("@socket.io/redis-streams-adapter"),
    ),
    Client("FastStream", "clients/test_f", python("faststream"), "faststream"),
    Client("taskiq-redis", "clients/test_frameworks", python("taskiq-redis"), "taskiq"),
    Client("BullMQ", "clients/test_queues", node("bullmq"), "[bullmq]", always="resp2"),
    Client("Celery", "clients/test_queues", apart("celery"), "[celery]", always="resp2"),
    Client("dramatiq", "clients/test_queues", apart("dramatiq"), "[dramatiq]", always="resp2"),
    Client("streaq", "clients/test_queues", apart("streaq"), "[streaq]", always="resp3"),
    Client("limits", "clients/test_separate", apart("limits"), "[limits]", always="resp2"),
    Client("flask-session", "clients/test_separate", apart("flask-session"), "[flask]", "resp2"),
    *(
        Client(
            f"{library}, its own suite",
            "clients/test_suites",
            suite(package),
            variant=f"[{package}]",
            always="resp2",
        )
        for library, package in SUITES.items()
    ),
    Client(
        "testcontainers-python, on the image",
        "container/test_snippets",
        python("testcontainers"),
        variant="testcontainers",
        always="resp3",
    ),
)


class Results:
    """Counts how the tests of each client have ended, and shows it in a page."""

    def __init__(self, page: Path = PAGE, clients: Sequence[Client] = CLIENTS) -> None:
        self._page = page
        self._clients = clients
        self._outcomes: dict[str, str] = {}
        self._cases: dict[str, int] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notes a file whose tests were not even looked at, as when a package is missing."""
        if report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the worst that happened to a test in its phases."""
        known = self._outcomes.get(report.nodeid, "passed")
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = known if known == "failed" else report.outcome
        for name, value in report.user_properties:
            if name == CASES and isinstance(value, int):
                self._cases[report.nodeid] = value

    def pytest_sessionfinish(self) -> None:
        """Replaces the table in the page."""
        head, _, rest = self._page.read_text().partition(BEGIN)
        table, _, tail = rest.partition(END)
        # In one step, as other tests may be reading the page.
        new = self._page.with_name(f".{self._page.name}")
        new.write_text(f"{head}{BEGIN}\n\n{self._renewed(table)}\n{END}{tail}")
        new.replace(self._page)

    def _renewed(self, table: str) -> str:
        """The table with new rows for the clients of this run."""
        rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()}
        rows |= {client.name: row for client in self._clients if (row := self._row(client))}
        lines = [rows[client.name] for client in self._clients if client.name in rows]
        return "\n".join([*HEAD, *lines, ""])

    def _row(self, client: Client) -> str:
        """What this run says of a client; empty if it was not about it."""
        own = {
            nodeid: outcome
            for nodeid, outcome in self._outcomes.items()
            if f"tests/{client.tests}" in nodeid and client.variant in nodeid
        }
        if not own:
            return ""
        ran = [nodeid for nodeid, outcome in own.items() if outcome != "skipped"]
        if not ran:
            return f"| {client.name} | | | skipped |"
        failed = Counter(own.values())["failed"]
        tests = str(sum(self._cases.get(nodeid, 1) for nodeid in ran))
        result = f"{failed} of {tests} failed" if failed else tests
        cells = client.name, client.version(), _protocols(client, ran), result
        return f"| {' | '.join(cells)} |"


def _protocols(client: Client, nodeids: list[str]) -> str:
    """The protocols that tests name, and the one of a client that always speaks it."""
    names = " ".join(nodeids) + f" {client.always}"
    return ", ".join(shown for name, shown in PROTOCOLS.items() if name in names)


def pytest_configure(config: pytest.Config) -> None:
    """Looks at the run that begins; of one with several processes, at the one that hears of all."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(), "penstock-client-results")
