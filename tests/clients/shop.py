"""A server whose configuration has policies, for workers that know nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

from redis import Redis

from tests.clients.libraries import GROUP, STREAM
from tests.clients.observing import until_parked
from tests.support.servers import PenstockThread

DEAD: Final = "orders:dead"
HOUR: Final = 3_600_000
"""In milliseconds: so much longer than any test that only the server's clock can bring it about."""


class Shop:
    """A server with lines ``stream-policy``, and a client to look with. Time passes by DEBUG."""

    def __init__(self, *lines: str, **settings: Any) -> None:
        self.penstock = PenstockThread(
            stream_policy="\n".join(lines), enable_debug_command="yes", **settings
        )
        self.penstock.start()
        # What frameworks put around a message is no text.
        self.client: Any = Redis(
            self.penstock.host,
            self.penstock.port,
            decode_responses=True,
            encoding_errors="replace",
        )

    def advance(self, milliseconds: int) -> None:
        """Lets time pass on the server: what is due by then has happened."""
        assert self.client.execute_command("DEBUG", "CLOCK", "ADVANCE", milliseconds)

    def now_ms(self) -> int:
        """The time of the server."""
        seconds, microseconds = self.client.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    def until_waiting(self, count: int) -> None:
        """Returns when so many workers wait."""
        until_parked(self.client, count)

    def set(self, *policies: Any) -> None:
        """PENSTOCK POLICY SET: what an operator does while workers run."""
        self.client.execute_command("PENSTOCK POLICY", "SET", STREAM, "GROUP", GROUP, *policies)

    def pending(self) -> list[tuple[str, int]]:
        """The owner ("" for none) and the delivery count of each pending entry."""
        rows: Any = self.client.xpending_range(STREAM, GROUP, "-", "+", 1000)
        return [(row["consumer"], row["times_delivered"]) for row in rows]

    def left(self, key: str = STREAM) -> list[str]:
        """The values of ``n`` of the entries that a stream has."""
        rows: Any = self.client.xrange(key)
        return [fields["n"] for _, fields in rows]

    def letters(self) -> list[dict[str, str]]:
        """The dead letters."""
        rows: Any = self.client.xrange(DEAD)
        return [fields for _, fields in rows]

    def consumers(self) -> list[str]:
        """Who is in the group."""
        rows: Any = self.client.xinfo_consumers(STREAM, GROUP)
        return sorted(row["name"] for row in rows)

    def close(self) -> None:
        """Ends the server."""
        self.client.close()
        self.penstock.stop()


Made = TypeVar("Made", bound=Shop)


@contextmanager
def opened(make: Callable[..., Made]) -> Iterator[Callable[..., Made]]:
    """Opens shops with lines of policies, which are closed in the end."""
    with ExitStack() as stack:

        def run(*lines: str) -> Made:
            shop = make(*lines)
            stack.callback(shop.close)
            return shop

        yield run


def with_group(shop: Made) -> Made:
    """The shop, where there is now the group, which has the whole stream before it."""
    shop.client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
    return shop
