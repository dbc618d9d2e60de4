"""The measurement of how soon a server answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks.startup import ASYNCIO, FIXTURE, Start, main, run, table


def test_every_start_is_measured_in_each_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "startup.md"
    options = ["--rounds", "1", "--servers", "penstock,nobody", "--output", str(page)]
    assert main(options) == 0
    printed, told = capsys.readouterr()
    assert told == "nobody is left out: it was not found\n"
    titles = [line.split("|")[1].strip() for line in printed.splitlines()[2:]]
    assert titles == ["Penstock", FIXTURE, ASYNCIO]
    assert page.read_text().endswith(printed)


def test_a_program_is_measured_to_its_end() -> None:
    wall, cpu = run(sys.executable, "pass")
    assert cpu is not None
    assert wall > 0 < cpu


def test_the_least_cpu_time_is_compared_with_that_of_importing_asyncio() -> None:
    starts = {
        "Redis": [Start(12.0, 6.0), Start(10.0, 5.0)],
        FIXTURE: [Start(200.0, None), Start(100.0, None)],
        ASYNCIO: [Start(60.0, 50.0), Start(70.0, 60.0)],
    }
    assert table(starts).splitlines()[2:] == [
        "| Redis | 10.0 | 11.0 | 5.0 | 5.5 | 0.10 |",
        f"| {FIXTURE} | 100.0 | 150.0 |  |  |  |",
        f"| {ASYNCIO} | 60.0 | 65.0 | 50.0 | 55.0 | 1.00 |",
    ]
