"""From measurements to ratios and verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.curves import FLAT, Curve
from benchmarks.fast_way import MOST_TIMES, PLAINLY
from benchmarks.instructions import Counts
from benchmarks.loads import Values
from benchmarks.machine import Machine
from benchmarks.pauses import TIMES_REDIS, Pause
from benchmarks.runner import CurveMeasurements, Measurements
from benchmarks.servers import FAKEREDIS, FLOOR
from benchmarks.varied import Mixed
from benchmarks.workloads import (
    MIXED,
    MOST_MIXED,
    MOST_OF_ONE_SHAPE,
    TIMES_FAKEREDIS,
    Target,
    Workload,
)

SUBJECT: Final = "penstock"
REFERENCES: Final = ("redis", "valkey")
JUDGE: Final = "redis"
"""The server that the targets refer to."""


@dataclass(frozen=True)
class Results:
    """Everything that one run has measured."""

    machine: Machine
    versions: dict[str, str]
    missing: list[str]
    rounds: int
    factor: float
    workloads: list[tuple[Workload, Measurements]]
    curves: list[tuple[Curve, CurveMeasurements]]
    pauses: list[tuple[Pause, Measurements]]
    instructions: list[Counts] = field(default_factory=list)

    @property
    def failures(self) -> Iterator[str]:
        """What did not come to its end, and why; fakeredis does not have to survive."""
        points = (p for _, c in self.curves for points in c.points.values() for _, p in points)
        rows = [m for _, m in (*self.workloads, *self.pauses)] + [*points, *self.instructions]
        for measurements in rows:
            for server, reason in measurements.failures.items():
                if server != "fakeredis":
                    yield f"{measurements.name}: {server}: {reason}"


@dataclass(frozen=True)
class Ratio:
    """Penstock's value by another server's of the same round: the median and the extremes."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """A target, the ratio to each reference, and whether it is met; ``None`` if nobody knows."""

    workload: Workload
    target: Target
    ratios: dict[str, Ratio]
    met: bool | None

    @property
    def title(self) -> str:
        """What was measured."""
        label = self.target.label
        return f"{self.workload.title}, {label}" if label else self.workload.title


def ratio(
    measurements: Measurements, value: str, other: str, subject: str = SUBJECT
) -> Ratio | None:
    """Penstock's ``value`` by that of another server; ``None`` if one of them was not measured."""
    pairs = zip(
        measurements.values.get(subject, []), measurements.values.get(other, []), strict=False
    )
    ratios = [mine[value] / theirs[value] for mine, theirs in pairs if theirs[value] > 0]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def verdicts(results: Results) -> list[Verdict]:
    """One for each target of each workload."""
    return [
        _verdict(workload, target, measurements)
        for workload, measurements in results.workloads
        for target in workload.targets
    ]


def _verdict(workload: Workload, target: Target, measurements: Measurements) -> Verdict:
    found = {name: ratio(measurements, target.value, name, target.subject) for name in REFERENCES}
    ratios = {name: value for name, value in found.items() if value is not None}
    judge = ratios.get(JUDGE)
    return Verdict(workload, target, ratios, None if judge is None else judge.median <= target.most)


@dataclass(frozen=True)
class Keeping:
    """The cost of a workload with something that may be off, such as an append-only file: the ratio
    to each reference, and how many times what it costs Penstock without; ``None`` if that was not
    measured."""

    workload: Workload
    ratios: dict[str, Ratio]
    times: float | None


def instructions_of(results: Results, verdict: Verdict) -> dict[str, float]:
    """How many instructions a unit of a workload takes, by server; of CPU time alone."""
    if verdict.target.value != "cpu_us":
        return {}
    return _instructions(results, verdict.workload.name)


def _instructions(results: Results, name: str) -> dict[str, float]:
    return {
        server: values[0]["instructions"]
        for measurements in results.instructions
        if measurements.name == name
        for server, values in measurements.values.items()
    }


def keepings(results: Results) -> list[Keeping]:
    """One for each workload of servers that keep their data or have policies."""
    costs = _costs(results)
    return [
        Keeping(workload, _cost_ratios(measurements), _times(costs, workload))
        for workload, measurements in results.workloads
        if (workload.options or workload.without) and workload not in PLAINLY
    ]


def _costs(results: Results) -> dict[str, float]:
    """What a unit of each workload costs Penstock."""
    return {
        workload.name: medians(rounds)["cpu_us"]
        for workload, measurements in results.workloads
        if (rounds := measurements.values.get(SUBJECT)) and "cpu_us" in rounds[0]
    }


def _cost_ratios(measurements: Measurements) -> dict[str, Ratio]:
    found = {name: ratio(measurements, "cpu_us", name) for name in REFERENCES}
    return {name: value for name, value in found.items() if value is not None}


def _times(costs: dict[str, float], workload: Workload) -> float | None:
    mine, other = costs.get(workload.name), costs.get(workload.without)
    return mine / other if mine and other else None


@dataclass(frozen=True)
class Mix:
    """The cost of an XADD to several streams with several lists of fields: the ratio to Redis, and
    how many times what one list of fields and one stream cost Penstock."""

    load: Mixed
    ratio: Ratio | None
    times: float | None

    @property
    def met(self) -> bool | None:
        """Whether neither is too much."""
        if self.ratio is None or self.times is None:
            return None
        return self.ratio.median <= MOST_MIXED and self.times <= MOST_OF_ONE_SHAPE


def mixes(results: Results) -> list[Mix]:
    """One for each mix that was measured."""
    costs = _costs(results)
    one_shape = costs.get(MIXED[0].name)
    return [
        Mix(
            workload.load,
            ratio(measurements, "cpu_us", JUDGE),
            costs[workload.name] / one_shape if one_shape and workload.name in costs else None,
        )
        for workload, measurements in results.workloads
        if workload in MIXED and isinstance(workload.load, Mixed)
    ]


@dataclass(frozen=True)
class FastWay:
    """The cost of an XADD on the fast path and off it, the ratio of these, and the instructions, as
    far as they were counted."""

    workload: Workload
    costs: tuple[float, float]
    ratio: Ratio
    instructions: tuple[float | None, float | None]

    @property
    def met(self) -> bool:
        """Whether it is no slower."""
        return self.ratio.median <= MOST_TIMES


def fast_ways(results: Results) -> list[FastWay]:
    """One for each load that was measured on both ways."""
    found = []
    measured = {workload.name: (workload, rounds) for workload, rounds in results.workloads}
    for plainly, rounds in results.workloads:
        if plainly not in PLAINLY or plainly.without not in measured:
            continue
        workload, fast = measured[plainly.without]
        both = Measurements(workload.name, {"fast": fast.values.get(SUBJECT, [])})
        both.values["plain"] = rounds.values.get(SUBJECT, [])
        times = ratio(both, "cpu_us", "plain", "fast")
        if times is not None:
            costs = [medians(values)["cpu_us"] for values in both.values.values()]
            counts = [_instructions(results, one.name).get(SUBJECT) for one in (workload, plainly)]
            found.append(FastWay(workload, (costs[0], costs[1]), times, (counts[0], counts[1])))
    return found


@dataclass(frozen=True)
class Height:
    """A value of a workload by server, where constant bytes through uvloop are one of them."""

    title: str
    values: dict[str, float]
    instructions: dict[str, float]


def heights(results: Results) -> list[Height]:
    """One for each target of a workload that was measured with constant bytes as well."""
    found = {
        workload.name: {name: medians(rounds) for name, rounds in measurements.values.items()}
        for workload, measurements in results.workloads
        if FLOOR.name in measurements.values
    }
    return [
        Height(
            verdict.title,
            {
                name: some[verdict.target.value]
                for name, some in found[verdict.workload.name].items()
            },
            instructions_of(results, verdict),
        )
        for verdict in verdicts(results)
        if verdict.workload.name in found
    ]


@dataclass(frozen=True)
class Multiple:
    """How many times the requests a second of fakeredis, or why that is not known."""

    workload: Workload
    times: float | None
    failure: str

    @property
    def met(self) -> bool | None:
        """Whether it is enough."""
        return None if self.times is None else self.times >= TIMES_FAKEREDIS


def multiples(results: Results) -> list[Multiple]:
    """One for each workload that fakeredis was given."""
    found = []
    for workload, measurements in results.workloads:
        times = None
        if workload.measured_on(FAKEREDIS.name):
            times = ratio(measurements, "per_second", "fakeredis")
        failure = measurements.failures.get("fakeredis", "")
        if times or failure:
            found.append(Multiple(workload, times.median if times else None, failure))
    return found


NO_COST_US: Final = 1e-3
"""What is less was not measured."""


@dataclass(frozen=True)
class Growth:
    """The median cost of a load in microseconds at each size, by server."""

    load: str
    sizes: list[int]
    costs: dict[str, list[float]]

    @property
    def factor(self) -> float | None:
        """How many times Penstock's cost has grown from the first size to the last; ``None`` where
        one is missing, or the first took less than the start of a process varies."""
        costs = self.costs.get(SUBJECT, [])
        if len(costs) < len(self.sizes) or costs[0] < NO_COST_US:
            return None
        return costs[-1] / costs[0]

    @property
    def met(self) -> bool | None:
        """Whether that is flat or logarithmic."""
        return None if self.factor is None else self.factor <= FLAT


def growths(measurements: CurveMeasurements) -> list[Growth]:
    """One for each load of a curve."""
    return [_growth(load, points) for load, points in measurements.points.items()]


def _growth(load: str, points: Sequence[tuple[int, Measurements]]) -> Growth:
    costs: dict[str, list[float]] = {}
    for _, measurements in points:
        for server, values in measurements.values.items():
            costs.setdefault(server, []).append(medians(values)["cpu_us"])
    return Growth(load, [size for size, _ in points], costs)


@dataclass(frozen=True)
class Wait:
    """The longest waits in milliseconds during a load: the medians of the rounds, by server."""

    pause: Pause
    values: dict[str, Values]

    @property
    def met(self) -> bool | None:
        """Whether no client waited too long."""
        mine, theirs = self.values.get(SUBJECT), self.values.get(JUDGE)
        if mine is None:
            return None
        longest, most = mine["longest_ms"], self.pause.most_ms
        if self.pause.atomic and theirs is not None:
            most = max(most, TIMES_REDIS * theirs["longest_ms"])
        return longest <= most


def waits(results: Results) -> list[Wait]:
    """One for each load that was watched."""
    return [
        Wait(pause, {name: medians(rounds) for name, rounds in measurements.values.items()})
        for pause, measurements in results.pauses
    ]


def medians(rounds: Sequence[Values]) -> Values:
    """The median of each value over the rounds."""
    return {name: statistics.median(values[name] for values in rounds) for name in rounds[0]}
