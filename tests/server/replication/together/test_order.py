"""What is sent to a replica is sent in order, whatever holds it back."""

from __future__ import annotations

import asyncio

from server.replication.replica import UNSENT
from tests.support.direct import Direct
from tests.support.held_output import hold_output
from tests.support.wire import Wire


async def test_what_was_held_back_until_the_file_was_written_comes_before_what_was_not(
    direct: Direct,
) -> None:
    direct.client().send("PSYNC", "?", "-1")  # The stream begins.
    services = direct.server.services
    stream = services.replication.feed
    replica = Wire(direct)
    replica.read(f"PSYNC {direct.server.services.replication.id} 1\r\n".encode())
    assert replica.take() == b"+CONTINUE\r\n"
    commit = hold_output(direct)
    sent = b"".join(b"%7d\n" % number for number in range(UNSENT // 4))
    stream.say(sent)  # Which is more than is given to a connection at once.
    stream.flush()
    assert replica.take() == b""
    commit.settle()
    for _ in range(10):  # Rounds of the loop, of which it takes a few.
        await asyncio.sleep(0)
    assert replica.take().endswith(sent + b"\r\n")
