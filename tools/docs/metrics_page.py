"""Writes the tables of docs/metrics.md from what a server exports: ``python -m
tools.docs.metrics_page``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.scraping import scraped

PAGE: Final = Path(__file__).parents[2] / "docs" / "metrics.md"

BEGIN: Final = "<!-- These tables are written by `python -m tools.docs.metrics_page`. -->\n"

HEAD: Final = "| series | what it tells |\n|---|---|\n"

PARTS: Final = {
    "The server": set[str](),
    "Streams, with the labels `db` and `stream`": {"db", "stream"},
    "Groups, with `group`, too": {"db", "stream", "group"},
    "Consumers, with `consumer`, too": {"db", "stream", "group", "consumer"},
}
"""The headings of the tables, and the labels that all series of a table have."""


def tables(text: str) -> str:
    """A row for each family of a scrape, in its order, in the table with the most of its labels."""
    rows: dict[str, list[str]] = {heading: [] for heading in PARTS}
    for family in text_string_to_metric_families(text):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        heading = [each for each, common in PARTS.items() if common <= labels][-1]
        rows[heading].append(_row(family, labels - PARTS[heading]))
    return "\n".join(f"### {heading}\n\n{HEAD}{''.join(rows[heading])}" for heading in PARTS)


def _row(family: Metric, labels: set[str]) -> str:
    name = family.name + ("_total" if family.type == "counter" else "")
    kind = " A histogram." if family.type == "histogram" else ""
    shown = ", ".join(f"`{label}`" for label in sorted(labels))
    return f"| `{name}` | {family.documentation}{kind}{f' By {shown}.' * bool(shown)} |\n"


def page(text: str) -> str:
    """The page as it is, with the tables of this scrape."""
    return f"{PAGE.read_text().partition(BEGIN)[0]}{BEGIN}\n{tables(text)}"


if __name__ == "__main__":
    PAGE.write_text(page(scraped()))
