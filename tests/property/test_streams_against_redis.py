"""The same random commands go to the engine and to a real server; every reply must be the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import lists, one_of

from tests.conformance.reference import RealServer
from tests.property import stream_commands as commands
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.wire import Client

Words = commands.Words


EXAMPLES = scaled(45)
"""How many sessions are tried in each protocol."""


class RealClient(Client):
    """One connection to a real server; replies come back as the bytes they were."""

    def __init__(self, address: tuple[str, int], resp3: bool) -> None:
        super().__init__(address)
        if resp3:
            self.raw("HELLO", 3)

    def start_anew(self) -> None:
        """Removes all data, and sets what a test before may have changed."""
        self.raw("FLUSHALL")
        for setting, value in (("entries", 100), ("bytes", 4096)):
            self.raw("CONFIG", "SET", f"stream-node-max-{setting}", value)


_PENDING_LINE = re.compile(rb"(\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[a-z]*\r\n):\d+\r\n")
_FULL_PENDING = re.compile(rb"(\*[34]\r\n\$\d+\r\n\d+-\d+\r\n(?:\$\d+\r\n[a-z]*\r\n)?):\d+\r\n")
_NAMED_TIME = re.compile(rb"(\$\d+\r\n(?:seen-time|active-time|idle|inactive)\r\n:)(-1)?\d*\r\n")
_NEWER_FIELDS = re.compile(
    rb"\$\d+\r\n(?:idmp-duration|idmp-maxsize|pids-tracked|iids-tracked|iids-added"
    rb"|iids-duplicates|nacked-count)\r\n:\d+\r\n"
)
_MAP_HEADER = re.compile(rb"[*%]\d+\r\n(?=\$(?:6\r\nlength|4\r\nname)\r\n)")


def comparable(command: Words, reply: bytes) -> bytes:
    """A reply without what differs of itself: times, and fields that newer servers have."""
    if command[0] == "XPENDING":
        return _PENDING_LINE.sub(rb"\1:T\r\n", reply)
    if command[0] == "XINFO":
        reply = _FULL_PENDING.sub(rb"\1:T\r\n", _NAMED_TIME.sub(rb"\1\2T\r\n", reply))
        return _MAP_HEADER.sub(b"", _NEWER_FIELDS.sub(b"", reply))
    return reply


def machine_for(real: RealServer, resp3: bool) -> type[RuleBasedStateMachine]:
    """A state machine that sends commands to both servers and compares the replies."""
    theirs = RealClient(real.address, resp3)

    class Comparison(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.ours = Direct().client(resp3=resp3)
            theirs.start_anew()

        @rule(command=one_of(*commands.EVERYTHING))
        def send(self, command: Words) -> None:
            mine, reference = self.ours.send(*command), theirs.raw(*command)
            assert mine is not None
            assert comparable(command, mine) == comparable(command, reference), command

    return Comparison


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int = 60) -> None:
    """Lets hypothesis take so many steps in each of so many examples."""
    options: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    how = settings(max_examples=examples, stateful_step_count=steps, **options)
    run_state_machine_as_test(machine, settings=how)


@pytest.mark.parametrize("resp3", [False, True], ids=["RESP2", "RESP3"])
def test_every_reply_is_that_of_the_real_server(real: RealServer, resp3: bool) -> None:
    run(machine_for(real, resp3), EXAMPLES)


STATE: list[Words] = [
    ["XADD", "k", "1-1", "a", "b"],
    ["XADD", "k", "2-2", "a", "b"],
    ["XGROUP", "CREATE", "k", "g", "0"],
    ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "STREAMS", "k", ">"],
    ["SET", "q", "text"],
]


@pytest.mark.parametrize("resp3", [False, True], ids=["RESP2", "RESP3"])
def test_wrong_arguments_are_answered_as_by_the_real_server(real: RealServer, resp3: bool) -> None:
    theirs = RealClient(real.address, resp3)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests=lists(commands.malformed(), min_size=10, max_size=40))
    def compare(requests: list[Words]) -> None:
        direct = Direct()
        ours = direct.client(resp3=resp3)
        theirs.start_anew()
        for command in STATE:
            assert ours.send(*command) == theirs.raw(*command)
        for command in requests:
            mine, reference = ours.send(*command), theirs.raw(*command)
            if mine is None:
                direct.advance(1)
                mine = ours.reply_when_woken
            assert mine is not None
            assert comparable(command, mine) == comparable(command, reference), command

    compare()
    theirs.close()
