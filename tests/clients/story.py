"""The story that every client tells, in its own words, and what the server holds afterwards.

A group ``packers`` is made on a stream ``orders`` that does not exist yet. ``ann`` waits for an
entry, is woken by the first one and acknowledges it. She takes the two that follow and crashes.
``bob`` finds them pending, claims both, and acknowledges one. The other one stays pending, for
whoever looks into it.
"""

from __future__ import annotations

from typing import Any, Final

from redis import Redis

from tests.clients.observing import until
from tests.support.servers import PenstockThread

ITEMS: Final = {"1-0": {"item": "pen"}, "2-0": {"item": "ink"}, "3-0": {"item": "paper"}}
"""The entries of the stream, in the order in which they are added."""

PATIENCE_MS: Final = 20_000
"""How long a consumer of the story waits; the test ends its wait long before."""

SUMMARY: Final = {
    "pending": [("3-0", "bob", 2)],
    "group": {
        "name": "packers",
        "consumers": 2,
        "pending": 1,
        "last-delivered-id": "3-0",
        "entries-read": 3,
        "lag": 0,
    },
    "consumers": [("ann", 0), ("bob", 1)],
    "length": 3,
}
"""What a look at the stream shows in the end: entry, owner and deliveries; the group; who owns."""


class Observer:
    """Looks at the server with a connection of its own, apart from the client that is tested."""

    def __init__(self, penstock: PenstockThread) -> None:
        self._client = Redis(
            penstock.host, penstock.port, decode_responses=True, legacy_responses=False
        )

    def close(self) -> None:
        """Gives the connection up."""
        self._client.close()

    def until_waiting(self, count: int = 1) -> None:
        """Returns when so many clients wait for an entry."""
        until(lambda: self._client.info("clients")["blocked_clients"] == count)

    def until_pending(self, count: int, consumer: str = "ann") -> None:
        """Returns when a consumer owns so many entries."""
        until(lambda: dict(self._owners()).get(consumer) == count)

    def add(self, entry_id: str) -> None:
        """Adds an entry of the story, for a client that cannot while it waits."""
        self._client.xadd("orders", ITEMS[entry_id], id=entry_id)  # type: ignore[arg-type]

    def _owners(self) -> list[tuple[str, int]]:
        rows: Any = self._client.xinfo_consumers("orders", "packers")
        return [(row["name"], row["pending"]) for row in rows]

    def summary(self) -> dict[str, Any]:
        """The end of the story as the server has it; :data:`SUMMARY` if all went well."""
        [group] = self._client.xinfo_groups("orders")
        rows: Any = self._client.xpending_range("orders", "packers", "-", "+", 10)
        return {
            "pending": [
                (row["message_id"], row["consumer"], row["times_delivered"]) for row in rows
            ],
            "group": group,
            "consumers": self._owners(),
            "length": self._client.xlen("orders"),
        }
