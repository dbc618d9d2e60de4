"""The harness works: it starts a server, loads it, and reports; figures are never judged."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks import instructions
from benchmarks.__main__ import SHORT, main
from benchmarks.instructions import DEAREST, PROGRAMS, run_instructions
from benchmarks.servers import find_kinds
from benchmarks.varied import COMMANDS
from benchmarks.workloads import WORKLOADS

NAMES = [
    *("varied-p8", "varied-p8-commands", "xadd", "xadd-p16", "xadd-1x1", "xadd-100x100"),
    *("xadd-100x100-plainly", "xadd-given", "policies", "wake-up", "xadd-always", "load"),
]
PING = [one for one in WORKLOADS if one.name == "ping"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the short form of two workloads, a curve and a pause has left its results."""
    folder = tmp_path_factory.mktemp("benchmarks")
    options = ["--short", "--share-cores", "--servers", "penstock,uvloop"]
    folders = ["--output", str(folder), "--images", str(folder)]
    assert main([*options, *folders, *NAMES, "curve-groups", "pause-del", "pause-rewrite"]) == 0
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    """The results as JSON."""
    found: dict[str, Any] = json.loads((folder / "latest.json").read_text())
    return found


@pytest.mark.slow
def test_every_workload_asked_for_is_measured_once(results: dict[str, Any]) -> None:
    measured = {one["name"]: one["values"] for one in results["measurements"]}
    assert list(measured) == NAMES
    assert all(len(values["penstock"]) == 1 for values in measured.values())


@pytest.mark.slow
def test_cpu_time_throughput_and_latency_are_measured(results: dict[str, Any]) -> None:
    for one in results["measurements"]:
        [values] = one["values"]["penstock"]
        if one["name"] == "varied-p8-commands":
            assert set(values) == {"units", *COMMANDS}
        else:
            latency = set() if one["name"] in ("load", "varied-p8") else {"p50_ms", "p99_ms"}
            assert set(values) == {"units", "cpu_us", "per_second"} | latency
        assert all(value > 0 for value in values.values())


@pytest.mark.slow
def test_constant_bytes_are_measured_where_they_are_the_floor(results: dict[str, Any]) -> None:
    measured = {one["name"] for one in results["measurements"] if "uvloop" in one["values"]}
    assert measured == {"xadd", "wake-up"}


@pytest.mark.slow
def test_without_a_reference_no_target_is_met_or_missed(results: dict[str, Any]) -> None:
    titles = [(target["workload"], target["value"]) for target in results["targets"]]
    assert titles == [
        ("varied-p8", "cpu_us"),
        *[("varied-p8-commands", command) for command in COMMANDS],
        ("xadd", "cpu_us"),
        *[("xadd-p16", "cpu_us")] * 2,
        *[(name, "cpu_us") for name in ("xadd-100x100", "xadd-given", "policies")],
        *[("wake-up", "p50_ms"), ("wake-up", "p99_ms")],
        *[("xadd-always", "cpu_us"), ("load", "cpu_us")],
    ]
    assert all(target["met"] is None for target in results["targets"])


@pytest.mark.slow
def test_the_fast_path_is_compared_with_the_common_way(
    results: dict[str, Any], folder: Path
) -> None:
    [compared] = results["fast_way"]
    assert compared["workload"] == "xadd-100x100"
    page = (folder / "latest.md").read_text()
    assert "\n## The fast path for XADD\n" in page
    assert "\n| XADD, pipeline 100, 100 streams by 100 lists of fields | " in page


@pytest.mark.slow
def test_a_curve_has_a_cost_for_each_load_and_size(results: dict[str, Any]) -> None:
    [curve] = results["curves"]
    assert len(curve["loads"]) == 3
    for load in curve["loads"]:
        assert len(load["costs"]["penstock"]) == len(load["sizes"]) == 3


@pytest.mark.slow
def test_waits_are_seen_from_outside_and_from_inside(results: dict[str, Any]) -> None:
    pauses = results["pauses"]
    assert [pause["name"] for pause in pauses] == ["pause-del", "pause-rewrite"]
    for pause in pauses:
        assert {"longest_ms", "loop_ms", "gc_ms"} <= set(pause["values"]["penstock"])


@pytest.mark.slow
def test_the_page_has_a_row_for_each_target(folder: Path) -> None:
    page = (folder / "latest.md").read_text()
    assert "| XADD, 50 clients, pipeline 16 | <= 0.85 | - | - | - |" in page
    assert "| XADD to a parked XREADGROUP: wake-up, wall clock, p99 | <= 1.1 |" in page


@pytest.mark.slow
@pytest.mark.skipif(None in PROGRAMS, reason="valgrind is not there")
def test_instructions_are_counted_for_each_server() -> None:
    [counted] = run_instructions(PING, find_kinds(["penstock"])[0], SHORT)
    assert not counted.failures
    [values] = counted.values["penstock"]
    assert values["instructions"] > 1000
    assert 1 < len(counted.functions["penstock"]) <= DEAREST


@pytest.mark.slow
@pytest.mark.skipif(None in PROGRAMS, reason="valgrind is not there")
def test_the_dearest_functions_of_a_workload_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert instructions.main(["ping", "--server", "uvloop", "--scale", "0.01", "--top", "3"]) == 0
    total, *functions = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[0-9,]{4,} instructions by command, 100 of them", total)
    costs = [int(line.split()[0].replace(",", "")) for line in functions]
    assert len(costs) == 3
    assert costs == sorted(costs, reverse=True)


@pytest.mark.slow
def test_sizes_are_drawn_where_there_is_matplotlib(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `bench` only")
    assert "<svg" in (folder / "benchmark-sizes.svg").read_text()


def test_workloads_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed[: len(WORKLOADS)] == [workload.name for workload in WORKLOADS]


def test_a_name_that_no_workload_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-workload"]) == 2
    assert "no workload has such a name" in capsys.readouterr().err
