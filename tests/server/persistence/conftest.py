"""What tests of the append-only file share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.persistence.rig import Rig

Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts servers on the same folder, and stops them after the test."""
    rigs: list[Rig] = []

    async def start_rig(**settings: Any) -> Rig:
        rig = Rig(tmp_path, **settings)
        rigs.append(rig)
        return await rig.start()

    yield start_rig
    for rig in rigs:
        await rig.stop()
