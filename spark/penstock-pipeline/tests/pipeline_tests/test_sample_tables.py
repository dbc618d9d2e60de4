"""Tables of sample entries are those of a run, and cases of the page are as they say."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from penstock_pipeline.model import Pipeline
from penstock_pipeline.samples.cases import Entry, read_cases
from penstock_pipeline.samples.compare import show_rows
from penstock_pipeline.samples.tables import Samples, run_cases, table_names
from pipeline_tests.conftest import ROOT, Load

PIPELINE = re.findall(
    r"```toml\n(.*?)```", (ROOT / "docs/pipeline.md").read_text(encoding="utf-8"), re.DOTALL
)[0]
CASES = re.findall(
    r"```toml\n(.*?)```",
    (ROOT / "docs/pipeline-operations.md").read_text(encoding="utf-8"),
    re.DOTALL,
)[0]


def run(spark: SparkSession, pipeline: Pipeline, folder: Path, content: str) -> tuple[bool, str]:
    file = folder / "p.test.toml"
    file.write_text(content, encoding="utf-8")
    shown = io.StringIO()
    good = run_cases(spark, pipeline, read_cases(file, pipeline), Console(file=shown, width=100))
    return good, shown.getvalue()


def texts(given: Sequence[str]) -> list[str]:
    """Lines without the blanks that a terminal's columns have."""
    return [re.sub(r"\s+", " ", line).strip() for line in given]


def test_the_case_of_the_page_is_as_expected(
    spark: SparkSession, load_text: Load, tmp_path: Path
) -> None:
    pipeline = load_text(PIPELINE, REDIS_URL="redis://h")
    assert run(spark, pipeline, tmp_path, CASES) == (
        True,
        "orders of an hour are one row: ok\n1 case, all as expected\n",
    )
    good, shown = run(spark, pipeline, tmp_path, CASES.replace("qty = 7", "qty = 8"))
    assert not good
    assert texts(shown.splitlines())[:2] == [
        "orders of an hour are one row: differs",
        "table hours: 1 missing (-), 1 too many (+), 0 as expected",
    ]
    assert texts(shown.splitlines())[4:] == [
        "- ink 2026-01-01T10:00:00Z 8",
        "+ ink 2026-01-01T10:00:00Z 7",
        "1 case, 1 not as expected",
    ]


def test_dead_letters_that_nobody_expects_are_a_difference(
    spark: SparkSession, load_text: Load, tmp_path: Path
) -> None:
    pipeline = load_text(PIPELINE, REDIS_URL="redis://h")
    content = '[[case]]\nname = "c"\nexpect.entries = []\n[[case.entries.orders]]\nitem = "x"\n'
    good, shown = run(spark, pipeline, tmp_path, content)
    assert not good
    assert "+ orders 1-0 field 'qty' is missing" in texts(shown.splitlines())


def test_sql_that_fails_on_a_sample_is_told_and_the_next_case_runs(
    spark: SparkSession, load_text: Load, tmp_path: Path
) -> None:
    pipeline = load_text(
        '[source]\nsubscribe = "s"\n[checkpoint]\npath = "c"\n[[sink]]\npath = "t"\n'
        '[[transform]]\nname = "t"\n'
        "sql = \"SELECT 1 / int(string(fields['n'])) AS q FROM entries\"\n"
    )
    content = "".join(
        f'[[case]]\nname = "{n}"\nexpect.t = [{{ q = 0.5 }}]\n[[case.entries.s]]\nn = {n}\n'
        for n in (0, 2)
    )
    good, shown = run(spark, pipeline, tmp_path, content)
    assert not good
    first, why, second, total = (
        shown.splitlines()[0],
        shown.splitlines()[1],
        *shown.splitlines()[-2:],
    )
    assert (first, second, total) == ("0: failed", "2: ok", "2 cases, 1 not as expected")
    assert why.startswith("    [DIVIDE_BY_ZERO] Division by zero.")


def test_a_preview_shows_the_first_rows_of_every_table(
    spark: SparkSession, load_text: Load
) -> None:
    pipeline = load_text(
        PIPELINE.replace("watermark =", 'deduplicate = { keys = ["item", "at"] }\nwatermark ='),
        REDIS_URL="redis://h",
    )
    entries = [
        Entry("orders", f"{n}-0", ((b"item", b"ink"), (b"qty", b"2"), (b"at", at)))
        for n, at in enumerate([b"2026-01-01T10:00:00Z"] * 2 + [b"2026-01-01T11:00:00+01:00"], 1)
    ]
    samples = Samples(spark, pipeline, entries)
    assert table_names(pipeline) == ["entries", "hours"]
    shown = io.StringIO()
    screen = Console(file=shown, width=120)
    for name in table_names(pipeline):
        show_rows(screen, samples.table(name, 2))
    show_rows(screen, samples.dead_letters(2))
    found = texts(shown.getvalue().splitlines())
    assert found[3] == "orders 1-0 1970-01-01T00:00:00.001Z ink 2 2026-01-01T10:00:00Z"
    assert found[5] == "... and more"
    # The three are one, whatever the offset of their times.
    assert found[9:] == ["ink 2026-01-01T10:00:00Z 2", "dead letters", "no rows"]
