"""Writes the table of docs/metrics.md from what a server exports: ``python -m
tools.docs.metrics_page``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.scraping import scraped

PAGE: Final = Path(__file__).parents[2] / "docs" / "metrics.md"

HEAD: Final = "| series | type | labels | what it tells |\n|---|---|---|---|\n"


def table(text: str) -> str:
    """A row for each family of a scrape, in its order."""
    return HEAD + "".join(map(_row, text_string_to_metric_families(text)))


def _row(family: Metric) -> str:
    name = family.name + ("_total" if family.type == "counter" else "")
    labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
    shown = ", ".join(f"`{label}`" for label in labels)
    return f"| `{name}` | {family.type} | {shown} | {family.documentation} |\n".replace(
        "|  |", "| |"
    )


def page(text: str) -> str:
    """The page as it is, with the table of this scrape."""
    before, _, rest = PAGE.read_text().partition(HEAD)
    after = rest.partition("\n\n")[2]
    return before + table(text) + (f"\n{after}" if after else "")


if __name__ == "__main__":
    PAGE.write_text(page(scraped()))
