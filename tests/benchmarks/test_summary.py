"""Ratios and verdicts, from measurements that are made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.curves import ANY_PLACE, CURVES
from benchmarks.durability import KEEPING
from benchmarks.fast_way import PLAINLY, in_pairs
from benchmarks.instructions import Counts
from benchmarks.machine import Machine
from benchmarks.pauses import PAUSES
from benchmarks.report import QUOTED, as_markdown, quote
from benchmarks.runner import CurveMeasurements, Measurements
from benchmarks.summary import (
    Ratio,
    Results,
    fast_ways,
    growths,
    keepings,
    mixes,
    multiples,
    ratio,
    verdicts,
    waits,
)
from benchmarks.workloads import EACH_RUN, MIXED, WORKLOADS, Workload

PING = next(one for one in WORKLOADS if one.name == "ping")
MACHINE = Machine("now", "a processor", 2, 24, "Linux 6", "CPython 3.11", "a client", "alone")


def measured(name: str = "ping", **rounds: list[float]) -> Measurements:
    """Measurements in which the CPU time and the rate have these values."""
    values = {
        server: [{"cpu_us": value, "per_second": value, "longest_ms": value} for value in some]
        for server, some in rounds.items()
    }
    return Measurements(name, values)


def of_workload(workload: Workload, measurements: Measurements) -> Results:
    return Results(MACHINE, {}, [], 3, 1.0, [(workload, measurements)], [], [])


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    found = ratio(measured(penstock=[2, 9, 4], redis=[1, 3, 4]), "cpu_us", "redis")
    assert found == Ratio(median=2, low=1, high=3)


def test_without_the_other_server_there_is_no_ratio() -> None:
    assert ratio(measured(penstock=[1]), "cpu_us", "redis") is None


@pytest.mark.parametrize(("cost", "met"), [(1.1, True), (1.11, False)])
def test_a_target_is_met_up_to_its_ratio_to_redis(cost: float, met: bool) -> None:
    [verdict] = verdicts(of_workload(PING, measured(penstock=[cost], redis=[1], valkey=[9])))
    assert verdict.met is met
    assert verdict.ratios["valkey"].median < 1


def test_a_missed_target_is_called_missed_on_the_page() -> None:
    page = as_markdown(of_workload(PING, measured(penstock=[3, 5], redis=[1, 1])))
    row = "| PING, 50 clients | <= 1.1 | 4.00 (3.00-5.00) | - | - | - | **missed** |"
    assert row in page


def test_the_same_reason_of_several_misses_is_given_once() -> None:
    rows = [one for one in WORKLOADS if one.name in ("ping", "xadd")]
    measured_rows = [(one, measured(penstock=[9], redis=[1])) for one in rows]
    page = as_markdown(Results(MACHINE, {}, [], 1, 1.0, measured_rows, [], []))
    [line] = [line for line in page.splitlines() if line.startswith("- the system calls")]
    assert line.endswith(": **PING, 50 clients**, **XADD, 50 clients, no pipeline**")


def test_the_page_names_the_dearest_functions_of_what_misses_its_target() -> None:
    results = of_workload(PING, measured(penstock=[3], redis=[1]))
    counts = {"penstock": [{"instructions": 9_640.0}]}
    functions = {"penstock": {"_PyObject_Free": 1411.2, "bulk_end": 663.0}}
    page = as_markdown(replace(results, instructions=[Counts("ping", counts, {}, functions)]))
    assert "\n| PING, 50 clients | `_PyObject_Free` 1,411, `bulk_end` 663 |\n" in page
    met = of_workload(PING, measured(penstock=[1], redis=[1]))
    page = as_markdown(replace(met, instructions=[Counts("ping", counts, {}, functions)]))
    assert "_PyObject_Free" not in page


def test_instructions_stand_beside_the_ratio_they_belong_to() -> None:
    results = of_workload(PING, measured(penstock=[1], redis=[1]))
    counts = {"penstock": [{"instructions": 9_640.0}], "redis": [{"instructions": 3_596.0}]}
    page = as_markdown(replace(results, instructions=[Counts("ping", counts)]))
    assert "| PING, 50 clients | <= 1.1 | 1.00 | - | 9.6 | 3.6 | met |" in page


@pytest.mark.parametrize(
    ("cost", "redis", "cell"),
    [
        (1.3, 1.3, "1.00, 1.30"),
        (1.31, 9, "**0.15, 1.31**"),
        (1.2, 1, "**1.20, 1.20**"),
    ],
)
def test_a_mix_may_cost_what_it_costs_redis_and_a_third_more_than_one_shape(
    cost: float, redis: float, cell: str
) -> None:
    rows = [
        (MIXED[0], measured(penstock=[1], redis=[1])),
        (MIXED[1], measured(penstock=[cost], redis=[redis])),
    ]
    results = Results(MACHINE, {}, [], 1, 1.0, rows, [], [])
    assert [mix.met for mix in mixes(results)] == [True, "**" not in cell]
    page = as_markdown(results)
    assert "|  | 1 lists of fields | 2 lists of fields |" in page
    assert f"| 1 streams | 1.00, 1.00 | {cell} |" in page


def test_a_mix_is_not_judged_without_the_other_server() -> None:
    [mix] = mixes(of_workload(MIXED[5], measured(penstock=[1])))
    assert mix.met is None


MIXED_ON_BOTH = [one for one in (*WORKLOADS, *PLAINLY) if one.name.startswith("xadd-8x8")]


@pytest.mark.parametrize(("fast", "cell"), [(2.0, "met"), (2.1, "**missed**")])
def test_the_fast_path_may_cost_what_the_common_way_costs(fast: float, cell: str) -> None:
    rounds = [measured(penstock=[fast]), measured(penstock=[2])]
    rows = list(zip(MIXED_ON_BOTH, rounds, strict=True))
    counts = [Counts(rows[0][0].name, {"penstock": [{"instructions": 8_540.0}]})]
    page = as_markdown(Results(MACHINE, {}, [], 1, 1.0, rows, [], [], counts))
    title = "XADD, pipeline 100, 8 streams by 8 lists of fields"
    assert f"| {title} | {fast:g} | 2 | {fast / 2:.2f} | 8.5 | - | {cell} |" in page
    assert "## With an append-only file" not in page


def test_without_the_other_way_the_fast_path_is_not_compared() -> None:
    fast, plainly = MIXED_ON_BOTH
    assert not fast_ways(of_workload(fast, measured(penstock=[1])))
    assert not fast_ways(of_workload(plainly, measured(penstock=[1])))


def test_both_ways_are_measured_one_right_after_the_other() -> None:
    fast, plainly = MIXED_ON_BOTH
    assert in_pairs([fast, PING, plainly]) == [fast, plainly, PING]
    assert in_pairs([PING, plainly]) == [PING, plainly]


def test_constant_bytes_stand_beside_what_they_are_the_floor_of() -> None:
    results = of_workload(PING, measured(penstock=[6], uvloop=[4], redis=[5]))
    counts = {"penstock": [{"instructions": 9_640.0}], "uvloop": [{"instructions": 5_000.0}]}
    page = as_markdown(replace(results, instructions=[Counts("ping", counts)]))
    assert "| PING, 50 clients | 6 | 4 | 5 | 1.50 | 9.6 | 5.0 | - |" in page


def test_each_workload_has_one_line_of_absolute_figures() -> None:
    page = as_markdown(of_workload(PING, measured(penstock=[6, 8, 7], redis=[5, 5, 5])))
    assert "| PING, 50 clients | command | CPU µs | 7 |  | 5 |  |  |  | 7 |" in page


README = """\
| a | table |
|---|---:|---:|
| before | 1 |
## Performance

| | Redis | Valkey |
|---|---:|---:|
| XADD | 9.00 | 9.00 |
| XACK | 9.00 | 9.00 |

## Status
"""


def test_the_readme_quotes_the_ratios_to_other_programs() -> None:
    rows = [one for one in WORKLOADS if one.name in QUOTED]
    measured_rows = []
    for one in rows:
        values = [{target.value: 3.0 for target in one.targets}]
        half = [{target.value: 6.0 for target in one.targets}]
        found = Measurements(one.name, {"penstock": values, "redis": half, "valkey": values})
        measured_rows.append((one, found))
    results = Results(MACHINE, {}, [], 1, 1.0, measured_rows, [], [])
    before, table = quote(results, README).split("|---|---:|---:|\n")[1:]
    assert before.startswith("| before | 1 |\n")
    lines = table.removesuffix("\n## Status\n").splitlines()
    assert len(lines) == len(QUOTED)
    assert lines[0].startswith("| 50 streams, 250 groups")
    assert lines[-1] == "| XADD to a parked XREADGROUP: wake-up, wall clock, p50 | 0.50 | 1.00 |"


def test_the_readme_stays_as_it_is_where_not_everything_was_measured() -> None:
    assert quote(of_workload(PING, measured(penstock=[1], redis=[1])), README) == README


def test_plain_python_has_targets_of_its_own() -> None:
    workload = next(one for one in WORKLOADS if one.name == "xadd-p16")
    found = verdicts(of_workload(workload, measured(penstock=[1], plain=[3], redis=[2])))
    assert [(one.title, one.ratios["redis"].median) for one in found] == [
        ("XADD, 50 clients, pipeline 16", 0.5),
        ("XADD, 50 clients, pipeline 16, plain Python", 1.5),
    ]


def test_what_an_append_only_file_costs_is_compared_with_the_same_load_without() -> None:
    [kept] = [one for one in KEEPING if one.name == "xadd-everysec"]
    plain = next(one for one in WORKLOADS if one.name == "xadd")
    results = Results(
        MACHINE,
        {},
        [],
        1,
        1.0,
        [(plain, measured(penstock=[2])), (kept, measured(penstock=[3], redis=[2]))],
        [],
        [],
    )
    [one] = keepings(results)
    assert (one.ratios, one.times) == ({"redis": Ratio(1.5, 1.5, 1.5)}, 1.5)
    assert verdicts(results)[0].workload is plain
    row = "| XADD, 50 clients, no pipeline, appendfsync everysec | 1.50 | - | 1.50 |"
    assert row in as_markdown(results)


def test_fakeredis_is_compared_by_requests_a_second() -> None:
    [one] = multiples(of_workload(PING, measured(penstock=[50], fakeredis=[4])))
    assert one.times == 12.5
    assert one.met


def test_what_fakeredis_did_not_survive_is_on_the_page_and_no_failure_of_the_run() -> None:
    measurements = measured(penstock=[50])
    measurements.failures["fakeredis"] = "TimeoutError: timed out"
    results = of_workload(PING, measurements)
    assert "| PING, 50 clients | TimeoutError: timed out | not measured |" in as_markdown(results)
    assert not list(results.failures)


def test_what_another_server_did_not_survive_is_a_failure_of_the_run() -> None:
    measurements = measured()
    measurements.failures["redis"] = "LoadError: it went away"
    assert list(of_workload(PING, measurements).failures) == [
        "ping: redis: LoadError: it went away"
    ]


@pytest.mark.parametrize(("last", "met"), [(2.4, True), (2.41, False)])
def test_cost_may_grow_by_a_fifth_from_the_smallest_size_to_the_largest(
    last: float, met: bool
) -> None:
    points = [
        (10, measured(penstock=[2])),
        (20, measured(penstock=[9])),
        (30, measured(penstock=[last])),
    ]
    [growth] = growths(CurveMeasurements(CURVES[0].name, {"XADD": points}))
    assert growth.sizes == [10, 20, 30]
    assert growth.met is met


def test_growth_is_that_of_the_medians_of_the_rounds() -> None:
    points = [(10, measured(penstock=[1, 2, 9])), (20, measured(penstock=[9, 3, 1]))]
    [growth] = growths(CurveMeasurements(CURVES[0].name, {"XADD": points}))
    assert growth.factor == 1.5


def test_the_page_says_why_a_cost_grows_a_mix_is_dear_and_a_wait_is_long() -> None:
    points = [(10, measured(penstock=[1])), (20, measured(penstock=[9]))]
    rows = [(MIXED[0], measured(penstock=[9], redis=[1]))]
    curves = [(CURVES[0], CurveMeasurements(CURVES[0].name, {"XRANGE COUNT 10": points}))]
    pauses = [(replace(PAUSES[0], why="it is long"), measured(penstock=[21]))]
    page = as_markdown(Results(MACHINE, {}, [], 3, 1.0, rows, curves, pauses))
    assert f"\n- {ANY_PLACE}: **XRANGE COUNT 10, entries**\n" in page
    assert f"\n- {EACH_RUN}: **1 by 1**\n" in page
    assert f"\n- it is long: **{PAUSES[0].title}**\n" in page


def test_growth_from_next_to_nothing_is_not_told() -> None:
    points = [(10, measured(penstock=[1e-7])), (20, measured(penstock=[9]))]
    [growth] = growths(CurveMeasurements(CURVES[0].name, {"XADD": points}))
    assert growth.factor is None


@pytest.mark.parametrize(("longest", "met"), [(20, True), (21, False)])
def test_nobody_may_wait_for_more_than_twenty_milliseconds(longest: float, met: bool) -> None:
    pauses = [(PAUSES[0], measured(penstock=[1, longest, 99]))]
    [wait] = waits(Results(MACHINE, {}, [], 3, 1.0, [], [], pauses))
    assert wait.met is met
