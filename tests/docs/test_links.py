"""Links of the documentation lead somewhere, and the files that it names are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.markdown import anchors, links
from tests.support.process import ROOT

WORKFLOWS = (ROOT / ".github" / "workflows").glob("*.yml")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("spark/*/*.md")),
    *sorted(ROOT.glob("spark/*/docs/*.md")),
]

FOLDERS = "benchmarks|container|docs|examples|penstock|protocol|server|spark|storage"
NAMED = re.compile(rf"`((?:{FOLDERS}|tests)/[\w./-]*)`")

OF_CODE_HOST = re.compile(
    "../../(security/advisories/new|actions/"
    rf"({'|'.join(str(path.relative_to(ROOT / '.github')) for path in WORKFLOWS)})(/badge.svg)?)"
)
"""What a code host has beside the files of the repository."""


def files_of_site() -> set[Path]:
    """Files beside docs/ that become pages.

    They are read and not imported, as the tools of the site are an environment of their own."""
    module = ast.parse((ROOT / "docs" / "site" / "hooks.py").read_text())
    (pages,) = (
        line.value
        for line in module.body
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "PAGES" and line.value
    )
    return {ROOT / source for source in ast.literal_eval(pages)}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_pages_to_look_at() -> None:
    assert len(PAGES) > 30
    assert sum(len(links(page.read_text())) for page in PAGES) > 120


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in links(page.read_text()):
        if re.match("[a-z]+:", link) or OF_CODE_HOST.fullmatch(link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text()), link


def test_links_out_of_the_documentation_lead_to_pages_of_the_site() -> None:
    docs, files = ROOT / "docs", files_of_site()
    for page in [*docs.rglob("*.md"), *ROOT.glob("spark/*/docs/*.md")]:
        targets = (
            (page.parent / link.partition("#")[0]).resolve()
            for link in links(page.read_text())
            if not re.match("[a-z]+:|#", link)
        )
        beside = {target for target in targets if not target.is_relative_to(docs)}
        assert beside <= files, page


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_files_that_are_named_exist(page: Path) -> None:
    for path in NAMED.findall(page.read_text()):
        assert (ROOT / path).exists(), path
