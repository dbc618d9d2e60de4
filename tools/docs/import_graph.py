"""Draws which parts of the code import which, from the code and the layers of test_layout.

A box is a run of neighbouring layers in one folder. Since imports only point to earlier layers,
there is no circle among such boxes. An arrow that follows from others is left out: if A imports B
and C, and B imports C, only A to B and B to C are drawn.

Boxes stand in rows, each below the boxes that it imports; one without any arrow stands in the last
row. A line that passes a row has a place of
its own there, so that it does not run through a box.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import groupby, pairwise
from math import fsum
from typing import Final

from tests.test_layout import LAYERS, SOURCES, Graph, layer_of

FILLS: Final = {
    "protocol": "#e4f5e6",
    "storage": "#e4f5e6",
    "server": "#e3f0ff",
    "penstock": "#eef1f5",
    "pyspark_redis_streams": "#fdf0d9",
    "penstock_pipeline": "#fdf0d9",
}
LINE: Final = "#44546a"

BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT = 206, 56, 88
GAP, LINE_GAP = 22, 16
"""The distance between two boxes of a row, and between a line and what is next to it."""

MARGIN: Final = 20
LINES, COLUMNS = 2, 34
"""How many lines of names a box has room for, and how wide they are."""

Part = tuple[str, int]
"""A box: its package, and the number of its run of layers."""


@dataclass(eq=False)
class Place:
    """A box in its row, or the point where a line passes the row if there is no ``part``."""

    row: int
    part: Part | None = None
    x: float = 0.0
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)

    @property
    def width(self) -> int:
        """How much room it takes."""
        return BOX_WIDTH if self.part else 0


# --- what is drawn ---------------------------------------------------------------------------


def _folder(package: str, layer: str) -> str:
    """The folder of a layer within its package; empty for a module of the package itself."""
    if "." in layer:
        return layer.partition(".")[0]
    return layer if any(name.startswith(f"{package}.{layer}.") for name in SOURCES) else ""


def runs(package: str) -> list[tuple[str, list[str]]]:
    """The layers of a package in runs of one folder: the folder and the layers."""
    layers = LAYERS[package]
    grouped = groupby(layers, lambda layer: _folder(package, layer))
    return [(folder, list(run)) for folder, run in grouped]


@cache
def part_of(module: str) -> Part | None:
    """The box of a module; ``None`` for a package that only says what it is."""
    layer = layer_of(module)
    if layer is None:
        return None
    package = module.partition(".")[0]
    name = LAYERS[package][layer]
    number = next(n for n, (_, layers) in enumerate(runs(package)) if name in layers)
    return package, number


def part_graph(graph: Graph) -> dict[Part, set[Part]]:
    """Which box imports which."""
    parts = {module: part for module in graph if (part := part_of(module))}
    found: dict[Part, set[Part]] = {part: set() for part in sorted(parts.values())}
    for module, part in parts.items():
        found[part] |= {parts[target] for target in graph[module] if target in parts} - {part}
    return found


def rows_of(graph: Mapping[Part, set[Part]]) -> dict[Part, int]:
    """The row of each box, one below the lowest that it imports; ValueError for a circle."""
    rows: dict[Part, int] = {}
    while len(rows) < len(graph):
        ready = [part for part in graph if part not in rows and graph[part] <= rows.keys()]
        if not ready:
            raise ValueError(f"a circle of imports among {sorted(graph.keys() - rows.keys())}")
        new = {part: 1 + max((rows[each] for each in graph[part]), default=-1) for part in ready}
        rows |= new
    return rows


def reduced(graph: Mapping[Part, set[Part]]) -> dict[Part, list[Part]]:
    """The graph without imports that follow from others."""
    reached: dict[Part, set[Part]] = {}
    rows = rows_of(graph)
    for part in sorted(graph, key=rows.__getitem__):
        reached[part] = set().union(*(reached[each] | {each} for each in graph[part]))
    return {
        part: sorted(each for each in found if not any(each in reached[other] for other in found))
        for part, found in graph.items()
    }


# --- where it stands -------------------------------------------------------------------------


def arrange(graph: Mapping[Part, set[Part]]) -> list[list[Place]]:
    """The rows from the top, each from the left, with a position for everything."""
    numbers = rows_of(graph)
    imported = set().union(*graph.values())
    for part in graph.keys() - imported:
        if not graph[part]:
            numbers[part] = max(numbers.values())  # Where there is room.
    rows: list[list[Place]] = [[] for _ in range(max(numbers.values()) + 1)]
    boxes = {part: Place(number, part) for part, number in numbers.items()}
    for part in sorted(boxes, key=lambda part: (list(LAYERS).index(part[0]), part[1])):
        rows[numbers[part]].append(boxes[part])
    for part, targets in reduced(graph).items():
        for target in targets:
            _connect(boxes[target], boxes[part], rows)
    for _ in range(8):
        for row in rows:
            _sort(row, [place.above for place in row])
        for row in reversed(rows):
            _sort(row, [place.below for place in row])
    for _ in range(400):
        for row in (*rows, *reversed(rows)):
            _settle(row)
    left = min(place.x - place.width / 2 for row in rows for place in row)
    for place in (place for row in rows for place in row):
        place.x = round(place.x - left) + MARGIN
    return rows


def _connect(upper: Place, lower: Place, rows: list[list[Place]]) -> None:
    """Leads a line from one box to another through every row between them."""
    points = [Place(row) for row in range(upper.row + 1, lower.row)]
    for point in points:
        rows[point.row].append(point)
    for one, other in pairwise((upper, *points, lower)):
        one.below.append(other)
        other.above.append(one)


def _sort(row: list[Place], neighbours: list[list[Place]]) -> None:
    """Puts a row in the order of what it is connected to, then spreads it."""
    keys = {
        id(place): fsum(each.x for each in near) / len(near) if near else place.x
        for place, near in zip(row, neighbours, strict=True)
    }
    row.sort(key=lambda place: keys[id(place)])
    x = 0.0
    for place, before in zip(row, (None, *row), strict=False):
        x += _distance(before, place) if before else 0
        place.x = x


def _settle(row: list[Place]) -> None:
    """Moves everything in a row as near to what it is connected to as its neighbours allow.

    The positions minimise the weighted squares of the distances: places that would overlap are
    joined to a block that moves as one.
    """
    offset, blocks = 0.0, list[tuple[float, float, list[tuple[Place, float]]]]()
    for place, before in zip(row, (None, *row), strict=False):
        offset += _distance(before, place) if before else 0
        pulls = [(_weight(place, each), each.x) for each in place.above + place.below]
        weight = fsum(pull for pull, _ in pulls) or 1.0
        wanted = fsum(pull * x for pull, x in pulls) / weight if pulls else place.x
        mean, members = wanted - offset, [(place, offset)]
        while blocks and blocks[-1][0] > mean:
            other, others_weight, earlier = blocks.pop()
            mean = (other * others_weight + mean * weight) / (others_weight + weight)
            weight += others_weight
            members = earlier + members
        blocks.append((mean, weight, members))
    for mean, _, members in blocks:
        for place, at in members:
            place.x = mean + at


def _weight(one: Place, other: Place) -> float:
    """How much two places should stand below each other: lines that pass rows most of all."""
    return (1.0, 3.0, 20.0)[(not one.part) + (not other.part)]


def _distance(one: Place, other: Place) -> float:
    """How far the middles of two neighbours in a row have to be from each other."""
    gap = GAP if one.part and other.part else LINE_GAP
    return (one.width + other.width) / 2 + gap


# --- how it looks ----------------------------------------------------------------------------


def title_and_names(part: Part) -> tuple[str, list[str]]:
    """What a box says: a folder or a module, and the names of some modules in lines."""
    package, number = part
    parts = runs(package)
    folder, layers = parts[number]
    path = f"{package}/{folder}/" if folder else f"{package}/"
    if len(parts) == 1 or layers == [folder]:
        return path, []
    if not folder and len(layers) == 1:
        return f"{path}{layers[0]}.py", []
    names = [layer.removeprefix(f"{folder}.") for layer in layers if layer != folder]
    lines = textwrap.wrap(", ".join(names), COLUMNS)
    return path, lines if len(lines) <= LINES else []


def import_graph(graph: Graph) -> str:
    """The picture, as SVG; raises ValueError for a circle of imports."""
    rows = arrange(part_graph(graph))
    places = [place for row in rows for place in row]
    width = max(place.x + place.width / 2 for place in places) + MARGIN
    height = ROW_HEIGHT * (len(rows) - 1) + BOX_HEIGHT + 2 * MARGIN
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height}' "
        f"viewBox='0 0 {width:.0f} {height}' font-family='DejaVu Sans,Verdana,sans-serif'>",
        "<title>Which parts of Penstock import which; every arrow points up</title>",
        "<defs><marker id='head' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' "
        f"markerHeight='7' orient='auto'><path d='M0 0 10 5 0 10z' fill='{LINE}'/></marker></defs>",
        f"<rect width='{width:.0f}' height='{height}' fill='white'/>",
        *(_arrow(box, above) for box in places if box.part for above in box.above),
        *(_box(place, place.part) for place in places if place.part),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _top(row: int) -> int:
    return MARGIN + ROW_HEIGHT * row


def _arrow(box: Place, above: Place) -> str:
    """The line from a box up to the box that it imports."""
    points = [(_port(box, above, box.above), _top(box.row))]
    before = box
    while not above.part:
        points += [(above.x, _top(above.row) + BOX_HEIGHT), (above.x, _top(above.row))]
        before, above = above, above.above[0]
    points.append((_port(above, before, above.below), _top(above.row) + BOX_HEIGHT))
    path = " ".join(f"{x:.0f},{y}" for x, y in points)
    return (
        f"<polyline points='{path}' fill='none' stroke='{LINE}' stroke-width='1.4' "
        "stroke-linejoin='round' marker-end='url(#head)'/>"
    )


def _port(box: Place, end: Place, ends: Iterable[Place]) -> float:
    """Where on the edge of a box one of its lines begins or ends."""
    order = sorted(ends, key=lambda place: place.x)
    return box.x + (order.index(end) - (len(order) - 1) / 2) * LINE_GAP


def _box(place: Place, part: Part) -> str:
    title, names = title_and_names(part)
    top = _top(place.row)
    first = top + BOX_HEIGHT / 2 + 5 - 7 * len(names)
    lines = [
        f"<rect x='{place.x - BOX_WIDTH / 2:.0f}' y='{top}' width='{BOX_WIDTH}' "
        f"height='{BOX_HEIGHT}' rx='6' fill='{FILLS[part[0]]}' stroke='{LINE}'/>",
        f"<text x='{place.x:.0f}' y='{first:.0f}' font-size='13' font-weight='bold' "
        f"fill='#1c2733' text-anchor='middle'>{escape(title)}</text>",
    ]
    for number, text in enumerate(names, 1):
        lines.append(
            f"<text x='{place.x:.0f}' y='{first + 14 * number:.0f}' font-size='11' "
            f"fill='#33414f' text-anchor='middle'>{escape(text)}</text>"
        )
    return "\n".join(lines)
