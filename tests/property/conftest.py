"""A real server to compare with, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.reference import RealServer


@pytest.fixture(scope="module")
def real(real_server: str) -> Iterator[RealServer]:
    """A real server of the version that replies are compared with."""
    with RealServer(real_server) as server:
        yield server
