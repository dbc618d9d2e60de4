"""What happens to the stream ``orders`` and its group ``packers`` in most tests."""

from __future__ import annotations

from typing import Any


def add(client: Any, count: int, first: int = 1) -> list[str]:
    """Adds entries ``1-0``, ``2-0``, ... with their number in them."""
    return [str(client.xadd("orders", {"n": n}, id=f"{n}-0")) for n in range(first, first + count)]


def take(client: Any, name: str, count: int | None = None, **options: Any) -> list[Any]:
    """What a consumer of the group is given of the stream."""
    reply: Any = client.xreadgroup("packers", name, {"orders": ">"}, count=count, **options)
    entries: list[Any] = reply.get("orders", [])
    return entries


def pending(client: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The pending entries: ID, owner, idle time, deliveries."""
    rows: Any = client.xpending_range("orders", "packers", "-", "+", 100, **options)
    return [tuple(row.values()) for row in rows]


def park(client: Any, *request: str | int) -> Any:
    """Sends a request on a connection of its own, which is returned before the reply is read."""
    connection = client.connection_pool.get_connection()
    connection.send_command(*request)
    return connection
