"""The options of the plugin for explorations, and what they leave behind."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from penstock.testing import PenstockServer
from tests.plugin.conftest import Project

WRONG = """
def make(client):
    client.incr("made")
    client.get("made")

def made(client):
    assert client.get("made") == "1", f"made {client.get('made')}"

def test_it(penstock):
    penstock.explore.crashes(make, invariant=made)
"""

RIGHT = """
def make(client):
    client.set("made", 1)

def test_it(penstock):
    assert penstock.explore.crashes(make).complete
    assert penstock.explore.orders(ann=make, bob=make).explored == 2
"""


def test_a_failing_test_ends_with_the_option_that_runs_that_scenario_alone(
    project: Project,
) -> None:
    project.write("test_it.py", WRONG)
    assert project.run() == {"failed": 1}, project.output
    assert "E       AssertionError: 2 of 3 scenarios end wrong. The first: crash-after@0" in (
        project.output
    )
    assert "--explore crash-after@0" in project.output
    project.run("--explore", "crash-after@0")
    assert "1 of 1 scenario ends wrong. The first: crash-after@0" in project.output
    assert project.run("--explore", "crash-before@0") == {"passed": 1}, project.output


def test_a_name_that_is_none_is_refused(project: Project) -> None:
    project.write("test_it.py", RIGHT)
    assert project.run("--explore", "xyz") == {"failed": 1}, project.output
    assert "ValueError: 'xyz' is no order of the workers ann, bob" in project.output


def test_what_was_explored_stands_in_the_report_of_junit(project: Project, tmp_path: Path) -> None:
    project.write("test_it.py", RIGHT)
    assert project.run("--junit-xml", "report.xml") == {"passed": 1}, project.output
    root = ElementTree.parse(tmp_path / "report.xml").getroot()
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties == {
        "explored": "2 scenarios",
        "explored: complete": "True",
        "explored: wrong": "0",
        "explored: diverged": "0",
        "explored 2": "2 orders",
        "explored 2: complete": "True",
        "explored 2: wrong": "0",
        "explored 2: diverged": "0",
    }


def test_a_file_has_what_was_explored(project: Project, tmp_path: Path) -> None:
    project.write("test_it.py", WRONG)
    project.run("--explore-report", "explored.json")
    [exploration] = json.loads((tmp_path / "explored.json").read_text())["explorations"]
    assert (exploration["test"], exploration["summary"]) == ("test_it.py::test_it", "3 scenarios")
    assert [(each["id"], each["wrong"][:6]) for each in exploration["outcomes"]] == [
        ("crash-before@0", ""),
        ("crash-after@0", "made 2"),
        ("crash-before@1", "made 2"),
    ]
    project.run("--explore-report", "explored.html")
    assert "<td><code>INCRBY made 1</code>" in (tmp_path / "explored.html").read_text()


def test_a_shard_is_a_part(project: Project) -> None:
    project.write("test_it.py", WRONG)
    assert project.run("--explore-shard", "1/3") == {"passed": 1}, project.output
    assert project.run("--explore-shard", "2/3") == {"failed": 1}, project.output
    assert project.run("--explore-shard", "4/3") == {"failed": 1}, project.output
    assert "ValueError: '4/3' is no shard" in project.output


def test_options_are_for_servers_too_that_something_else_has_started(
    project: Project, server: PenstockServer
) -> None:
    project.write(
        "test_it.py",
        f"""
from penstock.testing import RemoteServer

def make(client):
    client.set("made", 1)

def test_it():
    with RemoteServer({server.url!r}) as server:
        result = server.explore.crashes(make)
    assert [outcome.id for outcome in result.outcomes] == ["crash-after@0"]
""",
    )
    assert project.run("--explore", "crash-after@0") == {"passed": 1}, project.output


@pytest.mark.slow
def test_workers_of_xdist_write_one_file(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    project.write("test_it.py", RIGHT)
    project.write("test_other.py", RIGHT)
    assert project.run("-n", "2", "--explore-report", "explored.json") == {"passed": 2}, (
        project.output
    )
    rows = json.loads((tmp_path / "explored.json").read_text())["explorations"]
    assert sorted(row["test"] for row in rows) == [
        *["test_it.py::test_it"] * 2,
        *["test_other.py::test_it"] * 2,
    ]
