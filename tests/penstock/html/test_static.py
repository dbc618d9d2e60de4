"""Files of others: they are what VENDORED.md says, and what a wheel needs is in it."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

from penstock.html.assets import FILES, TYPES

ROOT = Path(__file__).parents[3]
OWN = {"page.css", "page.js", "icon.svg", "VENDORED.md"}


def test_the_files_of_others_are_those_that_are_listed() -> None:
    listed = re.findall(
        r"^\| `(\S+)` .*`([0-9a-f]{64})` \|$", (FILES / "VENDORED.md").read_text(), re.M
    )
    assert {name for name, _ in listed} == {
        path.name for path in FILES.iterdir() if path.suffix in TYPES
    } - OWN
    for name, digest in listed:
        assert hashlib.sha256((FILES / name).read_bytes()).hexdigest() == digest


def test_each_has_its_licence_beside_it() -> None:
    text = (FILES / "VENDORED.md").read_text()
    licences = set(re.findall(r"`(LICENSE\.\w+)`", text))
    assert licences == {path.name for path in FILES.glob("LICENSE.*")}
    assert len(licences) == 3


def test_a_wheel_has_them() -> None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tables["package-data"]["penstock.html"] == ["static/*"]


def test_nothing_in_our_own_files_is_loaded_from_elsewhere() -> None:
    for name in ("page.css", "page.js"):
        assert not re.search(r"https?:|//\w+\.|@import|url\(", (FILES / name).read_text())
