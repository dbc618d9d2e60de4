"""The lock file of the image: that it fixes every package, and what the project asks for."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.container.conftest import docker
from tests.support.process import ROOT

LOCK = (ROOT / "container/requirements.lock").read_text()

LOCKED = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", LOCK, re.MULTILINE))
"""The version of each package of the lock file."""

NOT_IN_THE_IMAGE = {
    *("markdown-it-py", "mdurl", "pygments", "setuptools"),
    *("ast-serialize", "librt", "mypy", "mypy-extensions", "pathspec"),
}
"""What is only needed to install it, and what the Dockerfile takes out again."""


def required() -> list[Requirement]:
    """What the server asks for, with metrics, and what builds it."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["web"]]
    return [Requirement(text) for text in (*texts, *settings["build-system"]["requires"])]


@pytest.mark.parametrize("requirement", required(), ids=lambda requirement: requirement.name)
def test_it_has_a_version_that_the_project_allows(requirement: Requirement) -> None:
    assert LOCKED[requirement.name] in requirement.specifier


def test_each_package_has_one_version_and_its_hashes_and_nothing_names_a_place() -> None:
    first, *packages = re.split(r"^(?=[a-z])", LOCK, flags=re.MULTILINE)
    assert all(line.startswith("#") for line in first.splitlines())
    assert len(packages) == len(LOCKED)
    for package in packages:
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", package)


def test_the_image_has_the_packages_of_the_lock_file_and_no_others(image: str) -> None:
    program = (
        "from importlib.metadata import distributions as all\n"
        "print(*(f'{one.name.lower()}=={one.version}' for one in all(path=__import__('sys').path)"
        " if '/opt/penstock/' in str(one.locate_file(''))), sep='\\n')"
    )
    shown = docker("run", "--rm", image, "python", "-c", program).splitlines()
    found = dict(line.replace("_", "-").split("==") for line in shown)
    del found["penstock-server"]
    assert found == {
        name: version for name, version in LOCKED.items() if name not in NOT_IN_THE_IMAGE
    }
