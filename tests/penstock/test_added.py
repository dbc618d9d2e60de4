"""Tools of other distributions: found by their entry points, or told how to have."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from penstock import added, cli
from tests.support.process import ROOT

HERE = shlex.quote(sys.executable)


def echo(args: list[str]) -> int:
    """Stands for the tool of a distribution."""
    print("given", *args)
    return 7


def provide(monkeypatch: pytest.MonkeyPatch, *found: EntryPoint) -> None:
    """Lets the environment have these entry points under the name that is asked for."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: found)


def test_a_tool_is_what_its_entry_point_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provide(monkeypatch, EntryPoint("pipeline", f"{__name__}:echo", added.GROUP))
    monkeypatch.setattr(sys, "argv", ["penstock", "pipeline", "run", "orders.toml"])
    assert cli.main() == 7
    assert capsys.readouterr().out == "given run orders.toml\n"


def test_in_a_checkout_what_is_missing_is_installed_from_its_folders(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provide(monkeypatch)
    monkeypatch.setattr(added, "__file__", str(ROOT / "penstock" / "added.py"))
    monkeypatch.setattr(sys, "argv", ["penstock", "pipeline", "run", "orders.toml"])
    assert cli.main() == 1
    folders = f"{ROOT}/spark/pyspark-redis-streams", f"{ROOT}/spark/penstock-pipeline[spark]"
    assert capsys.readouterr().err == (
        "penstock pipeline is in penstock-pipeline, which is not installed for this Python: "
        f"{HERE} -m pip install {shlex.join(folders)}\n"
    )


def test_the_folders_that_are_named_are_those_of_the_distributions() -> None:
    for name in added.TOOLS["pipeline"]:
        assert (ROOT / "spark" / name.partition("[")[0] / "pyproject.toml").is_file()


def test_elsewhere_the_wheels_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(added, "__file__", str(tmp_path / "penstock" / "added.py"))
    assert added.missing("pipeline") == (
        "penstock pipeline is in penstock-pipeline, which is not installed for this Python: "
        f"install its wheel and that of pyspark-redis-streams with {HERE} -m pip"
    )
