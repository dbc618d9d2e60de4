"""The event loop that a server runs on."""

from __future__ import annotations

import asyncio
import sys

import pytest

from server.runtime.process import new_event_loop
from tests.support.servers import PenstockThread


def test_uvloop_is_used_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = new_event_loop()
    assert isinstance(loop, uvloop.Loop)
    loop.close()


def test_without_uvloop_the_server_runs_on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with PenstockThread() as penstock:
        loop = penstock.call(asyncio.get_running_loop)
        assert type(loop).__module__.startswith("asyncio.")
