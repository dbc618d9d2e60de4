"""How often a query looks for entries, unless the file says it."""

from __future__ import annotations

from pathlib import Path

from pipeline_tests.plain.files import Command, pipeline, text, write
from pipeline_tests.plain.test_samples import PARSE

COPY = '[[sink]]\nname = "copy"\nfrom = "entries"\ntype = "stream"\nstream = "copy"\n'


def intervals(folder: Path, more: str, source: str = "") -> dict[str, str]:
    found = pipeline(folder, "redis://h", source, more)
    return {output.name: found.interval(output) for output in found.outputs}


def test_files_take_a_minute_and_dead_letters_keep_up_with_them(tmp_path: Path) -> None:
    assert intervals(tmp_path, PARSE) == {"table": "1 minute", "dead-letters": "1 minute"}


def test_streams_take_a_second_and_dead_letters_keep_up_with_them(tmp_path: Path) -> None:
    assert intervals(tmp_path, PARSE + COPY) == {
        "copy": "1 second",
        "table": "1 minute",
        "dead-letters": "1 second",
    }


def test_what_the_file_says_holds_for_all(tmp_path: Path) -> None:
    found = intervals(tmp_path, f'{PARSE}{COPY}[trigger]\nevery = "5 seconds"\n')
    assert set(found.values()) == {"5 seconds"}


def test_in_mode_group_files_decide(tmp_path: Path) -> None:
    source = 'mode = "group"\ngroup_id = "g"'
    assert pipeline(tmp_path, "redis://h", source, COPY).interval() == "1 minute"


def test_a_plan_says_which_is_which(tmp_path: Path, command: Command) -> None:
    _, out, _ = command("plan", write(tmp_path, text("redis://h", more=PARSE + COPY)))
    line = "  a batch every        1 second (copy, dead-letters); 1 minute (table)"
    assert line in out.splitlines()
    _, out, _ = command("plan", write(tmp_path, text("redis://h")))
    assert "  a batch every        1 minute" in out.splitlines()
