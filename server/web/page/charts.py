"""What charts are drawn from: points of a line in a box, and a scale of round numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from server.runtime.histogram import MICROSECOND
from server.runtime.quantities import duration, latency, number, size
from server.web.metrics.stream_series import DELIVERY_BOUNDS
from server.web.page.traces import History
from server.web.page.wording import rate

WIDTH: Final = 120
HEIGHT: Final = 40
MOST_POINTS: Final = 60
"""How many values a line goes through."""

_ROUND: Final = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_COUNTED: Final = {0: "Never", 1: "Once", 2: "Twice"}


class Chart(NamedTuple):
    """One or two lines with one scale: ``lines`` are points, ``top`` is what the upper edge means,
    ``span`` how long ago the left edge was, ``says`` the same in words."""

    lines: list[str]
    top: str
    span: str
    says: str


def thinned(values: Sequence[float]) -> list[float]:
    """Return some of many values, the newest among them."""
    every = max(1, -(-len(values) // MOST_POINTS))
    return list(values)[(len(values) - 1) % every :: every] if values else []


def top_of(high: float) -> float:
    """Return a round number that is no less."""
    unit = 1.0
    while unit * 10 <= high:
        unit *= 10
    while unit > high > 0 and unit > 0.1:
        unit /= 10
    return next(each * unit for each in _ROUND if each * unit >= high) if high > 0 else 1.0


def points(values: Sequence[float], top: float) -> str:
    """Return the points of a line in the box; a single value is a level line."""
    some = thinned(values)
    some = some * 2 if len(some) == 1 else some
    step = WIDTH / max(1, len(some) - 1)
    return " ".join(
        f"{at * step:.1f},{HEIGHT - (HEIGHT - 1) * min(1.0, max(0.0, value) / top):.1f}"
        for at, value in enumerate(some)
    )


def chart(
    trace: History | None, names: Sequence[str], what: str, least: float = 1, unit: str = ""
) -> Chart | None:
    """Return the chart of columns of a trace, ``None`` if there is nothing yet. ``unit`` says what
    is drawn: ``"/s"`` the growth of counters, ``"ms"`` and ``"us"`` lengths of time, ``"B"`` bytes,
    else the values."""
    if trace is None or len(trace) < 2:
        return None
    columns = [trace.rates(name) if unit == "/s" else trace.column(name) for name in names]
    high = max(max(column) for column in columns)
    top = top_of(max(high, least))
    times = trace.column("times")
    said = _SAID.get(unit, plain)
    now = " and ".join(said(column[-1]) for column in columns)
    return Chart(
        [points(column, top) for column in columns],
        said(top) + (" /s" if unit == "/s" else ""),
        f"{duration(times[-1] - times[0])} ago",
        f"{what}: up to {said(high)}, now {now}",
    )


def plain(value: float) -> str:
    """A number as it is written."""
    return number(int(value))


_SAID: Final[dict[str, Callable[[float], str]]] = {
    "/s": rate,
    "ms": lambda value: duration(int(value)),
    "us": lambda value: latency(int(value) * MICROSECOND),
    "B": lambda value: size(int(value)),
}


def delivery_names() -> list[str]:
    """What the buckets of delivery counts are called."""
    names, before = [], -1
    for bound in DELIVERY_BOUNDS:
        single = bound == before + 1
        names.append(
            _COUNTED.get(bound, f"{bound} times") if single else f"{before + 1} to {bound}"
        )
        before = bound
    return [*names, f"over {before}"]
