"""What happens to the stream ``orders`` and its group ``packers`` in most tests."""

from __future__ import annotations

from typing import Any

from redis import Redis
from redis.connection import Connection


def add(client: Redis, count: int, first: int = 1) -> list[str]:
    """Adds entries ``1-0``, ``2-0``, ... with their number in them."""
    return [str(client.xadd("orders", {"n": n}, id=f"{n}-0")) for n in range(first, first + count)]


def take(client: Redis, name: str, count: int | None = None, **options: Any) -> list[Any]:
    """What a consumer of the group is given of the stream."""
    reply: Any = client.xreadgroup("packers", name, {"orders": ">"}, count=count, **options)
    entries: list[Any] = reply.get("orders", [])
    return entries


def pending(client: Redis, **options: Any) -> list[tuple[Any, ...]]:
    """The pending entries: ID, owner, idle time, deliveries."""
    rows: Any = client.xpending_range("orders", "packers", "-", "+", 100, **options)
    return [tuple(row.values()) for row in rows]


def park(client: Redis, *request: str | int) -> Connection:
    """Sends a request on a connection of its own and returns without waiting for the reply."""
    connection: Connection = client.connection_pool.get_connection()
    connection.send_command(*request)
    return connection


def park_in_group(client: Redis, name: str) -> Connection:
    """A consumer that waits for ever for new entries."""
    request = f"XREADGROUP GROUP packers {name} BLOCK 0 STREAMS orders >"
    return park(client, *request.split())
