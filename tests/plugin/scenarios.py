"""Test modules of a project that uses the plugin, by what they show; one run of pytest runs all."""

from __future__ import annotations

from typing import Final

_READING: Final = """
import asyncio
import pytest

@pytest.mark.{mark}
@pytest.mark.parametrize("number", range(2))
async def test_reading(penstock, number):
    client = penstock.async_client
    assert client is penstock.async_client
    reading = asyncio.ensure_future(client.xread({{"k": "$"}}, block=3_600_000))
    while not (await penstock.new_async_client().info("clients"))["blocked_clients"]:
        pass
    penstock.clock.advance(hours=1)
    assert not await reading
    await client.xadd("k", {{"a": "b"}})
    assert await client.xlen("k") == 1
"""

SCENARIOS: Final = {
    "three lines are a test": """
def test_it(penstock):
    penstock.client.xadd("orders", {"item": "tea"})
    assert penstock.client.xlen("orders") == 1
""",
    "each test begins with a server as new": """
import time
import pytest

ports = set()

@pytest.mark.parametrize("number", range(2))
def test_leaves_traces(penstock, number):
    ports.add(penstock.port)
    client = penstock.client
    assert client.dbsize() == 0
    assert client.config_get("hz") == {"hz": "10"}
    assert abs(penstock.clock.now_ms / 1000 - time.time()) < 1800
    assert penstock.new_client(db=1).dbsize() == 0
    client.set("k", "v")
    penstock.new_client(db=1).set("k", "v")
    client.config_set("hz", 20, "stream-node-max-entries", 7)
    penstock.clock.advance(hours=2)
    client.client_pause(60_000, all=False)

def test_it_was_one_server():
    assert len(ports) == 1
""",
    "what was idle for an hour is claimed in no time": """
def test_claim(penstock):
    client = penstock.client
    client.xgroup_create("k", "g", mkstream=True)
    client.xadd("k", {"a": "b"}, id="1-1")
    client.xreadgroup("g", "alice", {"k": ">"})
    assert client.xautoclaim("k", "g", "bob", 3_600_000, justid=True) == []
    penstock.clock.advance(hours=1)
    assert client.xautoclaim("k", "g", "bob", 3_600_000, justid=True) == ["1-1"]
""",
    "pytest-asyncio with a loop for each test": _READING.format(mark="asyncio"),
    "pytest-asyncio with one loop": _READING.format(mark="asyncio(loop_scope='session')"),
    "a client made outside a loop is closed with the loop that uses it": """
import asyncio
import pytest

@pytest.fixture
def app(penstock):
    return penstock.async_client

def test_one_loop_after_the_other(app, penstock):
    for _ in range(2):
        assert asyncio.run(app.ping())
    names = [client["cmd"] for client in penstock.client.client_list()]
    assert "ping" not in names

def test_unused(app):
    pass
""",
    "without redis-py there is all but its clients": """
import sys
import pytest
from penstock.testing import PenstockError

def test_it(penstock, monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    for name in ("client", "async_client"):
        with pytest.raises(PenstockError, match="^a client of the fixture needs the package red"):
            getattr(penstock, name)
    penstock.flush()
    penstock.clock.advance(1)
    assert penstock.host == "127.0.0.1"
""",
    "further servers are apart, and serve one test after the other": """
import pytest

lent = []

@pytest.mark.parametrize("number", range(2))
def test_two_more(penstock, penstock_factory, number):
    first, second = penstock_factory("--databases", "2"), penstock_factory("--databases", "2")
    other = penstock_factory()
    servers = [penstock, first, second, other]
    assert len({server.port for server in servers}) == 4
    assert {server.client.dbsize() for server in servers} == {0}
    assert first.client.config_get("databases") == {"databases": "2"}
    assert other.client.config_get("databases") == {"databases": "16"}
    for server in servers:
        server.client.set("k", "v")
    lent.append({server.port for server in servers})

def test_they_were_the_same():
    assert lent[0] == lent[1]

def test_one_that_a_test_has_ended_is_replaced(penstock_factory):
    penstock_factory().client.shutdown(nosave=True)

def test_this_is_another(penstock_factory):
    assert penstock_factory().client.dbsize() == 0
    assert penstock_factory().port not in lent[0]
""",
    "a further server that cannot start fails the test": """
import pytest

def test_it(penstock_factory):
    with pytest.raises(pytest.fail.Exception, match="the server could not be started"):
        penstock_factory("--no-such-setting", "yes")
""",
    "a restart, faults, a snapshot, a trace and waits": """
import pytest
from redis.exceptions import ConnectionError

@pytest.mark.parametrize("number", range(2))
def test_it(penstock, number):
    assert penstock.faults.list() == []
    client = penstock.client
    penstock.clock.freeze(1000)
    client.xgroup_create("k", "g", mkstream=True)
    prepared = penstock.snapshot("prepared")
    penstock.faults.add("XADD", "NOREPLY", times=1)
    with penstock.trace() as trace, pytest.raises(ConnectionError):
        penstock.new_client(retry=None).xadd("k", {"a": "b"})
    assert trace.names == ["XADD"]
    client.xreadgroup("g", "alice", {"k": ">"})
    client.xack("k", "g", "1000-0")
    penstock.wait_until_acknowledged("k", "g")
    penstock.assert_delivered_once("k", "g")
    penstock.restart()
    assert client.xlen("k") == 1
    penstock.faults.add("XADD", "CLOSE")
""",
    "modules of the project do not get into the server": """
import server

def test_it(penstock):
    assert server.NAME == "mine"
    assert penstock.client.ping()
""",
}

ANYIO: Final = {"anyio": _READING.format(mark="anyio")}
"""The same with anyio, where that is installed."""
