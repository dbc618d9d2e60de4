"""Compiles the hot modules: which those are, with which options, and with what else it varies.

Modules are compiled by the room that they are in (:data:`ALL_BUT`, :data:`ONLY`). mypyc translates
all of them together, each to a C file of its own, so that one calls another directly.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("protocol", "server", "storage")

ALL_BUT: Final = {
    "protocol": "additions_plain scanner_plain",
    "server/commands/groups": "errors",
    "server/commands/streams": "errors",
    "server/core": "command_syntax",
    "server/delivery": "errors",
    "server/dispatch": "",
    "server/net": "admission listener",
    "server/traffic": "tls",
    "storage/aof": "check disk folder manifest",
    "storage/engine": "",
    "storage/keyspace": "",
    "storage/rdb": "codes",
    "storage/types": "",
}
"""The rooms whose modules are compiled, with those that are not: what every stream command passes
through, and what loads and writes much data."""

ONLY: Final = {
    "server": "services",
    "server/acl": "selector users",
    "server/clients": "access blocking keyspace_events pubsub tracking watch",
    "server/commands/connection": "connection",
    "server/commands/hashes": "field_times hashes",
    "server/commands/hyperloglog": "hyperloglog",
    "server/commands/keys": "counted_keys expiry keys sorting waiting",
    "server/commands/lists": "lists moving",
    "server/commands/sets": "sets",
    "server/commands/sorted_sets": "combinations pops ranges scores selections sorted_sets",
    "server/commands/strings": "counters strings",
    "server/config": "policies",
    "server/persistence": "appender commit disk_thread journal loader",
    "server/replication": "feed replica",
    "server/runtime": "arguments change_count clock clockwork histogram stats",
    "server/scripting": "host_api",
    "server/state": "server_state session timings",
    "storage": "chunks errors indexes steps",
}
"""The modules of other rooms that are compiled, as the same commands pass through them, or hold
their objects: one of a module that is not compiled is a dictionary to compiled code."""

GROUP: Final = "penstock"
"""What mypyc calls all of them together."""

LIBRARY: Final = f"{GROUP}__mypyc"
"""The library that they are in; each has a small one beside its source, which leads there, and is
the same for all modules of a room."""

GENERATED: Final = "__native_"
"""How the names of C files begin that mypyc makes of modules."""

COMMON: Final = ("-fvisibility=hidden",)
"""Calls from one C file to another are direct ones: no other library may step in between."""

LEAN: Final = (
    *("-fno-tree-dominator-opts", "-fno-tree-pta", "-fno-tree-sra", "-fno-tree-ch"),
    *("-fno-tree-bit-ccp", "-fno-dse", "-fno-if-conversion", "-fno-if-conversion2"),
    *("-fno-move-loop-invariants", "-fno-branch-count-reg"),
)
"""The passes of ``-O1`` that take gcc a fifth of its time and gain nothing here: nearly all that
the C consists of is calls, with a test of each result. Other compilers know no such options."""

APART: Final = ("-freorder-blocks-and-partition", "-fno-plt")
"""What has gcc put blocks that are unlikely behind all others, so that those which run stand
together in the processor's caches, and call Python's functions without a jump in between."""

UNLIKELY: Final = (
    *("CPy_AddTraceback", "CPy_AttributeError", "CPy_TypeError", "CPy_TypeErrorTraceback"),
    *("CPyError_OutOfMemory", "PyErr_SetString"),
)
"""Functions that are called where something has failed: two fifths of the C are such blocks."""

RUNTIME: Final = ("-O2",)
"""What mypyc's own runtime is compiled with at either level: all modules call its few files."""

LEVELS: Final = ("1", "2")
"""What PENSTOCK_OPTIMIZE may be: ``-O1``, by gcc without those passes, or ``-O2``."""


class Choice(Exception):
    """PENSTOCK_OPTIMIZE is none of what it may be."""


def chosen_level() -> str:
    """What PENSTOCK_OPTIMIZE says, 1 unless it is set; raises :class:`Choice`."""
    level = os.environ.get("PENSTOCK_OPTIMIZE") or "1"
    if level not in LEVELS:
        raise Choice(f"PENSTOCK_OPTIMIZE is {level!r}: 1 and 2 are allowed")
    return level


def sources() -> list[str]:
    """The paths of the modules that are compiled, below the current folder."""
    return [path for path in _modules() if is_compiled(path)]


def is_compiled(path: str) -> bool:
    """Whether a module is compiled, by the room that it is in and by its name."""
    room, name = os.path.dirname(path), Path(path).stem
    if name == "__init__":
        return False
    if room in ALL_BUT:
        return name not in ALL_BUT[room].split()
    return name in ONLY.get(room, "").split()


def _modules() -> list[str]:
    return sorted(str(path) for package in PACKAGES for path in Path(package).rglob("*.py"))


def generate(folder: str, level: str) -> list[Any]:
    """Writes C files into a folder; returns the extensions to make of them.

    The result does not depend on what else is installed, nor on what mypy is set to warn of.
    """
    from mypyc.build import mypycify

    options = ["--config-file=", "--ignore-missing-imports", f"--cache-dir={folder}/mypy"]
    extensions: list[Any] = mypycify(
        [*options, *sources()],
        opt_level=level,
        debug_level="0",
        multi_file=True,
        target_dir=folder,
        group_name=GROUP,
    )
    for extension in extensions:
        extension.sources.sort(key=os.path.getsize, reverse=True)
    return extensions


def options(compiler: Any, level: str) -> list[str]:
    """The options of the C compiler beside those of mypyc."""
    if not _compiler_name(compiler).startswith("gcc "):
        return [*COMMON]
    return [*COMMON, *APART, *(LEAN if level == "1" else ())]


# --- the header that is compiled first -------------------------------------------------------


def precompile(command: Sequence[str], flags: Sequence[str], folder: str) -> list[str]:
    """Compiles the header files that every generated C file begins with, into a folder, and tells
    which functions are :data:`UNLIKELY`.

    Returns the options with which C files make use of it: none where the compiler cannot do that.
    gcc uses it only for files that are compiled by the same command with the same options.
    """
    header = os.path.join(folder, "first.h")
    names = (f"__native_{GROUP}.h", f"__native_internal_{GROUP}.h")
    lines = [f'#include "{name}"\n' for name in names]
    lines += [f"__typeof__({name}) {name} __attribute__((cold));\n" for name in UNLIKELY]
    Path(header).write_text("".join(lines))
    ended = subprocess.run(
        [*command, "-x", "c-header", header, "-o", f"{header}.gch", *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if ended.returncode:
        Path(f"{header}.gch").unlink(missing_ok=True)
        return []
    return ["-include", header]


def is_generated(source: str) -> bool:
    """Whether a C file is of modules, as none of mypyc's runtime is."""
    return Path(source).name.startswith(GENERATED)


# --- the small libraries ---------------------------------------------------------------------


def by_room(extensions: Sequence[Any], folder: str) -> dict[str, list[Any]]:
    """Puts what leads to the library from the modules of a room into one C file.

    Returns the extensions that each of these files is for, which all get the same library: it has
    a function for each of their names."""
    rooms: dict[str, list[Any]] = {}
    for extension in extensions:
        if extension.name != LIBRARY:
            room = extension.name.rpartition(".")[0].replace(".", "-")
            rooms.setdefault(os.path.join(folder, f"{GENERATED}{room}.c"), []).append(extension)
    for path, together in rooms.items():
        sources = [os.path.abspath(source) for one in together for source in one.sources]
        Path(path).write_text("".join(map(_INCLUDED.format, range(len(sources)), sources)))
    return rooms


_INCLUDED: Final = """\
#define PyInit___init__ PyInit_unused_{}
#include "{}"
#undef PyInit___init__
"""
"""A file of which there are several: each defines one function that another has, too."""


# --- what the result depends on --------------------------------------------------------------


def description(compiler: Any, level: str) -> str:
    """How the modules are compiled, in the words of ``penstock --version``."""
    return f"-O{level} mypyc {version('mypy')} {_compiler_name(compiler)}"


def _compiler_name(compiler: Any) -> str:
    told = _version_of(tuple(compiler.compiler_so))
    name = "clang" if "clang" in told else "gcc" if "Free Software" in told else "cc"
    found = re.search(r"\d+\.\d+[.\d]*", told)
    return f"{name} {found[0]}" if found else name


@functools.cache
def _version_of(command: tuple[str, ...]) -> str:
    # With its options, as the first word may be that of a program around the compiler.
    ended = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return ended.stdout


def influences(compiler: Any, level: str) -> Iterator[bytes]:
    """All that the libraries depend on, piece by piece: sources, tools, options, machine."""
    for path in (*_modules(), "setup.py", *sorted(map(str, Path("tools/build").glob("*.py")))):
        yield path.encode()
        yield Path(path).read_bytes()
    commands = [tuple(command) for command in (compiler.compiler_so, compiler.linker_so)]
    words = [
        *map(shlex.join, commands),
        *map(_version_of, commands),
        description(compiler, level),
        sys.version,
        str(sysconfig.get_config_var("SOABI")),
        platform.system(),
        platform.machine(),
        *platform.libc_ver(),
        os.environ.get("MACOSX_DEPLOYMENT_TARGET", ""),
        # What is compiled for the processor at hand may not run on another one.
        platform.node() if any("=native" in word for word in commands[0]) else "",
    ]
    yield from (word.encode() for word in words)
