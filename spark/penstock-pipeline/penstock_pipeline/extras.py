"""Tells where a package is missing which extra has it, and a command that installs that.

The package may come from a checkout, a wheel or a folder on the path, and its environment may be
one without pip. So a command names the Python that runs and the packages themselves, with the
bounds that ``pyproject.toml`` has in a checkout, and else the metadata of what is installed.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

DISTRIBUTION: Final = "penstock-pipeline"
"""The name that pip knows this package by."""

_EXTRAS: Final = {
    "deltalake": "delta",
    "fastavro": "avro",
    "google": "protobuf",
    "grpc_tools": "protobuf",
    "psycopg": "postgres",
    "pyiceberg": "iceberg",
    "pymysql": "mysql",
    "sqlalchemy": "iceberg",
}
"""The extras of the packages that only some pipelines need."""


def extra_missing(what: str, module: str | None, extra: str = "") -> str:
    """Say that ``what`` needs an extra, as there is no such module, and how to install it.

    Without ``extra`` it is the one of pipelines that has the module.
    """
    package = (module or "").partition(".")[0]
    extra = extra or _EXTRAS.get(package, "spark")
    marker = re.compile(rf"extra == ['\"]{extra}['\"]")
    packages = [line for line in _requirements() if marker.search(line)]
    return f"{what} needs the extra '{extra}' (there is no module '{package}'){_command(packages)}"


def _command(requirements: list[str]) -> str:
    """Return what to run; nothing where it is not known, as on a path without any metadata."""
    if not requirements:
        return ""
    python = shlex.quote(sys.executable or "python")
    pip = f"{python} -m pip install" if find_spec("pip") else f"pip --python {python} install"
    packages = (shlex.quote(line.partition(";")[0].strip()) for line in requirements)
    return f": {pip} {' '.join(packages)}"


def _requirements() -> list[str]:
    """Return the requirements, each of an extra with the marker that names it."""
    try:
        return _of_checkout() or requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


def _of_checkout() -> list[str]:
    """Return what ``pyproject.toml`` asks for, if it lies beside the package and is of it."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    project: dict[str, Any] = tomllib.loads(text).get("project", {})
    if project.get("name") != DISTRIBUTION:
        return []
    extras = project["optional-dependencies"].items()
    of_extras = [f"{line}; extra == '{name}'" for name, lines in extras for line in lines]
    return [*project["dependencies"], *of_extras]
