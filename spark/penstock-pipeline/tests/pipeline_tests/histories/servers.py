"""The servers of a history, and its pipeline's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from pipeline_tests.databases import postgres
from pipeline_tests.histories.plan import Plan
from pipeline_tests.histories.world import KEPT, World
from source_tests.backends import Backend

START_S: Final = 90
"""How long a server may take to load its file while Spark has the processors."""


@contextmanager
def world(
    folder: Path, mode: str, sinks: Sequence[str], program: str | None = None
) -> Iterator[World]:
    """The servers for a history, of another program if one is given; without PostgreSQL its sink
    is left out."""
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(Backend(program, *KEPT, start_s=START_S)) for _ in range(2)
        )
        base = None
        if "postgres-keyed" in sinks:
            try:
                base = stack.enter_context(postgres())
            except pytest.skip.Exception:
                sinks = [name for name in sinks if name != "postgres-keyed"]
        plan = Plan(folder, mode, source.url, target.url, base, sinks)
        plan.write()
        yield World(plan, source, target)
