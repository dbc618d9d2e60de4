"""The shape of the code: imports point one way, those for types included, and no module is long.

Each package below has an order of rooms. A module may import what stands above it in the list of
its package, or what is in its own room, and the other packages that its package is allowed;
imports under ``TYPE_CHECKING`` and inside functions count like all others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]

LAYERS: Final[dict[str, list[str]]] = {
    "protocol": [""],
    "storage": [
        "errors",
        "checksums",
        "chunks",
        "indexes",
        "steps",
        "engine",
        "types",
        "keyspace",
        "rdb",
        "aof",
    ],
    "server": [
        "runtime",
        "config",
        "core",
        "acl",
        "state",
        "clients",
        "delivery",
        "traffic",
        "faults",
        "dispatch",
        "persistence",
        "replication",
        "scripting",
        "cron",
        "services",
        "commands",
        "net",
        "web",
        "app",
    ],
    "penstock": [
        "output",
        "terminal",
        "client",
        "testing",
        "explore",
        "migration",
        "check_aof",
        "debug",
        "explore_command",
        "operate",
        "help",
        "completion",
        "parent",
        "added",
        "cli",
        "__main__",
    ],
    "pyspark_redis_streams": [
        "errors",
        "ids",
        "values",
        "options",
        "settings",
        "servers",
        "streams",
        "batches",
        "losses",
        "read",
        "write",
        "offsets",
        "group",
        "",
    ],
    "penstock_pipeline": [
        "output",
        "terminal",
        "extras",
        "errors",
        "toml_advice",
        "toml_file",
        "statement",
        "options",
        "values",
        "client",
        "sinks",
        "model",
        "decode",
        "file_parse",
        "file_sql",
        "file",
        "static_tables",
        "servers",
        "dead_letters",
        "report",
        "expectations",
        "queries",
        "plan",
        "status_http",
        "runs",
        "status",
        "java",
        "supervise",
        "samples",
        "cli",
        "__main__",
    ],
}
"""The rooms of each package from the lowest up: a room is a folder with all that is in it, or a
module that is in none; an empty name stands for every module that is not named."""

MAY_USE: Final[dict[str, set[str]]] = {
    "protocol": set(),
    "storage": set(),
    "server": {"protocol", "storage"},
    "penstock.testing": set(),
    "penstock.explore": set(),
    "penstock.terminal": set(),
    "penstock.output": set(),
    "penstock.client": set(),
    "penstock.migration": {"storage"},
    "penstock.check_aof": {"storage"},
    "penstock.debug": set(),
    "penstock.explore_command": set(),
    "penstock.operate": {"server"},
    "penstock.help": {"server"},
    "penstock.completion": set(),
    "penstock.parent": {"server"},
    "penstock.added": set(),
    "penstock.cli": {"server"},
    "penstock.__main__": set(),
    "pyspark_redis_streams": set(),
    "penstock_pipeline": {"pyspark_redis_streams"},
}
"""Which other packages of the project each package or layer may import."""

WITHOUT: Final[dict[str, set[str]]] = {
    "protocol": {"asyncio", "socket", "time"},
    "storage": {"asyncio", "socket", "time"},
    "server.persistence": {"socket"},
    "penstock.client": {"asyncio"},
    "penstock.migration": {"asyncio"},
}
"""What of the standard library does not belong into a package."""

TESTS: Final = ("tests", "source_tests", "pipeline_tests")
"""The packages with tests, which none that is tested may import."""

FOLDERS: Final = {
    "pyspark_redis_streams": "spark/pyspark-redis-streams",
    "penstock_pipeline": "spark/penstock-pipeline",
}
"""Where packages lie that are not at the top: those of other distributions."""

Sources = dict[str, str]
"""The text of each module, by its dotted name."""

Graph = dict[str, set[str]]
"""Which modules and packages each module imports."""


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a module; a package's ``__init__`` has the name of the package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_sources(root: Path) -> Sources:
    """All modules of the packages below ``root``."""
    return {
        module_name(path, top): path.read_text()
        for package in LAYERS
        for top in [root / FOLDERS.get(package, "")]
        for path in sorted((top / package).rglob("*.py"))
    }


def is_in(module: str, package: str) -> bool:
    """Whether a module is the package, or in it."""
    return module == package or module.startswith(f"{package}.")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement in a node; none is in an expression, and nearly all nodes are."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from statements(child)


def imported(text: str, modules: Iterable[str]) -> Iterator[str]:
    """What a module imports, at whatever place: modules of the project, else top-level names."""
    known = set(modules)
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides where it points"
            assert node.module is not None
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in inside]
        else:
            continue
        yield from (name if name in known else name.split(".")[0] for name in names)


def graph_of(sources: Sources) -> Graph:
    """Which modules and packages each module imports."""
    return {module: set(imported(text, sources)) for module, text in sources.items()}


def layer_of(module: str) -> int | None:
    """The place of a module in the order of its package; ``None`` for a module without one."""
    package = module.split(".")[0]
    found = [
        (len(layer), place)
        for place, layer in enumerate(LAYERS[package])
        if not layer or is_in(module, f"{package}.{layer}")
    ]
    return max(found)[1] if found else None


def may_use(module: str) -> set[str]:
    """The other packages that a module may import."""
    return MAY_USE[max((name for name in MAY_USE if is_in(module, name)), key=len)]


def planted(module: str, text: str) -> Graph:
    """The graph with more imports in one module."""
    found = imported(SOURCES[module] + text, SOURCES)
    return {**present(), module: set(found)}


def wrong_imports(graph: Graph) -> list[str]:
    """The imports that the order of layers does not allow, as ``importer -> imported``."""
    wrong: list[str] = []
    for module, targets in graph.items():
        package = module.split(".")[0]
        banned = {
            name for where, names in WITHOUT.items() if is_in(module, where) for name in names
        }
        for target in sorted(targets):
            other = target.split(".")[0]
            if other == package:
                # The package itself only says what it is: whoever imports it reaches no layer.
                upward = (layer_of(target) or 0) > (layer_of(module) or 0)
                bad = upward and module != package and target != package
            else:
                bad = target in banned or other in TESTS
                bad = bad or (other in LAYERS and other not in may_use(module))
            if bad:
                wrong.append(f"{module} -> {target}")
    return wrong


def circle(graph: Graph) -> list[str]:
    """The modules of a circle of imports, in order; empty if there is none."""
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str]:
        if module in path:
            return path[path.index(module) :]
        if module in done:
            return []
        for target in sorted(graph.get(module, ())):
            if found := search(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next(filter(None, (search(module, []) for module in sorted(graph))), [])


SOURCES: Final = read_sources(ROOT)


@cache
def present() -> Graph:
    """The graph of the project as it is: made when a test asks for it, as every process of a run
    imports this module."""
    return graph_of(SOURCES)


def test_there_are_modules_to_look_at() -> None:
    assert {module.split(".")[0] for module in SOURCES} == set(LAYERS)


def test_every_module_has_a_place_in_the_order() -> None:
    folders = {f"{package}.{folder}" for package in LAYERS for folder in _parents(LAYERS[package])}
    missing = [
        module
        for module in SOURCES
        if layer_of(module) is None and module not in LAYERS and module not in folders
    ]
    assert missing == []


def _parents(layers: list[str]) -> set[str]:
    """The folders whose modules are layers of their own."""
    return {layer.rpartition(".")[0] for layer in layers if "." in layer}


def test_every_layer_is_there() -> None:
    gone = [
        f"{package}.{layer}"
        for package, layers in LAYERS.items()
        for layer in filter(None, layers)
        if f"{package}.{layer}" not in SOURCES
    ]
    assert gone == []


def test_imports_point_one_way() -> None:
    assert wrong_imports(present()) == []


def test_there_is_no_circle_of_imports_typed_or_not() -> None:
    assert circle(present()) == []


def knots(graph: Graph) -> list[tuple[str, str]]:
    """The folders of the server of which each imports something of the other."""
    folders = {module: ".".join(module.split(".")[:2]) for module in graph}
    imports = {
        (folders[module], folders[target])
        for module, targets in graph.items()
        for target in targets & folders.keys()
        if is_in(module, "server") and is_in(target, "server")
    }
    return sorted((one, two) for one, two in imports if one < two and (two, one) in imports)


def test_no_two_folders_import_each_other() -> None:
    assert knots(present()) == []


def test_a_knot_is_found() -> None:
    graph = planted("server.faults.rules", "from server.net.peers import Peer\n")
    assert ("server.faults", "server.net") in knots(graph)


UPWARD: Final = {
    "plainly": "from server.app import Server\n",
    "as a module": "import server.app\n",
    "for types only": "if TYPE_CHECKING:\n    from server.app import Server\n",
    "inside a function": "def later() -> None:\n    from server import app\n",
}
"""Ways in which a module of a low layer may reach for a high one."""


@pytest.mark.parametrize("text", UPWARD.values(), ids=list(UPWARD))
def test_an_upward_import_is_found(text: str) -> None:
    graph = planted("server.state.server_state", text)
    assert wrong_imports(graph) == ["server.state.server_state -> server.app"]
    assert {"server.state.server_state", "server.app"} <= set(circle(graph))


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("protocol.replies", "from storage.engine import ids\n", "storage.engine.ids"),
        (
            "storage.engine.ids",
            "from storage.keyspace import glob\n",
            "storage.keyspace.glob",
        ),
        ("storage.engine.ids", "import time\n", "time"),
        ("server.persistence.appender", "import socket\n", "socket"),
        ("server.state.session", "import pyspark_redis_streams\n", "pyspark_redis_streams"),
        ("penstock.testing.server", "from server.app import Server\n", "server.app"),
        ("penstock_pipeline.model", "from penstock import cli\n", "penstock.cli"),
        ("pyspark_redis_streams.ids", "from penstock import cli\n", "penstock.cli"),
        (
            "pyspark_redis_streams.ids",
            "from pyspark_redis_streams.write.writer import StreamWriter\n",
            "pyspark_redis_streams.write.writer",
        ),
        ("server.app", "from tests.support import direct\n", "tests"),
    ],
)
def test_an_import_that_is_not_allowed_is_found(module: str, text: str, wrong: str) -> None:
    assert wrong_imports(planted(module, text)) == [f"{module} -> {wrong}"]


def test_a_circle_within_a_layer_is_found() -> None:
    lower, upper = "server.runtime.clock", "server.runtime.stats"
    graph = planted(lower, f"if TYPE_CHECKING:\n    import {upper}\n")
    graph |= {upper: {lower}}
    assert set(circle(graph)) == {lower, upper}


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_holds_one_idea(module: str) -> None:
    assert len(SOURCES[module].splitlines()) < 600, "split it, or move a part to another module"


# --- distributions -----------------------------------------------------------------------------


def distribution_of(module: str) -> str:
    """The folder of the distribution that a module is in; empty for the one at the top."""
    return FOLDERS.get(module.split(".")[0], "")


def names_used_twice(sources: Sources) -> list[str]:
    """The classes whose name another class of the distribution has, as ``name: modules``."""
    found: dict[tuple[str, str], list[str]] = {}
    for module, text in sources.items():
        for node in statements(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found.setdefault((distribution_of(module), node.name), []).append(module)
    return [f"{name}: {', '.join(where)}" for (_, name), where in found.items() if len(where) > 1]


def test_a_class_name_stands_for_one_thing_within_a_distribution() -> None:
    assert names_used_twice(SOURCES) == []


def test_a_name_that_is_used_twice_is_found() -> None:
    twice = {"server.app": "class Server:\n    pass\n", "storage.log": "class Server:\n    pass\n"}
    assert names_used_twice(twice) == ["Server: server.app, storage.log"]
    apart = {"server.app": twice["server.app"], "penstock_pipeline.log": twice["storage.log"]}
    assert names_used_twice(apart) == []


NAMES: Final = {
    "penstock-server": "",
    "pyspark-redis-streams": "spark/pyspark-redis-streams",
    "penstock-pipeline": "spark/penstock-pipeline",
}
"""The folder of each distribution."""


def ceilings() -> dict[str, tuple[int, int]]:
    """How many lines of product and tests each distribution may have: the newest rows of the
    decision."""
    page = (ROOT / "docs/decisions/0049-ceilings.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d,]+) \| ([\d,]+) \| \S", page, re.MULTILINE)
    return {name: (_number(product), _number(tests)) for name, product, tests in rows}


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def lines_of_product(folder: str) -> int:
    """The lines of the packages of a distribution."""
    texts = [text for module, text in SOURCES.items() if distribution_of(module) == folder]
    return sum(text.count("\n") for text in texts)


def lines_of_tests(folder: str) -> int:
    """The lines of its tests, helpers included."""
    files = (ROOT / folder / "tests").rglob("*.py")
    return sum(file.read_text().count("\n") for file in files)


@pytest.mark.parametrize("name", NAMES)
def test_a_distribution_is_no_larger_than_decided(name: str) -> None:
    product, tests = ceilings()[name]
    why = "docs/decisions/0049-ceilings.md"
    assert 0.9 * product < lines_of_product(NAMES[name]) <= product, why
    assert 0.9 * tests < lines_of_tests(NAMES[name]) <= tests, why


# --- wires -----------------------------------------------------------------------------------


def callbacks(text: str) -> set[str]:
    """The public attributes that a module declares as calls to be set later."""
    return {
        node.target.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and not node.target.attr.startswith("_")
        and ast.unparse(node.annotation).startswith("Callable[")
    }


def wires(sources: Sources) -> list[str]:
    """The places outside of services.py where a part is told whom to call, as ``module: wire``.

    What a session calls is its connection's matter.
    """
    modules = {name: text for name, text in sources.items() if is_in(name, "server")}
    known = set[str]().union(
        *(
            callbacks(text)
            for name, text in modules.items()
            if name != "server.state.session" and "Callable[" in text
        )
    )
    assigned = re.compile(rf"\.({'|'.join(known)}) = ")
    return [
        f"{name}: {ast.unparse(target)}"
        for name, text in modules.items()
        if name != "server.services" and assigned.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
        and target.attr in known
        and ast.unparse(target.value) not in ("self", "session")
    ]


def test_all_calls_that_are_set_later_are_set_in_services() -> None:
    assert wires(SOURCES) == []
    drawn = SOURCES["server.services"].split('"""')[1]
    set_here = {
        target.attr
        for node in ast.walk(ast.parse(SOURCES["server.services"]))
        if isinstance(node, ast.FunctionDef) and node.name == "_wire"
        for each in ast.walk(node)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Attribute)
    }
    assert len(set_here) > 10
    assert [name for name in sorted(set_here) if name not in drawn] == []


def test_a_call_that_is_set_elsewhere_is_found() -> None:
    text = "\n\ndef steal(blocking) -> None:\n    blocking.when_due = print\n"
    declaring = {name: text for name, text in SOURCES.items() if "when_due: Callable[" in text}
    assert declaring
    assert wires(declaring | {"server.cron": SOURCES["server.cron"] + text}) == [
        "server.cron: blocking.when_due"
    ]


# --- the way of a request --------------------------------------------------------------------

NOTES_REASONS: Final = {
    *("server.state.server_state", "server.state.session", "server.services"),
    *("server.dispatch.reactions", "server.clients.client_pause"),
    *("server.faults.interception", "server.scripting.host_api"),
    *("server.persistence.manager", "server.replication.primary"),
}
"""Who notes the reasons for which requests may not run plainly, or checks that they are noted."""

ASKS_FOR_REASONS: Final = {
    *("server.dispatch.dispatcher", "server.dispatch.refusals", "server.net.connection"),
    *("server.net.intercepted", "server.net.adding", "server.commands.streams.adding"),
}
"""The way of a request."""


def test_only_the_way_of_a_request_asks_whether_it_may_run_plainly() -> None:
    readers = {module for module, imports in present().items() if "server.core.reasons" in imports}
    assert readers == NOTES_REASONS | ASKS_FOR_REASONS
