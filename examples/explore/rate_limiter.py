"""A rate limiter: a counter that expires.

https://redis.io/docs/latest/commands/incr/ shows both forms, and says what is wrong with the first.
With redis-py 8.1.0.
"""

from __future__ import annotations

from typing import Any

from penstock.testing import Penstock

PACKAGE = "redis"

COUNT = """
local calls = redis.call('INCR', KEYS[1])
if calls == 1 then
    redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return calls
"""


def incr_then_expire(client: Any) -> None:
    """Counts a call; the first one of a minute says when the counter goes."""
    if client.incr("calls:ann") == 1:
        client.expire("calls:ann", 60)


def by_a_script(client: Any) -> None:
    """Does both in one step."""
    client.eval(COUNT, 1, "calls:ann", 60)


def expires(client: Any) -> str:
    """Whoever calls later than that begins anew."""
    return "the counter stays for ever" if client.ttl("calls:ann") == -1 else ""


def test_incr_then_expire(penstock: Penstock) -> None:
    """Rate limiter: `INCR`, then `EXPIRE`."""
    penstock.explore.crashes(incr_then_expire, invariant=expires)


def test_script(penstock: Penstock) -> None:
    """Rate limiter: both in a script."""
    penstock.explore.crashes(by_a_script, invariant=expires)
