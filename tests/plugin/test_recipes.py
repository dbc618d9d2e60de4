"""The projects that the page of recipes shows work as they are."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Final

import pytest

from tests.plugin.conftest import Project
from tests.support.process import ROOT

PAGE: Final = (ROOT / "docs" / "testing-recipes.md").read_text()

NEEDED: Final = {
    "Django": ["django"],
    "FastAPI": ["fastapi", "httpx", "pytest_asyncio"],
    "FastStream": ["faststream", "pytest_asyncio"],
    "taskiq": ["taskiq_redis", "pytest_asyncio"],
    "rq": ["rq"],
    "Celery": ["celery"],
    "A database for each test": [],
    "A state that is prepared once": [],
}
"""The recipes, and the packages that each of them needs."""


def recipes() -> dict[str, dict[str, str]]:
    """The files of each recipe, by its heading."""
    headings = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    found = zip(headings[::2], headings[1::2], strict=True)
    return {heading: files(text) for heading, text in found}


def files(text: str) -> dict[str, str]:
    return dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_every_block_is_a_file_of_a_recipe() -> None:
    assert list(recipes()) == list(NEEDED)
    assert sum(map(len, recipes().values())) * 2 == len(re.findall(r"^```", PAGE, re.MULTILINE))


def run(project: Project, heading: str) -> None:
    missing = [name for name in NEEDED[heading] if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    for name, text in recipes()[heading].items():
        project.write(name, text)
    passed = project.run()
    assert set(passed) == {"passed"}, project.output


@pytest.mark.parametrize("heading", [heading for heading, needed in NEEDED.items() if not needed])
def test_a_recipe_works(project: Project, heading: str) -> None:
    run(project, heading)


@pytest.mark.slow
@pytest.mark.parametrize("heading", [heading for heading, needed in NEEDED.items() if needed])
def test_a_recipe_with_a_framework_works(project: Project, heading: str) -> None:
    run(project, heading)
