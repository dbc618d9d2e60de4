"""A server of which every screen of the page has something to show."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import redis

from server.web.page.sampling import Sampler
from server.web.page.traces import History
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
        """Has the sampler look at everything now; the look before was ten seconds ago."""
        for trace in self._pasts():
            for buckets in trace.tiers:
                times = buckets.column("times")
                for at in range(len(times)):
                    times[at] -= 10_000
        self.penstock.run(self.sampler.look())

    def _pasts(self) -> list[History]:
        sampler = self.sampler
        known = (*sampler.traces.values(), *sampler.consumers.values())
        return [*known, sampler.whole, sampler.vitals]


def fill(client: Any) -> None:
    """Streams of orders with groups that keep up, that are behind, and that are stuck."""
    now = int(time.time() * 1000)
    _orders(client, now)
    _payments(client, now)
    _letters(client, now)
    client.hset("settings", mapping={"colour": "green", "size": "42"})
    client.set("greeting", "Good morning\n", ex=3600)
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
                "order": f"A{9_000 + at}",  # No ID, which is a value as well, has that in it.
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


def fill_with_nothing(_: Any) -> None:
    """Nothing at all."""


LONG = "prod-eu-west-1-telemetry-aggregator-deployment-7d9f8b6c5d"


def fill_with_large_things(client: Any) -> None:
    """Long names, large numbers, values that are binary or large, and very many consumers."""
    stream, group, now = f"{LONG}:readings:line-3", f"{LONG}-workers", int(time.time() * 1000)
    for at in range(300):
        client.xadd(stream, _reading(at), id=f"{now - (300 - at) * 1000}-0")
    client.execute_command("XSETID", stream, f"{now}-0", "ENTRIESADDED", 9_876_543_210)
    client.xgroup_create(stream, group, "0", entries_read=1_234_567_890)
    client.xgroup_create(stream, "g", f"{now}-0")
    for at in range(120):
        client.xreadgroup(group, f"{LONG}-{at:05}-x7k2p", {stream: ">"}, count=1 + (at == 7) * 60)
    entries = [entry for entry, _ in client.xrange(stream, count=4)]
    for entry, tries in zip(entries, (2**63 - 1, 123_456_789, 12_345, 4), strict=True):
        idle = 40 * 24 * 60 * MINUTE_MS
        client.xclaim(stream, group, LONG, 0, [entry], idle=idle, retrycount=tries)
    client.execute_command(
        *("PENSTOCK POLICY", "SET", stream, "GROUP", group, "max-deliveries", 1_000_000_000),
        *("dead-letter", "letters", "ack-wait", 86_400_000),
    )
    reason = f"{LONG}: expected a number at $.readings[17].celsius.value, but found {'é' * 200}"
    for at in range(60):
        letter = {"stream": stream, "id": f"{now}-0", "group": group, "consumer": LONG}
        told = {f"dead-letter-{name}": text for name, text in letter.items()}
        counts = {"dead-letter-deliveries": 1_000_000 * at, "dead-letter-reason": reason}
        client.xadd("letters", {**told, **counts, **_reading(at)})


def _reading(at: int) -> dict[str, Any]:
    """The fields of an entry: a picture, a text of a megabyte now and then, and short ones."""
    return {
        "image": b"\xff\xd8\xff" + bytes(48_000),
        "text": "a word and another " * (60_000 if at == 299 else 20),
        f"{LONG}.celsius": f"{at / 7}",
        "json": '{"line": 3, "tags": ["\N{HOT BEVERAGE}", "\N{CJK UNIFIED IDEOGRAPH-8336}"]}',
    }
