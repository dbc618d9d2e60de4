"""Gives a suite the server of the test, where it would start a container: a plugin of pytest."""

from __future__ import annotations

import os
from typing import Any, Final

import pytest

STARTING: Final = "redis_container", "redis_server"
"""The fixtures of suites that start one."""


class Started:
    """What is asked of a container, in the libraries `testcontainers` and `docker`."""

    port = 6379

    def __init__(self, port: int) -> None:
        self._port = port
        bindings = {"6379/tcp": [{"HostPort": str(port)}]}
        self.attrs = {"HostConfig": {"PortBindings": bindings}}

    def get_container_host_ip(self) -> str:
        """Where it can be reached."""
        return "127.0.0.1"

    def get_exposed_port(self, port: int) -> int:
        """At which port."""
        return self._port


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Started | None:
    """Answers for the fixture, so that its own function is not called."""
    if fixturedef.argname not in STARTING:
        return None
    started = Started(int(os.environ["SUITE_PORT"]))
    fixturedef.cached_result = (started, fixturedef.cache_key(request), None)
    return started
