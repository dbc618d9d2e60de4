"""Draws the table of delays: how late flights leave, by carrier and hour of the day."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.figure import Figure

from flights.data import carriers

FEWEST: Final = 30
"""A cell with fewer flights than that in the year is left empty."""


def mean_delays(delays: Any) -> tuple[Any, Any]:
    """Minutes by carrier (rows, the most punctual first) and local hour; and by carrier alone."""
    table = delays.copy()
    hours = table["hour"]
    zoned = hours if hours.dt.tz is not None else hours.dt.tz_localize("UTC")
    table["local"] = zoned.dt.tz_convert("America/New_York").dt.hour
    sums = table.groupby(["carrier", "local"])[["total_delay", "flights"]].sum()
    mean = (sums["total_delay"] / sums["flights"]).where(sums["flights"] >= FEWEST)
    whole = table.groupby("carrier")[["total_delay", "flights"]].sum()
    overall = (whole["total_delay"] / whole["flights"]).sort_values()
    return mean.unstack().reindex(overall.index).dropna(how="all"), overall


def plot(delays: Path, file: Path) -> None:
    """Draws the table in a folder into a picture."""
    frame = pd.read_parquet(delays)
    mean, overall = mean_delays(frame)
    names = carriers()
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(mean.to_numpy(), cmap="YlOrRd", vmin=0, vmax=35, aspect="auto")
    labels = [f"{_short(names[code])}  {overall[code]:.0f}" for code in mean.index]
    axes.set_yticks(range(len(mean)), labels)
    axes.set_xticks(range(len(mean.columns)), [f"{hour}" for hour in mean.columns])
    axes.set_xlabel("hour of the scheduled departure, New York time")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _write_values(axes, mean)
    figure.colorbar(picture, ax=axes, label="minutes", extend="max", shrink=0.6)
    axes.set_title(
        "The later in the day, the later they leave: mean departure delay in minutes\n"
        f"{frame['flights'].sum():,} flights from New York in 2013; beside each carrier its mean",
        loc="left",
        fontsize=11,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def _short(name: str) -> str:
    for word in (" Inc.", " Co.", " Corporation", " Air Lines", " Airlines", " Airways"):
        name = name.removesuffix(word)
    return name


def _write_values(axes: Any, mean: Any) -> None:
    for row, values in enumerate(mean.to_numpy()):
        for column, value in enumerate(values):
            if pd.notna(value):
                colour = "white" if value > 22 else "black"
                axes.text(
                    column,
                    row,
                    f"{round(value)}",
                    ha="center",
                    va="center",
                    color=colour,
                    fontsize=8,
                )
