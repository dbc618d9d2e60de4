"""What `make run` does, in a checkout whose server, compiler and packages are small."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.process import ROOT

pytestmark = pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="Python's header files are missing",
)

MAKEFILE = """
compiled: build/compiled/installed
build/builder/installed build/compiled/dependencies:
	@mkdir -p $(@D) && touch $@
build/compiled/installed: penstock/__main__.py
	@echo tried >>tried
	@./compile
	@mkdir -p build/compiled-wheel build/compiled/bin
	@cp compiled_penstock build/compiled/bin/penstock
	@touch $@
"""

SERVER = """
import signal, sys, time

def main():
    # As a server does: there is no handler where a shell has started all of this behind itself.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.stdout.write(" ".join(["plain", *sys.argv[1:]]) + "\\n")
        sys.stdout.flush()
        while "--stay" in sys.argv:
            time.sleep(0.01)  # The signal may come to the thread that waits for the build.
    except KeyboardInterrupt:
        print("Bye")
"""

LOG = """
class Log:
    def __init__(self, stream):
        self.stream = stream

    def notice(self, text):
        self.stream.write(f"logged: {text}\\n")
        self.stream.flush()
"""

FILES = {
    "Makefile": MAKEFILE,
    "pyproject.toml": '[project]\ndependencies = ["hiredis>=3", "rich>=13", "lz4", "lupa>2,<3"]\n',
    "setup.py": "",
    "penstock/__main__.py": SERVER,
    "server/runtime/log.py": LOG,
    "compile": "#!/bin/sh\n",
    "compiled_penstock": '#!/bin/sh\necho compiled "$@"\n',
    "cc": "#!/bin/sh\necho version 1\n",
}

FOLLOWS = "; the compiled form is being made behind it, for the next start"
ONCE = "Penstock: installing the packages that a server needs, once; this takes some seconds"
PLAIN = "Penstock: plain Python from the checkout, at half the speed"
COMPILED = "Penstock: the compiled form of this checkout"


def load(path: Path) -> Any:
    """A program as a module."""
    spec = importlib.util.spec_from_file_location("run_of_a_checkout", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Checkout:
    """A checkout in a folder. ``tool`` is its `tools/run.py`, imported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)
        (root / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "run.py", root / "tools")
        self.tool = load(root / "tools" / "run.py")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    @contextmanager
    def start(self, *args: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """`make run`, as a process that is killed when the test fails, or after a minute."""
        environment = {**os.environ, "CC": str(self.root / "cc"), **variables}
        environment.pop("PYTHONPATH", None)  # It would lead to another server than this one.
        with subprocess.Popen(
            [sys.executable, "tools/run.py", *(args or ("run",))],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            killing = Timer(60, process.kill)
            killing.start()
            try:
                yield process
            except BaseException:
                process.kill()
                raise
            finally:
                process.wait()
                ended_by_itself = killing.is_alive()
                killing.cancel()
            assert ended_by_itself, "it was still there after a minute"

    def outcome(self, *args: str, **variables: str) -> tuple[str, int]:
        """What it prints, and its exit status."""
        with self.start(*args, **variables) as process:
            output, _ = process.communicate()
        return output, process.returncode

    def run(self, *args: str, **variables: str) -> list[str]:
        """What it prints until the server has ended, but for what came of a build, which may come
        before that."""
        output, _ = self.outcome("run", *args, **variables)
        return [line for line in output.splitlines() if not line.startswith("logged: ")]

    def wait(self) -> None:
        """Returns when nothing is made any more."""
        os.close(self.tool.hold(wait=True))

    def idle(self) -> bool:
        """Whether nothing is being made."""
        lock = self.tool.hold()
        if lock is not None:
            os.close(lock)
        return lock is not None

    @property
    def tried(self) -> int:
        """How often the compiled form was to be made."""
        path = self.root / "tried"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def hold_back(self) -> None:
        """Lets the compiler wait until :meth:`let_go`."""
        os.mkfifo(self.root / "gate")
        self.write("compile", "#!/bin/sh\nread line <gate\n")

    def let_go(self) -> None:
        """Lets the compiler go on, as soon as it waits."""
        (self.root / "gate").write_text("\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout that has an environment for plain Python already."""
    made = Checkout(tmp_path)
    made.tool.install = lambda *_: None
    made.tool.complete(made.tool.environment())
    return made


# --- which form is served --------------------------------------------------------------------


def test_the_first_start_is_plain_and_the_next_one_compiled(checkout: Checkout) -> None:
    kept = f"--dir {checkout.root / 'build' / 'data'} --appendonly yes"
    assert checkout.run("--port", "7000") == [PLAIN + FOLLOWS, f"plain --port 7000 {kept}"]
    checkout.wait()
    assert checkout.run("--port", "7000") == [COMPILED, f"compiled --port 7000 {kept}"]
    assert checkout.tried == 1


def test_a_changed_source_is_served_and_compiled_for_the_next_start(checkout: Checkout) -> None:
    checkout.run()
    checkout.wait()
    checkout.write("penstock/__main__.py", SERVER.replace('"plain"', '"changed"'))
    first, second = checkout.run()
    assert first == f"{PLAIN}; the sources have changed{FOLLOWS}"
    assert second.startswith("changed ")
    checkout.wait()
    assert checkout.run()[0] == COMPILED


def test_a_server_is_told_when_the_compiled_form_is_there(checkout: Checkout) -> None:
    checkout.hold_back()
    with checkout.start("run", "--stay") as server:
        assert server.stdout is not None
        assert server.stdout.readline() == f"{PLAIN}{FOLLOWS}\n"
        assert server.stdout.readline().startswith("plain --stay")
        checkout.let_go()
        assert server.stdout.readline() == (
            "logged: The compiled form is there: start again to use it\n"
        )
        server.send_signal(signal.SIGINT)
        assert (server.stdout.read(), server.wait()) == ("Bye\n", 0)


def test_a_build_outlives_its_server_and_a_second_start_begins_no_other(
    checkout: Checkout,
) -> None:
    checkout.hold_back()
    with checkout.start("run", "--stay") as server:
        assert server.stdout is not None
        server.stdout.readline()
        server.stdout.readline()
        server.send_signal(signal.SIGINT)
    again = f"{PLAIN}; the compiled form is being made already, for the next start"
    assert checkout.run()[0] == again
    assert not checkout.idle()
    checkout.let_go()
    checkout.wait()
    assert (checkout.run()[0], checkout.tried) == (COMPILED, 1)


def test_a_failed_build_is_told_and_tried_again_when_something_has_changed(
    checkout: Checkout,
) -> None:
    checkout.write("compile", "#!/bin/sh\necho syntax error\nexit 1\n")
    with checkout.start("run", "--stay") as server:
        assert server.stdout is not None
        printed = {server.stdout.readline() for _ in (1, 2, 3)}  # In an order that nothing decides.
        server.send_signal(signal.SIGINT)
    assert "logged: The compiled form could not be made: build/compile.log says why\n" in printed
    assert "syntax error" in (checkout.root / "build" / "compile.log").read_text()
    again = f"{PLAIN}: its compiled form could not be made; build/compile.log says why"
    assert (checkout.run()[0], checkout.tried) == (again, 1)
    checkout.write("cc", "#!/bin/sh\necho version 2\n")
    assert checkout.run()[0] == PLAIN + FOLLOWS
    checkout.wait()
    assert (checkout.run()[0], checkout.tried) == (again, 2)
    checkout.write("server/runtime/log.py", f"{LOG}\n")
    checkout.write("compile", "#!/bin/sh\n")
    checkout.run()
    checkout.wait()
    assert checkout.run()[0] == COMPILED


def test_where_nothing_can_be_compiled_nothing_is_tried(checkout: Checkout) -> None:
    assert checkout.run(CC="/nowhere/cc")[0] == f"{PLAIN}: there is no C compiler (/nowhere/cc)"
    assert checkout.idle()
    assert checkout.tried == 0


def test_what_lacks_packages_is_tried_at_each_start(checkout: Checkout) -> None:
    broken = MAKEFILE.replace("mkdir -p $(@D) && touch $@", "exit 1")
    checkout.write("Makefile", broken)
    for _ in range(2):
        assert checkout.run()[0] == PLAIN + FOLLOWS
        checkout.wait()
    assert checkout.tried == 0
    checkout.write("Makefile", MAKEFILE)
    checkout.run()
    checkout.wait()
    assert checkout.run()[0] == COMPILED


def test_a_variable_decides_whether_to_compile_and_whether_to_wait(checkout: Checkout) -> None:
    assert checkout.run(PENSTOCK_COMPILE="0")[0] == PLAIN
    assert (checkout.idle(), checkout.tried) == (True, 0)
    assert checkout.run(PENSTOCK_COMPILE="1")[0] == COMPILED
    assert checkout.run(PENSTOCK_COMPILE="0")[0] == PLAIN
    assert checkout.outcome("run", PENSTOCK_COMPILE="yes") == (
        "Penstock: PENSTOCK_COMPILE is 'yes': it has to be 0, 1 or empty\n",
        1,
    )


def test_nobody_has_to_read_what_it_says(checkout: Checkout) -> None:
    checkout.write("penstock/__main__.py", "def main():\n    open('served', 'w').close()\n")
    with checkout.start("run", PENSTOCK_COMPILE="0") as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0
    assert (checkout.root / "served").exists()


def test_waiting_for_a_compiled_form_that_cannot_be_made_is_an_error(checkout: Checkout) -> None:
    checkout.write("compile", "#!/bin/sh\necho syntax error\nexit 1\n")
    output, status = checkout.outcome("run", PENSTOCK_COMPILE="1")
    first, *_, last = output.splitlines()
    assert (first, last) == ("syntax error", "Penstock: the compiled form could not be made")
    assert status == 1


def test_whoever_waits_uses_what_is_being_made(checkout: Checkout) -> None:
    checkout.hold_back()
    checkout.run()
    with checkout.start("run", PENSTOCK_COMPILE="1") as waiting:
        checkout.let_go()
        output, _ = waiting.communicate()
    assert output.splitlines()[0] == COMPILED
    assert checkout.tried == 1


def test_a_build_can_be_ended_with_all_that_it_runs(checkout: Checkout) -> None:
    checkout.hold_back()
    checkout.run()
    assert not checkout.idle()
    assert checkout.outcome("end") == ("", 0)
    assert checkout.idle()
    assert checkout.outcome("end") == ("", 0)
    checkout.write("compile", "#!/bin/sh\n")
    assert checkout.run()[0] == PLAIN + FOLLOWS
    checkout.wait()
    assert checkout.run()[0] == COMPILED


# --- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "own"),
    [
        ([], False),
        (["--port", "7000"], False),
        (["--version"], False),
        (["--port", "7000", "--dir", "here"], True),
        (["my.conf"], True),
        (["-"], True),
        (["--port", "7000", "-"], True),
    ],
)
def test_data_is_in_build_unless_the_arguments_name_a_place(
    checkout: Checkout, args: list[str], own: bool
) -> None:
    folder = ["--dir", str(checkout.root / "build" / "data"), "--appendonly", "yes"]
    assert checkout.tool.with_folder(args) == [*args, *([] if own else folder)]


def test_data_is_kept_unless_the_arguments_say_otherwise(checkout: Checkout) -> None:
    folder = ["--dir", str(checkout.root / "build" / "data")]
    args = ["--appendonly", "no"]
    assert checkout.tool.with_folder(args) == [*args, *folder]


# --- packages --------------------------------------------------------------------------------


def wheel(folder: Path, name: str) -> None:
    """Writes a package that can be installed and has nothing in it."""
    info = f"{name}-2.9.dist-info"
    with zipfile.ZipFile(folder / f"{name}-2.9-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.9\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


def modules(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.py")}


def test_what_a_server_needs_first_is_installed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, offered = Checkout(tmp_path), tmp_path / "offered"
    dependencies = '["hiredis>=2", "rich>=2; python_version > \'3\'"]'
    checkout.write("pyproject.toml", f"[project]\ndependencies = {dependencies}\n")
    offered.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
    with pytest.raises(SystemExit, match="could not be installed"):
        checkout.tool.environment()
    assert [*(tmp_path / "build" / "first").iterdir()] == []
    for name in ("hiredis", "rich"):
        wheel(offered, name)
    capsys.readouterr()
    home = checkout.tool.environment()
    assert capsys.readouterr().out == f"{ONCE}\n"
    assert modules(home) == {"hiredis.py"}
    checkout.tool.complete(home)
    assert modules(home / "rest") == {"rich.py"}
    assert checkout.tool.environment() == home
    assert capsys.readouterr().out == ""


def test_a_server_needs_dependencies_that_there_are() -> None:
    module = load(ROOT / "tools" / "run.py")
    first, rest = module.requirements()
    assert [line.split(">")[0] for line in first] == list(module.NEEDED)
    assert rest


def test_pip_is_that_of_python_or_comes_with_it(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool, python, shared = checkout.tool, Path("/env/bin/python"), tmp_path / "wheels"
    pips = {"pip": SimpleNamespace(__version__="22.3")}
    monkeypatch.setattr(tool.importlib, "import_module", pips.__getitem__)
    assert tool.pip(python) == [sys.executable, "-m", "pip", "--python", str(python)]
    pips["pip"].__version__ = "9.0.1"  # Which can only install where it is itself.
    assert tool.pip(python)[0] == str(python)
    monkeypatch.setattr(tool.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(tool.sysconfig, "get_config_var", lambda _: None)
    monkeypatch.setattr(tool, "WHEELS", str(shared))
    with pytest.raises(SystemExit, match="this Python has no pip"):
        tool.pip(python)
    shared.mkdir()
    (shared / "pip-23.whl").write_text("")
    assert tool.pip(python) == [str(python), str(shared / "pip-23.whl" / "pip")]
