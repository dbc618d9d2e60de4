"""A server of which every screen of the page has something to show."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import redis

from server.web.page.sampling import Sampler
from tests.support.ports import free_port
from tests.support.servers import PenstockThread

MINUTE_MS = 60_000

HOSTILE = (
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(2)>',
    b"'; DROP TABLE--",
    b"javascript:alert(3)",
    b"\xff\xfe\x00<b>",
    "\u202egnp.exe".encode(),
    b"&lt;i&gt;",
    b"{{7*7}}${7*7}<%= 7*7 %>",
    b"a" * 300,
    b"two\r\nlines: x",
    b"key with spaces & ampersands?=#%20",
)
"""Names that would be markup, addresses or templates if somebody took them for it."""


class Filled:
    """A server with its port for HTTP, and a client; settings are those of the configuration. Its
    sampler looks when the test says so (:meth:`look`)."""

    def __init__(self, **settings: Any) -> None:
        self.http = free_port()
        self.penstock = PenstockThread(metrics_port=self.http, metrics_bind="127.0.0.1", **settings)
        self.client: Any

    def __enter__(self) -> Filled:
        self._stack = ExitStack()
        self._stack.enter_context(self.penstock)
        task = self.sampler._task
        assert task is not None
        self.penstock.call(task.cancel)
        self.client = self._stack.enter_context(
            redis.Redis(host=self.penstock.host, port=self.penstock.port)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def sampler(self) -> Sampler:
        """Who looks at all streams."""
        web = self.penstock.server._web
        assert web is not None
        return web._page.sampler

    def look(self) -> None:
        """Has the sampler look at everything now."""
        self.penstock.run(self.sampler.look())

    def stretch(self) -> None:
        """Lets all looks so far have been ten seconds apart."""
        for trace in (*self.sampler.traces.values(), self.sampler.whole):
            times = trace._columns["times"]
            for at in range(len(times)):
                times[at] = times[-1] - 10_000 * (len(times) - 1 - at)


def fill(client: Any) -> None:
    """Streams of orders with groups that keep up, that are behind, and that are stuck."""
    now = int(time.time() * 1000)
    _orders(client, now)
    _payments(client, now)
    _letters(client, now)
    for at in range(30):
        client.xadd(f"sensors:{at:02}", {"celsius": str(20 + at / 10)}, id=f"{now - at}-0")
        client.xgroup_create(f"sensors:{at:02}", "archive", "$")


def _orders(client: Any, now: int) -> None:
    """Behind by much, with an entry that fails again and again."""
    for at in range(400):
        client.xadd(
            "orders",
            {"order": str(10_000 + at), "item": ("tea", "coffee", "cocoa")[at % 3], "cups": at % 7},
            id=f"{now - (400 - at) * 3000}-0",
        )
    client.xgroup_create("orders", "kitchen", "0")
    client.xgroup_create("orders", "invoices", "0")
    client.xgroup_create("orders", "analytics", "$")
    for name, count in (("ann", 40), ("bob", 12), ("cleo", 3)):
        client.xreadgroup("kitchen", name, {"orders": ">"}, count=count)
    first = client.xrange("orders", count=8)
    for at, (entry, _) in enumerate(first):
        client.xclaim(
            "orders",
            "kitchen",
            "ann",
            0,
            [entry],
            idle=(9 - at) * MINUTE_MS,
            retrycount=(12, 7, 3, 3, 2, 2, 1, 1)[at],
        )
    client.xreadgroup("invoices", "clerk", {"orders": ">"}, count=380)
    ids = [entry for entry, _ in client.xrange("orders", count=380)]
    client.xack("orders", "invoices", *ids)


def _payments(client: Any, now: int) -> None:
    for at in range(120):
        client.xadd(
            "payments", {"amount": f"{at}.50", "currency": "EUR"}, id=f"{now - (120 - at) * 900}-0"
        )
    client.xgroup_create("payments", "ledger", "0")
    client.xreadgroup("ledger", "worker-1", {"payments": ">"}, count=118)
    policies = ("ack-wait", 86_400_000, "max-deliveries", 5, "dead-letter", "payments:dead")
    client.execute_command("PENSTOCK POLICY", "SET", "payments", "GROUP", "ledger", *policies)
    client.execute_command("PENSTOCK POLICY", "SET", "payments", "retention", 604_800_000)
    client.xack("payments", "ledger", *[entry for entry, _ in client.xrange("payments", count=116)])


def _letters(client: Any, now: int) -> None:
    for at in range(7):
        client.xadd(
            "orders:dead",
            {
                "dead-letter-stream": "orders",
                "dead-letter-id": f"{now - 500_000 - at}-0",
                "dead-letter-group": "kitchen",
                "dead-letter-consumer": "ann",
                "dead-letter-deliveries": "5",
                "dead-letter-reason": "cups: not a number: 'three'",
                "order": str(9_000 + at),
                "cups": "three",
            },
            id=f"{now - 400_000 + at}-0",
        )


def fill_with_hostile_names(client: Any) -> None:
    """A stream, group, consumer, field and value for each of :data:`HOSTILE`."""
    for name in HOSTILE:
        client.xadd(name, {name: name, b"dead-letter": name})
        client.xgroup_create(name, name, "0")
        client.xreadgroup(name, name, {name: ">"}, count=1)
        client.xadd(
            b"letters",
            {
                b"dead-letter-stream": name,
                b"dead-letter-id": name,
                b"dead-letter-reason": name,
                name: name,
            },
        )
