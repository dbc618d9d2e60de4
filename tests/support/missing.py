"""What is told where a package is missing, as tests expect it."""

from __future__ import annotations

import shlex
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.support.process import ROOT


def check_extra(
    message: str, what: str, extra: str, module: str, distribution: Path = ROOT
) -> None:
    """Checks that a message names the extra, and a command that installs its packages here."""
    head, command = message.rstrip().split("): ", 1)
    assert head == f"{what} needs the extra '{extra}' (there is no module '{module}'"
    wanted = project(distribution)["optional-dependencies"][extra]
    assert installed_by(command) == set(map(Requirement, wanted))


def check_packages(message: str, what: str, *names: str) -> None:
    """Checks that a message names packages of the project itself, and how to install these."""
    head, command = message.rstrip().split(": ", 1)
    assert head == f"{what} needs the packages {', '.join(names)}"
    found = [one for one in map(Requirement, project()["dependencies"]) if one.name in names]
    for one in found:
        one.marker = None
    assert installed_by(command) == set(found)
    assert len(found) == len(names)


def installed_by(command: str) -> set[Requirement]:
    """What a command installs for the Python that runs here, whether that has pip or not."""
    words, here = shlex.split(command), sys.executable
    own, other = [here, "-m", "pip", "install"], ["pip", "--python", here, "install"]
    assert words[:4] == (own if find_spec("pip") else other)
    return set(map(Requirement, words[4:]))


def project(distribution: Path = ROOT) -> dict[str, Any]:
    """What the ``pyproject.toml`` of a distribution, the server's if none is named, says of it."""
    found: dict[str, Any] = tomllib.loads((distribution / "pyproject.toml").read_text())["project"]
    return found
