"""A file that was changed anywhere is loaded, or refused with a reason; nothing else happens."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.reliability.mutations import FEW, MANY, OUTCOMES, changed, start, take_in
from tests.reliability.results import results_of
from tests.support.servers import PenstockThread


def test_a_changed_dump_file_is_loaded_or_refused_by_a_start(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    results = results_of(request.config)
    path = tmp_path / "dump.rdb"
    outcomes = Counter[str]()
    for data in changed(MANY if results else FEW):
        path.write_bytes(data)
        outcomes[start(path)] += 1
        assert path.read_bytes() == data
    if results:
        results.note_files("a dump file with changes, at a start", outcomes)
    assert set(outcomes) == set(OUTCOMES)


def test_a_changed_dump_file_is_taken_in_or_refused_by_an_import(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    results = results_of(request.config)
    path = tmp_path / "dump.rdb"
    outcomes = Counter[str]()
    with PenstockThread() as target:
        for data in changed(MANY if results else FEW):
            path.write_bytes(data)
            outcomes[take_in(path, target)] += 1
    if results:
        results.note_files("a dump file with changes, by `penstock import`", outcomes)
    assert set(outcomes) == set(OUTCOMES)
