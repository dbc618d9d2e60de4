"""Which modules are compiled, how, and what makes the result another one."""

from __future__ import annotations

import ast
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.process import ROOT
from tools.build import cache, native


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two modules, of which one is in a room that is compiled."""
    for name in ("tools/build", "storage/engine", "storage"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "setup.py").touch()
    (tmp_path / "tools" / "build" / "native.py").touch()
    (tmp_path / "storage" / "log.py").write_text('"""The log."""\n')
    (tmp_path / "storage" / "engine" / "hot.py").write_text('"""Hot."""\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(native, "_version_of", lambda command: f"gcc {command}")
    return tmp_path


def compiler(*options: str) -> SimpleNamespace:
    return SimpleNamespace(compiler_so=["gcc", *options], linker_so=["gcc", "-shared"])


def key(level: str = "1", *options: str) -> str:
    return cache.key_of(native.influences(compiler(*options), level))


def test_a_module_is_compiled_by_the_room_that_it_is_in(checkout: Path) -> None:
    assert native.sources() == ["storage/engine/hot.py"]
    (checkout / "storage" / "engine" / "hot.py").rename(checkout / "storage" / "moved.py")
    assert native.sources() == []


@pytest.mark.parametrize(
    ("path", "compiled"),
    [
        ("storage/engine/new.py", True),
        ("storage/engine/__init__.py", False),
        ("storage/aof/disk.py", False),
        ("storage/new.py", False),
        ("storage/errors.py", True),
        ("server/web/http.py", False),
    ],
)
def test_a_room_is_compiled_but_for_some_or_only_some_of_it_are(path: str, compiled: bool) -> None:
    assert native.is_compiled(path) == compiled


def test_every_room_and_every_module_that_is_named_exists() -> None:
    assert not native.ALL_BUT.keys() & native.ONLY.keys()
    named = {**native.ALL_BUT, **native.ONLY}
    paths = [f"{room}/{name}.py" for room, names in named.items() for name in names.split()]
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    assert [room for room in named if not (ROOT / room / "__init__.py").is_file()] == []


def test_the_modules_of_a_room_share_what_leads_to_the_library(tmp_path: Path) -> None:
    names = ("server.net.a", "server.net.b", "server.core.a", native.LIBRARY)
    extensions = [SimpleNamespace(name=name, sources=[f"{name}.c"]) for name in names]
    rooms = native.by_room(extensions, str(tmp_path))
    assert {Path(path).name: [one.name for one in some] for path, some in rooms.items()} == {
        "__native_server-net.c": ["server.net.a", "server.net.b"],
        "__native_server-core.c": ["server.core.a"],
    }
    lines = (tmp_path / "__native_server-net.c").read_text().splitlines()
    included = [Path(line.split('"')[1]).name for line in lines if line.startswith("#include")]
    assert included == ["server.net.a.c", "server.net.b.c"]
    # Each of them defines this, which may be in a library once.
    defined = [line.split()[-1] for line in lines if line.startswith("#define PyInit___init__ ")]
    assert len(set(defined)) == 2


def another_source(checkout: Path) -> None:
    (checkout / "storage" / "engine" / "hot.py").write_text('"""Hotter."""\n')


def a_plain_source(checkout: Path) -> None:
    # The types in it go into what is made of modules that import it.
    (checkout / "storage" / "log.py").write_text('"""Another log."""\n')


def a_new_module(checkout: Path) -> None:
    (checkout / "storage" / "block.py").touch()


def another_name(checkout: Path) -> None:
    (checkout / "storage" / "log.py").rename(checkout / "storage" / "logs.py")


def how_it_is_built(checkout: Path) -> None:
    (checkout / "setup.py").write_text("import setuptools\n")


def with_what_it_is_built(checkout: Path) -> None:
    (checkout / "tools" / "build" / "native.py").write_text("LEVELS = {}\n")


@pytest.mark.parametrize(
    "change",
    [
        another_source,
        a_plain_source,
        a_new_module,
        another_name,
        how_it_is_built,
        with_what_it_is_built,
    ],
)
def test_a_build_of_other_files_is_another_one(
    checkout: Path, change: Callable[[Path], None]
) -> None:
    before = key()
    assert key() == before
    change(checkout)
    assert key() != before


def test_a_build_by_other_tools_is_another_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {key(), key("2"), key("1", "-march=armv8-a"), key("1", "-march=native")}
    for module, name, value in (
        (platform, "machine", lambda: "riscv64"),
        (platform, "libc_ver", lambda: ("glibc", "2.99")),
        (native, "_version_of", lambda command: "clang 99"),
        (native, "version", lambda name: "9.9"),
        (sys, "version", "3.99"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            keys.add(key())
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: "elsewhere")
        keys.add(key("1", "-march=native"))
        keys.add(key())  # Which is the first again.
    assert len(keys) == 10


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) Free Software", "gcc 12.2.0"),
        ("cc (GCC) 14.1.1 20240522\nCopyright (C) Free Software Foundation", "gcc 14.1.1"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64", "clang 15.0.0"),
        ("tcc version 0.9", "cc 0.9"),
        ("", "cc"),
    ],
)
def test_the_version_names_the_compiler(
    monkeypatch: pytest.MonkeyPatch, told: str, name: str
) -> None:
    monkeypatch.setattr(native, "_version_of", lambda command: told)
    monkeypatch.setattr(native, "version", lambda package: "2.4.1")
    assert native.description(compiler(), "2") == f"-O2 mypyc 2.4.1 {name}"


def test_only_gcc_has_options_of_its_own_and_leaves_passes_out_at_level_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {}
    for told in ("gcc 12.2.0\nFree Software", "clang version 14.0.6", "tcc 0.9"):
        monkeypatch.setattr(native, "_version_of", lambda command, told=told: told)
        for level in native.LEVELS:
            found[told[:3], level] = set(native.options(compiler(), level))
    assert found.pop(("gcc", "1")) == {*native.COMMON, *native.APART, *native.LEAN}
    assert found.pop(("gcc", "2")) == {*native.COMMON, *native.APART}
    assert len(found) == 4
    assert set(map(frozenset, found.values())) == {frozenset(native.COMMON)}


def test_the_level_is_one_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = []
    for told in ("", "1", "2"):
        monkeypatch.setenv("PENSTOCK_OPTIMIZE", told)
        levels.append(native.chosen_level())
    assert levels == ["1", "1", "2"]
    monkeypatch.setenv("PENSTOCK_OPTIMIZE", "fast")
    with pytest.raises(native.Choice, match=r"^PENSTOCK_OPTIMIZE is 'fast': 1 and 2 are allowed$"):
        native.chosen_level()


def test_a_compiler_that_cannot_precompile_goes_without(tmp_path: Path) -> None:
    assert native.precompile(["false"], [], str(tmp_path)) == []
    assert native.precompile(["true"], [], str(tmp_path)) == ["-include", f"{tmp_path}/first.h"]


def test_the_first_header_tells_which_functions_are_unlikely(tmp_path: Path) -> None:
    native.precompile(["true"], [], str(tmp_path))
    lines = (tmp_path / "first.h").read_text().splitlines()
    assert lines[:2] == [
        '#include "__native_penstock.h"',
        '#include "__native_internal_penstock.h"',
    ]
    assert lines[2] == "__typeof__(CPy_AddTraceback) CPy_AddTraceback __attribute__((cold));"
    assert len(lines) == 2 + len(native.UNLIKELY)


def one_name_for_two(path: Path) -> list[str]:
    """The functions of a module in which a name stands for errors of two kinds."""
    found = []
    nodes = ast.walk(ast.parse(path.read_text()))
    for function in [node for node in nodes if isinstance(node, ast.FunctionDef)]:
        inner = list(ast.walk(function))
        caught = [each for each in inner if isinstance(each, ast.ExceptHandler) and each.name]
        kinds = {(each.name, ast.unparse(each.type or ast.Constant(None))) for each in caught}
        if len(kinds) > len({name for name, _ in kinds}):
            found.append(f"{path.name}: {function.name}")
    return found


def test_a_name_in_a_function_stands_for_errors_of_one_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code keeps a name with the type that it had first."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "def read():\n    try:\n        yield 1\n    except KeyError as error:\n        pass\n"
        "    except IndexError as error:\n        pass\n"
    )
    assert one_name_for_two(wrong) == ["wrong.py: read"]
    monkeypatch.chdir(ROOT)
    paths = native.sources()
    assert len(paths) > 90
    assert [name for path in paths for name in one_name_for_two(Path(path))] == []


AT_ONCE = {
    *(
        "Counter",
        "all",
        "any",
        "bytes",
        "deque",
        "dict",
        "frozenset",
        "fromkeys",
        "join",
        "list",
        "max",
    ),
    *("min", "next", "set", "sorted", "sum", "tuple", "union", "update"),
}
"""What takes all of its argument before it returns, or compiled as soon as it may end."""


def taken_later(path: Path) -> list[str]:
    """The generator expressions of a module that may be meant to be gone through piece by piece."""
    found = []
    for parent in ast.walk(ast.parse(path.read_text())):
        for child in ast.iter_child_nodes(parent):
            if not isinstance(child, ast.GeneratorExp) or isinstance(parent, ast.Starred):
                continue
            taker = ast.unparse(parent.func) if isinstance(parent, ast.Call) else ""
            unpacked = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple)
            if not unpacked and taker.rpartition(".")[2] not in AT_ONCE:
                found.append(f"{path.name}: {ast.unparse(child)}")
    return found


def test_what_is_made_piece_by_piece_is_no_generator_expression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code makes a list of one, all at once: only functions that yield give way."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "a, b = (x for x in y)\nz = sum(x for x in y), [*(x for x in y)], (x for x in y)"
    )
    assert taken_later(wrong) == ["wrong.py: (x for x in y)"]
    monkeypatch.chdir(ROOT)
    assert [each for path in native.sources() for each in taken_later(Path(path))] == []
