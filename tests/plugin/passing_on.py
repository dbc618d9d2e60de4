"""A plugin for a run of pytest within a test, which is told what errors servers have logged."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support import logs


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> None:
    """Listens to the servers when there will be some: until then the plugin imports nothing."""
    if fixturedef.argname in ("penstock_server", "_penstock_pool"):
        from penstock.testing import process

        process.deque = logs.Lines  # type: ignore[assignment, attr-defined]


def pytest_unconfigure() -> None:
    """Passes on what was found, in the file that the test follows."""
    if errors := logs.take():
        with open(os.environ["PENSTOCK_TEST_LOG"], "a", encoding="utf-8") as log:
            log.write("".join(f"{error}\n" for error in errors))
