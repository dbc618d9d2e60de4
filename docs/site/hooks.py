"""Makes pages of the site from files that lie beside docs/, and lets links lead to these.

What the navigation holds many of, it gets from the folders: decisions by their numbers, commands by
their families.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import join, normpath, relpath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "tests/README.md": "tests.md",
    "server/web/html/static/icon.svg": "images/icon.svg",
    "examples/compose/compose.yaml": "examples/compose.yaml",
    "examples/explore/worker.go": "examples/worker.go",
    "examples/explore/Worker.java": "examples/Worker.java",
    "examples/kubernetes/server.yaml": "examples/server.yaml",
    "spark/pyspark-redis-streams/docs/data-source.md": "reference/data-source.md",
    "spark/pyspark-redis-streams/docs/spark.md": "spark.md",
    "spark/pyspark-redis-streams/examples/notebook/orders.ipynb": "examples/orders.ipynb",
    "spark/penstock-pipeline/docs/payloads.md": "payloads.md",
    "spark/penstock-pipeline/docs/pipeline.md": "pipeline.md",
    "spark/penstock-pipeline/docs/pipeline-operations.md": "pipeline-operations.md",
    "spark/penstock-pipeline/docs/tables.md": "tables.md",
    "benchmarks/results/latest.md": "measurements.md",
    "benchmarks/results/commands.md": "measurements-commands.md",
    "benchmarks/results/adding.md": "measurements-adding.md",
    "benchmarks/results/instructions.md": "measurements-instructions.md",
    "benchmarks/results/memory.md": "measurements-memory.md",
    "benchmarks/results/waits.md": "measurements-waits.md",
    "benchmarks/results/growth.md": "measurements-growth.md",
    "benchmarks/results/keeping.md": "measurements-keeping.md",
    "benchmarks/results/fakeredis.md": "measurements-fakeredis.md",
    "benchmarks/results/figures.md": "measurements-figures.md",
    "benchmarks/results/reliability.md": "measurements-reliability.md",
    "benchmarks/results/clients.md": "measurements-clients.md",
    "benchmarks/results/explored.md": "measurements-explored.md",
    "benchmarks/results/policies.md": "measurements-policies.md",
    "benchmarks/results/startup.md": "measurements-startup.md",
    "benchmarks/results/spark.md": "measurements-spark.md",
}
"""Files of the repository, and the pages that are made of them."""

_FILLED: Final = {"commands.md": "commands", "decisions/README.md": "decisions"}
"""Parts of the navigation by their first page, and the folder with the others."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fills the parts of the navigation that are folders; the pages say their titles."""
    for part in _lists(config.nav):
        if isinstance(part[0], str) and part[0] in _FILLED:
            folder = Path(config.docs_dir) / _FILLED[part[0]]
            pages = (f"{folder.name}/{path.name}" for path in sorted(folder.glob("*.md")))
            part += [page for page in pages if page != part[0]]
    return config


def _lists(nav: Any) -> Iterator[list[Any]]:
    """The lists of the navigation, each with what is below it."""
    if isinstance(nav, list):
        yield nav
        for item in nav:
            if isinstance(item, dict):
                for below in item.values():
                    yield from _lists(below)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, with links that fit their new places."""
    root = Path(config.config_file_path).parent
    for source, page in PAGES.items():
        text = (root / source).read_text()
        linked = _relink(text, source, "docs/" + page) if page.endswith(".md") else text
        files.append(File.generated(config, page, content=linked))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets links to those files lead to their pages; a search finds decisions last.

    A bar within code is escaped in tables for the code host, and would be shown so here."""
    if page.file.src_uri.startswith("decisions/"):
        page.meta.setdefault("search", {"boost": 0.4})
    place = "docs/" + page.file.src_uri
    plain = re.sub(r"`[^`\n]+`", lambda code: code[0].replace("\\|", "|"), markdown)
    return _relink(plain, place, place)


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
