"""The shop that the examples work for: a stream of orders, a group of packers, and what is packed.

A parcel is something outside of the worker, like a mail or a payment: no crash takes it back. It is
counted by a connection of its own, which no fault strikes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from redis import Redis

ITEMS: Final = ("tea", "ink", "pen")

URL: Final = "SHOP_URL"
"""The name of the variable with the URL of the connection that counts."""


class Tally(NamedTuple):
    """What has become of the orders at the end of a scenario; one may be in several lists."""

    repeated: Sequence[str] = ()
    """Done more than once: at-least-once may do so."""
    left: Sequence[str] = ()
    """Still with the group, for ever."""
    never: Sequence[str] = ()
    """Still with the group, for ever, and done by nobody."""
    lost: Sequence[str] = ()
    """Done by nobody, and the group has it no more."""


tallies: Final[list[Tally]] = []
"""Those of all scenarios, in turn, with the two runs without a fault before them."""


def pack(item: str) -> None:
    """Packs what was ordered."""
    with Redis.from_url(os.environ[URL]) as counter:
        counter.incr(f"packed:{item}")


def fill(client: Any) -> None:
    """Makes the group, and an order for each item."""
    client.xgroup_create("orders", "packers", "0", mkstream=True)
    for item in ITEMS:
        client.xadd("orders", {"item": item})


def is_done(client: Any) -> bool:
    """Whether the group has delivered all, and all is acknowledged."""
    group = client.xinfo_groups("orders")[0]
    return bool(group["pending"] == group["lag"] == 0)


def tally(client: Any, items: Sequence[str], found: Sequence[bytes]) -> Tally:
    """Return what has become of the orders, of which those are left that are found somewhere in
    these bytes."""
    packed = {item: int(client.get(f"packed:{item}") or 0) for item in items}
    left = [item for item in items if any(item.encode() in text for text in found)]
    nobody = [item for item in items if not packed[item]]
    return Tally(
        [item for item in items if packed[item] > 1],
        left,
        [item for item in nobody if item in left],
        [item for item in nobody if item not in left],
    )


Left = Callable[[Any], Sequence[bytes]]
"""Return what has the orders that are not done with, by a client whose replies are bytes."""


def with_the_group(client: Any) -> list[bytes]:
    """Return the fields of what the group has not delivered, or what nobody has acknowledged."""
    group = client.xinfo_groups("orders")[0]
    waiting = client.xrange("orders", b"(" + group["last-delivered-id"])
    for pending in client.xpending_range("orders", group["name"], "-", "+", 100):
        waiting += client.xrange("orders", pending["message_id"], pending["message_id"])
    return [value for _, fields in waiting for value in fields.values()]


def nothing_is_lost(left: Left, items: Sequence[str], client: Any) -> str:
    """Return which orders nobody has packed, or will ever look at again."""
    with Redis.from_url(os.environ[URL]) as counter:
        found = tally(client, items, left(counter))
    tallies.append(found)
    told = {
        "lost": found.lost,
        "left, packed by nobody": found.never,
        "packed, but never acknowledged": [item for item in found.left if item not in found.never],
    }
    return "\n".join(f"{text}: {', '.join(items)}" for text, items in told.items() if items)


def explore(
    penstock: Any,
    worker: Any,
    left: Left = with_the_group,
    items: Sequence[str] = ITEMS,
    **options: Any,
) -> Any:
    """Tries every crash of a worker of the shop; raises :class:`AssertionError` if one ends
    wrong."""
    os.environ[URL] = penstock.url
    invariant = partial(nothing_is_lost, left, items)
    usual = {"prepare": fill, "invariant": invariant, "done": is_done}
    return penstock.explore.crashes(worker, **{**usual, **options})


def program(penstock: Any, *words: str, **variables: str) -> Any:
    """Return a worker that is a process: Python with these words, in the folder of the project."""
    root = Path(__file__).parents[2]
    return penstock.explore.process(sys.executable, *words, env=variables, cwd=str(root))


def follow_the_server(*, tick: bool = False) -> Callable[[], None]:
    """Sets the clock of this process to the server's, where it stands, or goes on with ``tick``:
    libraries that look at their own would not see that an hour has passed since a crash. Return a
    function that does so again."""
    from freezegun import freeze_time

    client = Redis.from_url(os.environ[URL])

    def now() -> datetime:
        seconds, micros = client.time()
        return datetime.fromtimestamp(seconds + micros / 1e6, UTC)

    frozen = freeze_time(now(), tick=tick, real_asyncio=True).start()
    return lambda: frozen.move_to(now())
