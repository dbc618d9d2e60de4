"""Transactions add entries at once where they can: nobody sees that.

The same reads go to two servers. On one of them another client monitors, so that each command of a
transaction runs by itself. On the other one the client's user may lack the right to a command that
it never uses, which makes no difference. Replies, data, counters and the
append-only file are the same, but for where transactions begin and end in it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.aof.commands import EXEC, MULTI
from tests.property.test_fast_xadd import (
    OTHERS,
    SETUPS,
    Road,
    Setup,
    additions_of_one_kind,
)
from tests.support.examples import scaled
from tests.support.wire import pack, packed

ADDITIONS = additions_of_one_kind()
QUEUED = st.lists(st.one_of(*[ADDITIONS] * 6, OTHERS), min_size=1, max_size=6)


@st.composite
def transactions(draw: st.DrawFn) -> list[bytes | int]:
    """Transactions, each in a read of its own, and what time passes between them."""
    reads: list[bytes | int] = [packed("XADD s * f 0", "XADD t * f 0")]
    for requests in draw(st.lists(QUEUED, min_size=1, max_size=4)):
        queued = b"".join(b"".join(piece) for piece in requests)
        reads.append(pack(b"MULTI") + queued + pack(b"EXEC"))
        reads.append(draw(st.sampled_from([0, 0, 1, 5])))
    return reads


def road(*, one_by_one: bool = False, limited: bool = False) -> Road:
    """A server of which nothing has been counted yet."""
    made = Road(None)
    client, other = made.direct.client(), made.direct.client()
    if one_by_one:
        assert other.send("MONITOR") == b"+OK\r\n"
    if limited:
        assert client.send("ACL", "SETUSER", "default", "-swapdb") == b"+OK\r\n"
    client.send("CONFIG", "RESETSTAT")
    return made


def without_bounds(seen: list[Any]) -> list[Any]:
    """What was seen, with a file in which nothing says what is a whole."""
    *rest, file = seen
    return [*rest, file.replace(MULTI, b"").replace(EXEC, b"")]


@settings(
    max_examples=scaled(150),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(reads=transactions(), setup=st.sampled_from(SETUPS), limited=st.booleans())
async def test_entries_that_a_transaction_adds_at_once_are_those_of_its_commands(
    reads: list[bytes | int], setup: Setup, limited: bool
) -> None:
    together, apart = road(limited=limited), road(one_by_one=True)
    for each in (together, apart):
        setup(each)
    for read in reads:
        assert without_bounds(together.read(read)) == without_bounds(apart.read(read))
    assert together.look() == apart.look()
