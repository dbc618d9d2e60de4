"""A server that ends, and the replicas that it waits for."""

from __future__ import annotations

import asyncio

from tests.support.direct import Direct
from tests.support.process import TIMEOUT_S


async def test_nobody_waits_for_a_replica_that_has_gone_meanwhile(direct: Direct) -> None:
    direct.client().send("PSYNC", "?", "-1")  # The stream begins.
    replica = direct.client()
    assert replica.send("PSYNC", direct.server.services.replication.id, "1") == b"+CONTINUE\r\n"
    direct.client().send("SET", "key", "value")
    settling = asyncio.ensure_future(direct.server.services.replication.settle(3600))
    await asyncio.sleep(0)
    assert not settling.done()
    replica.disconnect()
    await asyncio.wait_for(settling, TIMEOUT_S)
