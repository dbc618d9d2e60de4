"""The pictures of the documentation are those that their source draws, and name what there is."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.test_layout import LAYERS, planted, present
from tools.docs.import_graph import arrange, import_graph, part_graph, reduced, rows_of
from tools.docs.pictures import BOXES, ROOT, architecture, drawings


def test_the_files_are_what_the_source_draws() -> None:
    for path, text in drawings().items():
        assert path.read_text() == text, "run: make pictures"


def test_the_picture_of_the_architecture_names_what_there_is() -> None:
    texts = [text for box in BOXES for text in (box.title, *box.lines)]
    paths = [path for text in texts for path in re.findall(r"[\w/-]+(?:/|\.py)(?=\W|$)", text)]
    assert len(paths) > 12
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_package_is_in_the_picture_of_the_architecture() -> None:
    packages = {path.parent.relative_to(ROOT) for path in ROOT.glob("server/*/__init__.py")}
    drawn = architecture()
    missing = {str(path) for path in packages if f"{path}/" not in drawn}
    assert missing == set()


def test_every_room_has_a_row_in_the_table_of_the_architecture() -> None:
    rooms = [
        f"{path.parent.relative_to(ROOT)}/"
        for package in ("protocol", "storage/*", "server/*")
        for path in ROOT.glob(f"{package}/__init__.py")
    ]
    text = (ROOT / "docs/architecture.md").read_text()
    rows = {cell for line in text.splitlines() for cell in re.findall(r"^\| `([^`]+)`", line)}
    assert len(rooms) > 15
    assert set(rooms) <= rows


def test_every_arrow_of_the_import_graph_points_up() -> None:
    graph = part_graph(present())
    rows = rows_of(graph)
    assert all(rows[target] < rows[part] for part, found in graph.items() for target in found)
    assert len(rows) > 15


def test_an_import_in_the_wrong_direction_changes_the_picture_or_closes_a_circle() -> None:
    more = planted("server.traffic.turns", "from server.clients import pubsub\n")
    assert import_graph(more) != import_graph(present())
    with pytest.raises(ValueError, match="a circle of imports among"):
        import_graph(planted("server.state.server_state", "from server.app import Server\n"))


def test_arrows_that_follow_from_others_are_left_out() -> None:
    a, b, c = ("storage", 0), ("server", 0), ("server", 1)
    assert reduced({a: set(), b: {a}, c: {a, b}}) == {a: [], b: [a], c: [b]}


def test_nothing_overlaps_in_the_import_graph() -> None:
    for row in arrange(part_graph(present())):
        for left, right in pairwise(row):
            assert right.x - right.width / 2 > left.x + left.width / 2


def test_every_part_is_in_the_import_graph() -> None:
    drawn = import_graph(present())
    for package, folder in (("server", "net"), ("penstock", "testing"), ("storage", "aof")):
        assert f">{package}/{folder}/</text>" in drawn
    assert all(f">{package}/</text>" in drawn for package in LAYERS)
