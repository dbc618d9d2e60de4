"""The page of metrics lists what is exported, and says of what type it is."""

from __future__ import annotations

import re

import pytest

from server.web.metrics.stream_series import DELIVERY_BOUNDS
from tests.support.scraping import scraped
from tools.docs.metrics_page import PAGE, page, tables


@pytest.fixture(scope="module")
def scrape() -> str:
    return scraped()


def test_the_tables_are_what_a_server_exports(scrape: str) -> None:
    assert PAGE.read_text() == page(scrape), "run: python -m tools.docs.metrics_page"


def test_every_series_that_the_page_speaks_of_is_exported(scrape: str) -> None:
    text = PAGE.read_text().partition("\n## All series\n")[0]
    named = set(re.findall(r"`((?:redis|penstock)_\w+)", text)) - {"redis_exporter", "penstock_"}
    exported = set(re.findall(r"`((?:redis|penstock)_\w+)`", tables(scrape)))
    assert len(named) > 15
    assert named - exported == set()


def test_the_type_of_a_series_is_told_by_its_name_or_its_row(scrape: str) -> None:
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", scrape, re.MULTILINE))
    for name, row in re.findall(r"^\| `(\w+)` \| (.*) \|$", tables(scrape), re.MULTILINE):
        assert (types[name] == "histogram") == ("A histogram." in row)
    for name in types.keys() & set(re.findall(r"`(\w+)`", tables(scrape))):
        assert (types[name] == "counter") == name.endswith("_total")


def test_the_page_names_the_buckets() -> None:
    assert ", ".join(map(str, DELIVERY_BOUNDS)) in PAGE.read_text()
