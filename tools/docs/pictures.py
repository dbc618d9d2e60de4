"""Draws the pictures of the documentation: ``python -m tools.docs.pictures``.

The picture of the architecture is described by the tables below, that of the imports follows from
the code (:mod:`tools.docs.import_graph`), the badges from pyproject.toml. All are SVG text, so the
same source gives the same bytes on every machine.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from tests.test_layout import present
from tools.docs.import_graph import import_graph

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "images"

WIDTH, HEIGHT = 1000, 690
FONT: Final = "font-family='DejaVu Sans,Verdana,sans-serif'"

FILLS: Final = {
    "client": "#eef1f5",
    "server": "#e3f0ff",
    "engine": "#e4f5e6",
    "disk": "#fdf0d9",
}
"""The colour of each kind of box."""


class Box(NamedTuple):
    """A box: its upper left corner, its size, its title and the lines below that."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    title: str
    lines: tuple[str, ...]


class Arrow(NamedTuple):
    """A line through some points with a head at its end, at both or at none, and a text."""

    points: tuple[tuple[int, int], ...]
    label: str = ""
    at: tuple[int, int] = (0, 0)
    heads: int = 1


BOXES: Final = (
    Box(30, 20, 220, 62, "client", "your tests", ("the fixture penstock", "penstock/testing/")),
    Box(270, 20, 220, 62, "client", "any Redis client", ("RESP2 or RESP3,", "TCP or Unix socket")),
    Box(
        510,
        20,
        220,
        62,
        "client",
        "Spark",
        ("spark/pyspark-redis-streams/", "spark/penstock-pipeline/"),
    ),
    Box(750, 20, 220, 62, "client", "Redis, Valkey", ("import and export:", "penstock/migration/")),
    Box(
        50,
        160,
        270,
        62,
        "server",
        "server/net/, server/traffic/",
        ("listener, connections, turns,", "limits; on demand server/faults/"),
    ),
    Box(
        365,
        160,
        270,
        62,
        "engine",
        "protocol/",
        ("bytes to requests,", "replies and errors to bytes"),
    ),
    Box(
        680,
        160,
        270,
        62,
        "server",
        "server/config/, server/runtime/",
        ("settings; clock, log, statistics,", "packing and freeing of memory"),
    ),
    Box(
        50,
        280,
        270,
        62,
        "server",
        "server/dispatch/, server/acl/",
        ("look up in server/core/, check what", "the user may do, run, react"),
    ),
    Box(365, 280, 270, 62, "server", "server/commands/", ("one function a command,", "by family")),
    Box(
        680,
        280,
        270,
        62,
        "server",
        "server/scripting/",
        ("Lua 5.1: EVAL, FCALL;", "calls commands"),
    ),
    Box(
        50,
        400,
        270,
        62,
        "server",
        "server/clients/, server/delivery/",
        ("blocked clients, WATCH, pub/sub,", "events; policies of streams"),
    ),
    Box(
        365,
        400,
        270,
        62,
        "engine",
        "storage/",
        ("keyspace, streams, groups, pending", "entries; no sockets and no clock"),
    ),
    Box(
        680,
        400,
        270,
        62,
        "server",
        "server/state/, server/web/",
        ("slow log, latency, MONITOR;", "metrics over HTTP"),
    ),
    Box(
        50,
        510,
        270,
        62,
        "server",
        "server/replication/",
        ("the stream that replicas follow,", "and snapshots for them"),
    ),
    Box(
        365,
        510,
        270,
        62,
        "server",
        "server/persistence/",
        ("group commit, rewriting,", "loading; threads for the disk"),
    ),
    Box(
        680,
        510,
        270,
        62,
        "engine",
        "storage/aof/",
        ("effects to commands and back,", "files, manifest, checking"),
    ),
    Box(365, 620, 270, 50, "disk", "append-only file", ("Redis's commands, in Redis's format",)),
)

ARROWS: Final = (
    Arrow(((140, 82), (140, 110), (860, 110), (860, 82)), heads=0),
    Arrow(((380, 82), (380, 110)), heads=0),
    Arrow(((620, 82), (620, 110)), heads=0),
    Arrow(((185, 110), (185, 160)), "requests and replies", (193, 130), heads=2),
    Arrow(((320, 182), (365, 182))),
    Arrow(((365, 202), (320, 202))),
    Arrow(((140, 222), (140, 280)), "request", (148, 255)),
    Arrow(((230, 280), (230, 222)), "reply", (238, 255)),
    Arrow(((320, 311), (365, 311))),
    Arrow(((680, 311), (635, 311))),
    Arrow(((455, 342), (455, 400)), "operations", (463, 375)),
    Arrow(((365, 431), (320, 431)), "effects", (322, 424)),
    Arrow(((500, 462), (500, 510)), "effects", (508, 490)),
    Arrow(((635, 431), (680, 431))),
    Arrow(((140, 400), (140, 342)), "woken clients", (148, 375)),
    Arrow(
        ((365, 556), (340, 556), (340, 580), (30, 580), (30, 191), (50, 191)),
        "releases replies",
        (38, 490),
    ),
    Arrow(((400, 462), (400, 490), (250, 490), (250, 510)), "effects", (300, 484)),
    Arrow(((635, 541), (680, 541))),
    Arrow(((500, 572), (500, 620))),
)


def architecture() -> str:
    """The picture of the whole, as SVG."""
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' "
        f"viewBox='0 0 {WIDTH} {HEIGHT}' {FONT}>",
        "<title>The parts of Penstock, and how a request passes through them</title>",
        "<defs><marker id='head' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' "
        "markerHeight='7' orient='auto-start-reverse'>"
        "<path d='M0 0 10 5 0 10z' fill='#44546a'/></marker></defs>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
        "<rect x='15' y='138' width='970' height='450' rx='10' fill='#fafbfc' stroke='#9aa7b8' "
        "stroke-dasharray='6 4'/>",
        _text(970, 153, "one process, one event loop", 11, "#5b6b80", "end"),
        *map(_arrow, ARROWS),
        *map(_box, BOXES),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: int, y: int, text: str, size: int, colour: str, anchor: str = "start") -> str:
    return (
        f"<text x='{x}' y='{y}' font-size='{size}' fill='{colour}' text-anchor='{anchor}'>"
        f"{escape(text)}</text>"
    )


def _box(box: Box) -> str:
    middle = box.x + box.width // 2
    lines = [
        f"<rect x='{box.x}' y='{box.y}' width='{box.width}' height='{box.height}' rx='6' "
        f"fill='{FILLS[box.kind]}' stroke='#44546a'/>",
        f"<text x='{middle}' y='{box.y + 20}' font-size='14' font-weight='bold' fill='#1c2733' "
        f"text-anchor='middle'>{escape(box.title)}</text>",
    ]
    for number, line in enumerate(box.lines):
        lines.append(_text(middle, box.y + 37 + 16 * number, line, 12, "#33414f", "middle"))
    return "\n".join(lines)


def _arrow(arrow: Arrow) -> str:
    path = " ".join(f"{x},{y}" for x, y in arrow.points)
    end = " marker-end='url(#head)'" if arrow.heads else ""
    start = " marker-start='url(#head)'" if arrow.heads > 1 else ""
    drawn = (
        f"<polyline points='{path}' fill='none' stroke='#44546a' stroke-width='1.5'{start}{end}/>"
    )
    return drawn + _text(*arrow.at, arrow.label, 11, "#44546a") if arrow.label else drawn


def badges() -> dict[str, str]:
    """The badges of the README by file name; what they say is in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=") + " or later"
    return {
        "badge-python.svg": _badge("python", python, "#2c6fad"),
        "badge-licence.svg": _badge("licence", project["license"], "#4c7a34"),
        "badge-protocol.svg": _badge("protocol", "RESP2 and RESP3", "#a33327"),
    }


def _badge(name: str, value: str, colour: str) -> str:
    left, right = 7 * len(name) + 12, 7 * len(value) + 12
    width = left + right
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='20' {FONT}>"
        f"<title>{escape(name)}: {escape(value)}</title>"
        f"<rect width='{width}' height='20' rx='3' fill='{colour}'/>"
        f"<path d='M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z' fill='#555'/>"
        + _text(left // 2, 14, name, 11, "#fff", "middle")
        + _text(left + right // 2, 14, value, 11, "#fff", "middle")
        + "</svg>\n"
    )


def drawings() -> dict[Path, str]:
    """Every file that is drawn here, and what belongs in it."""
    imports = import_graph(present())
    pictures = {"architecture.svg": architecture(), "imports.svg": imports, **badges()}
    return {FOLDER / name: text for name, text in pictures.items()}


if __name__ == "__main__":
    for path, text in drawings().items():
        path.write_text(text)
