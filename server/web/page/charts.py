"""Small pictures, drawn here as SVG: they need no script."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.html.markup import Html, tag
from server.web.metrics.stream_series import DELIVERY_BOUNDS
from server.web.page.wording import number

_WIDTH = 96
_HEIGHT = 24
_MOST = 60
"""How many values a line goes through."""


def sparkline(values: Sequence[int], name: str) -> Html | None:
    """What a value has been, as a line; ``None`` for less than two values."""
    if len(values) < 2:
        return None
    every = -(-len(values) // _MOST)
    # The newest one is always among them.
    values = list(values)[(len(values) - 1) % every :: every]
    high = max(*values, 1)
    step = _WIDTH / (len(values) - 1)
    points = " ".join(
        f"{at * step:.1f},{_HEIGHT - 2 - (_HEIGHT - 4) * max(0, value) / high:.1f}"
        for at, value in enumerate(values)
    )
    title = f"{name}: from {number(min(values))} to {number(max(values))}"
    return tag(
        "svg",
        tag("title", title),
        tag("polyline", points=points),
        class_=f"spark {name}",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
    )


def delivery_names() -> list[str]:
    """What the buckets of delivery counts are called."""
    names, before = ["never"], 0
    for bound in DELIVERY_BOUNDS[1:]:
        names.append(str(bound) if bound == before + 1 else f"{before + 1} to {bound}")
        before = bound
    return [*names, f"over {before}"]


def histogram(counts: Sequence[int]) -> Html:
    """Pending entries by how often they were delivered, a bar for each bucket."""
    high = max(*counts, 1)
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", _bar(count, high)),
            tag("td", number(count)),
        )
        for name, count in zip(delivery_names(), counts, strict=True)
    ]
    return tag("table", tag("tbody", *rows), class_="histogram")


def _bar(count: int, high: int) -> Html:
    width = 0 if not count else max(1, round(200 * count / high))
    return tag(
        "svg",
        tag("rect", x=0, y=2, width=width, height=10, rx=2),
        viewBox="0 0 200 14",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )
