"""Makes pages of the site from files that lie beside docs/, and lets links lead to these."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import join, normpath, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/results/latest.md": "measurements.md",
    "benchmarks/results/spark.md": "measurements-spark.md",
}
"""Files of the repository, and the pages that are made of them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, with links that fit their new places."""
    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        text = (root / source).read_text()
        files.append(File.generated(config, page, content=_relink(text, source, "docs/" + page)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets links to those files lead to their pages; a search finds decisions last."""
    if page.file.src_uri.startswith("decisions/"):
        page.meta.setdefault("search", {"boost": 0.4})
    place = "docs/" + page.file.src_uri
    return _relink(markdown, place, place)


def _relink(text: str, source: str, place: str) -> str:
    """The text of a file of the repository, with links as they have to be at ``place``."""

    def link(found: re.Match[str]) -> str:
        target, anchor = found[2], found[3] or ""
        if re.match("[a-z]+:", target):
            return found[0]
        path = normpath(join(source, "..", target))
        path = "docs/" + PAGES[path] if path in PAGES else path
        return f"{found[1]}({relpath(path, place + '/..')}{anchor})"

    return re.sub(r"(\[[^\]]*\])\(([^)#\s]+)(#[^)\s]*)?\)", link, text)
