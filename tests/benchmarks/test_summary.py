"""Ratios, verdicts and what README quotes, from measurements that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.curves import CURVES
from benchmarks.machine import Machine
from benchmarks.pauses import PAUSES
from benchmarks.report import INDEX, QUOTED, as_markdown, quote, write
from benchmarks.runner import CurveMeasurements, Measurements
from benchmarks.summary import Ratio, Results, growths, mixes, ratio, verdicts, waits
from benchmarks.workloads import MIXED, WORKLOADS, Workload

PING = next(one for one in WORKLOADS if one.name == "ping")
MACHINE = Machine("now", "a processor", 2, 24, "Linux 6", "CPython 3.11", "a client", "alone")


def measured(name: str = "ping", **rounds: list[float]) -> Measurements:
    """Measurements in which the CPU time and the longest wait have these values."""
    values = {
        server: [{"cpu_us": value, "longest_ms": value} for value in some]
        for server, some in rounds.items()
    }
    return Measurements(name, values)


def of_workloads(*workloads: tuple[Workload, Measurements]) -> Results:
    return Results(MACHINE, {}, [], 3, 1.0, list(workloads), [], [])


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    found = ratio(measured(penstock=[2, 9, 4], redis=[1, 3, 4]), "cpu_us", "redis")
    assert found == Ratio(median=2, low=1, high=3)
    assert ratio(measured(penstock=[1]), "cpu_us", "redis") is None


@pytest.mark.parametrize(("cost", "met"), [(1.1, True), (1.11, False)])
def test_a_target_is_met_up_to_its_ratio_to_redis(cost: float, met: bool) -> None:
    results = of_workloads((PING, measured(penstock=[cost], redis=[1], valkey=[9])))
    [verdict] = verdicts(results)
    assert verdict.met is met
    assert ("| **missed** |" in as_markdown(results)["commands.md"]) == (not met)


def test_a_page_answers_a_question_and_is_listed_with_the_targets_that_are_met() -> None:
    pages = as_markdown(of_workloads((PING, measured(penstock=[1], redis=[1]))))
    assert list(pages) == [INDEX, "commands.md", "figures.md"]
    assert "| [How fast is a command?](commands.md) | 1 of 1 |" in pages[INDEX]
    assert pages["commands.md"].startswith("# How fast is a command?\n")


def test_a_page_of_an_earlier_run_goes_when_it_has_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / "waits.md").write_text("# How long may a client wait?\n")
    write(of_workloads((PING, measured(penstock=[1], redis=[1]))), tmp_path)
    written = {"commands.md", "figures.md", "latest.json", "latest.md"}
    assert {path.name for path in tmp_path.iterdir()} == written


@pytest.mark.parametrize(("cost", "redis", "met"), [(1.3, 1.3, True), (1.31, 9, False)])
def test_a_mix_may_cost_what_it_costs_redis_and_a_third_more_than_one_shape(
    cost: float, redis: float, met: bool
) -> None:
    one = (MIXED[0], measured(penstock=[1], redis=[1]))
    other = (MIXED[1], measured(penstock=[cost], redis=[redis]))
    assert [mix.met for mix in mixes(of_workloads(one, other))] == [True, met]


@pytest.mark.parametrize(("last", "met"), [(2.4, True), (2.41, False)])
def test_cost_may_grow_by_a_fifth_from_the_smallest_size_to_the_largest(
    last: float, met: bool
) -> None:
    costs: tuple[tuple[int, list[float]], ...] = ((10, [1, 2, 9]), (20, [9]), (30, [last]))
    points = [(size, measured(penstock=rounds)) for size, rounds in costs]
    [growth] = growths(CurveMeasurements(CURVES[0].name, {"XADD": points}))
    assert growth.met is met


@pytest.mark.parametrize(("longest", "met"), [(20, True), (21, False)])
def test_nobody_may_wait_for_more_than_twenty_milliseconds(longest: float, met: bool) -> None:
    pauses = [(PAUSES[0], measured(penstock=[1, longest, 99]))]
    [wait] = waits(Results(MACHINE, {}, [], 3, 1.0, [], [], pauses))
    assert wait.met is met


@pytest.mark.parametrize(
    ("server", "failures"), [("fakeredis", []), ("redis", ["ping: redis: LoadError: it went away"])]
)
def test_what_another_server_did_not_survive_is_a_failure_of_the_run(
    server: str, failures: list[str]
) -> None:
    measurements = measured(penstock=[50])
    measurements.failures[server] = "LoadError: it went away"
    assert list(of_workloads((PING, measurements)).failures) == failures


README = """\
| a | table |
|---|---:|---:|
| before | 1 |
## Performance

| | Redis | Valkey |
|---|---:|---:|
| XADD | 9.00 | 9.00 |

## Status
"""


def test_the_readme_quotes_the_ratios_to_other_programs() -> None:
    measured_rows = []
    for one in (one for one in WORKLOADS if one.name in QUOTED):
        values = [{target.value: 3.0 for target in one.targets}]
        half = [{target.value: 6.0 for target in one.targets}]
        found = {"penstock": values, "redis": half, "valkey": values}
        measured_rows.append((one, Measurements(one.name, found)))
    before, table = quote(of_workloads(*measured_rows), README).split("|---|---:|---:|\n")[1:]
    assert before.startswith("| before | 1 |\n")
    lines = table.removesuffix("\n## Status\n").splitlines()
    assert len(lines) == len(QUOTED)
    assert lines[-1] == "| XADD to a parked XREADGROUP: wake-up, wall clock, p50 | 0.50 | 1.00 |"


def test_the_readme_stays_as_it_is_where_not_everything_was_measured() -> None:
    assert quote(of_workloads((PING, measured(penstock=[1], redis=[1]))), README) == README
