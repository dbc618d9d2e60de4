"""Runs a Python script again and again, each time in a process that is forked when its imports are
made: ``python forking.py worker.py``.

It is run by the Python of the worker, which may not have Penstock, and imports nothing of it. A
line of JSON comes in for each thing to do, and one goes out: ``["start", url, errors]`` for the
number of a new process, ``["poll", number]`` and ``["wait", number]`` for how one has ended.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import runpy
import sys
import threading
from collections.abc import Iterator
from typing import Any


def imports(script: str, folder: str, seen: set[str]) -> Iterator[str]:
    """Yield the modules that a script imports when it begins, also by way of others beside it,
    which are to run anew each time."""
    seen.add(script)
    with open(script, encoding="utf-8") as source:
        statements = ast.parse(source.read()).body
    names: list[str] = []
    for each in statements:
        if isinstance(each, ast.Import):
            names += [alias.name for alias in each.names]
        elif isinstance(each, ast.ImportFrom) and not each.level:
            names.append(each.module or "")
    for name in names:
        spec = importlib.util.find_spec(name.partition(".")[0])
        origin = spec.origin if spec is not None and spec.origin else ""
        if not origin.startswith(folder + os.sep) or "site-packages" in origin:
            yield name
        elif origin not in seen and origin.endswith(".py"):
            yield from imports(origin, folder, seen)


def preload(script: str) -> bool:
    """Import what a script imports; returns whether this process may be forked then."""
    try:
        for name in imports(script, os.path.dirname(script), set()):
            importlib.import_module(name)
    except BaseException:  # Whatever is wrong, the script itself tells it as it always does.
        return False
    # How a process has ended is asked as Python 3.9 and later know it.
    return threading.active_count() == 1 and hasattr(os, "waitstatus_to_exitcode")


def reply(value: Any) -> None:
    """Answers a line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def serve() -> list[str]:
    """Does what it is asked to; returns in a new process, with what that is to have."""
    for line in iter(sys.stdin.readline, ""):
        words: list[Any]
        action, *words = json.loads(line)
        if action == "start":
            number = os.fork()
            if not number:
                os.setpgid(0, 0)
                return words
            with contextlib.suppress(PermissionError):  # It has done that itself, and gone on.
                os.setpgid(number, number)
            reply(number)
        else:
            number, status = os.waitpid(words[0], os.WNOHANG if action == "poll" else 0)
            reply(os.waitstatus_to_exitcode(status) if number else None)
    sys.exit()


def become(url: str, errors: str) -> None:
    """Lets this process have the URL in its environment, and write its errors to a file."""
    os.environ["REDIS_URL"] = url
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, of in enumerate((nothing, nothing, os.open(errors, os.O_WRONLY | os.O_APPEND))):
        os.dup2(of, number)


if __name__ == "__main__":
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    reply(preload(os.path.abspath(sys.argv[0])))
    become(*serve())
    runpy.run_path(sys.argv[0], run_name="__main__")
