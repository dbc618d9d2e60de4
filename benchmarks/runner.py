"""Measures: every workload on every server, one server at a time, in turns, for several rounds."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.curves import Curve
from benchmarks.data import Data, prepare
from benchmarks.driver import LoadError, ReplyError
from benchmarks.loads import Load, Values
from benchmarks.pauses import Pause, watch, watched_values
from benchmarks.servers import (
    FAKEREDIS,
    PENSTOCK,
    WATCHED,
    Kind,
    Running,
    ServerError,
    with_options,
)
from benchmarks.workloads import Workload

FAILURES = (LoadError, OSError, ReplyError, ServerError, TypeError, ValueError)
"""How a server does not survive a workload; the last two are replies of an unexpected form."""


@dataclass(frozen=True)
class Conditions:
    """How everything is measured: with how much of the data and of the commands, and with how many
    commands at most. ``patience`` and ``cpu`` are those of :class:`~benchmarks.servers.Running`.
    """

    factor: float = 1.0
    most: int = sys.maxsize
    patience: float = 3.0
    cpu: int | None = None

    def data(self, data: Data, kind: Kind) -> Data:
        """What a server gets of the data."""
        return data.scaled(self.factor * kind.share)

    def units(self, load: Load, data: Data, kind: Kind) -> int:
        """How many units of a load a server gets; ``data`` is what it holds."""
        wanted = int(load.amount * self.factor * kind.share)
        return max(min(wanted, self.most, load.possible(data)), 1)


@dataclass
class Measurements:
    """What was measured of one workload, curve point or pause: values a round, by server."""

    name: str
    values: dict[str, list[Values]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, kind: Kind, values: Values) -> None:
        """Adds a round of a server."""
        self.values.setdefault(kind.name, []).append(values)


@dataclass
class CurveMeasurements:
    """The values of each load of a curve at each size, by server."""

    name: str
    points: dict[str, list[tuple[int, Measurements]]] = field(default_factory=dict)


def run_workloads(
    workloads: Sequence[Workload], kinds: Sequence[Kind], rounds: int, conditions: Conditions
) -> list[Measurements]:
    """Measures the workloads in rounds; in each, the next server goes first.

    A server that does not survive a workload is left out of it from then on. fakeredis gets one
    round: it is not compared by CPU time, and it is slow.
    """
    results = [Measurements(workload.name) for workload in workloads]
    for number in range(rounds):
        for workload, result in zip(workloads, results, strict=True):
            for kind in _in_turn(kinds, number):
                if number < _rounds(workload, kind) and kind.name not in result.failures:
                    say(f"round {number + 1}/{rounds} {workload.name} {kind.name}")
                    attempt(result, kind, partial(_measure, workload, kind, conditions))
    return results


def _in_turn(kinds: Sequence[Kind], number: int) -> list[Kind]:
    first = number % len(kinds) if kinds else 0
    return [*kinds[first:], *kinds[:first]]


def _rounds(workload: Workload, kind: Kind) -> int:
    if not workload.measured_on(kind.name):
        return 0
    return 1 if kind is FAKEREDIS else workload.rounds


def attempt(result: Measurements, kind: Kind, measure: Callable[[], Values]) -> None:
    """Adds what was measured, or the reason why the server did not survive it."""
    try:
        values = measure()
    except FAILURES as error:
        result.failures[kind.name] = f"{type(error).__name__}: {error}"
        say(f": {result.failures[kind.name]}\n")
        return
    result.add(kind, values)
    say(": " + ", ".join(f"{name} {value:,.5g}" for name, value in values.items()) + "\n")


def _measure(workload: Workload, kind: Kind, conditions: Conditions) -> Values:
    data = conditions.data(workload.data, kind)
    with Running(
        with_options(kind, workload.options), conditions.patience, conditions.cpu
    ) as server:
        prepare(server.address, data)
        return _run(workload.load, server, data, conditions)


def _run(load: Load, server: Running, data: Data, conditions: Conditions) -> Values:
    units = conditions.units(load, data, server.kind)
    gc.collect()
    gc.disable()  # the client's garbage is not the server's delay
    try:
        return load.run(server, data, units)
    finally:
        gc.enable()


def run_curves(
    curves: Sequence[Curve], kinds: Sequence[Kind], rounds: int, conditions: Conditions
) -> list[CurveMeasurements]:
    """Measures every load of every curve at each size, in rounds: a machine may be another one a
    minute later, and growth is to be that of the sizes."""
    results = []
    for curve in curves:
        sizes = [curve.size(data.scaled(conditions.factor)) for data in curve.data]
        points = [{name: Measurements(name) for name in curve.loads} for _ in sizes]
        for number in range(rounds):
            for data, point in zip(curve.data, points, strict=True):
                for kind in _in_turn(kinds, number):
                    _run_point(curve, kind, conditions, data, point)
        found = {
            name: [(size, point[name]) for size, point in zip(sizes, points, strict=True)]
            for name in curve.loads
        }
        results.append(CurveMeasurements(curve.name, found))
    return results


def _run_point(
    curve: Curve, kind: Kind, conditions: Conditions, data: Data, points: dict[str, Measurements]
) -> None:
    data = conditions.data(data, kind)
    try:
        with Running(
            with_options(kind, curve.options), conditions.patience, conditions.cpu
        ) as server:
            prepare(server.address, data)
            for name, load in curve.loads.items():
                say(f"{curve.title} {curve.size(data):,} {name}, {kind.name}")
                attempt(points[name], kind, partial(_run, load, server, data, conditions))
    except FAILURES as error:
        for measurements in points.values():
            measurements.failures.setdefault(kind.name, f"{type(error).__name__}: {error}")


def run_pauses(
    pauses: Sequence[Pause], kinds: Sequence[Kind], rounds: int, conditions: Conditions
) -> list[Measurements]:
    """Measures the longest waits; Penstock watches itself, too."""
    results = [Measurements(pause.name) for pause in pauses]
    watched = [WATCHED if kind is PENSTOCK else kind for kind in kinds]
    for number in range(rounds):
        for pause, result in zip(pauses, results, strict=True):
            for kind in _in_turn(watched, number):
                say(f"round {number + 1}/{rounds} {pause.name} {kind.name}")
                attempt(result, kind, partial(_measure_pause, pause, kind, conditions))
    return results


def _measure_pause(pause: Pause, kind: Kind, conditions: Conditions) -> Values:
    data = conditions.data(pause.data, kind)
    started = with_options(kind, pause.options)
    with Running(started, conditions.patience, conditions.cpu) as server:
        prepare(server.address, data)
        units = conditions.units(pause.load, data, kind)
        values = watch(server, pause.load, data, units, watched=kind is WATCHED)
    return {**values, **watched_values(server)} if kind is WATCHED else values


def say(text: str) -> None:
    """Tells whoever waits how far it is."""
    print(text, end="", file=sys.stderr, flush=True)
