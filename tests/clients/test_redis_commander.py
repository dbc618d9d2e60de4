"""redis-commander: what its page asks for and does, through the same addresses of HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request

import pytest
from redis import Redis

from tests.clients.observing import until
from tests.clients.programs import NODE_FOLDER, fetch, node, serving
from tests.support.ports import free_port
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

PROGRAM = NODE_FOLDER / "node_modules/redis-commander/bin/redis-commander.js"


class Page:
    """What somebody sees and does who has the page open."""

    def __init__(self, port: int, connection: str) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self.connection = connection
        until(lambda: "Redis Commander" in fetch(self._address))
        self._token = ""
        self._token = json.loads(self._fetch("POST", "signin"))["bearerToken"]

    def _fetch(self, method: str, path: str, body: dict[str, str] | None = None) -> str:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        data = json.dumps(body or {}).encode() if method != "GET" else None
        return fetch(Request(f"{self._address}/{path}", data, headers, method=method))

    def look(self, path: str) -> Any:
        """What is shown."""
        return json.loads(self._fetch("GET", f"apiv2/{path}"))

    def change(self, method: str, path: str, **body: str) -> str:
        """Does something, and returns what it says of that."""
        return self._fetch(method, f"apiv2/{path}", {"connectionId": self.connection, **body})


@pytest.fixture
def page(penstock: PenstockThread) -> Iterator[Page]:
    path, port = node("redis-commander"), free_port()
    where = ["--redis-host", penstock.host, "--redis-port", str(penstock.port)]
    options = ["--address", "127.0.0.1", "--port", str(port), "--nosave", "--noload"]
    with serving(path, str(PROGRAM), *where, *options):
        yield Page(port, f"R:{penstock.host}:{penstock.port}:0")


def test_a_stream_is_shown_added_to_and_deleted_from(page: Page, penstock: PenstockThread) -> None:
    for entry_id in ("1-0", "2-0"):
        told = page.change(
            "POST", "xset/member", key="orders", timestamp=entry_id, field="item", value="pen"
        )
        assert told == "ok"
    assert page.change("DELETE", "xset/member", key="orders", timestamp="1-0") == "ok"
    [row] = page.look(f"keystree/{page.connection}")["data"]
    assert (row["text"], row["rel"]) == ("orders (1)", "stream")
    shown = page.look(f"key/{page.connection}/orders")
    assert (shown["type"], shown["ttl"], shown["length"]) == ("stream", -1, 1)
    assert shown["items"] == [{"timestamp": "2-0", "field": "item", "value": "pen", "number": 1}]
    [server] = page.look("server/info")["data"]
    assert {"key": "Redis mode", "value": "standalone"} in server["info"]
    with Redis(penstock.host, penstock.port, decode_responses=True) as client:
        assert client.xrange("orders") == [("2-0", {"item": "pen"})]
