"""Writes the tables of docs/metrics.md from what a server exports: ``python -m
tools.docs.metrics_page``."""

from __future__ import annotations

import textwrap
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


KNOWN: Final = "As redis_exporter has them; their `# HELP` in the answer says more:"


def tables(text: str) -> str:
    """A row for each family of a scrape, in its order, in the table with the most of its labels.
    Of those that redis_exporter has of a server as a whole, the names alone."""
    rows: dict[str, list[str]] = {heading: [] for heading in PARTS}
    known = list[str]()
    for family in text_string_to_metric_families(text):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        heading = [each for each, common in PARTS.items() if common <= labels][-1]
        if labels or not family.name.startswith("redis_"):
            rows[heading].append(_row(family, labels - PARTS[heading]))
        else:
            known.append(f"`{_name(family)}`")
    first, *others = (f"### {heading}\n\n{HEAD}{''.join(rows[heading])}" for heading in PARTS)
    names = textwrap.fill(", ".join(known) + ".", 100, break_on_hyphens=False)
    return "\n".join([first, f"{KNOWN}\n\n{names}\n", *others])


def _name(family: Metric) -> str:
    return family.name + ("_total" if family.type == "counter" else "")


def _row(family: Metric, labels: set[str]) -> str:
    kind = " A histogram." if family.type == "histogram" else ""
    shown = ", ".join(f"`{label}`" for label in sorted(labels))
    return f"| `{_name(family)}` | {family.documentation}{kind}{f' By {shown}.' * bool(shown)} |\n"


def page(text: str) -> str:
    """The page as it is, with the tables of this scrape."""
    return f"{PAGE.read_text().partition(BEGIN)[0]}{BEGIN}\n{tables(text)}"


if __name__ == "__main__":
    PAGE.write_text(page(scraped()))
