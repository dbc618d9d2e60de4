"""The README quotes the measurements as they were made."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

QUOTED = re.compile(r"^\| ([^|]+) \| (\d+\.\d\d) \| <= ([\d.]+) \| (met|missed) \|$", re.MULTILINE)


def test_every_ratio_of_the_readme_is_in_the_measurements() -> None:
    measured = (ROOT / "benchmarks" / "results" / "latest.md").read_text()
    quoted = QUOTED.findall((ROOT / "README.md").read_text())
    assert len(quoted) == 12
    for workload, ratio, target, verdict in quoted:
        row = rf"^\| {re.escape(workload)} \| <= {target} \| {ratio}[ (].*\b{verdict}\b"
        assert re.search(row, measured, re.MULTILINE), workload
