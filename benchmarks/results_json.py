"""The results as values that JSON knows, measurements of single rounds included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.summary import (
    Ratio,
    Results,
    fast_ways,
    growths,
    keepings,
    mixes,
    multiples,
    verdicts,
    waits,
)

Row = dict[str, Any]


def as_json(results: Results) -> Row:
    """Return everything."""
    return {
        "machine": asdict(results.machine),
        "servers": results.versions,
        "missing": results.missing,
        "rounds": results.rounds,
        "scale": results.factor,
        **_judged(results),
        **_compared(results),
        **_measured(results),
    }


def _ratios(ratios: Mapping[str, Ratio]) -> Row:
    return {name: asdict(ratio) for name, ratio in ratios.items()}


def _judged(results: Results) -> Row:
    """Return what has targets."""
    return {
        "targets": [
            {
                "workload": verdict.workload.name,
                "title": verdict.title,
                "value": verdict.target.value,
                "most": verdict.target.most,
                "ratios": _ratios(verdict.ratios),
                "met": verdict.met,
            }
            for verdict in verdicts(results)
        ],
        "instructions": [asdict(measurements) for measurements in results.instructions],
        "mixes": [{**asdict(mix), "met": mix.met} for mix in mixes(results)],
    }


def _compared(results: Results) -> Row:
    """Return what is compared with another way, or with another server."""
    return {
        "fast_way": [
            {
                "workload": one.workload.name,
                "ratio": asdict(one.ratio),
                "instructions": one.instructions,
                "met": one.met,
            }
            for one in fast_ways(results)
        ],
        "append_only_file": [
            {
                "workload": one.workload.name,
                "ratios": _ratios(one.ratios),
                "times_without": one.times,
            }
            for one in keepings(results)
        ],
        "times_fakeredis": [
            {"workload": one.workload.name, "times": one.times, "failure": one.failure}
            for one in multiples(results)
        ],
    }


def _measured(results: Results) -> Row:
    """Return what was measured, round by round and size by size."""
    return {
        "measurements": [
            {"unit": workload.load.unit, **asdict(measurements)}
            for workload, measurements in results.workloads
        ],
        "curves": [
            {
                "name": curve.name,
                "of": curve.title,
                "loads": [
                    {**asdict(growth), "factor": growth.factor, "met": growth.met}
                    for growth in growths(measurements)
                ],
            }
            for curve, measurements in results.curves
        ],
        "pauses": [
            {"name": wait.pause.name, "title": wait.pause.title, "values": wait.values}
            for wait in waits(results)
        ],
    }
