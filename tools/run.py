"""What ``make run`` does: serves plain Python at once, and has the compiled form made behind it.

::

    python3 tools/run.py run [ARGUMENT ...]   serves, with the arguments of the command penstock
    python3 tools/run.py end                  ends what is being made behind a server

What a server cannot do without is installed into an environment below ``build/first``, and it runs
from the checkout. Behind it, in a session of its own and at the lowest priority, a process installs
the other packages and calls ``make compiled``; the next start uses what that has made. Who makes
something holds a lock on ``build/behind``, and so do the programs that it calls: the lock is free
when the last of them has ended, however it did. What is half done is where no start looks for it.

``PENSTOCK_COMPILE=0`` serves plain Python and compiles nothing; ``PENSTOCK_COMPILE=1`` waits for
the compiled form.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build"
DATA: Final = BUILD / "data"
LOCK: Final = BUILD / "behind"
"""Locked while something is made; holds the number of the group of processes that does it."""
RESULT: Final = BUILD / "behind-result"
"""What became of it, for the log of the server."""
FAILED: Final = BUILD / "compile-failed"
"""Of which sources and which compiler the compiled form could not be made."""

SOURCES: Final = ("tools/build", "penstock", "protocol", "server", "storage")
NEEDED: Final = ("anycrc", "hiredis", "lz4", "uvloop", "xxhash")
"""Without these dependencies there is no answer to a PING. The others come behind the server."""
WHEELS: Final = "/usr/share/python-wheels"
"""Where Debian has pip for those who make environments."""
OLDEST_PIP: Final = [22, 3]
"""The first that installs into the environment of another Python."""

PLAIN: Final = "plain Python from the checkout, at half the speed"
DONE: Final = "The compiled form is there: start again to use it"
BROKEN: Final = "The compiled form could not be made: build/compile.log says why"


def main(word: str, args: list[str]) -> None:
    """Does what the first argument says."""
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        os.environ.pop(name, None)  # They are for what belongs to `make run`.
    if word == "end":
        end()
    elif word == "build":
        build(Path(args[0]), "compile" in args)
    elif word == "serve":
        serve(Path(args[0]), args[1] == "watch", args[2:])
    else:
        run(args, os.environ.get("PENSTOCK_COMPILE", ""))


def say(text: str) -> None:
    """Prints a line in front of those of the server, if somebody reads it."""
    with contextlib.suppress(OSError):
        print(f"Penstock: {text}", flush=True)


def run(args: list[str], choice: str) -> None:
    """Becomes the server, in the form that is there or that is waited for."""
    if choice not in ("", "0", "1"):
        sys.exit(f"Penstock: PENSTOCK_COMPILE is '{choice}': it has to be 0, 1 or empty")
    DATA.mkdir(parents=True, exist_ok=True)
    if choice == "1":
        lock = hold(wait=True)
        if make("--jobs=2", "compiled"):
            sys.exit("Penstock: the compiled form could not be made")
        let_go(lock)
    if choice != "0" and make("--question", "compiled") == 0:
        say("the compiled form of this checkout")
        command = str(BUILD / "compiled" / "bin" / "penstock")
        os.execv(command, [command, *with_folder(args)])
    run_plain(args, compiling=choice != "0")


def run_plain(args: list[str], compiling: bool) -> None:
    """Becomes a server in plain Python, and has made behind it what it lacks."""
    home = environment()
    if own_folder(args) or any(DATA.iterdir()):
        complete(home)  # There may be functions in Lua to load.
    lock = hold()
    obstacle = why_not() if compiling and lock is not None else ""
    if not compiling or obstacle:
        say(f"{PLAIN}: {obstacle}" if obstacle else PLAIN)
    elif lock is None:
        say(f"{PLAIN}; the compiled form is being made already, for the next start")
    else:
        changed = "; the sources have changed" if (BUILD / "compiled-wheel").exists() else ""
        say(f"{PLAIN}{changed}; the compiled form is being made behind it, for the next start")
    compiling = compiling and not obstacle
    if lock is not None and (compiling or not (home / "rest").exists()):
        behind("build", str(home), *(["compile"] if compiling else []))
    let_go(lock)
    command = [str(home / "bin" / "python"), __file__, "serve", str(home)]
    os.execv(command[0], [*command, "watch" if compiling else "", *with_folder(args)])


def serve(home: Path, watch: bool, args: list[str]) -> None:
    """Runs the command from the checkout; packages that are installed later are found then."""
    sys.path[:1] = [str(ROOT)]
    sys.path.append(str(home / "rest"))
    sys.argv[:] = ["penstock", *args]
    from penstock.__main__ import main as penstock

    if watch:
        threading.Thread(target=tell, daemon=True).start()
    sys.exit(penstock())


def tell() -> None:
    """Waits for the end of what is being made, and logs what came of it as the server does."""
    from server.runtime.log import Log

    with LOCK.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    with contextlib.suppress(FileNotFoundError):
        Log(sys.stdout).notice(RESULT.read_text())


def own_folder(args: list[str]) -> bool:
    """Whether the arguments may say where data is: by an option, a file, or standard input."""
    return "--dir" in args or "-" in args or (args != [] and not args[0].startswith("--"))


def with_folder(args: list[str]) -> list[str]:
    """The arguments, with the folder in which data is kept, unless they say otherwise."""
    if own_folder(args):
        return args
    kept = [] if "--appendonly" in args else ["--appendonly", "yes"]
    return [*args, "--dir", str(DATA), *kept]


# --- the environment of plain Python ---------------------------------------------------------


def requirements() -> tuple[list[str], list[str]]:
    """What a server needs first, and what else it depends on."""
    parts: tuple[list[str], list[str]] = ([], [])
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]:
        parts[re.split(r"[^\w-]", line)[0] not in NEEDED].append(line)
    return parts


def environment() -> Path:
    """The environment with what a server needs first; it is made if it is not there."""
    first, rest = requirements()
    mark = hashlib.sha256(repr((first, rest, sys.version)).encode()).hexdigest()[:12]

    def fill(new: Path) -> None:
        say("installing the packages that a server needs, once; this takes some seconds")
        venv.create(new, symlinks=True)
        install(new, first)

    return put(BUILD / "first" / mark, fill)


def complete(home: Path) -> None:
    """Installs the other dependencies into the environment, if they are not there."""
    put(home / "rest", lambda new: install(home, [f"--target={new}", *requirements()[1]]))


def put(place: Path, fill: Callable[[Path], None]) -> Path:
    """Makes a folder, if it is not there, that is there when it is full, and not before."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        new = tempfile.mkdtemp(prefix="new-", dir=place.parent)
        try:
            fill(Path(new))
            with contextlib.suppress(FileExistsError):
                os.rename(new, place)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return place


def install(home: Path, what: list[str]) -> None:
    """Installs packages into an environment without pip; says so and ends where that fails."""
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--prefer-binary")
    if call(*pip(home / "bin" / "python"), "install", *options, *what):
        sys.exit("Penstock: the packages that a server needs could not be installed")


def pip(python: Path) -> list[str]:
    """A pip for the environment of this Python: the one of the Python that runs, as it starts
    faster, or else the one that it brings for environments."""
    with contextlib.suppress(ImportError):
        version = importlib.import_module("pip").__version__.split(".")
        if [int(part) for part in version[:2]] >= OLDEST_PIP:
            return [sys.executable, "-m", "pip", "--python", str(python)]
    brought = importlib.util.find_spec("ensurepip")
    bundled = Path(brought.origin or "").parent / "_bundled" if brought else ""
    folders = (sysconfig.get_config_var("WHEEL_PKG_DIR"), bundled, WHEELS)
    for folder in filter(None, folders):
        for wheel in Path(folder).glob("pip-*.whl"):
            return [str(python), str(wheel / "pip")]
    sys.exit("Penstock: this Python has no pip (Debian: apt-get install python3-venv)")


def call(*command: str, **settings: Any) -> int:
    """The exit status of a command. If there is a lock, it is held as long as the command runs."""
    return subprocess.run(command, cwd=ROOT, close_fds=False, check=False, **settings).returncode


def make(*words: str) -> int:
    """The exit status of make, which does not look for a build behind a server."""
    quiet = ("--silent", "--no-print-directory")
    return call("make", *quiet, "BEHIND=1", f"PYTHON={sys.executable}", *words)


# --- what is made behind a server ------------------------------------------------------------


def hold(wait: bool = False) -> int | None:
    """Takes the lock; ``None`` if something is being made already."""
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.set_inheritable(lock, True)
    return lock


def let_go(lock: int | None) -> None:
    """Holds the lock no longer; a process that has been started with it does."""
    if lock is not None:
        os.close(lock)


def behind(*args: str) -> None:
    """Runs this program in a session of its own, of which the server is not the parent."""
    command = ("sh", "-c", 'nice -n 19 "$@" &', "sh", sys.executable, __file__, *args)
    with (BUILD / "compile.log").open("w") as log:
        files = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        call(*command, start_new_session=True, **files)


def build(home: Path, compiling: bool) -> None:
    """Makes what a server in plain Python lacks. That the compiled form cannot be made is kept in
    mind, unless it was for a lack of packages, which the next start may have."""
    LOCK.write_text(str(os.getpgrp()))
    RESULT.write_text(BROKEN)
    complete(home)
    if not compiling or make("build/builder/installed", "build/compiled/dependencies"):
        return
    mark = sources_and_compiler()
    if make("compiled"):
        FAILED.write_text(mark)
    else:
        RESULT.write_text(DONE)


def why_not() -> str:
    """Why no compiled form can be made here; empty if it may be tried."""
    if not shutil.which(compiler()[0]):
        return f"there is no C compiler ({compiler()[0]})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python's header files are missing"
    if FAILED.exists() and FAILED.read_text() == sources_and_compiler():
        return "its compiled form could not be made; build/compile.log says why"
    return ""


def compiler() -> list[str]:
    """The C compiler, as setup.py finds it."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def sources_and_compiler() -> str:
    """What a compiled form depends on, in short."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = [path.read_bytes() for path in (ROOT / "setup.py", ROOT / "pyproject.toml", *paths)]
    version = subprocess.run([*compiler(), "--version"], capture_output=True, check=False).stdout
    known = (sys.version, version, os.environ.get("CFLAGS"), texts)
    return hashlib.sha256(repr(known).encode()).hexdigest()


def end() -> None:
    """Ends what is being made behind a server; returns when nothing of it runs."""
    BUILD.mkdir(exist_ok=True)
    for tries in range(200):
        if hold() is not None:
            return
        with contextlib.suppress(ValueError, ProcessLookupError):
            group = int(LOCK.read_text())
            RESULT.write_text("The compiled form is no longer being made")
            os.killpg(group, signal.SIGTERM if tries < 100 else signal.SIGKILL)
        time.sleep(0.05)
    sys.exit("Penstock: somebody waits for the compiled form: end that first")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit(130)
