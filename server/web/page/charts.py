"""What charts are drawn from: points of a line in a box, and a scale of round numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from server.runtime.histogram import MICROSECOND
from server.runtime.quantities import duration, latency, number, size
from server.web.metrics.stream_series import DELIVERY_BOUNDS
from server.web.page.marks import ChartMark
from server.web.page.traces import Past
from server.web.page.wording import rate

WIDTH: Final = 120
HEIGHT: Final = 40
_ROUND: Final = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_COUNTED: Final = {0: "Never", 1: "Once", 2: "Twice"}


class Chart(NamedTuple):
    """One or two lines with one scale: ``lines`` are points, ``top`` is what the upper edge means,
    ``times`` are the Unix milliseconds of the left edge, the middle and the right one, and ``says``
    is the whole in words. ``at`` has for each point its place, its time and what its values are."""

    lines: list[str]
    top: str
    times: tuple[int, int, int]
    says: str
    at: list[tuple[str, int, str]]
    marks: list[tuple[str, str]]


class Axis:
    """Where times are in a chart: buckets have fixed borders, so a point does not change its value
    as time goes on."""

    def __init__(self, times: Sequence[int], width: int) -> None:
        self._width = width
        self.first = times[0] // width * width
        self.last = max(times[-1] // width * width, self.first + width)

    def place(self, ms: int) -> str:
        """Return the place of the bucket of a time."""
        start = ms // self._width * self._width
        return f"{(start - self.first) * WIDTH / (self.last - self.first):.1f}"

    def marks(self, marks: Sequence[ChartMark]) -> list[tuple[str, str]]:
        """Return the places and texts of those that are in the chart."""
        shown = [each for each in marks if self.first <= each.time <= self.last + self._width]
        return [(self.place(min(each.time, self.last)), each.text) for each in shown]


def top_of(high: float) -> float:
    """Return a round number that is no less."""
    unit = 1.0
    while unit * 10 <= high:
        unit *= 10
    while unit > high > 0 and unit > 0.1:
        unit /= 10
    return next(each * unit for each in _ROUND if each * unit >= high) if high > 0 else 1.0


def points(values: Sequence[float], top: float, places: Sequence[str] = ()) -> str:
    """Return the points of a line in the box, which are equally far from each other if their places
    are not given; a single value is a level line."""
    some = values if len(values) > 1 else [*values, *values]
    step = WIDTH / max(1, len(some) - 1)
    places = places or [f"{at * step:.1f}" for at in range(len(some))]
    return " ".join(f"{x},{_height(value, top)}" for x, value in zip(places, some, strict=True))


def _height(value: float, top: float) -> str:
    return f"{HEIGHT - (HEIGHT - 1) * min(1.0, max(0.0, value) / top):.1f}"


def chart(
    trace: Past | None,
    names: Sequence[str],
    what: str,
    least: float = 1,
    unit: str = "",
) -> Chart | None:
    """Return the chart of columns of the past, ``None`` if there is nothing yet. ``unit`` says what
    is drawn: ``"/s"`` the growth of counters, ``"ms"`` and ``"us"`` lengths of time, ``"B"`` bytes,
    else the values."""
    if trace is None or len(trace) < 2:
        return None
    times: Sequence[int] = trace.column("times")
    columns: list[Sequence[float]] = [trace.column(name) for name in names]
    if unit == "/s":
        columns, times = [trace.rates(name) for name in names], times[1:]
    high = max(max(column) for column in columns)
    top = top_of(max(high, least))
    said = _SAID.get(unit, plain)
    per = " /s" if unit == "/s" else ""
    axis = Axis(times, trace.width)
    places = [*map(axis.place, times)] if len(times) > 1 else ["0.0", f"{WIDTH:.1f}"]
    now = " and ".join(said(column[-1]) for column in columns)
    texts = [" / ".join(map(said, row)) + per for row in zip(*columns, strict=True)]
    return Chart(
        [points(column, top, places) for column in columns],
        said(top) + per,
        (times[0], (times[0] + times[-1]) // 2, times[-1]),
        f"{what}: up to {said(high)}, now {now}",
        list(zip(places, times, texts, strict=False)),
        axis.marks(trace.marks),
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
