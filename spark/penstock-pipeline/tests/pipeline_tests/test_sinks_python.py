"""Sink ``python``: a function of the user's gets each batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock_pipeline.errors import InvalidFile, PipelineError
from penstock_pipeline.plan import describe
from penstock_pipeline.sinks.base import Batch, Sink
from pipeline_tests.conftest import Load
from pipeline_tests.pipelines import ONE_SINK

MODULE = """
got = []
words = "no function"

def write(frame, batch, options):
    if frame == "bad":
        raise ValueError("can't write\\nmore")
    got.append((frame, batch, dict(options)))
"""


@pytest.fixture
def path() -> Iterator[None]:
    before, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if name.startswith("my_"):
            del sys.modules[name]


def sink_of(load_text: Load, function: str, more: str = "") -> Sink:
    (sink,) = load_text(f'{ONE_SINK}type = "python"\nfunction = "{function}"\n{more}').sinks
    return sink


@pytest.mark.usefixtures("path")
def test_a_function_beside_the_file_gets_rows_number_and_options(
    load_text: Load, tmp_path: Path
) -> None:
    (tmp_path / "my_sinks.py").write_text(MODULE)
    sink = sink_of(load_text, "my_sinks:write", 'options = { to = "there", most = 5 }\n')
    sink.require()
    frame: Any = "rows"
    sink.write(frame, Batch("q", 7, ordered=True))
    expected = ("rows", 7, {"to": "there", "most": "5", "query": "q"})
    assert sys.modules["my_sinks"].got == [expected]
    bad: Any = "bad"
    with pytest.raises(PipelineError) as caught:
        sink.write(bad, Batch("q", 8, ordered=True))
    message = "sink 'entries': my_sinks:write: ValueError: can't write"
    assert str(caught.value) == message
    assert "  to                   python my_sinks:write\n" in describe(
        load_text(f'{ONE_SINK}type = "python"\nfunction = "my_sinks:write"\n')
    )


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("my_none:write", "can't import 'my_none': ModuleNotFoundError: No module named 'my_none'"),
        ("my_broken:write", "can't import 'my_broken': ZeroDivisionError: division by zero"),
        ("my_sinks:none", "module 'my_sinks' has no function 'none'"),
        ("my_sinks:words", "module 'my_sinks' has no function 'words'"),
    ],
)
def test_a_function_that_is_not_there_is_told_before_the_run(
    load_text: Load, tmp_path: Path, function: str, message: str
) -> None:
    (tmp_path / "my_sinks.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("1 / 0")
    with pytest.raises(PipelineError) as caught:
        sink_of(load_text, function).require()
    assert str(caught.value) == f"sink 'entries': {message}"


def test_keys_of_a_function_are_checked(load_text: Load) -> None:
    with pytest.raises(InvalidFile) as caught:
        sink_of(load_text, "write", 'options = { query = "x" }\n')
    assert [str(problem) for problem in caught.value.problems] == [
        "sink[1].function: is 'write'; allowed: 'module:name', as 'sinks:write'",
        "sink[1].options.query: is the query's ID, which the function gets anyway",
    ]
