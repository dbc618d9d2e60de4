"""Policies hold in random histories with crashes, restarts and a clock that turns; without any, the
same histories have the replies of a real server."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings

from server.delivery import agenda, reading
from tests.conformance.reference import RealServer
from tests.property.policy_histories import (
    CONSUMERS,
    DEAD,
    HISTORIES,
    History,
    Step,
)
from tests.property.test_streams_against_redis import comparable
from tests.support.direct import parsed
from tests.support.examples import scaled
from tests.support.wire import Client

SETTINGS = settings(max_examples=scaled(40), deadline=None, suppress_health_check=list(HealthCheck))

DEAD_LETTERS = ("max-deliveries", 2, "dead-letter", DEAD)

GROUPS: dict[str, tuple[str | int, ...]] = {
    "dead letters": DEAD_LETTERS,
    "ack-wait": ("ack-wait", 150),
    "backoff": ("backoff", "50,150,500"),
    "exponential backoff": ("backoff", "exponential:50:500:20%"),
    "dead letters after retries": ("backoff", "50,150", *DEAD_LETTERS),
    "consumer-ttl": ("consumer-ttl", 500),
    "max-pending": ("max-pending", 3),
    "max-pending-consumer": ("max-pending-consumer", 2),
    "rate-limit": ("rate-limit", "3/100"),
    "rate-limit with retries": ("rate-limit", "2/100", "ack-wait", 150, *DEAD_LETTERS),
    "order-by": ("order-by", "value"),
    "order-by with retries": ("order-by", "value", "ack-wait", 150, *DEAD_LETTERS),
    "order-by, looking ahead for one": ("order-by", "value", "look-ahead", 1, "backoff", "50,150"),
    "order-by with delays": ("order-by", "value", "delay-field", "at", "look-ahead", 2),
    "priority-field": ("priority-field", "n"),
    "priority-field with equal numbers": ("priority-field", "at", "ack-wait", 150, *DEAD_LETTERS),
    "priority-field with delays": ("priority-field", "n", "delay-field", "at", "backoff", "50,150"),
    "priority-field, looking ahead for two": (
        *("priority-field", "n", "look-ahead", 2, "ack-wait", 150, "max-pending", 3),
    ),
    "priority-field in an order": ("priority-field", "n", "order-by", "value", "ack-wait", 150),
    "only": ("only", "kind=tea"),
    "delay-field": ("delay-field", "at"),
    "reasons": ("reasons", "yes", "backoff", "50,150", "max-deliveries", 4, "dead-letter", DEAD),
    "reasons in an order": ("reasons", "yes", "order-by", "value", "ack-wait", 50),
    "paused": ("paused", "no", "ack-wait", 150),
    "all together": (
        *("order-by", "value", "only", "kind=tea", "delay-field", "at", "ack-wait", 150),
        *("consumer-ttl", 700, "max-pending", 3, "rate-limit", "4/100", *DEAD_LETTERS),
    ),
    "all together, by priority": (
        *("order-by", "value", "only", "kind=tea", "delay-field", "at", "ack-wait", 150),
        *("consumer-ttl", 700, "max-pending", 3, "rate-limit", "4/100", *DEAD_LETTERS),
        *("priority-field", "n", "look-ahead", 4),
    ),
}
"""Policies of the group."""

STREAMS: dict[str, tuple[str | int, ...]] = {
    "delete acked": ("delete", "acked"),
    "delete acked with a grace": ("delete", "acked", "delete-grace", 200),
    "auto-group": ("auto-group", "0", "ack-wait", 150),
    "retention": ("retention", 300),
    "retention-bytes": ("retention-bytes", "300"),
    "retention of what is read": ("retention", 300, "retention-unread", "keep"),
}
"""Policies of the stream, each beside some of the group."""

REDRIVEN: Final = (("add", "a", "tea", 0), ("read", "ann", 1), ("nack", "FATAL", 0), ("delete", 0))
"""A dead letter goes back whose entry was deleted."""

OF_GROUP: Final = ("backoff", "50,150", *DEAD_LETTERS)


@pytest.mark.parametrize("name", GROUPS)
def test_policies_of_a_group_hold_in_any_history(name: str) -> None:
    @SETTINGS
    @example([*REDRIVEN, ("redrive",)])
    @given(HISTORIES)
    def play(steps: list[Step]) -> None:
        history = History(GROUPS[name])
        history.play(steps)
        drain(history)

    play()


@pytest.mark.parametrize("name", GROUPS)
def test_they_hold_where_very_little_is_done_in_one_go(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads pass over two entries in a step, two fall due or become dead letters in one go, and
    lanes are made of two pending entries at a time; compiled code does as much as ever."""
    for module, constant in (
        (reading, "PASSED_AT_ONCE"),
        (reading, "_PORTION"),
        (agenda, "PORTION"),
        (agenda, "BURIED_AT_ONCE"),
        (agenda, "_SHARED"),
    ):
        monkeypatch.setattr(module, constant, 2)
    test_policies_of_a_group_hold_in_any_history(name)


@pytest.mark.parametrize("name", STREAMS)
def test_policies_of_a_stream_hold_in_any_history(name: str) -> None:
    @SETTINGS
    @given(HISTORIES)
    def play(steps: list[Step]) -> None:
        history = History(OF_GROUP if name != "auto-group" else (), STREAMS[name])
        history.play(steps)
        drain(history)

    play()


def drain(history: History) -> None:
    """After enough time everything that is for the group has come through, whatever happened."""
    history.do_pause(False)
    for _ in range(200):
        history.do_pass(1000)
        history.take_woken()
        for consumer in CONSUMERS:
            history.do_read(consumer, 4)
            history.take_woken()
            history.do_history(consumer)
            history.take_woken()
        while history.in_flight(0):
            history.do_ack(0)
        history.check()
        if not history.pending() and not history.unread():
            return
    raise AssertionError(f"entries are stuck: {history.pending()}, {history.unread()}")


# --- without policies ------------------------------------------------------------------------

PLAIN: Final = frozenset(
    {"add", "read", "ack", "history", "claim", "autoclaim", "remove", "rename"}
)
"""What a server without policies, and without the newer commands, can be asked."""


class Beside(History):
    """A history whose commands go to a real server as well; every reply must be the same."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.real = Client(address)
        self.real.raw("FLUSHALL")
        super().__init__(())

    def do_autoclaim(self, consumer: str, idle: int) -> None:
        """No entry comes near the longer time while the real server's clock runs on."""
        super().do_autoclaim(consumer, 10**9 if idle else 0)

    def check_kept_back(self, pending: list[tuple[int, str, int]]) -> None:
        """Without policies nothing is kept back, and the real server counts nothing."""

    def ask(self, *words: str | int) -> Any:
        reply = self.recording.send(*words)
        command = [str(word) for word in words]
        assert reply is not None
        assert comparable(command, reply) == comparable(command, self.real.raw(*words))
        return parsed(reply)


def test_without_policies_the_same_histories_have_the_replies_of_a_real_server(
    real_server: str,
) -> None:
    @SETTINGS
    @given(HISTORIES)
    def play(steps: list[Step]) -> None:
        history = Beside(real.address)
        with history.real:
            history.play([step for step in steps if step[0] in PLAIN])

    with RealServer(real_server) as real:
        play()
