"""Scripts that show what a server for tests does, and their run on fakeredis: ``python -m
tests.clients.rivals SCRIPT`` prints whether it does that.

The clock of fakeredis is that of its process, which freezegun moves.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import redis

WAIT_S: Final = 0.5
"""How long a reader that nothing wakes is waited for."""


class Rival(NamedTuple):
    """How to have a client of it, and how to let an hour pass."""

    client: Callable[[], Any]
    pass_an_hour: Callable[[], Any]


def times_pass(rival: Rival) -> bool:
    """IDs, idle times and expiry follow the clock that a test moves."""
    client = rival.client()
    first = client.xadd("s", {"n": 1})
    client.xgroup_create("s", "g", "0")
    client.xreadgroup("g", "ann", {"s": ">"})
    client.set("k", "v", ex=60)
    rival.pass_an_hour()
    [pending] = client.xpending_range("s", "g", "-", "+", 1)
    second = client.xadd("s", {"n": 2})
    passed = int(second.split("-")[0]) - int(first.split("-")[0])
    return bool(
        pending["time_since_delivered"] >= 3_600_000
        and passed >= 3_600_000
        and client.get("k") is None
    )


def blocked_readers_wake(rival: Rival) -> bool:
    """A reader that is blocked for half an hour returns when a test moves the clock by an hour."""
    client, reader = rival.client(), rival.client()
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(reader.xread({"s": "$"}, block=1_800_000)), daemon=True
    )
    thread.start()
    thread.join(WAIT_S)
    rival.pass_an_hour()
    thread.join(WAIT_S * 10)
    woken = not thread.is_alive()
    client.xadd("s", {"n": 1})  # Whoever still waits goes.
    thread.join()
    return woken


def entries_are_given_back(rival: Rival) -> bool:
    """XNACK gives an entry back."""
    client = rival.client()
    client.xadd("s", {"n": 1}, id="1-1")
    client.xgroup_create("s", "g", "0")
    client.xreadgroup("g", "ann", {"s": ">"})
    try:
        return bool(client.execute_command("XNACK", "s", "g", "FAIL", "IDS", 1, "1-1") == 1)
    except redis.ResponseError:
        return False


def fields_expire(rival: Rival) -> bool:
    """A field of a hash expires when the clock moves."""
    client = rival.client()
    client.hset("h", mapping={"a": 1, "b": 2})
    client.execute_command("HEXPIRE", "h", 60, "FIELDS", 1, "a")
    rival.pass_an_hour()
    return bool(client.hgetall("h") == {"b": "2"})


SCRIPTS: Final = (times_pass, blocked_readers_wake, entries_are_given_back, fields_expire)


def main(name: str) -> None:
    """Runs the script of this name on fakeredis, with a clock that stands still."""
    import fakeredis
    import freezegun

    with freezegun.freeze_time("2026-01-01") as frozen:
        server = fakeredis.FakeServer()
        fake = Rival(
            lambda: fakeredis.FakeRedis(server=server, decode_responses=True),
            lambda: frozen.tick(3600),
        )
        [script] = [each for each in SCRIPTS if each.__name__ == name]
        print(script(fake))


if __name__ == "__main__":
    main(sys.argv[1])
