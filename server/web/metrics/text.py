"""The text format of Prometheus, for series of which there may be very many.

prometheus_client writes a line in some ten microseconds, most of which go to labels that are the
same in the next line. Here the labels of a stream or group are escaped once (:func:`labels`), and a
line takes a fraction of a microsecond.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
HISTOGRAM: Final = "histogram"

UNUSUAL: Final = "\N{REPLACEMENT CHARACTER}"
"""What the text of bytes that are not UTF-8 begins with."""

Value = int | float | None
"""The value of a series; ``None`` if there is none now."""


class Family(NamedTuple):
    """All series of one name: what they are called, of which type they are, what they tell. Where
    there are several of one name for one thing, ``label`` tells apart those of each."""

    name: str
    kind: str
    help: str
    label: str = ""

    @property
    def head(self) -> str:
        """The two lines that come before its series."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"

    def labelled(self, own: str) -> str:
        """Return the labels of a series that has these and its own."""
        return f"{own[:-1]},{self.label}}}" if self.label else own


def families(table: str) -> tuple[Family, ...]:
    """Return the families of a table with a line for each: of which type it is, how it is called,
    and what it tells. A line that is indented belongs to the one before. A label in braces may
    follow the name."""
    lines = table.strip().replace("\n    ", " ").split("\n")
    words = (re.split(": | ", line, maxsplit=2) for line in lines)
    return tuple(_family(kind, name, help) for kind, name, help in words)


def _family(kind: str, name: str, help: str) -> Family:
    bare, _, label = name.partition("{")
    return Family(bare, kind, help, label.removesuffix("}"))


def readable(name: bytes) -> str:
    """A name as text, different for different names: with a mark in front and escaped where it is
    not UTF-8."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return UNUSUAL + escaped(name)
    return UNUSUAL + escaped(name) if text.startswith(UNUSUAL) else text


def escaped(name: bytes) -> str:
    """Return bytes that are no UTF-8, or a part of them, as they stand behind the mark."""
    return name.replace(b"\\", b"\\\\").decode("ascii", "backslashreplace")


def labels(pairs: dict[str, str]) -> str:
    """Labels in braces, in the order of their names as prometheus_client has it."""
    quoted = (f'{name}="{_quoted(pairs[name])}"' for name in sorted(pairs))
    return "{" + ",".join(quoted) + "}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
