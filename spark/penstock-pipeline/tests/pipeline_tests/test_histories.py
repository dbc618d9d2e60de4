"""What histories find wrong, and histories themselves, for which a variable has to ask.

They take minutes, and a machine with nothing else to do: `make pipeline-histories` runs long ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline_tests.histories.history import History
from pipeline_tests.histories.model import Model, Told
from pipeline_tests.histories.servers import world
from source_tests.conftest import PROGRAMS

SINKS = {
    "offsets": ("delta", "stream"),
    "group": ("parquet", "stream", "python", "sqlite-keyed"),
}
"""In mode ``offsets`` each is a query, so there are fewer."""


SECONDS = os.environ.get("PENSTOCK_PIPELINE_HISTORIES")


SERVERS = [pytest.param(mode, "penstock", sinks, id=mode) for mode, sinks in SINKS.items()] + [
    pytest.param(mode, server, ("stream",), id=f"{mode}-{server}")
    for server in PROGRAMS
    for mode in SINKS
    if server != "penstock"
]


@pytest.mark.skipif(not SECONDS, reason="PENSTOCK_PIPELINE_HISTORIES says for how many seconds")
@pytest.mark.parametrize(("mode", "server", "sinks"), SERVERS)
def test_tables_hold_each_entry_once_but_what_was_told_to_be_lost(
    tmp_path: Path, mode: str, server: str, sinks: Sequence[str]
) -> None:
    with world(tmp_path, mode, sinks, PROGRAMS[server]) as made:
        history = History(made, seed=3, say=print)
        history.run(float(SECONDS or 0), least=3)
        assert history.problems() == {}
    assert history.done["batches"]


def _model() -> Model:
    """Three entries of stream ``a``, the third of which is removed before it is read."""
    model = Model()
    for number, mark in enumerate(("", "", "trimmed")):
        model.add("a", (number + 1, 0), "k", "u", is_bad=False)
        if mark:
            model.mark(mark, "a", [(number + 1, 0)])
    return model


def test_an_entry_that_is_missing_or_there_twice_is_found() -> None:
    model, told = _model(), Told("")
    assert model.problems([0, 1, 2], told, of_bad=False) == []
    (missing,) = model.problems([0, 2], told, of_bad=False)
    assert missing.startswith("missing: Entry(n=1, ")
    (twice,) = model.problems([0, 1, 1, 2], told, of_bad=False)
    assert twice.startswith("2 times: Entry(n=1, ")
    assert model.problems([0, 1, 2, 7], told, of_bad=False) == ["7 was never added"]
    assert len(model.problems([0, 1, 2], told, of_bad=True)) == 3


def test_a_loss_has_to_be_told() -> None:
    model = _model()
    (missing,) = model.problems([0, 1], Told(""), of_bad=False)
    assert missing.startswith("missing: Entry(n=2, ")
    for places in ("after 2-0 and before 4-0", "after 1-9 and before the end"):
        told = Told(f"stream 'a': 1 entry {places} removed before being read")
        assert model.problems([0, 1], told, of_bad=False) == []
        assert len(model.problems([0], told, of_bad=False)) == 1, "that was not trimmed"
    other = Told("stream 'b': 1 entry after 2-0 and before 4-0 removed before being read")
    assert len(model.problems([0, 1], other, of_bad=False)) == 1


def test_a_repetition_has_to_be_told() -> None:
    told = Told(
        "stream 'a': group 'g' stands at 1-0, before 2-0, where this query left it; 1 entry of "
        "batch 3 are delivered again after 1-0"
    )
    assert _model().problems([0, 1, 1, 2], told, of_bad=False) == []
    assert len(_model().problems([0, 0, 1, 2], told, of_bad=False)) == 1
    assert len(_model().problems([0, 1, 1, 2], told.without_repeats(), of_bad=False)) == 1


def test_a_row_that_is_not_the_last_of_its_key_is_found() -> None:
    model, told = _model(), Told("")
    assert model.problems_by_key([("k", 2)], told) == []
    assert model.problems_by_key([("k", 1)], told) == [], "the last is not certain"
    (old,) = model.problems_by_key([("k", 0)], told)
    assert old.startswith("key k is 0, not one of {")
    assert len(model.problems_by_key([], told)) == 1
    assert len(model.problems_by_key([("k", 2), ("k", 2)], told)) == 1
    assert len(model.problems_by_key([("k", 2), ("l", 2)], told)) == 1
