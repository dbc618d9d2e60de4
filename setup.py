"""Builds wheels with the hot modules compiled to native code; ``pyproject.toml`` says the rest.

The packages ``protocol``, ``server`` and ``storage`` lie at the top of the repository, but packages
of such names must not be installed for everybody: a wheel has them in ``penstock/_packages``, where
the command ``penstock`` finds them (``penstock/__init__.py``).

The same Python source runs either way: mypyc makes extension modules of it, which are imported in
place of the source. ``PENSTOCK_COMPILE=0`` leaves that out, ``PENSTOCK_COMPILE=1`` fails where it
cannot be done; else a machine without a C compiler gets plain Python, and one line that says so.
Editable installs are never compiled: what is edited would not be what runs. ``PENSTOCK_OPTIMIZE=2``
takes longer for a little more speed; ``PENSTOCK_CACHE=0`` neither keeps nor takes finished modules.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

# isort: off
from setuptools import Distribution, Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, SetupError

# After setuptools, which brings them.
from distutils.ccompiler import new_compiler
from distutils.sysconfig import customize_compiler

# What lies beside this file is found there, however it is run.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tools.build import cache, native
# isort: on

INNER = "penstock._packages"
"""Where a wheel has the packages of the server."""

COMPILE = os.environ.get("PENSTOCK_COMPILE", "")
"""``0``: the source stays as it is; ``1``: compile it or fail; else: compile it if that works."""


def say(text: str) -> None:
    """Prints a line for whoever builds this."""
    print(f"Penstock: {text}", flush=True)


def tell_terminal(text: str) -> None:
    """Prints a line in the terminal, if there is one: pip keeps what is printed to itself."""
    with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
        print(f"Penstock: {text}", file=terminal)


# --- whether it is compiled ------------------------------------------------------------------


@functools.cache
def obstacle() -> str:
    """Why the modules cannot be compiled here; empty if they can be."""
    if platform.python_implementation() != "CPython" or os.name != "posix":
        return "only CPython on Linux, macOS and their kin compiles them"
    if importlib.util.find_spec("mypyc") is None:
        return "mypyc is not there"
    return "" if compiler_works() else "no C compiler works, or Python's header files are missing"


def compiler_works() -> bool:
    """Whether a C compiler understands Python's header files."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\n")
        stderr = os.dup(2)
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        try:
            compiler = native_compiler()
            compiler.compile([str(source)], folder, include_dirs=[sysconfig.get_path("include")])
        except (BaseError, CCompilerError, OSError):
            return False
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
    return True


def native_compiler() -> Any:
    """The C compiler that Python's build names, or the variable CC."""
    compiler = new_compiler()
    customize_compiler(compiler)
    return compiler


class PenstockDistribution(Distribution):
    """Knows before anything is compiled whether something will be."""

    def has_ext_modules(self) -> bool:
        """Whether a wheel is for one platform and one version of Python."""
        return COMPILE == "1" or (COMPILE != "0" and not obstacle())

    @functools.cached_property
    def key(self) -> str:
        """What stands for all that the libraries depend on, as it was when this was first asked."""
        return current_key()


def current_key() -> str:
    """What stands for all that the libraries depend on, as it is now."""
    try:
        return cache.key_of(native.influences(native_compiler(), native.chosen_level()))
    except native.Choice as error:
        raise SetupError(str(error)) from None


def lock(path: str) -> None:
    """Waits until no other process builds in the same folder; the lock ends with this one."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        os.makedirs(os.path.dirname(path), exist_ok=True)
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build in this folder")
            fcntl.flock(held, fcntl.LOCK_EX)


# --- how it is compiled ----------------------------------------------------------------------


class Build(build):
    """Begins with an empty folder: modules that have been renamed must not get into a wheel."""

    def run(self) -> None:
        """Builds, and says so where the result is plain Python for want of a compiler."""
        lock(f"{self.build_base}.lock")
        shutil.rmtree(self.build_base, ignore_errors=True)
        if COMPILE != "0" and obstacle():
            if COMPILE == "1":
                raise SetupError(f"the hot modules cannot be compiled: {obstacle()}")
            say(f"plain Python, at about half the speed: {obstacle()}")
        if self.distribution.has_ext_modules():
            _ = self.distribution.key  # Before anything is read that it stands for.
        super().run()


class BuildNative(build_ext):
    """Compiles the hot modules, on all processors at once, or takes them from an earlier build."""

    def run(self) -> None:
        """Puts the libraries where they belong, unless the install is editable."""
        if self.inplace or not self.distribution.has_ext_modules():
            return
        self.extensions: list[Extension] = []
        key, folder = self.distribution.key, cache.folder_of_user()
        inner = os.path.join(self.build_lib, *INNER.split("."))
        if folder and cache.take(folder, key, inner):
            say(f"the same was compiled before: taken from {folder}")
        else:
            tell_terminal("compiles for one to three minutes; PENSTOCK_COMPILE=0 goes without")
            self._compile_all()
        if current_key() != key:
            raise SetupError("a source has changed while it was compiled: build it again")
        if folder and self.extensions:
            paths = [self.get_ext_fullpath(extension.name) for extension in self.extensions]
            cache.keep(folder, key, inner, paths)
        said = native.description(native_compiler(), native.chosen_level())
        Path(inner, "compiled").write_text(f"{said}\n")

    def _compile_all(self) -> None:
        """Makes C of the modules, and libraries of the C."""
        say("translating Python to C")
        self.extensions = native.generate(self.build_temp, native.chosen_level())
        for extension in self.extensions:
            extension._needs_stub = False
        super().run()

    def build_extensions(self) -> None:
        """Compiles every file, then links every library."""
        self._prepare()
        with ThreadPoolExecutor(processors()) as pool:
            compiling = [
                [pool.submit(self._compile, source) for source in sources]
                for sources, _ in self.libraries
            ]
            report([future for futures in compiling for future in futures])
            objects = [[path for one in futures for path in one.result()] for futures in compiling]
            linking = [
                pool.submit(self._link, paths, extensions)
                for paths, (_, extensions) in zip(objects, self.libraries, strict=True)
            ]
            for future in linking:
                future.result()

    def _prepare(self) -> None:
        """Finds the options for all C files, and compiles the header that most begin with."""
        [library] = [one for one in self.extensions if one.name == native.LIBRARY]
        rooms = native.by_room(self.extensions, self.build_temp)
        self.libraries = [
            (library.sources, [library]),
            *(([source], extensions) for source, extensions in rooms.items()),
        ]
        self.folders = [*self.include_dirs, *library.include_dirs]
        more = native.options(self.compiler, native.chosen_level())
        self.options = [*library.extra_compile_args, *more]
        command = [*self.compiler.compiler_so, *(f"-I{folder}" for folder in self.folders)]
        self.header = native.precompile(command, self.options, self.build_temp)

    def _compile(self, source: str) -> list[str]:
        generated = native.is_generated(source)
        before, after = (self.header, ()) if generated else ([], native.RUNTIME)
        objects: list[str] = self.compiler.compile(
            [source],
            self.build_temp,
            include_dirs=self.folders,
            extra_postargs=[*before, *self.options, *after],
        )
        return objects

    def _link(self, objects: list[str], extensions: list[Extension]) -> None:
        """Links a library, and puts it where each of the extensions is looked for."""
        first, *others = [self.get_ext_fullpath(extension.name) for extension in extensions]
        self.compiler.link_shared_object(objects, first)
        for path in others:
            shutil.copy(first, path)

    def get_ext_fullpath(self, ext_name: str) -> str:
        """Where a library goes: beside the source of its module."""
        suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
        parts = f"{INNER}.{ext_name}".split(".")
        return os.path.join(self.build_lib, *parts) + suffix


def processors() -> int:
    """How many compilers may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def report(futures: list[Future[list[str]]]) -> None:
    """Returns when all are done; says how far it is, on a terminal in a line that changes."""
    total, terminal, told = len(futures), sys.stdout.isatty(), 0
    for done, future in enumerate(as_completed(futures), 1):
        future.result()
        if terminal:
            print(f"\rPenstock: compiled {done} of {total} files", end="", flush=True)
        elif done * 10 // total > told:
            told = done * 10 // total
            say(f"compiled {done} of {total} files")
    if terminal:
        print()


# --- what a wheel has in it ------------------------------------------------------------------

INSIDE = [
    *find_packages(include=["protocol*", "server*", "storage*"]),
    # No Python is in there.
    "server.scripting.lua",
]

setup(
    packages=[
        *find_packages(include=["penstock", "penstock.*"]),
        *(f"{INNER}.{name}" for name in INSIDE),
    ],
    package_dir={f"{INNER}.{name}": name.replace(".", "/") for name in INSIDE},
    distclass=PenstockDistribution,
    cmdclass={"build": Build, "build_ext": BuildNative},
    options={"build": {"build_base": "build/setuptools"}},
)
