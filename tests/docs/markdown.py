"""What the tests of the documentation take out of its pages."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tests.support.process import ROOT


def pages_of_docs() -> list[Path]:
    """The pages of all distributions that stand in the upper folder of their documentation."""
    return [*ROOT.glob("docs/*.md"), *ROOT.glob("spark/*/docs/*.md")]


def blocks(page: str, language: str = r"\w*") -> list[str]:
    """The contents of the fenced blocks, or of those of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def fences(page: str) -> list[str]:
    """The language of each fenced block, in order."""
    return re.findall(r"^```(.*)$", page, re.MULTILINE)[::2]


def without_blocks(page: str) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


def shell_lines(page: str) -> list[str]:
    """The lines of the indented blocks, which are for a shell."""
    return re.findall(r"(?<=\n)    (\S.*)", without_blocks(page))


def links(page: str) -> list[str]:
    """Where the links and pictures of the page point, those in HTML and around a picture, too."""
    text = without_blocks(page)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:href|src)="([^"]+)"', text)


def anchors(page: str) -> set[str]:
    """The anchor of each heading, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in headings}


def sections(page: str) -> dict[str, str]:
    """The text under each heading, up to the next heading of any level."""
    parts = re.split(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def shell_blocks(page: str) -> list[str]:
    """The indented blocks, which are for a shell."""
    found = re.findall(r"(?:(?<=\n\n)|^)((?:    \S.*\n)+)", without_blocks(page))
    return [textwrap.dedent(block) for block in found]
