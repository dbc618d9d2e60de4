"""A real server to compare with, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.reference import RealServer, find_server


@pytest.fixture(scope="module")
def real() -> Iterator[RealServer]:
    """A real server of the version that replies are compared with."""
    path = find_server()
    if path is None:
        pytest.skip("no redis-server 8.0 (see PENSTOCK_REFERENCE_SERVERS)")
    server = RealServer(path)
    yield server
    server.stop()
