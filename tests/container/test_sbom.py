"""The bill of materials, the licences of what is in it, and that packages fit each other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from email.message import Message
from importlib.metadata import distribution, distributions
from typing import Any, Final, cast

import pytest

from container import sbom
from tests.container.conftest import docker
from tests.container.test_lock import LOCKED, NOT_IN_THE_IMAGE
from tests.support.process import ROOT

ALLOWED: Final = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "PSF-2.0", "Zlib"}
"""Licences that ask for nothing but to be named, which is done by the files of the packages."""

ONLY_BUILDS: Final = {"MPL-2.0"}
"""Licences that are allowed besides for what builds the image and is not in it."""

NOT_FOR_EVERY_PYTHON: Final = {"async-timeout": "Apache-2.0"}
"""What the lock file has for the oldest Python, and other environments have not."""

STATUS: Final = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10
Description: GNU C Library
 Package: of the description

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1.0

Package: libstdc++6
Status: hold ok installed
Architecture: amd64
Version: 1:12.2.0-14
"""


def here() -> dict[str, Any]:
    """The bill of the environment that the tests run in."""
    command = [sys.executable, "-I", str(ROOT / "container/sbom.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(printed)
    return found


def versions(document: dict[str, Any], kind: str) -> set[tuple[str, str]]:
    """The names and versions of the components of a kind of package."""
    every = [*document["components"], document["metadata"]["component"]]
    return {(one["name"], one["version"]) for one in every if one["purl"].startswith(kind)}


def test_every_package_of_an_environment_is_in_its_bill() -> None:
    document = here()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["name"] == "penstock-server"
    installed = {
        (sbom.canonical(str(one.metadata["Name"])), one.version) for one in distributions()
    }
    assert installed <= versions(document, "pkg:pypi/")
    references = [one["bom-ref"] for one in document["components"]]
    assert len(set(references)) == len(references)
    assert references == sorted(references)
    (python,) = versions(document, "pkg:generic/")
    assert python == ("cpython", ".".join(map(str, sys.version_info[:3])))


def test_packages_of_debian_are_those_that_are_installed() -> None:
    release = sbom.release_of('PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="12"\n')
    assert list(sbom.system_packages(STATUS, release)) == [
        {
            "type": "library",
            "bom-ref": url,
            "name": name,
            "version": version,
            "purl": url,
        }
        for name, version, url in (
            (
                "libc6",
                "2.36-9+deb12u10",
                "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12",
            ),
            (
                "libstdc++6",
                "1:12.2.0-14",
                "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0-14?arch=amd64&distro=debian-12",
            ),
        )
    ]
    assert list(sbom.system_packages("", {})) == []


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT AND PSF-2.0"), ("License", "other")], "MIT AND PSF-2.0"),
        ([("Classifier", "License :: OSI Approved :: BSD License")], "BSD-3-Clause"),
        ([("License", "MIT style"), ("Classifier", "Topic :: Database")], "MIT"),
        ([("License", "Secret")], ""),
        ([], ""),
    ],
)
def test_a_licence_is_what_the_metadata_says(fields: list[tuple[str, str]], licence: str) -> None:
    metadata = Message()
    for name, text in fields:
        metadata[name] = text
    assert sbom.licence_of(metadata) == licence


@pytest.mark.parametrize("name", sorted(LOCKED))
def test_the_licence_of_each_package_is_allowed(name: str) -> None:
    allowed = ALLOWED | (ONLY_BUILDS if name in NOT_IN_THE_IMAGE else set())
    licence = NOT_FOR_EVERY_PYTHON.get(name) or sbom.licence_of(
        cast(Message, distribution(name).metadata)
    )
    words = set(re.split(r" AND | OR |[() ]+", licence))
    assert licence
    assert words <= allowed


def test_packages_fit_each_other() -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "No broken requirements found.\n")


def test_the_image_has_a_bill_of_everything_that_is_in_it(image: str) -> None:
    document = json.loads(docker("run", "--rm", image, "cat", "/opt/penstock/sbom.cdx.json"))
    lock = {item for item in LOCKED.items() if item[0] not in NOT_IN_THE_IMAGE}
    assert lock <= versions(document, "pkg:pypi/")
    assert "penstock-server" in {name for name, _ in versions(document, "pkg:pypi/")}
    shown = docker("run", "--rm", image, "dpkg-query", "-W", "-f", "${Package} ${Version}\n")
    debian = {tuple(line.split(" ")) for line in shown.splitlines()}
    assert versions(document, "pkg:deb/") == debian


def test_the_licence_of_redis_cli_asks_for_nothing_else(image: str) -> None:
    """Later versions of Redis have another one."""
    text = docker("run", "--rm", image, "cat", "/usr/share/doc/redis-tools/copyright")
    licences = set(re.findall("^License: (.*)$", text, re.MULTILINE))
    assert licences == {"BSD-2-clause", "BSD-3-clause", "MIT"}
