"""The files of the page: a wheel has them, and they load nothing from elsewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from server.web.html.assets import FILES
from server.web.html.document import TEMPLATES

ROOT = Path(__file__).parents[4]


def test_a_wheel_has_them() -> None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    inside = tables["package-data"]["penstock._packages.server.web.html"]
    assert inside == ["static/*", "templates/*"]


def test_nothing_in_them_is_loaded_from_elsewhere() -> None:
    for path in (FILES / "page.css", FILES / "page.js", *TEMPLATES.iterdir()):
        assert not re.search(r"https?:|@import", path.read_text()), path


def test_templates_have_no_handlers_no_styles_and_no_marked_up_text() -> None:
    for path in TEMPLATES.iterdir():
        text = path.read_text()
        assert not re.search(r"<[^>{]* (?:on\w+|style)=|\|\s*safe|autoescape", text), path
