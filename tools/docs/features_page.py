"""Writes the map of features in docs/first-hour.md from the code: ``python -m
tools.docs.features_page``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.process import ROOT
from tests.test_layout import FOLDERS, SOURCES, is_in, present

PAGE: Final = ROOT / "docs" / "first-hour.md"

HEAD: Final = (
    "| feature | where | lines | imported by, outside of it | tests elsewhere |\n"
    "|---|---|---:|---|---|\n"
)

FEATURES: Final[dict[str, tuple[list[str], list[str]]]] = {
    "streams and groups": (
        ["storage/engine/", "server/commands/streams/", "server/commands/groups/"],
        ["storage/engine/", "server/commands/streams/", "server/commands/groups/"],
    ),
    "strings": (
        ["storage/types/strings.py", "server/commands/strings/"],
        ["storage/types/test_strings.py", "server/commands/strings/"],
    ),
    "hashes": (
        ["storage/types/hash.py", "server/commands/hashes/"],
        ["storage/types/test_hash.py", "server/commands/hashes/"],
    ),
    "lists": (
        ["storage/types/list.py", "server/commands/lists/"],
        ["storage/types/test_list.py", "server/commands/lists/"],
    ),
    "sets": (
        ["storage/types/set.py", "server/commands/sets/"],
        ["storage/types/test_set.py", "server/commands/sets/"],
    ),
    "sorted sets": (
        ["storage/types/sorted_set.py", "server/commands/sorted_sets/"],
        ["storage/types/test_sorted_set.py", "server/commands/sorted_sets/"],
    ),
    "HyperLogLogs": (
        ["storage/types/hyperloglog.py", "server/commands/hyperloglog/"],
        ["storage/types/test_hyperloglog.py", "server/commands/hyperloglog/"],
    ),
    "the append-only file": (
        ["storage/aof/", "server/persistence/", "penstock/check_aof.py"],
        ["storage/aof/", "server/persistence/", "durability/", "penstock/test_check_aof.py"],
    ),
    "RDB files and payloads": (["storage/rdb/"], ["storage/rdb/"]),
    "replicas": (
        ["server/replication/", "server/commands/replication/"],
        ["server/replication/", "replication/"],
    ),
    "users": (
        ["server/acl/", "server/clients/access.py", "server/commands/acl/"],
        ["server/acl/", "server/clients/test_access.py"],
    ),
    "scripts": (
        ["server/scripting/", "server/commands/scripting/"],
        ["server/scripting/", "scripting/"],
    ),
    "pub/sub": (
        ["server/clients/pubsub.py", "server/commands/connection/pubsub.py"],
        ["server/clients/test_pubsub.py"],
    ),
    "client-side caching": (
        ["server/clients/tracking.py", "server/commands/connection/client_tracking.py"],
        ["server/clients/test_tracking.py", "clients/test_redis_py_caching.py"],
    ),
    "the fast path for XADD": (
        ["server/net/adding.py", "storage/engine/runs.py"],
        ["server/net/test_adding.py", "storage/engine/test_runs.py"],
    ),
    "policies": (
        [
            *("server/delivery/", "server/commands/delivery/", "storage/engine/histories.py"),
            *("storage/engine/waits.py", "server/config/policies.py"),
            "server/config/policy_lines.py",
        ],
        ["server/delivery/", "property/test_policies.py"],
    ),
    "faults, snapshots, the clock of tests": (
        ["server/faults/", "server/net/intercepted.py", "server/commands/testing/"],
        ["server/faults/", "server/net/test_intercepted.py", "server/commands/testing/"],
    ),
    "TLS": (["server/traffic/tls.py"], ["server/traffic/test_tls.py"]),
    "metrics": (["server/web/metrics/"], ["server/web/metrics/"]),
    "the page": (
        ["server/web/page/", "server/web/html/"],
        ["server/web/page/", "server/web/html/"],
    ),
    "the pytest plugin": (["penstock/testing/"], ["plugin/"]),
    "import and export": (["penstock/migration/"], ["migration/"]),
    "tools of operators": (
        ["penstock/operate/", "penstock/debug.py"],
        ["penstock/operate/", "penstock/test_debug.py"],
    ),
    "the data source of Spark": (["spark/pyspark-redis-streams/"], []),
    "pipelines": (["spark/penstock-pipeline/"], []),
    "compiled modules": (["tools/build/"], ["tools/build/"]),
}
"""The folders and modules of each feature, and those of its tests below ``tests/``; distributions
of their own have theirs inside."""

NAMED: Final = 3
"""How many modules that import a feature are named."""

SOME: Final = 10
"""How many are some; more are many. Their number would be another one with many a change."""

COUNTED: Final = (".py", ".lua", ".html", ".js", ".css")
"""What counts as a file with lines."""


def files_of(path: str) -> Iterator[Path]:
    """The files of product at a path; of a distribution those of its package."""
    packages = [name for name, folder in FOLDERS.items() if folder == path.rstrip("/")]
    root = ROOT / path / packages[0] if packages else ROOT / path
    every = root.rglob("*") if root.is_dir() else [root]
    yield from (each for each in every if each.suffix in COUNTED)


def lines_of(paths: list[str]) -> int:
    """How many lines the files at these paths have, in hundreds."""
    found = {file for path in paths for file in files_of(path)}
    lines = sum(file.read_text().count("\n") for file in found)
    return max(round(lines, -2), 100)


def module_of(path: str) -> str:
    """The dotted name of what is at a path."""
    name = path.rstrip("/").removesuffix(".py").replace("/", ".")
    return next((each for each, folder in FOLDERS.items() if folder == path.rstrip("/")), name)


def importers(paths: list[str]) -> str:
    """Which modules outside of these import something there, or whether there are some or many."""
    inside = [module_of(path) for path in paths]
    within = {module for module in SOURCES if any(is_in(module, each) for each in inside)}
    graph = present()
    found = sorted(module for module in graph.keys() - within if graph[module] & within)
    files = ", ".join(f"`{name_of(module)}`" for module in found)
    if len(found) <= NAMED:
        return files or "none"
    return "some modules" if len(found) <= SOME else "many modules"


def name_of(module: str) -> str:
    """The path of a module or a package."""
    path = module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").is_file() else f"{path}/__init__.py"


def row(feature: str) -> str:
    """What the page says of a feature."""
    places, tests = FEATURES[feature]
    where = ", ".join(f"`{path}`" for path in places)
    own = {mirror(path) for path in places}
    tried = ", ".join(f"`tests/{path}`" for path in tests if path not in own)
    cells = feature, where, f"{lines_of(places):,}", importers(places), tried
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def mirror(path: str) -> str:
    """Where the tests of a folder or a module are, below ``tests/``."""
    return path if path.endswith("/") else f"{Path(path).parent}/test_{Path(path).name}"


def page() -> str:
    """The page as it is, with the present map of features."""
    before, table = PAGE.read_text().split(HEAD)
    after = table.partition("\n\n")[2]
    return f"{before}{HEAD}{''.join(map(row, FEATURES))}\n{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
