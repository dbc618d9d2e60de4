"""Random commands on keys, strings and collections: every reply must be that of a real server."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule
from hypothesis.strategies import one_of

from tests.conformance.reference import RealServer
from tests.property import (
    hash_commands,
    hyperloglog_commands,
    list_commands,
    set_commands,
    sorted_set_commands,
)
from tests.property import key_commands as commands
from tests.property.stream_commands import Strategy, Words
from tests.property.test_streams_against_redis import RealClient, run
from tests.support.direct import Direct
from tests.support.examples import scaled

COMMANDS = {
    "strings": commands.EVERYTHING,
    "hashes": (*hash_commands.EVERYTHING, commands.KEYSPACE),
    "lists": (*list_commands.EVERYTHING, commands.KEYSPACE),
    "HyperLogLogs": (*hyperloglog_commands.EVERYTHING, commands.KEYSPACE),
    "sets": (*set_commands.EVERYTHING, commands.KEYSPACE),
    "sorted sets": (*sorted_set_commands.EVERYTHING, commands.KEYSPACE),
}


def comparable(command: Words, reply: bytes | None) -> Sequence[bytes]:
    """The lines of a reply; in any order where Redis takes members from a hash table."""
    lines = (reply or b"").splitlines()
    return sorted(lines) if command[0] == "SPOP" else lines


def machine_for(
    theirs: RealClient, resp3: bool, chosen: Sequence[Strategy]
) -> type[RuleBasedStateMachine]:
    """A state machine that sends commands to both servers and compares the replies."""

    class Comparison(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.direct = Direct()
            self.ours = self.direct.client(resp3=resp3)
            theirs.raw("FLUSHALL")
            theirs.raw("SELECT", 0)

        @rule(command=one_of(*chosen))
        def send(self, command: Words) -> None:
            self.direct.now_ms = time.time_ns() // 1_000_000
            ours, reply = self.ours.send(*command), theirs.raw(*command)
            assert comparable(command, ours) == comparable(command, reply), command
            self.direct.server.state.keyspace.check()

    return Comparison


@pytest.mark.parametrize("resp3", [False, True], ids=["RESP2", "RESP3"])
@pytest.mark.parametrize("family", COMMANDS)
def test_every_reply_is_that_of_the_real_server(real: RealServer, resp3: bool, family: str) -> None:
    with RealClient(real.address, resp3) as theirs:
        run(machine_for(theirs, resp3, COMMANDS[family]), scaled(25))
