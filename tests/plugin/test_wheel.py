"""What a wheel brings, in an environment of its own beside a project with clashing names.

The variable PENSTOCK_WHEEL names the wheel; without it one of plain Python is built.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import logs
from tests.support.ports import free_port
from tests.support.process import ROOT, printed_by

pytestmark = pytest.mark.slow

SOURCES = ("tools", "penstock", "protocol", "server", "storage")
FILES = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
ONLY_ONE = """
ALL_BUT.clear()
ONLY.clear()
ONLY["server/commands/strings"] = "counters"
"""
CLASHING = ("server", "storage", "protocol", "pipeline", "migration")
TIMEOUT_S = 300

TEST = f"""
import {", ".join(CLASHING)}

def test_it(penstock):
    assert penstock.client.xadd("orders", {{"item": "tea"}}, id="1-1") == "1-1"
    with penstock.client.lock("orders-lock"):  # Its release is a script.
        assert penstock.client.exists("orders-lock")
    assert not penstock.client.exists("orders-lock")
    assert {{{", ".join(f"{name}.NAME" for name in CLASHING)}}} == {{"mine"}}
"""


def build(source: Path, target: Path) -> Path:
    """A wheel of plain Python."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", target)
    printed_by(*pip, *options, source, cwd=source, PENSTOCK_COMPILE="0")
    [wheel] = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a wheel is built from, as building leaves files behind."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("only a checkout has the sources")
    folder = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel to try."""
    if given := os.environ.get("PENSTOCK_WHEEL"):
        return Path(given)
    return build(request.getfixturevalue("checkout"), tmp_path_factory.mktemp("wheel"))


def environment(folder: Path, wanted: str) -> Path:
    """The folder of commands of a fresh environment with the wheel, and extras that are named."""
    printed_by(sys.executable, "-m", "venv", folder, cwd=folder)
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    printed_by(*pip, "install", "--quiet", wanted, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a fresh environment with the wheel and pytest."""
    return environment(tmp_path_factory.mktemp("environment"), f"{wheel}[testing]")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that has packages with the names of Penstock's own."""
    for name in CLASHING:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('NAME = "mine"\n')
    (tmp_path / "test_it.py").write_text(TEST)
    return tmp_path


def names(wheel: Path) -> list[str]:
    """The files in it."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_one_name_can_be_imported(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"penstock"}


def test_what_is_compiled_lies_beside_its_source(wheel: Path) -> None:
    files = names(wheel)
    native = [name for name in files if name.endswith(".so") and "__mypyc." not in name]
    assert ("none-any" in wheel.name) == (not native)
    assert {re.sub(r"\.[^/]*$", ".py", name) for name in native} <= set(files)
    assert all(name.startswith("penstock/_packages/") for name in files if name.endswith(".so"))


def test_the_plugin_serves_a_project_with_clashing_names(scripts: Path, project: Path) -> None:
    shown = printed_by(
        scripts / "python", "-m", "pytest", "-q", cwd=project, PYTHONPATH=str(project)
    )
    assert "1 passed" in shown


@pytest.mark.parametrize("module", [False, True], ids=["command", "module"])
def test_the_command_runs_beside_clashing_names(scripts: Path, project: Path, module: bool) -> None:
    command = (scripts / "python", "-m", "penstock") if module else (scripts / "penstock",)
    for argument in ("--version", "--help"):
        shown = printed_by(*command, argument, cwd=project, PYTHONPATH=str(project))
        assert "penstock" in shown.lower()
    shown = printed_by(*command, "check-aof", "--help", cwd=project, PYTHONPATH=str(project))
    assert shown.startswith("Usage: penstock check-aof")
    shown = printed_by(*command, "import", "--help", cwd=project, PYTHONPATH=str(project))
    assert "penstock import" in shown


def test_a_server_of_the_wheel_keeps_its_data_over_a_restart(scripts: Path, tmp_path: Path) -> None:
    shown = printed_by(
        scripts / "python", ROOT / "examples" / "exchange.py", cwd=tmp_path, PYTHONPATH=""
    )
    assert re.fullmatch(
        r"penstock \((plain|compiled)\): asked 8 commands and restarted once\n", shown
    )


def test_nothing_else_imports_the_packages_of_the_server(scripts: Path, tmp_path: Path) -> None:
    program = "import importlib.util as u; print(*map(u.find_spec, ['server', 'storage']))"
    found = printed_by(scripts / "python", "-c", program, cwd=tmp_path, PYTHONPATH="")
    assert found == "None None\n"


def test_a_wheel_of_the_source_distribution_has_the_same_files(
    wheel: Path, checkout: Path, tmp_path: Path
) -> None:
    program = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    printed_by(sys.executable, "-c", program, cwd=checkout)
    [archive] = (checkout / "dist").glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    python = {name for name in names(wheel) if not name.endswith(".so")}
    assert set(names(build(source, tmp_path / "wheel"))) == python


def made(folder: str, names: list[str]) -> set[str]:
    """What building leaves behind; another folder called `build` is one of sources."""
    return {"build", "dist"} & {*names} if "setup.py" in names else set()


@pytest.fixture
def small(checkout: Path, tmp_path: Path) -> Path:
    """The same, with a single module that is compiled."""
    folder = tmp_path / "small"
    shutil.copytree(checkout, folder, ignore=made)
    with (folder / "tools" / "build" / "native.py").open("a") as rooms:
        rooms.write(ONLY_ONE)
    return folder


BUILD = "from setuptools.build_meta import build_wheel as b; import sys; b(sys.argv[1])"
COMPILING = "Penstock: translating Python to C\n"


def compiled(source: Path, wheels: Path, **environment: str) -> tuple[dict[str, bytes], str]:
    """The libraries in the wheel of a checkout, and what is said while it is built."""
    settings = {"PENSTOCK_COMPILE": "1", "XDG_CACHE_HOME": str(source.parent), **environment}
    said = printed_by(sys.executable, "-c", BUILD, wheels, cwd=source, **settings)
    [wheel] = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        native = [name for name in archive.namelist() if ".cpython-" in name]
        return {name: archive.read(name) for name in native}, said


def test_the_same_is_compiled_once_whatever_becomes_of_what_was_kept(
    small: Path, tmp_path: Path
) -> None:
    # Where the header cannot be used that is compiled first, a warning makes it fail.
    compiler = f"{os.environ.get('CC', 'gcc')} -Winvalid-pch"
    with ThreadPoolExecutor() as pool:
        # In the same folder, at the same time: one waits for the other, and takes what that made.
        building = [
            pool.submit(compiled, small, tmp_path / name, CC=compiler) for name in ("a", "b")
        ]
    (first, one), (second, other) = (future.result() for future in building)
    assert len(first) == 2
    assert second == first
    assert (COMPILING in one) != (COMPILING in other)
    assert f"taken from {tmp_path}/penstock\n" in one + other
    [kept] = (tmp_path / "penstock").iterdir()
    os.truncate(kept, kept.stat().st_size // 2)
    anew, said = compiled(small, tmp_path / "c", CC=compiler)
    assert set(anew) == set(first)
    assert COMPILING in said


def test_of_sources_that_change_meanwhile_no_wheel_is_built(small: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f"""#!/bin/sh
        case "$*" in *__native_*) echo '# More.' >>{small}/storage/log.py ;; esac
        exec {os.environ.get("CC", "gcc")} "$@"
        """
    )
    compiler.chmod(0o755)
    ended = subprocess.run(
        [sys.executable, "-c", BUILD, tmp_path / "wheels"],
        cwd=small,
        env={**os.environ, "CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.stderr.endswith(
        "error: a source has changed while it was compiled: build it again\n"
    )
    assert not list((tmp_path / "wheels").glob("*.whl"))
    assert not list((tmp_path / "penstock").iterdir())


@pytest.mark.parametrize("demanded", [False, True], ids=["", "PENSTOCK_COMPILE=1"])
def test_without_a_c_compiler_a_wheel_is_of_plain_python_unless_it_must_not_be(
    checkout: Path, tmp_path: Path, demanded: bool
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BUILD, tmp_path],
        cwd=checkout,
        env={**os.environ, "CC": "false", "PENSTOCK_COMPILE": "1" if demanded else ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    reason = "no C compiler works, or Python's header files are missing\n"
    if demanded:
        assert ended.stderr.endswith(f"error: the hot modules cannot be compiled: {reason}")
        assert not list(tmp_path.glob("*.whl"))
    else:
        line = f"Penstock: plain Python, at about half the speed: {reason}"
        assert ended.stdout.count(line) == 1, ended.stdout + ended.stderr
        assert [path.name[-12:] for path in tmp_path.glob("*.whl")] == ["none-any.whl"]


# --- the extra `web` -------------------------------------------------------------------------


@contextlib.contextmanager
def served(command: Path, folder: Path, *options: str) -> Iterator[int]:
    """The port of the metrics of a server that has an entry."""
    port, metrics = free_port(), free_port()
    where = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    process = subprocess.Popen(
        [command, *where, "--metrics-port", str(metrics), *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    seen = ""
    try:
        while "Ready to accept connections" not in seen:
            line = process.stdout.readline()
            assert line, seen
            seen += line
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as client:
            client.sendall(b"XADD orders 1-1 item tea\r\n")
            assert client.recv(100) == b"$3\r\n1-1\r\n"
        yield metrics
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=TIMEOUT_S)
        logs.read(seen + rest)
    assert process.returncode == 0


def asked(port: int, path: str) -> tuple[int, str]:
    """The status and the text of an answer over HTTP."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_S) as answer:
        return answer.status, answer.read().decode()


def test_without_the_extra_the_server_says_what_to_run_and_then_has_metrics_and_readiness(
    wheel: Path, tmp_path: Path
) -> None:
    scripts = environment(tmp_path, str(wheel))
    options = ("--port", "0", "--bind", "127.0.0.1", "--metrics-port", str(free_port()))
    ended = subprocess.run(
        [scripts / "penstock", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 1
    what, command = ended.stderr.split("): ")
    assert what.startswith("penstock: metrics-port needs the extra 'web' (there is no module '")
    printed_by(*shlex.split(command), cwd=tmp_path)
    with served(scripts / "penstock", tmp_path) as port:
        status, text = asked(port, "/metrics")
        assert status == 200
        assert 'redis_stream_length{db="db0",stream="orders"} 1\n' in text
        assert "redis_up 1.0\n" in text
        assert asked(port, "/healthz")[0] == asked(port, "/readyz")[0] == 200
    installed = printed_by(scripts / "python", "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    assert "pytest" not in re.findall(r"^([\w-]+)==", installed, re.MULTILINE)
