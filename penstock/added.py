"""Tools of the command that come with other distributions, found by their entry points.

A distribution names a function ``main(args) -> status`` in the group ``penstock.commands``. Nothing
of it is imported, nor looked for, unless its tool is asked for: a server starts with this module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

GROUP: Final = "penstock.commands"
"""The group of entry points that tools are found by."""

TOOLS: Final = {"pipeline": ("pyspark-redis-streams", "penstock-pipeline[spark]")}
"""The tools, and what is to be installed for each, in the order of their folders below `spark`."""


def run(name: str, args: Sequence[str]) -> int:
    """Run a tool with its arguments; return its exit status, 1 where it is not installed."""
    from importlib.metadata import entry_points

    found = list(entry_points(group=GROUP, name=name))
    if not found:
        print(missing(name), file=sys.stderr)
        return 1
    status: int = found[0].load()(args)
    return status


def missing(name: str) -> str:
    """Say which distribution has a tool, and what installs it: from the checkout, if this is one.

    Another Python may have it, so the one that runs here is named."""
    import shlex
    from pathlib import Path

    wanted = TOOLS[name]
    distribution = wanted[-1].partition("[")[0]
    text = f"penstock {name} is in {distribution}, which is not installed for this Python"
    folder = Path(__file__).parents[1] / "spark"
    pip = shlex.join([sys.executable or "python", "-m", "pip"])
    if not folder.is_dir():
        return f"{text}: install its wheel and that of {wanted[0]} with {pip}"
    return f"{text}: {pip} install {shlex.join(f'{folder}/{each}' for each in wanted)}"
