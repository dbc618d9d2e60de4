"""The README quotes the measurements as they were made."""

from __future__ import annotations

import re

from tests.support.process import ROOT

QUOTED = re.compile(r'(\d+\.\d\d) times[^"]*"([^"]+)"')


def test_every_ratio_of_the_readme_is_in_the_measurements() -> None:
    measured = (ROOT / "benchmarks" / "results" / "latest.md").read_text()
    section = (ROOT / "README.md").read_text().split("## Performance\n")[1].split("\n## ")[0]
    quoted = QUOTED.findall(section)
    assert len(quoted) == section.count(" times ") == 3
    for ratio, workload in quoted:
        row = rf"^\| {re.escape(workload)} \| <= [\d.]+ \| {ratio}[ (]"
        assert re.search(row, measured, re.MULTILINE), workload


def test_the_readme_compares_with_the_redis_that_was_measured() -> None:
    measured = (ROOT / "benchmarks" / "results" / "latest.md").read_text()
    [version] = re.findall(r"what Redis ([\d.]+) takes", (ROOT / "README.md").read_text())
    assert f"Redis {version}," in measured
