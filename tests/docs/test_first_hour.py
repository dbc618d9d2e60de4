"""The page of the first hour names what is there."""

from __future__ import annotations

import re

from tests.docs.markdown import sections
from tests.support.process import ROOT
from tests.test_layout import LAYERS
from tools.docs.features_page import FEATURES, PAGE, page

LINES = re.compile(r"(?<=\| )[\d,]+(?= \|)")
"""The lines of a feature in its row."""


def test_the_map_of_features_is_what_the_code_gives() -> None:
    written, now = PAGE.read_text(), page()
    assert LINES.sub("", written) == LINES.sub("", now), "run: python -m tools.docs.features_page"


def test_the_lines_of_each_feature_are_about_what_there_is() -> None:
    pairs = zip(LINES.findall(PAGE.read_text()), LINES.findall(page()), strict=True)
    sizes = [(int(written.replace(",", "")), int(now.replace(",", ""))) for written, now in pairs]
    assert len(sizes) == len(FEATURES)
    assert all(abs(written - now) <= max(now / 5, 100) for written, now in sizes)


def test_the_places_of_features_and_of_their_tests_are_there() -> None:
    places = [ROOT / place for places, _ in FEATURES.values() for place in places]
    places += [ROOT / "tests" / place for _, tests in FEATURES.values() for place in tests]
    assert [place for place in places if not place.exists()] == []


def test_every_folder_of_the_server_is_of_a_feature_or_of_what_all_need() -> None:
    shared = re.findall("`([^`]+)`", sections(PAGE.read_text())["What all of them need"])
    named = [*shared, *(place for places, _ in FEATURES.values() for place in places)]
    rooms = [f"server/{layer}" for layer in LAYERS["server"]]
    assert [room for room in rooms if not any(each.startswith(room) for each in named)] == []


def test_what_is_read_first_is_about_ten_files() -> None:
    order = re.findall(r"(?m)^\d+\. `([^`]+)`", sections(PAGE.read_text())["What to read"])
    assert 8 <= len(order) <= 12
    assert [path for path in order if not (ROOT / path).is_file()] == []
