"""The results as pictures: ratios as bars, and cost against size as lines. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.curves import Curve
from benchmarks.report import TITLES
from benchmarks.runner import CurveMeasurements
from benchmarks.summary import SUBJECT, Results, Verdict, growths, verdicts

COLORS: Final = {"redis": "#c0392b", "valkey": "#2c6fad"}
LINES: Final = {"penstock": "-", "redis": ":"}
TARGET: Final = "#222222"


def draw(results: Results, folder: Path) -> list[Path]:
    """Draws what the results allow into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    found = [verdict for verdict in verdicts(results) if verdict.ratios]
    if found:
        drawn.append(_save(_bars(found), folder / "benchmark-ratios.svg"))
    if results.curves:
        drawn.append(_save(_lines(results.curves), folder / "benchmark-sizes.svg"))
    return drawn


def _save(figure: Figure, path: Path) -> Path:
    # Without these two, the same results would make another file every time.
    with mpl.rc_context({"svg.hashsalt": "penstock"}):
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
    return path


def _bars(found: list[Verdict]) -> Figure:
    """A bar to the right is a ratio above 1: Penstock takes more. A mark shows the target."""
    figure = Figure(figsize=(9, 0.42 * len(found) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    for place, name in enumerate(COLORS):
        rows = [row for row, verdict in enumerate(found) if name in verdict.ratios]
        lengths = [found[row].ratios[name].median - 1 for row in rows]
        heights = [row + 0.38 * place - 0.19 for row in rows]
        axes.barh(heights, lengths, 0.36, left=1, color=COLORS[name], label=f"to {TITLES[name]}")
    for row, verdict in enumerate(found):
        label = "target" if row == 0 else None
        axes.plot([verdict.target.most] * 2, [row - 0.42, row + 0.42], color=TARGET, label=label)
    axes.axvline(1, color="#999999", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.01", "0.1", "0.2", "0.5", *"125", "10"])
    axes.minorticks_off()
    axes.set_yticks(range(len(found)), [verdict.title for verdict in found], fontsize=8)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlabel("Penstock's cost, divided by that of the other server")
    axes.legend(loc="lower right", fontsize=8)
    return figure


def _lines(curves: list[tuple[Curve, CurveMeasurements]]) -> Figure:
    figure = Figure(figsize=(12, 3.8 * -(-len(curves) // 2)), layout="constrained")
    for number, (curve, measurements) in enumerate(curves):
        _curve(figure.add_subplot(-(-len(curves) // 2), 2, number + 1), curve, measurements)
    return figure


def _curve(axes: Any, curve: Curve, measurements: CurveMeasurements) -> None:
    for number, growth in enumerate(growths(measurements)):
        for name, line in LINES.items():
            costs = growth.costs.get(name, [])
            label = growth.load if name == SUBJECT else None
            sizes = growth.sizes[: len(costs)]
            axes.plot(sizes, costs, line, marker=".", color=f"C{number}", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"{curve.title} (dotted: Redis)")
    axes.set_ylabel("CPU µs")
    axes.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1, 1))
